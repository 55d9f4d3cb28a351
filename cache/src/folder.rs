//! Private folders: whose they are, and the marker that tells which ones Halite made.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crate::{CacheError, Distrust, sys::Dir, temporary, temporary::Temporary, user_cache_here};

/// The name that backup programs look for, see <https://bford.info/cachedir/>.
const MARKER: &str = "CACHEDIR.TAG";

/// What they look for in it.
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

/// What tells Halite's folders from those of other programs.
const OURS: &str = "# This folder is a cache of Halite.";

const EXPLANATION: &str = "# Everything in it can be made again, and may be deleted at any time.";

/// More than a marker needs.
const MARKER_BYTES: u64 = 4096;

/// A folder that belongs to this user and to Halite, and that nobody else can enter.
///
/// Only the path is kept. Whoever uses the folder opens it anew and judges it again, so that it may be deleted at any
/// time, and nothing is trusted because it once was.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    make: Make,
}

/// What may be done to have the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Make {
    /// Nothing.
    No,
    /// Create it, or take an empty one.
    Empty,
    /// Take it as it is: its name is Halite's.
    Named,
}

impl Folder {
    /// The folder at a path, created if nothing is there. An empty folder of this user's becomes Halite's: it gets the
    /// marker, and nobody else may enter it. The folders above it are created too if they are missing.
    ///
    /// # Errors
    /// It is a link or no folder, belongs to somebody else, cannot be closed to others, or holds files and has no
    /// marker of Halite's; or the system refuses.
    pub fn open(path: &Path) -> Result<Folder, CacheError> {
        Folder::with(path, Make::Empty)
    }

    /// The same, for reading what is there and removing it: nothing is created.
    ///
    /// # Errors
    /// As for [`Folder::open`]; and there is no such folder, see [`CacheError::is_not_found`].
    pub fn open_existing(path: &Path) -> Result<Folder, CacheError> {
        Folder::with(path, Make::No)
    }

    /// Where [`Folder::of_user`] is, whether it exists or not. `None` when the environment names no place for caches; one
    /// line is logged then.
    pub fn path_of_user(name: &str) -> Option<PathBuf> {
        user_cache_here().map(|cache| cache.join(name))
    }

    /// A folder of Halite's among this user's caches, created if it is missing: `modules`, `pipelines`. `None` when the
    /// environment names no place for caches, as in an Android app; one line is logged then, once.
    pub fn of_user(name: &str) -> Option<Result<Folder, CacheError>> {
        Folder::path_of_user(name).map(|path| Folder::with(&path, Make::Named))
    }

    fn with(path: &Path, make: Make) -> Result<Folder, CacheError> {
        let absolute = std::path::absolute(path).map_err(CacheError::io("cannot find", path))?;
        // Without a slash at its end, which would have a link followed.
        let folder = Folder { path: absolute.components().collect(), make };
        folder.dir()?;
        Ok(folder)
    }

    /// Where it is: an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder, open and judged; created first if it may be.
    pub(crate) fn dir(&self) -> Result<Dir, CacheError> {
        match self.existing() {
            Err(error) if error.is_not_found() && self.make != Make::No => {
                Dir::create(&self.path).map_err(self.io("cannot create the folder"))?;
                self.existing()
            }
            result => result,
        }
    }

    fn existing(&self) -> Result<Dir, CacheError> {
        let opened = Dir::open(&self.path).map_err(self.io("cannot open the folder"))?;
        let dir = opened.map_err(|why| self.untrusted(why))?;
        let judged = dir.judge_owner().map_err(self.io("cannot examine the folder"))?;
        judged.map_err(|why| self.untrusted(why))?;
        if !self.is_marked(&dir)? && !self.may_take(&dir)? {
            return Err(CacheError::NotOurs { path: self.path.clone() });
        }
        let closed = dir.close_to_others().map_err(self.io("cannot examine the folder"))?;
        closed.map_err(|why| self.untrusted(why))?;
        // Looked at again: only now nobody else can put something there.
        if !self.is_marked(&dir)? {
            if !self.may_take(&dir)? {
                return Err(CacheError::NotOurs { path: self.path.clone() });
            }
            mark(&dir).map_err(self.io("cannot write to the folder"))?;
        }
        Ok(dir)
    }

    /// Whether a folder without a marker may become Halite's.
    fn may_take(&self, dir: &Dir) -> Result<bool, CacheError> {
        match self.make {
            Make::No => Ok(false),
            Make::Named => Ok(true),
            Make::Empty => {
                let names = dir.names().map_err(self.io("cannot list the folder"))?;
                // Another process may be marking it, and the marker comes before all else.
                Ok(names.iter().all(|name| temporary::is_temporary(name)) || self.is_marked(dir)?)
            }
        }
    }

    fn is_marked(&self, dir: &Dir) -> Result<bool, CacheError> {
        let mut text = Vec::new();
        match dir.open_file(MARKER) {
            Ok(Ok(file)) => {
                let read = file.take(MARKER_BYTES).read_to_end(&mut text);
                read.map_err(self.io("cannot read the marker in"))?;
                let mut lines = text.split(|byte| *byte == b'\n');
                Ok(text.starts_with(SIGNATURE.as_bytes()) && lines.any(|line| line == OURS.as_bytes()))
            }
            Ok(Err(why)) => {
                log::debug!("'{}' is no marker: {why}", self.path.join(MARKER).display());
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.io("cannot read the marker in")(error)),
        }
    }

    pub(crate) fn io(&self, doing: &'static str) -> impl FnOnce(io::Error) -> CacheError {
        CacheError::io(doing, &self.path)
    }

    fn untrusted(&self, why: Distrust) -> CacheError {
        CacheError::Untrusted { path: self.path.clone(), why }
    }
}

fn mark(dir: &Dir) -> io::Result<()> {
    let marker = Temporary::create(dir)?;
    marker.file().write_all(format!("{SIGNATURE}\n{OURS}\n{EXPLANATION}\n").as_bytes())?;
    marker.keep_synced_as(MARKER)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_that_has_halites_name_is_taken_with_what_is_in_it() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("halite/pipelines");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("10de-2335-0123456789abcdef.bin"), "kept before there were markers").unwrap();
        Folder::with(&path, Make::Named).unwrap();
        assert!(path.join(MARKER).exists() && path.join("10de-2335-0123456789abcdef.bin").exists());
        Folder::open(&path).unwrap();
    }
}
