//! A tree of files that becomes a package: what is where, with plain modes and one date.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, Result};

use crate::shell::{self, command};

/// A folder that is filled.
pub struct Tree {
    pub root: PathBuf,
}

impl Tree {
    /// An empty one; what lay there is removed.
    pub fn new(root: PathBuf) -> Result<Tree> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root).with_context(|| format!("cannot make '{}'", root.display()))?;
        Ok(Tree { root })
    }

    /// A place in it, below folders that are made.
    pub fn place(&self, path: &str) -> Result<PathBuf> {
        let to = self.root.join(path);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(to)
    }

    /// A file, or a folder with all that is in it. Links stay links.
    pub fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let context = || format!("cannot copy '{}' to '{to}'", from.display());
        let kind = fs::symlink_metadata(from).with_context(context)?.file_type();
        let target = self.place(to)?;
        if kind.is_symlink() {
            link(&fs::read_link(from)?, &target).with_context(context)?;
        } else if kind.is_dir() {
            fs::create_dir_all(&target)?;
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                self.copy(&entry.path(), &format!("{to}/{}", entry.file_name().to_string_lossy()))?;
            }
        } else {
            fs::copy(from, &target).with_context(context)?;
        }
        Ok(())
    }

    /// A text.
    pub fn write(&self, to: &str, text: impl AsRef<[u8]>) -> Result<()> {
        Ok(fs::write(self.place(to)?, text)?)
    }

    /// Bytes of all files.
    pub fn size(&self) -> Result<u64> {
        let mut bytes = 0;
        visit(&self.root, &mut |path| {
            let data = fs::symlink_metadata(path)?;
            bytes += if data.is_file() { data.len() } else { 0 };
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Gives files the modes 644 or 755, and everything this date.
    pub fn settle(&self, date: u64) -> Result<()> {
        let time = UNIX_EPOCH + Duration::from_secs(date);
        visit(&self.root, &mut |path| {
            let data = fs::symlink_metadata(path)?;
            if data.is_symlink() {
                // Archives take the date of links from their own options.
                return Ok(());
            }
            settle_mode(path, &data)?;
            Ok(fs::File::open(path)?.set_modified(time)?)
        })
    }

    /// An archive of it, whose only entry at the top is a folder with its name.
    pub fn archive(&self, to: &Path, date: u64, level: &str) -> Result<()> {
        let name = self.root.file_name().context("a tree has a name")?.to_string_lossy().into_owned();
        let above = self.root.parent().context("a tree lies in a folder")?;
        let date = format!("--mtime=@{date}");
        let flags =
            ["--sort=name", &date, "--owner=0", "--group=0", "--numeric-owner", "--format=ustar", "-cJf"];
        let mut tar = command("tar", &flags);
        tar.arg(to).arg("-C").arg(above).arg(name);
        // One thread: with more the blocks depend on the machine.
        shell::run(tar.env("XZ_OPT", format!("-{level} -T1")))
    }
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Programs and folders are for all to enter, other files for all to read.
#[cfg(unix)]
fn settle_mode(path: &Path, data: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = data.is_dir() || data.permissions().mode() & 0o100 != 0 && !is_library(path);
    fs::set_permissions(path, fs::Permissions::from_mode(if runs { 0o755 } else { 0o644 }))
}

#[cfg(not(unix))]
fn settle_mode(_: &Path, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"))
}

/// Everything below a folder, and the folder itself last.
fn visit(path: &Path, what: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            visit(&entry?.path(), what)?;
        }
    }
    what(path)
}
