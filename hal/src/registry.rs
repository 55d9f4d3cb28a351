//! Owns the set of known drivers and device choice by URI. Does not own: finding and loading driver libraries (`plugin`).

mod collect;
mod entry;
mod linked;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use collect::Shadowed;
pub use entry::{DriverEntry, DriverSource, LibrarySource};
pub use linked::{ExpectedDriver, StaticDriver, verify_linked};

use crate::{
    Device, DeviceInfo, Driver, Options, Result, ResultExt, Status,
    hazards::{self, HazardCheck},
    plugin::{
        self,
        discovery::{Discovery, Skipped},
    },
    status,
    uri::DeviceUri,
    validation::ValidatedDevice,
};

/// Drivers by name. Linked ones and those from libraries look the same to callers; libraries are loaded when their driver is
/// asked for. Clones share what is loaded.
#[derive(Clone, Debug, Default)]
pub struct DriverRegistry {
    entries: Vec<DriverEntry>,
    shadowed: Vec<Shadowed>,
    skipped: Vec<Skipped>,
}

impl DriverRegistry {
    /// No drivers.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The drivers linked into this program, sorted by name. One that a crate states to link in
    /// ([`expect_drivers!`](crate::expect_drivers)) and that is not there is logged as an error and has an entry that says so.
    pub fn with_static_drivers() -> Self {
        let mut registry = Self::empty();
        for entry in inventory::iter::<StaticDriver> {
            registry.register((entry.create)());
        }
        for (name, why) in linked::missing() {
            log::error!("{}", why.message());
            registry.replace(DriverEntry::failed(name, DriverSource::Linked, plugin::load, why));
        }
        registry
    }

    /// The linked drivers and the plug-ins that are found. A plug-in that was given replaces a linked driver of its name, one
    /// that was found does not; of plug-ins of one name the first counts. Only manifests are read; a library without one,
    /// which has to be given itself, is loaded at once. What cannot be used is logged as a warning and kept in
    /// [`DriverRegistry::skipped`]; it is never a reason to fail.
    pub fn discover(discovery: &Discovery) -> Self {
        let mut registry = Self::with_static_drivers();
        collect::discover(&mut registry, discovery, plugin::load);
        registry
    }

    /// Adds a driver that the program made itself; one of the same name is replaced.
    pub fn register(&mut self, driver: Arc<dyn Driver>) {
        self.replace(DriverEntry::ready(driver, DriverSource::Linked, plugin::load));
    }

    fn replace(&mut self, entry: DriverEntry) {
        self.entries.retain(|e| e.name() != entry.name());
        self.entries.push(entry);
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.name().cmp(b.name()));
    }

    /// The drivers that can be asked for, sorted by name. Loads nothing.
    pub fn entries(&self) -> &[DriverEntry] {
        &self.entries
    }

    /// Drivers that are not used because another has their name.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// Manifests, libraries and folders that were looked at and cannot be used. Libraries that fail to load later are not
    /// here: [`DriverEntry::loaded`] tells of them.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The driver with this name; its library is loaded on the first call. NOT_FOUND lists the names that exist and what was
    /// skipped; a library that cannot be loaded is told with its path, on every call again.
    pub fn driver(&self, name: &str) -> Result<Arc<dyn Driver>> {
        match self.entries.iter().find(|e| e.name() == name) {
            Some(entry) => entry.driver(),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Status {
        let known: Vec<_> = self.entries.iter().map(DriverEntry::name).collect();
        let mut text = format!("no driver named '{name}'; available drivers: {}", or_none(known.join(", ")));
        for skipped in self.skipped.iter().filter(|s| s.notable) {
            text.push_str(&format!("; skipped: {skipped}"));
        }
        Status::new(crate::Code::NotFound, text)
    }

    /// Opens the device that a URI names: by its stable path, by index (`vulkan://1`), or by a part of its name
    /// that fits one device only (`vulkan://llvmpipe`). `defaults` are options that the URI may override. The option
    /// [`hazards::OPTION`] is not the driver's: it chooses what [`ValidatedDevice`] checks.
    pub fn open(&self, uri: &str, defaults: &Options) -> Result<Arc<dyn Device>> {
        let parsed = DeviceUri::parse(uri)?;
        let driver = self.driver(&parsed.driver)?;
        let mut options = defaults.clone();
        options.extend(parsed.options);
        let hazards = options.remove(hazards::OPTION).map_or(Ok(HazardCheck::Off), |text| text.parse())?;
        check_options(driver.as_ref(), &options)?;
        let path = match parsed.path.as_str() {
            "" => String::new(),
            wanted => resolve_path(driver.as_ref(), wanted, &options)?,
        };
        let device = driver.open(&path, &options).context(|| format!("opening device '{uri}'"))?;
        Ok(ValidatedDevice::wrap_checking(device, hazards))
    }
}

fn check_options(driver: &dyn Driver, options: &Options) -> Result<()> {
    let known = driver.options();
    for key in options.keys() {
        if !known.iter().any(|(name, _)| name == key) {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).chain([hazards::OPTION]).collect();
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

fn or_none(list: String) -> String {
    if list.is_empty() { "none".to_owned() } else { list }
}

fn list(devices: &[DeviceInfo]) -> String {
    let lines: Vec<_> =
        devices.iter().enumerate().map(|(i, d)| format!("[{i}] {} ({})", d.uri(), d.name)).collect();
    lines.join(", ")
}
