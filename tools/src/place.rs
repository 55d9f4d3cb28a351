//! Owns what kernels are chosen for: targets that are named, devices at hand, and what was measured on this machine. Does not
//! own: the choice (`halite-shaders`).

use std::path::Path;

use halite_hal::{DeviceInfo, DriverRegistry, Options, choice};
use halite_shaders::TuningFile;
use halite_status::{Code, Status, status};
use halite_targets::{Capabilities, Facts, Os, Target};

use crate::{
    console::{Failure, Result},
    devices::{self, enumerate},
    flags::DeviceFlags,
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
pub(crate) struct Place {
    /// URI and name of the device; `None` for a target of the table.
    pub device: Option<(String, String)>,
    /// What kernels may use there.
    pub capabilities: Capabilities,
}

impl Place {
    /// A target of the table, by its triple or another name.
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
pub(crate) fn devices(registry: &DriverRegistry, uris: &[String], options: &Options) -> Result<Vec<Place>> {
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

/// What was measured on this machine: the file that is named, none for `none`, without a name that of this user.
pub(crate) fn tuning(file: Option<&Path>) -> Result<TuningFile> {
    let file = match file {
        Some(path) if path.as_os_str() == "none" => Ok(TuningFile::default()),
        Some(path) => TuningFile::read(path),
        None => TuningFile::of_user(),
    };
    let file = file.map_err(|e| Failure::Status(Status::new(Code::InvalidArgument, e.to_string())))?;
    for row in &file.rows {
        for variant in row.unknown() {
            log::warn!(
                "the tuning file names '{variant}', which is no variant of {} any more",
                row.operation
            );
        }
    }
    Ok(file)
}

/// The targets that are asked for: triples, then devices. Without triples, the device that programs run on.
pub(crate) fn places(triples: &[&str], flags: &DeviceFlags) -> Result<Vec<Place>> {
    let mut places = triples.iter().map(|triple| Place::of_triple(triple)).collect::<Result<Vec<_>>>()?;
    if places.is_empty() || !flags.device.is_empty() {
        places.extend(at_hand(flags)?);
    }
    Ok(places)
}

/// The devices that flags name; without names, the one that programs run on.
pub(crate) fn at_hand(flags: &DeviceFlags) -> Result<Vec<Place>> {
    let registry = flags.plugins.registry()?;
    let options = flags.vulkan_options()?;
    let uris = devices::uris(flags, &options)?;
    devices(&registry, &uris, &options)
}
