//! Entries in a folder: kept whole, checked when they are read, and removed when there is too much.

mod format;
mod name;
mod upkeep;
mod writing;

use std::{
    fs::{File, Metadata},
    io::{self, Write},
    time::{Duration, SystemTime},
};

use crate::{CacheError, Folder};

pub use name::{Key, Kind};

use format::{Damage, Header};

/// How exactly the time of last use is kept: setting it costs a write.
const USE_GRAIN: Duration = Duration::from_secs(60);

/// Entries by key and kind, each a file in a private folder.
///
/// Any number of threads and processes may use one folder at once. An entry is there whole or not at all: it is written
/// under another name, brought to the disk, and renamed. What is cut off, damaged or under a wrong name is never
/// returned: it is removed and counts as absent. Files with other names are never touched.
#[derive(Clone, Debug)]
pub struct Store {
    folder: Folder,
    limit: u64,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is looked up by.
    pub key: Key,
    /// What it holds.
    pub kind: Kind,
    /// Length of its file.
    pub bytes: u64,
    /// When it was read or written last, to a minute.
    pub last_used: SystemTime,
    /// What it was called when it was kept: one line for people.
    pub label: String,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Number of files.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
}

impl Store {
    /// The entries in a folder. Whenever one is added, those that were used longest ago are removed until all of them
    /// together have at most `limit` bytes.
    pub fn new(folder: Folder, limit: u64) -> Store {
        Store { folder, limit }
    }

    /// Where the entries are.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Most bytes that it keeps.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// An entry's contents, read into memory. `None` when it is absent or damaged, or when somebody else could have
    /// written it; the last two are logged.
    pub fn get(&self, key: Key, kind: Kind) -> Option<Vec<u8>> {
        let dir = match self.folder.dir() {
            Ok(dir) => dir,
            Err(error) => {
                log::debug!("no entry was looked for: {error}");
                return None;
            }
        };
        let name = name::file_name(key, kind);
        let path = self.folder.path().join(&name);
        let file = match dir.open_file(&name) {
            Ok(Ok(file)) => file,
            Ok(Err(why)) => {
                log::warn!("the cache entry '{}' is not used: {why}", path.display());
                return None;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                log::warn!("the cache entry '{}' cannot be read: {error}", path.display());
                return None;
            }
        };
        match contents(&file, key, kind) {
            Ok(payload) => {
                touch(&file);
                Some(payload)
            }
            // It may be whole, and only the disk or the memory failed.
            Err(Damage::Io(error)) => {
                log::warn!("the cache entry '{}' cannot be read: {error}", path.display());
                None
            }
            Err(damage) => {
                log::warn!("the cache entry '{}' is removed: {damage}", path.display());
                let _ = dir.remove(&name);
                None
            }
        }
    }

    /// Keeps an entry, whose contents are these parts one after another, in the place of an older one. The label is for
    /// people: the model's name, for example. Removes what was used longest ago if there is too much then.
    ///
    /// # Errors
    /// The folder cannot be used, the entry alone is larger than the limit, or the system refuses, for example because
    /// the disk is full. The older entry is still there then.
    pub fn put(&self, key: Key, kind: Kind, label: &str, parts: &[&[u8]]) -> Result<(), CacheError> {
        self.put_with(key, kind, label, |out| parts.iter().try_for_each(|part| out.write_all(part)))
    }

    /// The same for contents that are written piece by piece. When `write` fails, nothing is kept.
    ///
    /// # Errors
    /// As for [`Store::put`]; and what `write` returns.
    pub fn put_with(
        &self,
        key: Key,
        kind: Kind,
        label: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CacheError> {
        let dir = self.folder.dir()?;
        let name = name::file_name(key, kind);
        writing::write(self, &dir, &name, Header::new(key, kind, label), write)?;
        self.trim(&dir, Some(&name));
        Ok(())
    }

    /// Removes an entry. Says whether there was one.
    ///
    /// # Errors
    /// The folder cannot be used, or the system refuses.
    pub fn remove(&self, key: Key, kind: Kind) -> Result<bool, CacheError> {
        match self.folder.dir()?.remove(&name::file_name(key, kind)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.folder.io("cannot remove an entry from")(error)),
        }
    }

    /// The entries, those that were used last first. Only their headers are checked.
    ///
    /// # Errors
    /// The folder cannot be used or listed.
    pub fn list(&self) -> Result<Vec<Entry>, CacheError> {
        let dir = self.folder.dir()?;
        let mut entries = Vec::new();
        for found in self.found(&dir)? {
            let Ok(header) = Header::read(&mut &found.file) else { continue };
            if (header.key, header.kind) == (found.key, found.kind) {
                let (bytes, last_used, label) = (found.data.len(), found.last_used(), header.label);
                entries.push(Entry { key: found.key, kind: found.kind, bytes, last_used, label });
            }
        }
        entries.sort_by(|a, b| (b.last_used, a.key, a.kind).cmp(&(a.last_used, b.key, b.kind)));
        Ok(entries)
    }

    /// Bytes of all entries together.
    ///
    /// # Errors
    /// As for [`Store::list`].
    pub fn total(&self) -> Result<u64, CacheError> {
        Ok(self.found(&self.folder.dir()?)?.map(|found| found.data.len()).sum())
    }
}

/// A file that is an entry by its name and by how it begins.
struct Found {
    name: String,
    key: Key,
    kind: Kind,
    file: File,
    data: Metadata,
}

impl Found {
    fn last_used(&self) -> SystemTime {
        self.data.modified().unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

fn contents(mut file: &File, key: Key, kind: Kind) -> Result<Vec<u8>, Damage> {
    let length = file.metadata()?.len();
    let header = Header::read(&mut file)?;
    if (header.key, header.kind) != (key, kind) {
        return Err(Damage::Name);
    }
    header.payload(&mut file, length.saturating_sub(header.size()))
}

/// Notes that an entry was used. Where that cannot be noted, it is merely removed a little earlier.
fn touch(file: &File) {
    let now = SystemTime::now();
    let last = file.metadata().and_then(|data| data.modified());
    let recent = last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age < USE_GRAIN));
    if !recent && let Err(error) = file.set_modified(now) {
        log::debug!("the time of last use was not set: {error}");
    }
}
