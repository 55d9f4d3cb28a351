//! What can go wrong with files that are kept, and what to do then.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Why a folder or a file is not used. A cache that cannot be used costs time and never a result: callers log this and
/// go on, unless the user named the folder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The system refused something.
    #[error("{doing} '{}': {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody else could have put something there.
    #[error("'{}' is not used: {why}", path.display())]
    Untrusted {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: Distrust,
    },
    /// A folder holds files, and no marker of Halite's is among them.
    #[error(
        "the folder '{}' holds files and was not made by Halite, so it is left alone; name a new folder or an empty one",
        path.display()
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// More than may be kept in all.
    #[error("{bytes} bytes are not kept in '{}', which is limited to {limit} bytes", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// Length of what was to be kept; where it was still being written, as far as it got.
        bytes: u64,
        /// Most that the folder may hold.
        limit: u64,
    },
    /// A file changed while it was read.
    #[error("'{}' changed while it was read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// Why a file or folder is not trusted. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Distrust {
    /// It is a symbolic link.
    #[error("it is a symbolic link; name what it leads to")]
    Link,
    /// It is no folder.
    #[error("it is no folder; name a folder")]
    NotFolder,
    /// It is no regular file.
    #[error("it is no regular file; name one")]
    NotFile,
    /// It belongs to another user.
    #[error(
        "it belongs to user {owner} and this is user {user}; use a folder of your own, or change its owner"
    )]
    Owner {
        /// Number of its owner.
        owner: u32,
        /// Number of the user that this process acts for.
        user: u32,
    },
    /// Its mode lets others write.
    #[error("others may write to it (mode {mode:04o}); if what is in it is yours: chmod go-w '{}'", path.display())]
    Writable {
        /// Its permissions.
        mode: u32,
        /// The file or folder again, for the command.
        path: PathBuf,
    },
}

impl CacheError {
    /// For `map_err`: what was tried, and with what.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
        let path = path.to_owned();
        move |error| CacheError::Io { doing, path, error }
    }

    /// Whether the file or folder is simply not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CacheError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the disk is full, or what this user may have of it.
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
        matches!(self, CacheError::Io { error, .. } if full.contains(&error.kind()))
    }
}
