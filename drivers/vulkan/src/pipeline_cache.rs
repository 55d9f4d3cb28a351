//! Owns the persistent pipeline cache: the `VkPipelineCache` and the file behind it.
//! Does not own: pipelines.

mod file;

use std::path::{Path, PathBuf};

use ash::vk;
use parking_lot::Mutex;

use crate::{
    caps::DeviceCaps,
    options::{PipelineCacheChoice, VulkanOptions},
};

/// A pipeline cache, and where it is kept. Any thread may use it. Failing to load or store it costs time,
/// never correctness, so such failures are logged and not returned.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    handle: vk::PipelineCache,
    identity: file::Identity,
    path: Option<PathBuf>,
    /// Hash and length of what the file holds, to write only what changed.
    stored: Mutex<Option<(u64, usize)>>,
}

impl PipelineCache {
    /// The cache for a device, filled from its file when there is one that fits. Where none is allowed, pipelines are
    /// created without one.
    pub(crate) fn open(
        device: &ash::Device,
        caps: &DeviceCaps,
        options: &VulkanOptions,
        allowed: bool,
    ) -> Self {
        let identity = file::Identity::of(caps);
        let directory = match &options.pipeline_cache {
            PipelineCacheChoice::Off => None,
            _ if !allowed => None,
            PipelineCacheChoice::Default => file::default_directory(),
            PipelineCacheChoice::Directory(directory) => Some(directory.clone()),
        };
        let path = directory.map(|d| d.join(identity.file_name()));
        let data = path.as_deref().and_then(|p| load(p, &identity)).unwrap_or_default();
        let made = || create(device, &data).or_else(|| create(device, &[]));
        let handle = if allowed { made().unwrap_or_default() } else { vk::PipelineCache::null() };
        let stored = (!data.is_empty()).then(|| (file::hash(&data), data.len()));
        PipelineCache { handle, identity, path, stored: Mutex::new(stored) }
    }

    /// The handle to create pipelines with; null when there is none.
    pub(crate) fn handle(&self) -> vk::PipelineCache {
        self.handle
    }

    /// The file it is kept in, if it is kept.
    #[cfg(test)]
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes that its file gave at opening or got since.
    #[cfg(test)]
    pub(crate) fn stored_bytes(&self) -> Option<usize> {
        self.stored.lock().map(|(_, length)| length)
    }

    /// Writes the cache to its file if it changed since it was read or written.
    pub(crate) fn flush(&self, device: &ash::Device) {
        let Some(path) = &self.path else { return };
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
        let now = (file::hash(&data), data.len());
        if *stored == Some(now) || data.len() <= file::EMPTY_DATA || data.len() > file::MAX_DATA {
            return;
        }
        match file::write(path, &self.identity, &data) {
            Ok(()) => {
                *stored = Some(now);
                log::debug!("wrote {} bytes of pipeline cache to '{}'", data.len(), path.display());
            }
            Err(error) => log::debug!("pipeline cache '{}' was not written: {error}", path.display()),
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

fn load(path: &Path, identity: &file::Identity) -> Option<Vec<u8>> {
    match file::read(path, identity) {
        Ok(data) => {
            log::debug!("read {} bytes of pipeline cache from '{}'", data.len(), path.display());
            Some(data)
        }
        Err(why) => {
            log::debug!("pipeline cache '{}' is not used: {why}", path.display());
            None
        }
    }
}

fn create(device: &ash::Device, data: &[u8]) -> Option<vk::PipelineCache> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: the device is alive, and the data carries this driver's own header and our hash over it.
    match unsafe { device.create_pipeline_cache(&info, None) } {
        Ok(handle) => Some(handle),
        Err(result) => {
            log::debug!("vkCreatePipelineCache with {} bytes failed with {result:?}", data.len());
            None
        }
    }
}

/// Whether a file would be used for a device with these caps.
#[cfg(test)]
pub(crate) fn is_intact(path: &Path, caps: &DeviceCaps) -> bool {
    file::read(path, &file::Identity::of(caps)).is_ok()
}

/// Writes a file as a flush would, for a device with these caps.
#[cfg(test)]
pub(crate) fn store(path: &Path, caps: &DeviceCaps, data: &[u8]) {
    file::write(path, &file::Identity::of(caps), data).expect("the test's folder can be written");
}
