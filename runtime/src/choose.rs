//! Owns the choice of a device when nobody named one. Does not own: opening by URI (the registry does).

use std::sync::Arc;

use halite_hal::{Device, DeviceInfo, DeviceKind, DriverRegistry, Options, status};

use crate::Result;

/// Smaller is better; `None` is never chosen unasked.
fn rank(info: &DeviceInfo) -> Option<u8> {
    if info.unusable.is_some() {
        return None;
    }
    match info.kind {
        DeviceKind::DiscreteGpu => Some(0),
        DeviceKind::IntegratedGpu => Some(1),
        DeviceKind::VirtualGpu => Some(2),
        DeviceKind::Cpu => Some(3),
        // Test devices and the like compute nothing.
        DeviceKind::Other => None,
    }
}

/// Opens the best usable device of all drivers: a GPU before a processor, each driver's own order otherwise.
/// UNAVAILABLE lists what was seen and why it was not taken.
pub(crate) fn open_default(registry: &DriverRegistry, defaults: &Options) -> Result<Arc<dyn Device>> {
    let (mut best, mut seen) = (None::<(u8, DeviceInfo)>, Vec::new());
    for driver in registry.drivers() {
        let devices = match driver.enumerate(defaults) {
            Ok(devices) => devices,
            Err(e) => {
                seen.push(format!("driver '{}': {e}", driver.name()));
                continue;
            }
        };
        for info in devices {
            let why = info.unusable.as_deref().unwrap_or("computes nothing, name it to use it");
            match rank(&info) {
                Some(rank) if best.as_ref().is_none_or(|(other, _)| rank < *other) => {
                    best = Some((rank, info));
                }
                Some(_) => {}
                None => seen.push(format!("{} ({}): {why}", info.uri(), info.name)),
            }
        }
    }
    let (_, info) = best.ok_or_else(|| {
        let seen = if seen.is_empty() { "no driver is linked in".to_owned() } else { seen.join("; ") };
        status!(Unavailable, "a module needs a device and none can be used: {seen}")
    })?;
    if let Some(line) = info.processor_warning() {
        log::warn!("{line}");
    }
    Ok(registry.open(&info.uri(), defaults)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_come_first_and_toys_never() {
        let info = |kind, unusable: Option<&str>| DeviceInfo {
            driver: "d".into(),
            path: String::new(),
            name: "n".into(),
            kind,
            unusable: unusable.map(str::to_owned),
            properties: Vec::new(),
            ..DeviceInfo::default()
        };
        let kinds =
            [DeviceKind::DiscreteGpu, DeviceKind::IntegratedGpu, DeviceKind::VirtualGpu, DeviceKind::Cpu];
        let ranks = kinds.map(|kind| rank(&info(kind, None)).unwrap());
        assert!(ranks.is_sorted());
        assert_eq!(rank(&info(DeviceKind::Other, None)), None);
        assert_eq!(rank(&info(DeviceKind::DiscreteGpu, Some("too old"))), None);
    }
}
