//! The set of known drivers, and the device that a URI names.

mod entry;
mod linked;
mod precedence;
mod request;

use std::sync::Arc;

pub use entry::{DriverEntry, DriverSource};
pub use linked::{ExpectedDriver, StaticDriver, verify_linked};
pub use precedence::{Shadowed, Skipped};
pub use request::DeviceRequest;

use crate::{Driver, Options, Result, Status, uri::DeviceUri};

/// Drivers by name. Linked ones and those of other sources look the same to callers; the latter are loaded when they are
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
    /// ([`expect_drivers!`](crate::expect_drivers)) and that is missing is logged as an error and has an entry that says so.
    pub fn with_static_drivers() -> Self {
        let mut registry = Self::empty();
        for entry in inventory::iter::<StaticDriver> {
            registry.register((entry.create)());
        }
        for (name, why) in linked::missing() {
            log::error!("{}", why.message());
            registry.replace(DriverEntry::failed(name, why));
        }
        registry
    }

    /// Adds a driver that the program made itself; one of the same name is replaced.
    pub fn register(&mut self, driver: Arc<dyn Driver>) {
        self.replace(DriverEntry::ready(driver, None));
    }

    /// Adds a driver of another source. Where two have one name, the one that is not used is in
    /// [`DriverRegistry::shadowed`]: a linked driver gives way to a source that the user named, any other to the first.
    pub fn add(&mut self, entry: DriverEntry) {
        self.shadowed.extend(precedence::add(&mut self.entries, entry));
        self.sort();
    }

    /// Notes what was looked at for drivers and cannot be used; it is logged, as a warning where people should know.
    pub fn skip(&mut self, skipped: Skipped) {
        let level = if skipped.notable { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "driver plug-in skipped: {skipped}");
        self.skipped.push(skipped);
    }

    fn replace(&mut self, entry: DriverEntry) {
        self.entries.retain(|e| e.name() != entry.name());
        self.entries.push(entry);
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.name().cmp(b.name()));
    }

    /// The same without drivers of sources that nobody named for this program: what was only found is left out.
    #[must_use]
    pub fn without_found(mut self) -> Self {
        self.entries.retain(|entry| entry.source().is_none_or(|source| source.is_given()));
        self
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

    /// What a URI asks for: the driver, the device and the options, those of the URI over `defaults`. Opens nothing.
    pub fn request(&self, uri: &str, defaults: &Options) -> Result<DeviceRequest> {
        let parsed = DeviceUri::parse(uri)?;
        let driver = self.driver(&parsed.driver)?;
        let mut options = defaults.clone();
        options.extend(parsed.options);
        Ok(DeviceRequest { driver, uri: uri.to_owned(), path: parsed.path, options })
    }
}

fn or_none(list: String) -> String {
    if list.is_empty() { "none".to_owned() } else { list }
}
