//! Unix: an open folder, in which files are reached by name and never through links; owners and modes.

use std::{
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::{Distrust, Stamp};

/// Whom a file or folder may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user that this process acts for.
    User,
    /// That one or root, who can do anything anyway.
    UserOrRoot,
}

/// Whether nobody but an allowed owner can have written this.
pub(crate) fn judge(data: &Metadata, owner: Owner, path: &Path) -> Result<(), Distrust> {
    judge_owner(data, owner)?;
    let mode = data.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Distrust::Writable { mode, path: path.to_owned() });
    }
    Ok(())
}

fn judge_owner(data: &Metadata, owner: Owner) -> Result<(), Distrust> {
    let user = rustix::process::geteuid().as_raw();
    let allowed = data.uid() == user || (owner == Owner::UserOrRoot && data.uid() == 0);
    if allowed { Ok(()) } else { Err(Distrust::Owner { owner: data.uid(), user }) }
}

/// A folder that is open. It stays the same one, whatever happens to its path.
#[derive(Debug)]
pub(crate) struct Dir {
    file: File,
    path: PathBuf,
}

impl Dir {
    /// Creates a folder that nobody else can enter, and those above it, to which nobody else can write.
    pub fn create(path: &Path) -> io::Result<()> {
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(above)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Opens a folder; a link is none. The path must not end in a slash: the system would follow a link then.
    pub fn open(path: &Path) -> io::Result<Result<Dir, Distrust>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
        match opened {
            Ok(fd) => Ok(Ok(Dir { file: fd.into(), path: path.to_owned() })),
            Err(error) => match fs::symlink_metadata(path) {
                Ok(data) if data.is_symlink() => Ok(Err(Distrust::Link)),
                Ok(data) if !data.is_dir() => Ok(Err(Distrust::NotFolder)),
                _ => Err(error),
            },
        }
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it belongs to this user.
    pub fn judge_owner(&self) -> io::Result<Result<(), Distrust>> {
        Ok(judge_owner(&self.file.metadata()?, Owner::User))
    }

    /// Closes it to others; it has to be this user's. Not all systems can, and then it is enough that others cannot
    /// write.
    pub fn close_to_others(&self) -> io::Result<Result<(), Distrust>> {
        if self.file.metadata()?.mode() & 0o077 != 0
            && let Err(error) = self.file.set_permissions(Permissions::from_mode(0o700))
        {
            log::debug!("'{}' cannot be closed to others: {error}", self.path.display());
        }
        Ok(judge(&self.file.metadata()?, Owner::User, &self.path))
    }

    /// Opens a file of this user's for reading. It cannot be a link, a pipe or a device, and nobody else can have
    /// written to it. The outer error is the system's.
    pub fn open_file(&self, name: &str) -> io::Result<Result<File, Distrust>> {
        // Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            // FreeBSD has a number of its own for a link that is not followed.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::MLINK) => return Ok(Err(Distrust::Link)),
            Err(error) => return Err(error.into()),
        };
        let data = file.metadata()?;
        if !data.is_file() {
            return Ok(Err(Distrust::NotFile));
        }
        Ok(judge(&data, Owner::User, &self.path.join(name)).map(|()| file))
    }

    /// Creates a file that nobody else can read; it must not exist.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.file, name, flags, mode)?.into())
    }

    /// Gives a file another name, in place of what has that one.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    /// Removes a file; a link, not what it leads to.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// The names in it, but for those that are not UTF-8, which are never ours.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        Ok(names)
    }

    /// Waits until the names are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Opens a file of anybody's for reading, without waiting should it be a pipe.
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    let nonblock = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(nonblock.bits()).map_err(io::Error::other)?;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Reads at a place without moving the file's position. Less than asked for only at the end.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

/// What tells one state of an open file from another.
pub(crate) fn stamp(file: &File) -> io::Result<Stamp> {
    let data = file.metadata()?;
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Ok(Stamp {
        device: data.dev(),
        inode: data.ino(),
        length: data.len(),
        modified_ns: nanoseconds(data.mtime(), data.mtime_nsec()),
        changed_ns: Some(nanoseconds(data.ctime(), data.ctime_nsec())),
    })
}

/// Whether only the owner of a thing in this folder can remove or rename it.
pub(crate) fn is_sticky(data: &Metadata) -> bool {
    data.mode() & 0o1000 != 0
}
