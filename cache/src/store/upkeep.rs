//! Removing entries: those that were used longest ago, or all of them; and nothing that is not an entry.

use std::{
    fs::File,
    io::{self, Read, Seek},
    time::SystemTime,
};

use super::{Cleared, Found, Store, format::MAGIC, name};
use crate::{CacheError, sys::Dir, temporary};

impl Store {
    /// Removes all entries, and what processes left behind that were killed. Other files stay, and so does the folder.
    ///
    /// # Errors
    /// The folder cannot be used or listed, or the system does not let an entry be removed.
    pub fn clear(&self) -> Result<Cleared, CacheError> {
        let dir = self.folder.dir()?;
        let names = dir.names().map_err(self.folder.io("cannot list the folder"))?;
        let (files, bytes) = temporary::remove_stale(&dir, &names, SystemTime::now());
        let mut cleared = Cleared { files, bytes };
        for found in among(&dir, names) {
            match dir.remove(&found.name) {
                Ok(()) => {
                    cleared.files += 1;
                    cleared.bytes += found.data.len();
                }
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.folder.io("cannot remove an entry from")(error)),
            }
        }
        Ok(cleared)
    }

    /// Removes what was used longest ago until the rest fits; `newest` goes last.
    pub(super) fn trim(&self, dir: &Dir, newest: Option<&str>) {
        if let Err(error) = self.try_trim(dir, newest) {
            log::debug!("entries were not trimmed: {error}");
        }
    }

    fn try_trim(&self, dir: &Dir, newest: Option<&str>) -> Result<(), CacheError> {
        let names = dir.names().map_err(self.folder.io("cannot list the folder"))?;
        temporary::remove_stale(dir, &names, SystemTime::now());
        let mut entries: Vec<Kept> = among(dir, names).map(|found| Kept::of(&found, newest)).collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if total <= self.limit {
                break;
            }
            match dir.remove(&entry.name) {
                Ok(()) => log::debug!("removed '{}', which was not used for longest", entry.name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    log::debug!("'{}' was not removed: {error}", entry.name);
                    continue;
                }
            }
            total -= entry.bytes;
        }
        Ok(())
    }

    /// The entries in the folder.
    pub(super) fn found<'a>(
        &self,
        dir: &'a Dir,
    ) -> Result<impl Iterator<Item = Found> + use<'a>, CacheError> {
        Ok(among(dir, dir.names().map_err(self.folder.io("cannot list the folder"))?))
    }
}

/// The entries among these names. Each is open only while it is looked at: there may be more than a process may open.
fn among(dir: &Dir, names: Vec<String>) -> impl Iterator<Item = Found> {
    names.into_iter().filter_map(move |name| {
        let (key, kind) = name::of_file(&name)?;
        let file = dir.open_file(&name).ok()?.ok()?;
        let data = file.metadata().ok()?;
        begins_as_entry(&file).then_some(Found { name, key, kind, file, data })
    })
}

/// What trimming orders by: the fields in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    newest: bool,
    last_used: SystemTime,
    name: String,
    bytes: u64,
}

impl Kept {
    fn of(found: &Found, newest: Option<&str>) -> Kept {
        Kept {
            newest: newest == Some(&found.name),
            last_used: found.last_used(),
            name: found.name.clone(),
            bytes: found.data.len(),
        }
    }
}

/// Whether a file is an entry, or was one that was cut off. The file's position stays at its start.
fn begins_as_entry(file: &File) -> bool {
    let (mut from, mut start) = (file, Vec::new());
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut start);
    read.is_ok() && MAGIC.starts_with(&start) && from.rewind().is_ok()
}
