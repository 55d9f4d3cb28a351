//! Which driver libraries went well when they were tried: known by where they lie and their stamps, kept among this user's caches.

use std::path::Path;

use halite_cache::{Folder, InputFile, Key, Kind, Stamp, Store};
use halite_hal::Result;

/// The folder among this user's caches.
const NAME: &str = "plugins";
/// Most bytes of it: each library takes some hundred.
const LIMIT: u64 = 1 << 20;
const KIND: Kind = Kind::new("tried");

/// Runs the trial of a library unless it went well before, for the file as it is now.
///
/// # Errors
/// Those of the trial; nothing is remembered then, so it is tried again the next time.
pub(crate) fn once(library: &Path, trial: impl FnOnce() -> Result<()>) -> Result<()> {
    let memory = Folder::of_user(NAME).and_then(|folder| Some(Store::new(folder.ok()?, LIMIT)));
    once_in(memory.as_ref(), library, trial)
}

fn once_in(memory: Option<&Store>, library: &Path, trial: impl FnOnce() -> Result<()>) -> Result<()> {
    let key = InputFile::open(library).ok().map(|file| key(library, file.stamp()));
    let place = memory.zip(key);
    if place.is_some_and(|(store, key)| store.get(key, KIND).is_some()) {
        return Ok(());
    }
    trial()?;
    if let Some((store, key)) = place
        && let Err(error) = store.put(key, KIND, &library.display().to_string(), &[b"well"])
    {
        log::debug!("that '{}' was tried is not remembered: {error}", library.display());
    }
    Ok(())
}

/// What a library is known by. The time of the last change cannot be set by programs, so another content has another key.
fn key(library: &Path, stamp: Stamp) -> Key {
    let stamp = format!("{stamp:?} {}", env!("CARGO_PKG_VERSION"));
    Key::of(&[library.as_os_str().as_encoded_bytes(), stamp.as_bytes()])
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use halite_hal::bail;

    use super::*;

    #[test]
    fn what_went_well_is_not_tried_again_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Folder::open(&folder.path().join("memory")).unwrap(), LIMIT);
        let library = folder.path().join("lib.so");
        std::fs::write(&library, "1").unwrap();
        let runs = Cell::new(0);
        let once = |result: Result<()>| {
            once_in(Some(&store), &library, || {
                runs.set(runs.get() + 1);
                result
            })
        };
        assert!(once((|| bail!(Unavailable, "it ended with signal 6"))()).is_err());
        once(Ok(())).unwrap();
        once(Ok(())).unwrap();
        assert_eq!(runs.get(), 2);
        std::fs::write(&library, "other").unwrap();
        once(Ok(())).unwrap();
        assert_eq!(runs.get(), 3);
        once_in(None, &library, || Ok(())).unwrap();
    }
}
