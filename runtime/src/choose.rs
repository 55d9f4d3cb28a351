//! Owns the choice of a device when nobody named one. Does not own: how devices are weighed (`halite_hal::choice`),
//! or opening by URI (the registry does).

use std::sync::Arc;

use halite_hal::{Device, DeviceInfo, DeviceKind, DriverEntry, DriverRegistry, Options, choice, status};

use crate::{Result, hints::ModuleHints};

/// Opens the best usable device of all drivers that the modules have code for: a GPU before a processor.
/// UNAVAILABLE lists what was seen and why it was not taken.
pub(crate) fn open_default(
    registry: &DriverRegistry,
    defaults: &Options,
    hints: &[ModuleHints],
) -> Result<Arc<dyn Device>> {
    let (mut devices, mut seen) = (Vec::new(), Vec::new());
    for entry in registry.entries() {
        match enumerate(entry, defaults) {
            Ok(found) => devices.extend(found),
            Err(e) => seen.push(format!("driver '{}': {e}", entry.name())),
        }
    }
    let ranked = choice::rank(&devices, &|format| hints.iter().any(|h| h.names_format(format)));
    let about = |r: &choice::Ranked| {
        let info = &devices[r.index];
        let why = r.ruled_out.as_deref().unwrap_or("usable");
        format!("{} ({}): {why}", info.uri(), info.name)
    };
    let Some(best) = ranked.first().filter(|r| r.ruled_out.is_none()) else {
        seen.extend(ranked.iter().map(about));
        let seen = if seen.is_empty() {
            "there is no driver; link one in or install a plug-in".to_owned()
        } else {
            seen.join("; ")
        };
        return Err(status!(Unavailable, "a module needs a device and none can be used: {seen}").into());
    };
    let info = &devices[best.index];
    log::info!("device {} chosen with {} points", info.uri(), best.score.total);
    warn_of_cpu(info, &ranked, &devices);
    Ok(registry.open(&info.uri(), defaults)?)
}

/// What a driver finds. One that cannot be loaded is warned of: something is installed and broken.
fn enumerate(entry: &DriverEntry, defaults: &Options) -> halite_hal::Result<Vec<DeviceInfo>> {
    let driver = entry.driver().inspect_err(|e| log::warn!("driver '{}' is left out: {e}", entry.name()))?;
    driver.enumerate(defaults)
}

/// A processor behind a GPU interface is a fallback that nobody may mistake for a GPU. One that the module has code for
/// is what was meant.
fn warn_of_cpu(info: &DeviceInfo, ranked: &[choice::Ranked], devices: &[DeviceInfo]) {
    let Some(line) = info.processor_warning() else { return };
    let gpu = ranked.iter().find(|r| r.ruled_out.is_some() && devices[r.index].kind != DeviceKind::Cpu);
    match gpu.filter(|r| r.score.total >= 0) {
        Some(r) => {
            let (gpu, why) = (&devices[r.index], r.ruled_out.as_deref().unwrap_or_default());
            log::warn!("running on the processor ({}); {} ({}): {why}", info.name, gpu.uri(), gpu.name);
        }
        None => log::warn!("{line}"),
    }
}
