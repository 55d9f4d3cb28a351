//! Pipelines as an entry of the user's cache: whose they are, and what is stored. Knows no Vulkan object.
//!
//! A driver trusts cache data that carries its own header, so nothing reaches it that is not whole (the store checks
//! that), or that another device or driver made (checked here).
//!
//! Contents, little-endian: vendor u32, device u32, driver version u32, cache UUID (16 bytes), driver UUID (16 bytes),
//! then what the driver gave.

use halite_cache::{CacheError, Folder, Key, Kind, Store};

use halite_facts::DeviceFacts;

use crate::options::PipelineCacheChoice;

const KIND: Kind = Kind::new("pipelines");

/// All devices and driver versions together.
const MOST_BYTES: u64 = 1 << 30;

/// Bytes of the header that Vulkan itself puts before cache data: data of this size holds no pipeline.
pub(super) const EMPTY_DATA: usize = 32;

/// Larger caches are neither read nor written: something is wrong with them.
pub(super) const MAX_DATA: usize = 256 << 20;

/// Length of an identity's bytes.
const IDENTITY: usize = 44;

/// Whose pipelines they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    vendor: u32,
    device: u32,
    driver_version: u32,
    cache_uuid: [u8; 16],
    driver_uuid: [u8; 16],
    /// For people who list the cache.
    name: String,
}

impl Identity {
    pub(super) fn of(facts: &DeviceFacts) -> Self {
        Identity {
            vendor: facts.vendor_id,
            device: facts.device_id,
            driver_version: facts.driver_version,
            cache_uuid: uuid_bytes(&facts.pipeline_cache_uuid),
            driver_uuid: uuid_bytes(&facts.driver_uuid),
            name: facts.name.clone(),
        }
    }

    fn bytes(&self) -> [u8; IDENTITY] {
        let mut bytes = [0; IDENTITY];
        for (place, word) in [self.vendor, self.device, self.driver_version].into_iter().enumerate() {
            bytes[4 * place..4 * place + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[12..28].copy_from_slice(&self.cache_uuid);
        bytes[28..].copy_from_slice(&self.driver_uuid);
        bytes
    }

    /// One entry for each device and driver version, so that machines with several do not overwrite each other's.
    fn key(&self) -> Key {
        Key::of(&[b"pipelines", &self.bytes()])
    }
}

fn uuid_bytes(hex: &str) -> [u8; 16] {
    u128::from_str_radix(hex, 16).unwrap_or(0).to_be_bytes()
}

/// Where pipelines are kept. `None` when they are not, or when the folder cannot be used, which is logged.
pub(super) fn place(choice: &PipelineCacheChoice) -> Option<Store> {
    let folder = match choice {
        PipelineCacheChoice::Off => None,
        PipelineCacheChoice::Default => Folder::of_user("pipelines"),
        PipelineCacheChoice::Directory(directory) => Some(Folder::open(directory)),
    };
    match folder? {
        Ok(folder) => Some(Store::new(folder, MOST_BYTES)),
        // A home folder that cannot be written to is no surprise to whoever has it.
        Err(error @ CacheError::Io { .. }) if *choice == PipelineCacheChoice::Default => {
            log::info!("compiled pipelines are not kept: {error}");
            None
        }
        Err(error) => {
            log::warn!("compiled pipelines are not kept: {error}");
            None
        }
    }
}

/// The data that is kept for a device.
pub(super) fn read(store: &Store, identity: &Identity) -> Option<Vec<u8>> {
    let mut contents = store.get(identity.key(), KIND)?;
    if !contents.starts_with(&identity.bytes()) || contents.len() > IDENTITY + MAX_DATA {
        log::warn!("the pipelines kept for '{}' are another device's, and are not used", identity.name);
        return None;
    }
    contents.drain(..IDENTITY);
    Some(contents)
}

/// Keeps data for a device.
pub(super) fn write(store: &Store, identity: &Identity, data: &[u8]) -> Result<(), CacheError> {
    store.put(identity.key(), KIND, &identity.name, &[&identity.bytes(), data])
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
            name: "a device".into(),
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let choice = PipelineCacheChoice::Directory(folder.path().join("deep/er"));
        let store = place(&choice).unwrap();
        (folder, store)
    }

    #[test]
    fn data_comes_back_and_is_replaced_whole() {
        let (_folder, store) = store();
        assert_eq!(read(&store, &identity()), None);
        write(&store, &identity(), b"one").unwrap();
        write(&store, &identity(), b"three").unwrap();
        assert_eq!(read(&store, &identity()).unwrap(), b"three");
        assert_eq!(store.list().unwrap().len(), 1);
        assert_eq!(store.list().unwrap()[0].label, "a device");
    }

    #[test]
    fn other_drivers_do_not_share() {
        let (_folder, store) = store();
        let others = [
            Identity { vendor: 1, ..identity() },
            Identity { device: 1, ..identity() },
            Identity { driver_version: 8, ..identity() },
            Identity { cache_uuid: [3; 16], ..identity() },
            Identity { driver_uuid: [3; 16], ..identity() },
        ];
        write(&store, &identity(), b"data").unwrap();
        for other in others {
            assert_eq!(read(&store, &other), None, "{other:?}");
            store.put(other.key(), KIND, "", &[&identity().bytes(), b"data"]).unwrap();
            assert_eq!(read(&store, &other), None, "the identity is compared, not only looked up");
        }
    }

    #[test]
    fn a_folder_with_other_files_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.tex"), "").unwrap();
        assert!(place(&PipelineCacheChoice::Directory(folder.path().to_owned())).is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
