//! Owns the set of known drivers and device choice by URI. Does not own: loading driver libraries.

use std::sync::Arc;

use crate::{
    Device, DeviceInfo, Driver, Options, Result, ResultExt, status, uri::DeviceUri,
    validation::ValidatedDevice,
};

/// A driver linked into the program: `inventory::submit! { StaticDriver { .. } }`.
pub struct StaticDriver {
    /// Name of the driver; the registry sorts by it, because link order is arbitrary.
    pub name: &'static str,
    /// Makes the driver object. Cheap; does no device work.
    pub create: fn() -> Arc<dyn Driver>,
}

inventory::collect!(StaticDriver);

/// Drivers by name. Static and loaded drivers look the same to callers.
#[derive(Clone, Debug, Default)]
pub struct DriverRegistry {
    drivers: Vec<Arc<dyn Driver>>,
}

impl DriverRegistry {
    /// No drivers.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The drivers linked into this program, sorted by name.
    pub fn with_static_drivers() -> Self {
        let mut registry = Self::empty();
        for entry in inventory::iter::<StaticDriver> {
            registry.register((entry.create)());
        }
        registry
    }

    /// Adds a driver; one of the same name is replaced.
    pub fn register(&mut self, driver: Arc<dyn Driver>) {
        self.drivers.retain(|d| d.name() != driver.name());
        self.drivers.push(driver);
        self.drivers.sort_by(|a, b| a.name().cmp(b.name()));
    }

    /// The drivers, sorted by name.
    pub fn drivers(&self) -> &[Arc<dyn Driver>] {
        &self.drivers
    }

    /// The driver with this name. NOT_FOUND lists the names that exist.
    pub fn driver(&self, name: &str) -> Result<&Arc<dyn Driver>> {
        self.drivers.iter().find(|d| d.name() == name).ok_or_else(|| {
            let known: Vec<_> = self.drivers.iter().map(|d| d.name()).collect();
            status!(NotFound, "no driver named '{name}'; available drivers: {}", or_none(known.join(", ")))
        })
    }

    /// Opens the device that a URI names: by its stable path, by index (`vulkan://1`), or by a part of its name
    /// that fits one device only (`vulkan://llvmpipe`). `defaults` are options that the URI may override.
    pub fn open(&self, uri: &str, defaults: &Options) -> Result<Arc<dyn Device>> {
        let parsed = DeviceUri::parse(uri)?;
        let driver = self.driver(&parsed.driver)?;
        let mut options = defaults.clone();
        options.extend(parsed.options);
        check_options(driver.as_ref(), &options)?;
        let path = match parsed.path.as_str() {
            "" => String::new(),
            wanted => resolve_path(driver.as_ref(), wanted, &options)?,
        };
        let device = driver.open(&path, &options).context(|| format!("opening device '{uri}'"))?;
        Ok(ValidatedDevice::wrap(device))
    }
}

fn check_options(driver: &dyn Driver, options: &Options) -> Result<()> {
    let known = driver.options();
    for key in options.keys() {
        if !known.iter().any(|(name, _)| name == key) {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
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
        _ => Err(status!(
            NotFound,
            "{} device '{wanted}' not found; available: {}",
            driver.name(),
            or_none(list(&devices))
        )),
    }
}

fn or_none(list: String) -> String {
    if list.is_empty() { "none".to_owned() } else { list }
}

fn list(devices: &[DeviceInfo]) -> String {
    let lines: Vec<_> =
        devices.iter().enumerate().map(|(i, d)| format!("[{i}] {} ({})", d.uri(), d.name)).collect();
    lines.join(", ")
}
