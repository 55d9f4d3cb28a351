//! How files become bytes: mapped, or read into memory.

mod guard;

use std::{
    fs::{File, FileType, Metadata},
    io,
    path::Path,
};

use bytes::Bytes;

pub(crate) use guard::is_any_cut;
pub use guard::{is_cut, release_pages};

/// How a file is brought into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoadMode {
    /// Mapped: pages are read when they are first touched, and shared between processes. The file should not change while
    /// anything made from it lives: programs would see the changes. Of a file that is cut short meanwhile the rest reads as
    /// zeros, and loading or the next call fails ([`is_cut`]). Where the system has no way to survive that (it has on Unix),
    /// and beyond 1024 files at a time, files are read.
    #[default]
    Map,
    /// Read at once into private memory. Costs the copy; later changes of the file do not matter.
    Preload,
}

impl LoadMode {
    /// The contents of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load(self, path: &Path) -> io::Result<Bytes> {
        load_file(path, self)
    }

    /// The contents of an open file, from its beginning; a stream is read to its end.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load_from(self, file: &File) -> io::Result<Bytes> {
        let metadata = file.metadata()?;
        refuse_endless(&metadata)?;
        let Ok(length) = usize::try_from(metadata.len()) else {
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        if self == LoadMode::Map && metadata.is_file() {
            // Systems refuse to map nothing.
            let mapped = if length == 0 { Some(Bytes::new()) } else { guard::map(file, length)? };
            if let Some(bytes) = mapped {
                return Ok(bytes);
            }
        }
        read(file, length)
    }
}

/// The contents of a file.
pub fn load_file(path: &Path, mode: LoadMode) -> io::Result<Bytes> {
    mode.load_from(&File::open(path)?)
}

/// Folders, and devices such as `/dev/zero`: they have no contents, or no end. Pipes and sockets are streams, and served.
fn refuse_endless(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match is_device(metadata.file_type()) {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, not a file or a pipe")),
        false => Ok(()),
    }
}

/// Whether it is a device of characters or blocks.
pub fn is_device(kind: FileType) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        kind.is_char_device() || kind.is_block_device()
    }
    #[cfg(not(unix))]
    {
        !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
    }
}

/// Reads to the end; a file has about `expected` bytes.
fn read(mut file: &File, expected: usize) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_give_the_same_bytes() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let mapped = load_file(path, LoadMode::Map).unwrap();
        assert!(mapped.starts_with(b"[package]"));
        assert_eq!(mapped, load_file(path, LoadMode::Preload).unwrap());
        let folder = path.parent().unwrap();
        assert!(load_file(folder, LoadMode::Map).is_err());
        assert_eq!(
            load_file(&folder.join("no such"), LoadMode::Map).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_are_no_files() {
        for mode in [LoadMode::Map, LoadMode::Preload] {
            let error = load_file(Path::new("/dev/zero"), mode).unwrap_err();
            assert!(error.to_string().contains("device"), "{error}");
        }
        // What the system makes up while it is read says that it has no bytes.
        assert!(load_file(Path::new("/proc/self/status"), LoadMode::Preload).unwrap().len() > 100);
    }
}
