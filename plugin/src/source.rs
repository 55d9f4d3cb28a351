//! Driver libraries as sources of drivers for the registry.

use std::{
    any::Any,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_hal::{Driver, DriverEntry, DriverRegistry, DriverSource, Result, ResultExt, Skipped, bail};

use crate::{
    DriverLibrary, digest,
    discovery::{Discovery, Found, Origin},
    load,
};

/// Loads a library.
type Loader = fn(&Path) -> Result<DriverLibrary>;

/// A driver's library.
#[derive(Clone, Debug)]
pub struct LibrarySource {
    /// The library.
    pub library: PathBuf,
    /// The manifest that names it; `None` for a library that was given itself.
    pub manifest: Option<PathBuf>,
    /// The version that the manifest or the library states; empty when it states none.
    pub version: String,
    /// How it was found.
    pub origin: Origin,
    loader: Loader,
}

impl LibrarySource {
    /// The library that a driver of the registry comes from; `None` for a driver that is part of the program.
    pub fn of(entry: &DriverEntry) -> Option<&LibrarySource> {
        entry.source()?.as_any().downcast_ref()
    }

    /// SHA-256 of the library as it lies on disk now, in lower-case hexadecimal digits. Reads the whole file.
    pub fn sha256(&self) -> Result<String> {
        digest::sha256(&self.library)
    }

    fn load_named(&self, name: &str) -> Result<Arc<dyn Driver>> {
        let driver = (self.loader)(&self.library)?.driver;
        if driver.name() != name {
            bail!(
                FailedPrecondition,
                "the library '{}' calls itself driver '{}', its manifest says '{name}'; one of them is of another \
                 installation",
                self.library.display(),
                driver.name()
            );
        }
        Ok(driver)
    }
}

impl DriverSource for LibrarySource {
    fn load(&self, name: &str) -> Result<Arc<dyn Driver>> {
        self.load_named(name).context(|| {
            let manifest = self.manifest.as_deref().unwrap_or(&self.library);
            format!(
                "asked for as driver '{name}' of '{}'; install it anew or remove it, other drivers are not affected",
                manifest.display()
            )
        })
    }

    fn is_given(&self) -> bool {
        self.origin == Origin::Given
    }

    fn as_any(&self) -> &dyn Any {
        self
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

/// The linked drivers and the plug-ins that are found. A plug-in that was given replaces a linked driver of its name, one
/// that was found does not; of plug-ins of one name the first counts. Only manifests are read; a library without one,
/// which has to be given itself, is loaded at once. What cannot be used is logged as a warning and kept in
/// [`DriverRegistry::skipped`]; it is never a reason to fail.
pub fn discover(discovery: &Discovery) -> DriverRegistry {
    let mut registry = DriverRegistry::with_static_drivers();
    add_found(&mut registry, discovery, load);
    registry
}

fn add_found(registry: &mut DriverRegistry, discovery: &Discovery, loader: Loader) {
    let findings = discovery.find();
    for skipped in findings.skipped {
        registry.skip(skipped);
    }
    for found in findings.plugins {
        match entry(found, loader) {
            Ok(entry) => registry.add(entry),
            Err(skipped) => registry.skip(skipped),
        }
    }
}

/// Loads what has no manifest: its name is not known otherwise.
fn entry(found: Found, loader: Loader) -> Result<DriverEntry, Skipped> {
    let Found { manifest, library, origin } = found;
    if let Some((path, manifest)) = manifest {
        let source =
            LibrarySource { library, manifest: Some(path), version: manifest.version, origin, loader };
        return Ok(DriverEntry::lazy(manifest.name, manifest.description, Arc::new(source)));
    }
    match loader(&library) {
        Ok(loaded) => {
            let source = LibrarySource { library, manifest: None, version: loaded.version, origin, loader };
            Ok(DriverEntry::ready(loaded.driver, Some(Arc::new(source))))
        }
        Err(e) => {
            let reason = format!("cannot be loaded: {e}");
            Err(Skipped { path: library, reason, notable: true })
        }
    }
}

#[cfg(test)]
mod tests;
