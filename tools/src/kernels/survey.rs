//! Owns what is asked of the kernel library: the targets, and the variants of an operation on each. Does not own: printing.

use halite_hal::{DeviceInfo, DriverRegistry, Options, choice, status};
use halite_shaders::{Candidate, Operation, Tuning, Verdict, rank};
use halite_targets::{Capabilities, Facts, Os, Target};

use crate::{
    console::{Failure, Result},
    devices::enumerate,
};

/// What a device can do, out of its driver's record.
///
/// # Errors
/// The driver keeps no record, or one that is not understood.
pub fn capabilities(info: &DeviceInfo) -> Result<Capabilities, String> {
    let record = info.capabilities.as_deref().ok_or("the driver tells no capabilities")?;
    let facts = Facts::from_device_caps_json(record).map_err(|e| e.to_string())?.on(Os::host());
    let detected = Target::detect(&facts);
    Ok(Capabilities::of_device(detected.target, &facts))
}

/// Where an operation is to run.
#[derive(Debug)]
pub(super) struct Place {
    /// URI and name of the device; `None` for a target of the table.
    pub device: Option<(String, String)>,
    /// What kernels may use there.
    pub capabilities: Capabilities,
}

impl Place {
    /// A target of the table.
    pub fn of_triple(triple: &str) -> Result<Place> {
        let target = Target::parse(triple).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(Place { device: None, capabilities: Capabilities::of(target) })
    }

    fn of_device(info: &DeviceInfo) -> Result<Place, String> {
        let device = Some((info.uri(), info.name.clone()));
        Ok(Place { device, capabilities: capabilities(info)? })
    }

    /// Its triple.
    pub fn triple(&self) -> String {
        self.capabilities.target.to_string()
    }
}

/// The devices that are named; without names, the one that programs run on.
pub(super) fn devices(registry: &DriverRegistry, uris: &[String], options: &Options) -> Result<Vec<Place>> {
    if !uris.is_empty() {
        let place = |uri: &String| {
            let device = registry.open(uri, &Options::new())?;
            let refuse = |why| status!(Unimplemented, "device '{uri}': {why}; name a --target instead");
            Ok(Place::of_device(device.info()).map_err(refuse)?)
        };
        return uris.iter().map(place).collect();
    }
    let found = enumerate(registry, None, options)?;
    let order = choice::rank(&found, &|_| false);
    let mut places = order.iter().filter(|ranked| found[ranked.index].unusable.is_none());
    let place = places.find_map(|ranked| Place::of_device(&found[ranked.index]).ok());
    place.map(|place| vec![place]).ok_or_else(|| {
        let text = "no device here tells what kernels may use; name a --target, such as hopper-h200-linux";
        Failure::Status(status!(Unavailable, "{text}"))
    })
}

/// The variants of an operation on a target, in the order of choice.
#[derive(Debug)]
pub(super) struct Ranking<'a> {
    /// The target.
    pub place: &'a Place,
    /// Those for the operation's types, or all.
    pub candidates: Vec<Candidate>,
}

impl<'a> Ranking<'a> {
    /// Asks the library. Variants for other types are left out unless `all` are wanted.
    pub fn new(operation: &Operation, place: &'a Place, tuning: &Tuning, all: bool) -> Self {
        let signature = operation.signature();
        let mut candidates = rank(operation, &place.capabilities, tuning);
        candidates.retain(|c| all || c.variant.signatures.contains(&signature));
        Ranking { place, candidates }
    }

    /// The one that would run, and why it.
    pub fn choice(&self) -> Option<(&Candidate, &str)> {
        let first = self.candidates.first()?;
        match &first.verdict {
            Verdict::Runs { why, .. } => Some((first, why)),
            Verdict::RuledOut(_) => None,
        }
    }
}

/// An operation of a name, as text: a sample that computes something, the shortest of them.
pub(super) fn example(name: &str) -> Option<String> {
    let samples = Operation::samples(name).into_iter().filter(|sample| sample.work().flops > 0.0);
    let texts = samples.map(|sample| sample.to_string());
    texts.min_by_key(String::len).or_else(|| Some(Operation::samples(name).first()?.to_string()))
}
