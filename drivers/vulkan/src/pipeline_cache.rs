//! The persistent pipeline cache: the `VkPipelineCache`, and its data in the user's cache.

mod kept;

use ash::vk;
use halite_cache::{Digest, Store};
use halite_facts::DeviceFacts;
use parking_lot::Mutex;

use crate::options::VulkanOptions;

/// A pipeline cache, and where it is kept. Any thread may use it. Failing to load or store it costs time,
/// never correctness, so such failures are logged and not returned.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    handle: vk::PipelineCache,
    identity: kept::Identity,
    store: Option<Store>,
    /// Digest and length of what is kept, to write only what changed.
    stored: Mutex<Option<(Digest, usize)>>,
}

impl PipelineCache {
    /// The cache for a device, filled with what is kept for it. Where none is allowed, pipelines are created without one.
    pub(crate) fn open(
        device: &ash::Device,
        facts: &DeviceFacts,
        options: &VulkanOptions,
        allowed: bool,
    ) -> Self {
        let identity = kept::Identity::of(facts);
        let store = if allowed { kept::place(&options.pipeline_cache) } else { None };
        let data = store.as_ref().and_then(|store| kept::read(store, &identity)).unwrap_or_default();
        let made = || create(device, &data).or_else(|| create(device, &[]));
        let handle = if allowed { made().unwrap_or_default() } else { vk::PipelineCache::null() };
        let stored = (!data.is_empty()).then(|| {
            log::debug!("read {} bytes of pipeline cache", data.len());
            (Digest::of(&data), data.len())
        });
        PipelineCache { handle, identity, store, stored: Mutex::new(stored) }
    }

    /// The handle to create pipelines with; null when there is none.
    pub(crate) fn handle(&self) -> vk::PipelineCache {
        self.handle
    }

    /// Bytes that were kept at opening or since.
    #[cfg(test)]
    pub(crate) fn stored_bytes(&self) -> Option<usize> {
        self.stored.lock().map(|(_, length)| length)
    }

    /// Keeps the cache's data if it changed since it was read or written.
    pub(crate) fn flush(&self, device: &ash::Device) {
        let Some(store) = &self.store else { return };
        if self.handle == vk::PipelineCache::null() {
            return;
        }
        let mut stored = self.stored.lock();
        // SAFETY: the cache was made from this device, which the caller keeps alive.
        let data = match unsafe { device.get_pipeline_cache_data(self.handle) } {
            Ok(data) => data,
            Err(result) => {
                log::debug!("vkGetPipelineCacheData failed with {result:?}; pipelines are not kept");
                return;
            }
        };
        if data.len() <= kept::EMPTY_DATA || data.len() > kept::MAX_DATA {
            return;
        }
        let now = (Digest::of(&data), data.len());
        if *stored == Some(now) {
            return;
        }
        match kept::write(store, &self.identity, &data) {
            Ok(()) => {
                *stored = Some(now);
                log::debug!(
                    "wrote {} bytes of pipeline cache to '{}'",
                    data.len(),
                    store.folder().path().display()
                );
            }
            Err(error) => log::info!("compiled pipelines were not kept: {error}"),
        }
    }

    /// Flushes, then destroys the cache.
    ///
    /// # Safety
    /// `device` must be the one it was opened with, alive, and no pipeline may be under construction.
    pub(crate) unsafe fn destroy(&mut self, device: &ash::Device) {
        self.flush(device);
        let handle = std::mem::replace(&mut self.handle, vk::PipelineCache::null());
        // SAFETY: as the caller vouches; destroying null does nothing.
        unsafe { device.destroy_pipeline_cache(handle, None) };
    }
}

fn create(device: &ash::Device, data: &[u8]) -> Option<vk::PipelineCache> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: the device is alive, and the data is what this driver gave: its identity and digest were checked.
    match unsafe { device.create_pipeline_cache(&info, None) } {
        Ok(handle) => Some(handle),
        Err(result) => {
            log::debug!("vkCreatePipelineCache with {} bytes failed with {result:?}", data.len());
            None
        }
    }
}

/// What is kept in a folder for a device with these facts.
#[cfg(test)]
pub(crate) fn kept_in(folder: &std::path::Path, facts: &DeviceFacts) -> Option<Vec<u8>> {
    kept::read(&in_folder(folder), &kept::Identity::of(facts))
}

/// Keeps data as a flush would, for a device with these facts.
#[cfg(test)]
pub(crate) fn keep_in(folder: &std::path::Path, facts: &DeviceFacts, data: &[u8]) {
    kept::write(&in_folder(folder), &kept::Identity::of(facts), data)
        .expect("the test's folder can be written");
}

#[cfg(test)]
fn in_folder(folder: &std::path::Path) -> Store {
    let choice = crate::options::PipelineCacheChoice::Directory(folder.to_owned());
    kept::place(&choice).expect("the test's folder is its own")
}
