//! Owns which of several drivers of one name is used. Does not own: finding them (`plugin::discovery`), loading them
//! (`entry`).
//!
//! The rules: a plug-in that was given replaces a linked driver; one that was found does not. Of plug-ins of one name the
//! earlier in search order counts. What is not used is kept for listings.

use super::{
    DriverEntry, DriverRegistry, DriverSource,
    entry::{LibrarySource, Loader},
};
use crate::plugin::discovery::{Discovery, Found, Origin, Skipped};

/// A driver that is not used because another one has its name.
#[derive(Clone, Debug)]
pub struct Shadowed {
    /// The driver.
    pub entry: DriverEntry,
    /// Which other one, and why it goes first.
    pub reason: String,
}

pub(super) fn discover(registry: &mut DriverRegistry, discovery: &Discovery, loader: Loader) {
    let findings = discovery.find();
    for skipped in findings.skipped {
        skip(registry, skipped);
    }
    for found in findings.plugins {
        match entry(found, loader) {
            Ok(entry) => add(registry, entry),
            Err(skipped) => skip(registry, skipped),
        }
    }
    registry.sort();
}

fn skip(registry: &mut DriverRegistry, skipped: Skipped) {
    let level = if skipped.notable { log::Level::Warn } else { log::Level::Debug };
    log::log!(level, "driver plug-in skipped: {skipped}");
    registry.skipped.push(skipped);
}

/// Loads what has no manifest: its name is not known otherwise.
fn entry(found: Found, loader: Loader) -> Result<DriverEntry, Skipped> {
    let Found { manifest, library, origin } = found;
    if let Some((path, manifest)) = manifest {
        let source = LibrarySource { library, manifest: Some(path), version: manifest.version, origin };
        return Ok(DriverEntry::lazy(manifest.name, manifest.description, source, loader));
    }
    match loader(&library) {
        Ok(loaded) => {
            let source = LibrarySource { library, manifest: None, version: loaded.version, origin };
            Ok(DriverEntry::ready(loaded.driver, DriverSource::Library(source), loader))
        }
        Err(e) => {
            let reason = format!("cannot be loaded: {e}");
            Err(Skipped { path: library, reason, notable: true })
        }
    }
}

fn add(registry: &mut DriverRegistry, new: DriverEntry) {
    let Some(old) = registry.entries.iter_mut().find(|e| e.name() == new.name()) else {
        registry.entries.push(new);
        return;
    };
    let shadowed = match (old.source().clone(), new.source().clone()) {
        (DriverSource::Linked, DriverSource::Library(source)) if source.origin == Origin::Given => {
            let reason = format!("replaced by {source}, which was given");
            Shadowed { entry: std::mem::replace(old, new), reason }
        }
        (DriverSource::Linked, _) => {
            let reason =
                "the program has this driver linked in; give the plug-in to use it instead".to_owned();
            Shadowed { entry: new, reason }
        }
        (DriverSource::Library(first), _) => {
            Shadowed { entry: new, reason: format!("{first} is found first") }
        }
    };
    registry.shadowed.push(shadowed);
}
