//! Driver libraries as sources of drivers for the registry.

use std::{
    any::Any,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_cache::CacheError;
use halite_hal::{Driver, DriverEntry, DriverRegistry, DriverSource, Result, ResultExt, Skipped, bail};

use crate::{
    DriverLibrary, digest,
    discovery::{Discovery, Found, Origin},
    load, tried,
};

/// Loads a library.
type Loader = fn(&Path) -> Result<DriverLibrary>;
/// Tries a library that was never loaded before, in a way that the program survives: [`discover_tried`].
pub type Trial = fn(&LibrarySource, &str) -> Result<()>;

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
    trial: Option<Trial>,
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

    /// Loads it once nobody else can have written it, and its trial went well.
    fn try_and_load(&self, name: &str) -> Result<DriverLibrary> {
        check_owners(&self.library, self.manifest.as_deref())?;
        if let Some(trial) = self.trial {
            tried::once(&self.library, || trial(self, name))?;
        }
        (self.loader)(&self.library)
    }

    fn load_named(&self, name: &str) -> Result<Arc<dyn Driver>> {
        let driver = self.try_and_load(name)?.driver;
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

/// Refuses what somebody else could have written: the library, its manifest, and the folders of both have to belong to this user or to
/// root, and nobody else may write to them.
fn check_owners(library: &Path, manifest: Option<&Path>) -> Result<()> {
    for path in [Some(library), manifest].into_iter().flatten() {
        // One that is not there is told by whoever loads it.
        if let Err(reason @ CacheError::Untrusted { .. }) = halite_cache::check_trusted(path) {
            bail!(
                PermissionDenied,
                "it is not loaded, because somebody else could have written it: {reason}"
            );
        }
    }
    Ok(())
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
    add_found(&mut registry, discovery, load, None);
    registry
}

/// The same. A library that this user's programs never loaded as it lies there now is tried first: the trial runs its code where the
/// program survives it, such as in a process of its own, and its failure is why the library is not loaded. What passed is remembered
/// in this user's caches.
pub fn discover_tried(discovery: &Discovery, trial: Trial) -> DriverRegistry {
    let mut registry = DriverRegistry::with_static_drivers();
    add_found(&mut registry, discovery, load, Some(trial));
    registry
}

fn add_found(registry: &mut DriverRegistry, discovery: &Discovery, loader: Loader, trial: Option<Trial>) {
    let findings = discovery.find();
    for skipped in findings.skipped {
        registry.skip(skipped);
    }
    for found in findings.plugins {
        match entry(found, loader, trial) {
            Ok(entry) => registry.add(entry),
            Err(skipped) => registry.skip(skipped),
        }
    }
}

/// Loads what has no manifest: its name is not known otherwise.
fn entry(found: Found, loader: Loader, trial: Option<Trial>) -> Result<DriverEntry, Skipped> {
    let Found { manifest, library, origin } = found;
    if let Some((path, manifest)) = manifest {
        let version = manifest.version;
        let source = LibrarySource { library, manifest: Some(path), version, origin, loader, trial };
        return Ok(DriverEntry::lazy(manifest.name, manifest.description, Arc::new(source)));
    }
    let version = String::new();
    let mut source =
        LibrarySource { library: library.clone(), manifest: None, version, origin, loader, trial };
    // Its name is not known, so the trial lists the devices of all drivers.
    match source.try_and_load("") {
        Ok(loaded) => {
            source.version = loaded.version;
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
