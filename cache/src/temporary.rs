//! Files while they are written: names of their own, removed when they are given up, also by later processes.

use std::{
    fs::{self, File, TryLockError},
    hash::{BuildHasher, RandomState},
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crate::sys::Dir;

const PREFIX: &str = ".halite-";
const SUFFIX: &str = ".tmp";

/// A writer locks its file long before this.
const BEFORE_LOCK: Duration = Duration::from_secs(60);

/// Where locks do not work, a file that is older than this was left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 60 * 60);

/// What this process is writing; `None` once it is about to end. Nobody holds the lock while the disk is at work.
static UNFINISHED: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

fn unfinished() -> MutexGuard<'static, Option<Vec<PathBuf>>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ending() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the process is about to end")
}

/// Removes what this process is writing to caches, and lets it begin no more: for a process that ends while its threads are at
/// work. What they have under way fails.
pub fn abandon_unfinished() {
    let paths = unfinished().take();
    for path in paths.into_iter().flatten() {
        if let Err(error) = fs::remove_file(&path) {
            log::debug!("'{}' was not removed: {error}", path.display());
        }
    }
}

/// A path on that list, until this is dropped.
struct Unfinished(PathBuf);

impl Unfinished {
    fn begin(path: PathBuf) -> io::Result<Self> {
        unfinished().as_mut().ok_or_else(ending)?.push(path.clone());
        Ok(Unfinished(path))
    }

    fn goes_on(&self) -> bool {
        unfinished().is_some()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(paths) = &mut *unfinished() {
            paths.retain(|path| *path != self.0);
        }
    }
}

/// A file that is being written. Dropping it removes it.
pub(crate) struct Temporary<'a> {
    dir: &'a Dir,
    name: String,
    file: File,
    kept: bool,
    unfinished: Unfinished,
}

impl<'a> Temporary<'a> {
    pub fn create(dir: &'a Dir) -> io::Result<Temporary<'a>> {
        loop {
            // Each hasher has keys of its own; the name need not be a secret in a folder that others cannot write to.
            let number = RandomState::new().hash_one(std::process::id());
            let name = format!("{PREFIX}{number:016x}{SUFFIX}");
            let unfinished = Unfinished::begin(dir.path().join(&name))?;
            match dir.create_file(&name) {
                Ok(file) => {
                    // The lock tells others that somebody is still writing. Not every file system has it.
                    let _ = file.try_lock();
                    let made = Temporary { dir, name, file, kept: false, unfinished };
                    // The list may have been gone through before the file was there.
                    return if made.unfinished.goes_on() { Ok(made) } else { Err(ending()) };
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts it in the place of `name`. Others see what was there before or all of this. It does not wait for the disk, which may take
    /// seconds where others write: after a power cut a part may be missing, so this is for contents that carry their digest.
    pub fn keep_as(mut self, name: &str) -> io::Result<()> {
        self.dir.rename(&self.name, name)?;
        self.kept = true;
        Ok(())
    }

    /// As [`Temporary::keep_as`], also after a power cut. It waits for the disk.
    pub fn keep_synced_as(self, name: &str) -> io::Result<()> {
        self.file.sync_all()?;
        let dir = self.dir;
        self.keep_as(name)?;
        if let Err(error) = dir.sync() {
            log::debug!("the name of '{name}' may not be on the disk yet: {error}");
        }
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = self.dir.remove(&self.name)
        {
            log::debug!("'{}' was not removed: {error}", self.name);
        }
    }
}

/// Whether a name is one of these.
pub(crate) fn is_temporary(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    number.is_some_and(|n| n.len() == 16 && n.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Removes what processes left behind that were killed. Gives files and bytes.
pub(crate) fn remove_stale(dir: &Dir, names: &[String], now: SystemTime) -> (u64, u64) {
    let mut removed = (0, 0);
    for name in names.iter().filter(|name| is_temporary(name)) {
        let Ok(Ok(file)) = dir.open_file(name) else { continue };
        let Ok(data) = file.metadata() else { continue };
        let age = data.modified().ok().and_then(|time| now.duration_since(time).ok()).unwrap_or_default();
        let nobody_writes = || match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => age > LEFT_BEHIND,
        };
        if age > BEFORE_LOCK && nobody_writes() && dir.remove(name).is_ok() {
            removed = (removed.0 + 1, removed.1 + data.len());
        }
    }
    removed
}
