//! The device that a URI asks for: which of a driver's devices it names, and opening it.

use std::sync::Arc;

use super::or_none;
use crate::{Device, DeviceInfo, Driver, Options, Result, ResultExt, Status, UNTRUSTED, status};

/// What a URI asks for ([`DriverRegistry::request`](super::DriverRegistry::request)). Layers take their options out before
/// they open it.
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    /// The driver.
    pub driver: Arc<dyn Driver>,
    /// The URI, for messages.
    pub uri: String,
    /// The device: its stable path, an index, or a part of its name that fits one device only. Empty for the best usable
    /// one.
    pub path: String,
    /// Options for the driver.
    pub options: Options,
}

impl DeviceRequest {
    /// Opens the driver's own device, which checks nothing: programs open devices through the layers (crate
    /// `halite-layers`). `others` are names of options that a layer knows, for messages.
    pub fn open_bare(&self, others: &[&str]) -> Result<Arc<dyn Device>> {
        let driver = self.driver.as_ref();
        check_options(driver, &self.options, others)?;
        let path = match self.path.as_str() {
            "" => String::new(),
            wanted => resolve_path(driver, wanted, &self.options)?,
        };
        driver.open(&path, &self.options).context(|| format!("opening device '{}'", self.uri))
    }
}

fn check_options(driver: &dyn Driver, options: &Options, others: &[&str]) -> Result<()> {
    let known = driver.options();
    for key in options.keys() {
        if !known.iter().any(|(name, _)| name == key) {
            if key == UNTRUSTED {
                return Err(status!(
                    PermissionDenied,
                    "driver '{}' cannot confine the code of strangers: it has no option '{UNTRUSTED}'; name a device of \
                     another driver",
                    driver.name()
                ));
            }
            let names: Vec<_> = known.iter().map(|(name, _)| *name).chain(others.iter().copied()).collect();
            return Err(status!(
                InvalidArgument,
                "unknown option '{key}' for driver '{}'; it knows: {}",
                driver.name(),
                or_none(names.join(", "))
            ));
        }
    }
    Ok(())
}

fn resolve_path(driver: &dyn Driver, wanted: &str, options: &Options) -> Result<String> {
    let devices = driver.enumerate(options)?;
    let lower = wanted.to_lowercase();
    if let Some(device) = devices.iter().find(|d| d.path.to_lowercase() == lower) {
        return Ok(device.path.clone());
    }
    // A number is an index and nothing else: '7' must not mean a device whose name has a 7 in it.
    let index = wanted.parse::<usize>().ok();
    if let Some(device) = index.and_then(|i| devices.get(i)) {
        return Ok(device.path.clone());
    }
    let mut named = devices.iter().filter(|d| index.is_none() && d.name.to_lowercase().contains(&lower));
    match (named.next(), named.next()) {
        (Some(device), None) => Ok(device.path.clone()),
        (Some(_), Some(_)) => Err(status!(
            InvalidArgument,
            "device name '{wanted}' fits several {} devices; name one by path or index: {}",
            driver.name(),
            list(&devices)
        )),
        _ if index.is_none() => {
            driver.find_unlisted(wanted, options)?.ok_or_else(|| not_found(driver, wanted, &devices))
        }
        _ => Err(not_found(driver, wanted, &devices)),
    }
}

fn not_found(driver: &dyn Driver, wanted: &str, devices: &[DeviceInfo]) -> Status {
    status!(NotFound, "{} device '{wanted}' not found; available: {}", driver.name(), or_none(list(devices)))
}

fn list(devices: &[DeviceInfo]) -> String {
    let lines: Vec<_> =
        devices.iter().enumerate().map(|(i, d)| format!("[{i}] {} ({})", d.uri(), d.name)).collect();
    lines.join(", ")
}
