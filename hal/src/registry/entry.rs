//! One driver that the registry knows: what is said of it before it is loaded, and loading it once.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{Driver, Result, Status, status};

/// Where a driver comes from that is not linked into the program. Driver libraries implement it (crate `halite-plugin`); the
/// registry knows nothing else of them. Any thread may call it. Its text names it in messages: `'/opt/libx.so'`.
pub trait DriverSource: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Makes the driver, which has to have this name. May take milliseconds and run code that is not the program's. The
    /// registry calls it once and remembers the answer.
    fn load(&self, name: &str) -> Result<Arc<dyn Driver>>;

    /// Whether the user named this source for this program: it then replaces a linked driver of its name.
    fn is_given(&self) -> bool;

    /// The type behind it, for listings.
    fn as_any(&self) -> &dyn Any;
}

/// A driver as the registry knows it. Clones share what is loaded.
#[derive(Clone)]
pub struct DriverEntry {
    name: String,
    description: String,
    source: Option<Arc<dyn DriverSource>>,
    driver: Arc<OnceLock<Result<Arc<dyn Driver>>>>,
}

impl DriverEntry {
    /// A driver that exists already; `source` is `None` for one that is part of the program.
    pub fn ready(driver: Arc<dyn Driver>, source: Option<Arc<dyn DriverSource>>) -> Self {
        DriverEntry {
            name: driver.name().to_owned(),
            description: driver.description().to_owned(),
            source,
            driver: Arc::new(OnceLock::from(Ok(driver))),
        }
    }

    /// A driver that is loaded when it is needed.
    pub fn lazy(name: String, description: String, source: Arc<dyn DriverSource>) -> Self {
        DriverEntry { name, description, source: Some(source), driver: Arc::default() }
    }

    /// A driver of the program that cannot be used, and why.
    pub(super) fn failed(name: &str, why: Status) -> Self {
        let driver = Arc::new(OnceLock::from(Err(why)));
        DriverEntry { name: name.to_owned(), description: String::new(), source: None, driver }
    }

    /// The name that device URIs begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for people, from the driver or its source.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where it comes from; `None` for a driver that is part of the program.
    pub fn source(&self) -> Option<&Arc<dyn DriverSource>> {
        self.source.as_ref()
    }

    /// The driver. It is loaded on the first call; a failure is remembered, so that every later call says the same.
    pub fn driver(&self) -> Result<Arc<dyn Driver>> {
        let load = || match &self.source {
            Some(source) => source.load(&self.name),
            None => Err(status!(Internal, "driver '{}' is linked in and was not made", self.name)),
        };
        self.driver.get_or_init(load).clone()
    }

    /// What [`DriverEntry::driver`] answered; `None` when nobody asked yet. Loads nothing.
    pub fn loaded(&self) -> Option<Result<Arc<dyn Driver>>> {
        self.driver.get().cloned()
    }
}

impl fmt::Debug for DriverEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverEntry").field("name", &self.name).field("source", &self.source).finish()
    }
}
