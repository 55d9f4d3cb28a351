//! Loading a Vulkan driver's library (an ICD) without Vulkan's loader.
//!
//! A driver leaves a fixed word (`ICD_LOADER_MAGIC`) where the loader would put its dispatch table, at the beginning of
//! every instance, physical device, queue and command buffer. Such a handle is good for functions that came from the
//! same library, and ends the process when a loader's function gets it. Hence all functions are reached through the
//! instance that a handle belongs to. The interface is that of Khronos' `LoaderDriverInterface` document.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use ash::vk;
use halite_hal::{Result, ResultExt as _, status};

/// The newest interface between loader and driver that is known. None of its versions changes how instances and
/// devices are made; what differs is about windows and about asking for functions.
const NEWEST_INTERFACE: u32 = 7;

/// A manifest is a few hundred bytes.
const MAX_MANIFEST: u64 = 1 << 16;

type Negotiate = unsafe extern "system" fn(version: *mut u32) -> vk::Result;

/// A driver's way to its functions.
pub(crate) struct DriverLibrary {
    /// Gives functions of the driver, for no instance and for its own.
    pub get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    /// The version of the interface that was agreed on; 1 when the driver does not negotiate.
    pub interface: u32,
}

/// Loads a driver's library and agrees on an interface with it. The library stays loaded.
/// UNAVAILABLE says why it cannot be used.
pub(crate) fn load(path: &Path) -> Result<DriverLibrary> {
    let shown = path.display();
    // SAFETY: running the initialisers of a Vulkan driver is what the caller asks for.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|e| status!(Unavailable, "'{shown}' cannot be loaded: {}", crate::error::load_reason(&e)))?;
    // SAFETY: the symbol has this type in every library that exports it (LoaderDriverInterface).
    let negotiate = unsafe { library.get::<Negotiate>(c"vk_icdNegotiateLoaderICDInterfaceVersion") }.ok();
    let mut interface = if negotiate.is_some() { NEWEST_INTERFACE } else { 1 };
    if let Some(negotiate) = negotiate {
        // SAFETY: the driver writes one word; this is the first call into it, as the interface wants.
        let result = unsafe { negotiate(&mut interface) };
        if result != vk::Result::SUCCESS || interface > NEWEST_INTERFACE {
            return Err(status!(
                Unavailable,
                "'{shown}' offers no interface up to version {NEWEST_INTERFACE} ({result:?}, version {interface})"
            ));
        }
    }
    // SAFETY: as for the first symbol; it has the type of vkGetInstanceProcAddr.
    let get = unsafe { library.get::<vk::PFN_vkGetInstanceProcAddr>(c"vk_icdGetInstanceProcAddr") };
    let get_instance_proc_addr = *get.map_err(|_| {
        status!(
            Unavailable,
            "'{shown}' is not a Vulkan driver: it has no vk_icdGetInstanceProcAddr (a Vulkan loader is named with \
             the option libvulkan=<path>)"
        )
    })?;
    std::mem::forget(library);
    Ok(DriverLibrary { get_instance_proc_addr, interface })
}

/// The library that a user's path means: itself, or what a driver's manifest (a `.json` file) names.
pub(crate) fn library_of(path: &Path) -> Result<PathBuf> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(path.to_owned());
    }
    let text = read(path).context(|| format!("reading the driver manifest '{}'", path.display()))?;
    let named = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|manifest| manifest["ICD"]["library_path"].as_str().map(PathBuf::from))
        .ok_or_else(|| {
            status!(InvalidArgument, "'{}' is no driver manifest: no ICD.library_path in it", path.display())
        })?;
    // A bare file name is for the system's search, another relative path counts from the manifest.
    let relative = named.is_relative() && named.components().count() > 1;
    Ok(if relative { path.parent().unwrap_or(Path::new("")).join(named) } else { named })
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_MANIFEST).read_to_string(&mut text));
    read.map_err(|e| status!(NotFound, "{e}"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        load(path).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_no_driver_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.so");
        std::fs::write(&text, "not a library").unwrap();
        assert!(refusal(&text).contains("text.so' cannot be loaded: "), "{}", refusal(&text));
        assert!(refusal(Path::new("/no/such.so")).contains("/no/such.so"));
        if cfg!(target_os = "linux") {
            let loaded = refusal(Path::new("libm.so.6"));
            assert!(loaded.contains("not a Vulkan driver"), "{loaded}");
        }
    }

    #[test]
    fn manifests_name_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("icd.json");
        let with = |library: &str| {
            std::fs::write(&manifest, serde_json::json!({"ICD": {"library_path": library}}).to_string())
                .unwrap();
            library_of(&manifest).unwrap()
        };
        assert_eq!(with("libvulkan_x.so"), Path::new("libvulkan_x.so"));
        assert_eq!(with("/abs/libvulkan_x.so"), Path::new("/abs/libvulkan_x.so"));
        assert_eq!(with("./x.so"), folder.path().join("./x.so"));
        assert_eq!(library_of(Path::new("a/b.so")).unwrap(), Path::new("a/b.so"));
        std::fs::write(&manifest, "{}").unwrap();
        assert!(library_of(&manifest).unwrap_err().to_string().contains("ICD.library_path"));
        std::fs::remove_file(&manifest).unwrap();
        assert!(library_of(&manifest).unwrap_err().to_string().contains("icd.json"));
    }
}
