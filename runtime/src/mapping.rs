//! How files become bytes: mapped, or read into memory.

use std::{fs::File, io, path::Path};

use bytes::Bytes;
use memmap2::Mmap;

/// How a file is brought into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoadMode {
    /// Mapped: pages are read when they are first touched, and shared between processes. The file must not change
    /// while anything made from it lives: programs would see the changes, and a truncated file ends the process
    /// with a signal.
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
        match self {
            LoadMode::Map => map(file),
            LoadMode::Preload => {
                let mut file = file;
                let length = file.metadata()?.len();
                let mut bytes = Vec::new();
                let expected = usize::try_from(length).map_err(io::Error::other)?;
                bytes.try_reserve_exact(expected).map_err(io::Error::other)?;
                io::Read::read_to_end(&mut file, &mut bytes)?;
                Ok(bytes.into())
            }
        }
    }
}

/// The contents of a file.
pub fn load_file(path: &Path, mode: LoadMode) -> io::Result<Bytes> {
    match mode {
        LoadMode::Preload => std::fs::read(path).map(Bytes::from),
        LoadMode::Map => map(&File::open(path)?),
    }
}

fn map(file: &File) -> io::Result<Bytes> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return read_stream(file);
    }
    if metadata.len() == 0 {
        // Systems refuse to map nothing.
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and stays valid while the returned bytes own it. That nobody changes the file
    // meanwhile cannot be enforced; the documentation of `LoadMode::Map` makes it the caller's duty.
    let mapping = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(mapping))
}

/// Pipes and devices have no length and cannot be mapped.
fn read_stream(mut file: &File) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(Bytes::from(bytes))
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
}
