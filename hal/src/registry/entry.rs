//! Owns one driver that the registry knows: what is told of it without loading it, and loading it once. Does not own: how a
//! library is loaded (`plugin`), or which of several drivers of one name counts (`registry`).

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    Driver, Result, ResultExt, Status,
    plugin::{self, DriverLibrary, discovery::Origin},
    status,
};

/// Loads a library.
pub(super) type Loader = fn(&Path) -> Result<DriverLibrary>;

/// Where a driver comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverSource {
    /// It is part of the program.
    Linked,
    /// It is a plug-in.
    Library(LibrarySource),
}

/// A driver's library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibrarySource {
    /// The library.
    pub library: PathBuf,
    /// The manifest that names it; `None` for a library that was given itself.
    pub manifest: Option<PathBuf>,
    /// The version that the manifest or the library tells; empty when it tells none.
    pub version: String,
    /// How it was found.
    pub origin: Origin,
}

impl LibrarySource {
    /// SHA-256 of the library as it lies on disk now, in lower-case hexadecimal digits. Reads the whole file.
    pub fn sha256(&self) -> Result<String> {
        plugin::digest::sha256(&self.library)
    }
}

impl fmt::Display for LibrarySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.library.display())?;
        match &self.manifest {
            Some(manifest) => write!(f, " (named by '{}')", manifest.display()),
            None => Ok(()),
        }
    }
}

/// A driver as the registry knows it. Clones share what is loaded.
#[derive(Clone)]
pub struct DriverEntry {
    name: String,
    description: String,
    source: DriverSource,
    driver: Arc<OnceLock<Result<Arc<dyn Driver>>>>,
    loader: Loader,
}

impl DriverEntry {
    /// A driver that is there already.
    pub(super) fn ready(driver: Arc<dyn Driver>, source: DriverSource, loader: Loader) -> Self {
        DriverEntry {
            name: driver.name().to_owned(),
            description: driver.description().to_owned(),
            source,
            driver: Arc::new(OnceLock::from(Ok(driver))),
            loader,
        }
    }

    /// A driver that cannot be used, and why.
    pub(super) fn failed(name: &str, source: DriverSource, loader: Loader, why: Status) -> Self {
        let driver = Arc::new(OnceLock::from(Err(why)));
        DriverEntry { name: name.to_owned(), description: String::new(), source, driver, loader }
    }

    /// A driver that is loaded when it is needed.
    pub(super) fn lazy(name: String, description: String, source: LibrarySource, loader: Loader) -> Self {
        let source = DriverSource::Library(source);
        DriverEntry { name, description, source, driver: Arc::default(), loader }
    }

    /// The name that device URIs begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for people, from the driver or its manifest.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where it comes from.
    pub fn source(&self) -> &DriverSource {
        &self.source
    }

    /// The driver. Its library is loaded on the first call, which runs code of it and may take milliseconds; a failure is
    /// remembered, so that every later call tells the same.
    pub fn driver(&self) -> Result<Arc<dyn Driver>> {
        self.driver.get_or_init(|| self.load()).clone()
    }

    /// What [`DriverEntry::driver`] answered; `None` when it was not asked yet. Loads nothing.
    pub fn loaded(&self) -> Option<Result<Arc<dyn Driver>>> {
        self.driver.get().cloned()
    }

    fn load(&self) -> Result<Arc<dyn Driver>> {
        let DriverSource::Library(source) = &self.source else {
            return Err(status!(Internal, "driver '{}' is linked in and was not made", self.name));
        };
        let load = || {
            let driver = (self.loader)(&source.library)?.driver;
            if driver.name() == self.name {
                return Ok(driver);
            }
            Err(status!(
                FailedPrecondition,
                "the library '{}' calls itself driver '{}', its manifest says '{}'; one of them is of another \
                 installation",
                source.library.display(),
                driver.name(),
                self.name
            ))
        };
        load().context(|| {
            let manifest = source.manifest.as_deref().unwrap_or(&source.library);
            format!(
                "asked for as driver '{}' of '{}'; install it anew or remove it, other drivers are not affected",
                self.name,
                manifest.display()
            )
        })
    }
}

impl fmt::Debug for DriverEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverEntry").field("name", &self.name).field("source", &self.source).finish()
    }
}
