//! The libraries that Vulkan is called through: the system's loader, and drivers that are called directly.
//!
//! Function pointers stay with the library they came from: a handle that one library made must never reach
//! another's functions, so nothing here is global state except the list of libraries that are loaded.

use std::path::{Path, PathBuf};

use ash::vk;
use halite_hal::{PerProcess, Result, Status, status};
use parking_lot::Mutex;

use crate::{error::load_reason, icd};

/// How Vulkan is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// Through the system's loader: it finds drivers and layers.
    Loader,
    /// Through one driver's own library, without layers.
    Direct {
        /// Version of the interface between loader and driver that was agreed on.
        interface: u32,
    },
    /// As the program calls it, which made the instance.
    Caller,
}

/// A loaded Vulkan library. It is never unloaded: drivers leave threads and thread-local data behind.
pub(crate) struct VulkanLibrary {
    /// Functions that need no instance.
    pub entry: ash::Entry,
    /// What kind of library it is.
    pub origin: Origin,
    /// What it was loaded as.
    pub path: PathBuf,
}

impl std::fmt::Debug for VulkanLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VulkanLibrary").field("origin", &self.origin).field("path", &self.path).finish()
    }
}

impl std::fmt::Display for VulkanLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = file_of(self.entry.static_fn().get_instance_proc_addr as usize);
        let path = file.as_ref().unwrap_or(&self.path).display();
        match self.origin {
            Origin::Loader => write!(f, "Vulkan loader {path}"),
            Origin::Caller => write!(f, "the program's own instance, of {path}"),
            Origin::Direct { interface } => {
                write!(f, "driver library {path}, loaded directly (ICD interface {interface})")
            }
        }
    }
}

/// The libraries of this process.
static LOADED: PerProcess<Mutex<Vec<&'static VulkanLibrary>>> = PerProcess::new(Mutex::default);

/// File names of the system's loader, in the order they are tried.
const LOADER_NAMES: &[&str] = if cfg!(windows) {
    &["vulkan-1.dll"]
} else if cfg!(any(target_os = "macos", target_os = "ios")) {
    &["libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"]
} else if cfg!(target_os = "android") {
    &["libvulkan.so"]
} else {
    &["libvulkan.so.1", "libvulkan.so"]
};

impl VulkanLibrary {
    /// Loads the first loader that works: the given paths (files, or folders that hold one), then the system's.
    /// UNAVAILABLE lists what was tried.
    pub(crate) fn load(preferred: &[PathBuf]) -> Result<&'static VulkanLibrary> {
        let mut loaded = LOADED.get().lock();
        let mut tried = Vec::new();
        for path in candidates(preferred) {
            if let Some(known) = loaded.iter().find(|l| l.path == path && l.origin == Origin::Loader) {
                return Ok(known);
            }
            match Self::load_file(&path) {
                Ok(library) => return Ok(keep(&mut loaded, library)),
                Err(why) => tried.push(format!("{} ({})", path.display(), load_reason(&why))),
            }
        }
        Err(not_found(&tried))
    }

    /// Loads a driver's library without a loader. UNAVAILABLE says why it cannot be used.
    pub(crate) fn load_driver(path: &Path) -> Result<&'static VulkanLibrary> {
        let mut loaded = LOADED.get().lock();
        if let Some(known) =
            loaded.iter().find(|l| l.path == path && matches!(l.origin, Origin::Direct { .. }))
        {
            return Ok(known);
        }
        let icd::DriverLibrary { get_instance_proc_addr, interface } = icd::load(path)?;
        // SAFETY: the function pointer stays valid because the library is never unloaded.
        let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) };
        let origin = Origin::Direct { interface };
        Ok(keep(&mut loaded, VulkanLibrary { entry, origin, path: path.to_owned() }))
    }

    /// The library that the program calls.
    ///
    /// # Safety
    /// The function is `vkGetInstanceProcAddr` of a library that stays loaded.
    pub(crate) unsafe fn of_caller(functions: vk::PFN_vkGetInstanceProcAddr) -> &'static VulkanLibrary {
        let mut loaded = LOADED.get().lock();
        let same = |l: &&&VulkanLibrary| {
            l.origin == Origin::Caller
                && l.entry.static_fn().get_instance_proc_addr as usize == functions as usize
        };
        if let Some(known) = loaded.iter().find(same) {
            return known;
        }
        // SAFETY: as the caller vouches.
        let entry =
            unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: functions }) };
        let library = VulkanLibrary { entry, origin: Origin::Caller, path: PathBuf::from("the program") };
        keep(&mut loaded, library)
    }

    fn load_file(path: &Path) -> Result<VulkanLibrary, libloading::Error> {
        // SAFETY: running the initialisers of the system's Vulkan loader, or of a library that the user named
        // for this purpose, is what the caller asks for.
        let library = unsafe { libloading::Library::new(path)? };
        // SAFETY: the symbol has this type in every library that exports it (Vulkan specification).
        let get = unsafe { *library.get::<vk::PFN_vkGetInstanceProcAddr>(c"vkGetInstanceProcAddr")? };
        std::mem::forget(library);
        // SAFETY: the function pointer stays valid because the library is never unloaded.
        let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: get }) };
        Ok(VulkanLibrary { entry, origin: Origin::Loader, path: path.to_owned() })
    }

    /// Highest Vulkan version that instances of this library can have.
    pub(crate) fn instance_version(&self) -> Result<u32, vk::Result> {
        // SAFETY: the entry's functions belong to a library that stays loaded.
        let version = unsafe { self.entry.try_enumerate_instance_version()? };
        Ok(version.unwrap_or(vk::API_VERSION_1_0))
    }
}

fn keep(loaded: &mut Vec<&'static VulkanLibrary>, library: VulkanLibrary) -> &'static VulkanLibrary {
    let library: &'static VulkanLibrary = Box::leak(Box::new(library));
    loaded.push(library);
    library
}

/// The file that holds the code at an address, where the system tells (Linux).
pub(crate) fn file_of(address: usize) -> Option<PathBuf> {
    let holds = |range: &str| {
        let (from, to) = range.split_once('-')?;
        let bound = |text| usize::from_str_radix(text, 16).ok();
        Some((bound(from)?..bound(to)?).contains(&address))
    };
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.split(' ').next().and_then(holds) == Some(true))?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}

fn candidates(preferred: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for path in preferred {
        if path.is_dir() {
            paths.extend(LOADER_NAMES.iter().map(|name| path.join(name)));
        } else {
            paths.push(path.clone());
        }
    }
    paths.extend(LOADER_NAMES.iter().map(PathBuf::from));
    paths
}

/// How to get a Vulkan driver on this system.
pub(crate) fn install_advice() -> &'static str {
    if cfg!(target_os = "linux") {
        "on Debian or Ubuntu: apt install libvulkan1 mesa-vulkan-drivers (NVIDIA GPUs: the nvidia-driver package)"
    } else if cfg!(windows) {
        "install the graphics driver of the GPU's vendor"
    } else if cfg!(target_os = "macos") {
        "install the Vulkan SDK for macOS, which contains the loader and MoltenVK"
    } else {
        "install a Vulkan loader and a driver for this machine's GPU"
    }
}

fn not_found(tried: &[String]) -> Status {
    status!(
        Unavailable,
        "no Vulkan loader could be loaded; tried {}; {}, or name one with the option libvulkan=<path>",
        tried.join(", "),
        install_advice()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_paths_come_first_and_folders_expand() {
        let folder = std::env::temp_dir();
        let all = candidates(&[PathBuf::from("x/libvk.so"), folder.clone()]);
        assert_eq!(all[0], Path::new("x/libvk.so"));
        assert_eq!(all[1], folder.join(LOADER_NAMES[0]));
        assert_eq!(all.len(), 1 + 2 * LOADER_NAMES.len());
    }

    #[test]
    fn code_is_found_in_its_file() {
        if cfg!(target_os = "linux") {
            let file = file_of(candidates as *const () as usize).unwrap();
            assert_eq!(file, std::env::current_exe().unwrap());
            assert_eq!(file_of(8), None);
        }
    }

    #[test]
    fn the_error_says_what_was_tried_and_what_to_do() {
        let why = VulkanLibrary::load_file(Path::new("no/such/libvulkan.so")).err().map(|e| load_reason(&e));
        assert!(why.is_some_and(|w| w.contains("no/such")));
        let text = not_found(&["a.so (missing)".to_owned()]).to_string();
        assert!(text.starts_with("UNAVAILABLE") && text.contains("a.so (missing)"), "{text}");
        assert!(text.contains("libvulkan=<path>"), "{text}");
    }
}
