//! What kernels are chosen for: targets that are named, and devices at hand.

use std::path::Path;

use halite::{
    Drivers, Tuning,
    compile::{Target, capabilities},
    hal::{DeviceInfo, choice},
};
use halite_targets::Capabilities;

use crate::{
    console::{Failure, Result},
    devices,
    engine::status,
    flags::DeviceFlags,
};

/// Where an operation is to run.
#[derive(Debug)]
pub(crate) struct RunTarget {
    /// URI and name of the device; `None` for a target of the table.
    pub device: Option<(String, String)>,
    /// What kernels may use there.
    pub capabilities: Capabilities,
}

impl RunTarget {
    /// A target of the table, by its triple or another name.
    pub fn of_triple(triple: &str) -> Result<RunTarget> {
        let target = Target::named(triple).map_err(|e| Failure::Usage(e.message().to_owned()))?;
        Ok(RunTarget { device: None, capabilities: target.capabilities().clone() })
    }

    fn of_device(info: &DeviceInfo) -> halite::Result<RunTarget> {
        let device = Some((info.uri(), info.name.clone()));
        Ok(RunTarget { device, capabilities: capabilities(info)? })
    }

    /// Its triple.
    pub fn triple(&self) -> String {
        self.capabilities.target.to_string()
    }
}

/// What was measured on this machine: the file that is named, none for `none`, without a name that of this user.
pub(crate) fn tuning(file: Option<&Path>) -> Tuning {
    match file {
        None => Tuning::User,
        Some(path) if path.as_os_str() == "none" => Tuning::Shipped,
        Some(path) => Tuning::File(path.to_owned()),
    }
}

/// The devices that flags name, or the one that models run on, as targets to compile for.
pub(crate) fn host(flags: &DeviceFlags) -> Result<Vec<Target>> {
    let drivers = Drivers::from_registry(flags.registry()?);
    let options = flags.vulkan_options()?;
    let uris = at_hand(flags)?.into_iter().filter_map(|place| Some(place.device?.0));
    uris.map(|uri| Ok(Target::of_device(&drivers.open(&devices::with_options(&uri, &options)?)?)?)).collect()
}

/// The targets that are asked for: triples, then devices. Without triples, the device that programs run on.
pub(crate) fn places(triples: &[&str], flags: &DeviceFlags) -> Result<Vec<RunTarget>> {
    let mut places = triples.iter().map(|triple| RunTarget::of_triple(triple)).collect::<Result<Vec<_>>>()?;
    if places.is_empty() || !flags.device.is_empty() {
        places.extend(at_hand(flags)?);
    }
    Ok(places)
}

/// The devices that flags name; without names, the one that models run on.
fn at_hand(flags: &DeviceFlags) -> Result<Vec<RunTarget>> {
    let registry = flags.registry()?;
    let options = flags.vulkan_options()?;
    let uris = devices::uris(flags, &options)?;
    if !uris.is_empty() {
        let drivers = Drivers::from_registry(registry);
        return uris.iter().map(|uri| Ok(RunTarget::of_device(drivers.open(uri)?.info().hal())?)).collect();
    }
    let found = devices::enumerate(&registry, None, &options)?;
    let order = choice::rank(&found, &|_| false);
    let mut usable = order.iter().map(|ranked| &found[ranked.index]).filter(|info| info.unusable.is_none());
    let place = usable.find_map(|info| RunTarget::of_device(info).ok());
    place.map(|place| vec![place]).ok_or_else(|| {
        let text = "no device here tells what kernels may use; name a --target, such as hopper-h200-linux";
        Failure::Status(status!(Unavailable, "{text}"))
    })
}
