//! Owns the pipeline cache's file: its name, header, checks and atomic replacement. Knows no Vulkan object.
//!
//! A driver trusts cache data that carries its own header, so nothing reaches it unless length and hash fit.
//!
//! Layout, little-endian: magic (8 bytes), version u32, vendor u32, device u32, driver version u32, cache
//! UUID (16 bytes), driver UUID (16 bytes), data length u64, FNV-1a 64 hash of the data u64, data.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;

use halite_hal::user_cache::{Os, user_cache};

use crate::caps::DeviceCaps;

const MAGIC: [u8; 8] = *b"HALITEPC";
const VERSION: u32 = 1;
const HEADER: usize = 72;

/// Bytes of the header that Vulkan itself puts before cache data: data of this size holds no pipeline.
pub(super) const EMPTY_DATA: usize = 32;

/// Larger caches are neither read nor written: something is wrong with them.
pub(super) const MAX_DATA: usize = 256 << 20;

/// Whose pipelines a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    vendor: u32,
    device: u32,
    driver_version: u32,
    cache_uuid: [u8; 16],
    driver_uuid: [u8; 16],
}

/// Why a file is not used.
#[derive(Debug, Error)]
pub(super) enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not such a file, or another version of it.
    #[error("it is not a pipeline cache of this version")]
    Foreign,
    /// It belongs to another device or driver.
    #[error("it was made by another device or driver")]
    Mismatch,
    /// It is cut off or too large.
    #[error("its length does not fit")]
    Length,
    /// It was damaged.
    #[error("its hash does not fit")]
    Corrupt,
}

impl Identity {
    pub(super) fn of(caps: &DeviceCaps) -> Self {
        Identity {
            vendor: caps.vendor_id,
            device: caps.device_id,
            driver_version: caps.driver_version,
            cache_uuid: uuid_bytes(&caps.pipeline_cache_uuid),
            driver_uuid: uuid_bytes(&caps.driver_uuid),
        }
    }

    /// One file for each device and driver version, so that machines with several do not overwrite each
    /// other's.
    pub(super) fn file_name(&self) -> String {
        let key = hash(&self.bytes());
        format!("{:04x}-{:04x}-{key:016x}.bin", self.vendor, self.device)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(44);
        for word in [self.vendor, self.device, self.driver_version] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.cache_uuid);
        bytes.extend(self.driver_uuid);
        bytes
    }
}

fn uuid_bytes(hex: &str) -> [u8; 16] {
    u128::from_str_radix(hex, 16).unwrap_or(0).to_be_bytes()
}

/// FNV-1a, 64 bits.
pub(super) fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01B3))
}

/// Header and data as one file's content.
pub(super) fn encode(identity: &Identity, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(identity.bytes());
    bytes.extend((data.len() as u64).to_le_bytes());
    bytes.extend(hash(data).to_le_bytes());
    bytes.extend(data);
    bytes
}

/// The data of a file's content, if all of its header fits.
pub(super) fn decode(bytes: &[u8], identity: &Identity) -> Result<Vec<u8>, FileError> {
    let (header, data) = bytes.split_at_checked(HEADER).ok_or(FileError::Length)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    let (version, rest) = rest.split_at(4);
    if magic != MAGIC || version != VERSION.to_le_bytes() {
        return Err(FileError::Foreign);
    }
    let (owner, rest) = rest.split_at(44);
    if owner != identity.bytes() {
        return Err(FileError::Mismatch);
    }
    let (length, expected) = rest.split_at(8);
    if length != (data.len() as u64).to_le_bytes() || data.len() > MAX_DATA {
        return Err(FileError::Length);
    }
    if expected != hash(data).to_le_bytes() {
        return Err(FileError::Corrupt);
    }
    Ok(data.to_vec())
}

/// Reads and checks a file.
pub(super) fn read(path: &Path, identity: &Identity) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let limit = (HEADER + MAX_DATA + 1) as u64;
    fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    decode(&bytes, identity)
}

/// Replaces a file atomically: another process sees the old content or the new, never a part.
pub(super) fn write(path: &Path, identity: &Identity, data: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&encode(identity, data))?;
    file.persist(path)?;
    Ok(())
}

/// Where this user's pipelines go; `None` when the environment does not say.
pub(super) fn default_directory() -> Option<PathBuf> {
    user_cache(Os::THIS, &|name| std::env::var_os(name)).map(|cache| cache.join("pipelines"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            vendor: 0x10DE,
            device: 0x2335,
            driver_version: 7,
            cache_uuid: [1; 16],
            driver_uuid: [2; 16],
        }
    }

    #[test]
    fn hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(hash(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(hash(b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn every_damage_is_found() {
        let data: Vec<u8> = (0..100).collect();
        let good = encode(&identity(), &data);
        assert_eq!(good.len(), HEADER + 100);
        assert_eq!(decode(&good, &identity()).unwrap(), data);
        for cut in 0..good.len() {
            assert!(decode(&good[..cut], &identity()).is_err(), "cut at {cut}");
        }
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 0x10;
            assert!(decode(&bad, &identity()).is_err(), "flip at {index}");
        }
        let longer = [good.as_slice(), b"x"].concat();
        assert!(matches!(decode(&longer, &identity()), Err(FileError::Length)));
    }

    #[test]
    fn other_drivers_do_not_share() {
        let newer = Identity { driver_version: 8, ..identity() };
        let bytes = encode(&identity(), b"data");
        assert!(matches!(decode(&bytes, &newer), Err(FileError::Mismatch)));
        assert_ne!(newer.file_name(), identity().file_name());
        assert!(matches!(decode(&[7; 200], &newer), Err(FileError::Foreign)));
    }

    #[test]
    fn files_are_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er").join(identity().file_name());
        assert!(matches!(read(&path, &identity()), Err(FileError::Io(_))));
        write(&path, &identity(), b"one").unwrap();
        write(&path, &identity(), b"three").unwrap();
        assert_eq!(read(&path, &identity()).unwrap(), b"three");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
