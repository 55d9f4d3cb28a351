//! Systems that are no Unix: files by path. Owners and modes in the sense of Unix do not exist.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use crate::{Distrust, Stamp};

/// Whom a file or folder may belong to; not looked at here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user that this process acts for, or the system.
    UserOrRoot,
}

/// Nothing is known of owners and modes.
pub(crate) fn judge(_data: &Metadata, _owner: Owner, _path: &Path) -> Result<(), Distrust> {
    Ok(())
}

/// A folder, by its path.
#[derive(Debug)]
pub(crate) struct Dir {
    path: PathBuf,
}

impl Dir {
    /// Creates a folder and those above it.
    pub fn create(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    /// Finds a folder; a link is none.
    pub fn open(path: &Path) -> io::Result<Result<Dir, Distrust>> {
        let data = fs::symlink_metadata(path)?;
        if data.is_symlink() {
            return Ok(Err(Distrust::Link));
        }
        if !data.is_dir() {
            return Ok(Err(Distrust::NotFolder));
        }
        Ok(Ok(Dir { path: path.to_owned() }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Not known.
    pub fn judge_owner(&self) -> io::Result<Result<(), Distrust>> {
        Ok(Ok(()))
    }

    /// A user's own folders are closed to others by the system.
    pub fn close_to_others(&self) -> io::Result<Result<(), Distrust>> {
        Ok(Ok(()))
    }

    /// Opens a file for reading; it cannot be a link.
    pub fn open_file(&self, name: &str) -> io::Result<Result<File, Distrust>> {
        let path = self.path.join(name);
        let data = fs::symlink_metadata(&path)?;
        if data.is_symlink() {
            return Ok(Err(Distrust::Link));
        }
        if !data.is_file() {
            return Ok(Err(Distrust::NotFile));
        }
        // The time of last use can be set only where writing is allowed.
        File::options().read(true).write(true).open(&path).or_else(|_| File::open(&path)).map(Ok)
    }

    /// Creates a file; it must not exist.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    /// Gives a file another name, in place of what has that one.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name()));
        names.map(|name| name.map(|name| name.to_string_lossy().into_owned())).collect()
    }

    /// Folders cannot be synchronized here.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a file of anybody's for reading.
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads at a place. The file's position moves.
pub(crate) fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    file.read(buffer)
}

/// What tells one state of an open file from another. There is no time of change that programs cannot set, so a stamp
/// never stands for the content.
pub(crate) fn stamp(file: &File) -> io::Result<Stamp> {
    let data = file.metadata()?;
    let modified = data.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Stamp {
        device: 0,
        inode: 0,
        length: data.len(),
        modified_ns: i128::try_from(modified.as_nanos()).unwrap_or(i128::MAX),
        changed_ns: None,
    })
}

/// Nothing is known of modes.
pub(crate) fn is_sticky(_data: &Metadata) -> bool {
    false
}
