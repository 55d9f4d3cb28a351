//! The cache of compiled models as programs choose and see it.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use halite_cache::{CacheError, Folder, Store};

use crate::{Error, ErrorKind, Result};

/// Most bytes that are kept, unless the caller says otherwise.
const DEFAULT_LIMIT: u64 = 4 << 30;
/// The folder among this user's caches.
const NAME: &str = "modules";

/// Where compiled models are kept for the next process.
///
/// ```
/// use halite::Cache;
///
/// let own = Cache::at("/var/cache/my-program/models").limit(256 << 20);
/// assert!(own.path().is_some_and(|path| path.ends_with("models")));
/// assert_eq!(Cache::off().path(), None);
/// ```
///
/// A cache is a folder that belongs to this user alone (mode 0700, with a marker). A folder that holds other files is refused, and
/// only a cache's own entries are ever removed. A model is known by its content, not by its name or date. Entries are checked when
/// they are read; damaged ones are made again. Weights that lie in the model's file are not copied.
///
/// A folder of your own also takes the pipelines of the devices that the session opens; this user's caches have a folder for them.
///
/// If a cache cannot be used, a warning is logged and the model is compiled all the same.
#[derive(Clone, Debug)]
pub struct Cache {
    place: Location,
    limit: u64,
}

#[derive(Clone, Debug)]
enum Location {
    User,
    Folder(PathBuf),
    Off,
}

/// An entry of a cache.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Its name: what it is for, as a hash.
    pub key: String,
    /// What it holds: `vmfb` for modules, `index` and `digest` for what leads to them.
    pub kind: String,
    /// The model that it came from.
    pub label: String,
    /// Bytes of its file.
    pub bytes: u64,
    /// When it was used last, to a minute.
    pub last_used: SystemTime,
}

/// What [`Cache::clear`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleared {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Default for Cache {
    /// Among this user's caches.
    fn default() -> Self {
        Cache::user()
    }
}

impl Cache {
    /// Among this user's caches: `halite/modules` in `$XDG_CACHE_HOME` or `~/.cache`, in `~/Library/Caches` on macOS, in
    /// `%LOCALAPPDATA%` on Windows. Where the environment names no such place, as in an Android app, nothing is kept: name the app's
    /// own folder with [`Cache::at`].
    pub fn user() -> Self {
        Cache { place: Location::User, limit: DEFAULT_LIMIT }
    }

    /// In this folder: a new or an empty one, or one that was a cache before.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Cache { place: Location::Folder(folder.into()), limit: DEFAULT_LIMIT }
    }

    /// Nothing is kept.
    pub fn off() -> Self {
        Cache { place: Location::Off, limit: 0 }
    }

    /// Most bytes that are kept; 4 GiB unless this says otherwise. What was used longest ago goes first.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Removes what this process is writing to caches, and lets it begin no more: for a program that ends while its threads are at
    /// work. What they have under way is not kept.
    pub fn abandon_unfinished() {
        halite_cache::abandon_unfinished();
    }

    /// Its folder, whether that exists or not; `None` when it is off.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.place {
            Location::User => Folder::path_of_user(NAME),
            Location::Folder(path) => Some(path.clone()),
            Location::Off => None,
        }
    }

    /// What it holds, in no order. A cache that was never used holds nothing.
    ///
    /// # Errors
    /// The folder is not a cache of this user, or cannot be read.
    pub fn list(&self) -> Result<Vec<CacheEntry>> {
        let Some(store) = self.existing()? else { return Ok(Vec::new()) };
        let entries = store.list().map_err(|e| error(&e))?;
        let entry = |entry: halite_cache::Entry| CacheEntry {
            key: entry.key.to_string(),
            kind: entry.kind.as_str().to_owned(),
            label: entry.label,
            bytes: entry.bytes,
            last_used: entry.last_used,
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    /// Removes all entries, and nothing else.
    ///
    /// # Errors
    /// The folder is not a cache of this user, or a file cannot be removed.
    pub fn clear(&self) -> Result<Cleared> {
        let Some(store) = self.existing()? else { return Ok(Cleared::default()) };
        let cleared = store.clear().map_err(|e| error(&e))?;
        Ok(Cleared { files: cleared.files, bytes: cleared.bytes })
    }

    /// Where drivers keep pipelines that belong to this cache: a folder, or `off`; `None` for this user's, which is theirs too.
    pub(crate) fn pipelines(&self) -> Option<String> {
        match &self.place {
            Location::User => None,
            Location::Folder(path) => {
                // Before a driver makes a folder in it: with something in it and no marker it would be taken for somebody else's.
                // What is wrong with it is told when it is used.
                let _ = Folder::open(path);
                Some(path.join("pipelines").to_str()?.to_owned())
            }
            Location::Off => Some("off".to_owned()),
        }
    }

    fn existing(&self) -> Result<Option<Store>> {
        let Some(path) = self.path() else { return Ok(None) };
        match Folder::open_existing(&path) {
            Ok(folder) => Ok(Some(Store::new(folder, self.limit))),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(error(&e)),
        }
    }

    /// Where entries go; `None` when it is off or cannot be used, which is logged.
    #[cfg(feature = "compiler")]
    pub(crate) fn open(&self) -> Option<Store> {
        let folder = match &self.place {
            Location::User => Folder::of_user(NAME)?,
            Location::Folder(path) => Folder::open(path),
            Location::Off => return None,
        };
        match folder {
            Ok(folder) => Some(Store::new(folder, self.limit)),
            Err(error) => {
                log::warn!("compiled models are not kept: {error}");
                None
            }
        }
    }

    /// Checks that the folder can be used, and creates it if it does not exist: for programs whose user named it.
    ///
    /// # Errors
    /// It cannot; the text says why and what to do.
    pub fn check(&self) -> Result<()> {
        match &self.place {
            Location::Folder(path) => Folder::open(path).map(drop).map_err(|e| error(&e)),
            Location::User | Location::Off => Ok(()),
        }
    }
}

impl From<&Path> for Cache {
    fn from(folder: &Path) -> Self {
        Cache::at(folder)
    }
}

/// What files of a cache, or input files, went wrong with.
pub(crate) fn error(error: &CacheError) -> Error {
    let kind = match error {
        CacheError::Io { error, .. } => match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::PermissionDenied
            }
            _ => ErrorKind::Io,
        },
        CacheError::Untrusted { .. } => ErrorKind::PermissionDenied,
        CacheError::NotOurs { .. } => ErrorKind::InvalidInput,
        _ => ErrorKind::Io,
    };
    Error::new(kind, error.to_string())
}
