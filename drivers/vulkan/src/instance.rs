//! The Vulkan instance: version, layers, extensions, and the list of instances that are alive.

mod messages;

use std::{
    ffi::{CStr, CString, c_char},
    path::PathBuf,
    sync::{Arc, Weak},
};

use ash::vk;
use halite_facts::VERSION_1_1;
use halite_hal::{PerProcess, Result, Status, status};
use parking_lot::Mutex;

#[cfg(test)]
pub(crate) use messages::COUNTING;
pub use messages::validation_message_count;

use crate::{
    error::vk_error,
    forks::LoaderCall,
    loader::{Origin, VulkanLibrary, install_advice},
    options::{ValidationModes, VulkanOptions},
};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The library that an instance is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The first of these loaders that works, else the system's.
    Loader(Vec<PathBuf>),
    /// A driver's own library.
    Driver(PathBuf),
    /// The program, which made the instance.
    Caller,
}

/// What tells instances apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InstanceKey {
    source: Source,
    api_version: u32,
    validation: ValidationModes,
    names: bool,
}

/// A Vulkan instance. Devices keep it alive; it may be used from any thread.
pub(crate) struct InstanceContext {
    key: InstanceKey,
    /// The library that all functions come from.
    pub library: &'static VulkanLibrary,
    /// The instance and its functions.
    pub instance: ash::Instance,
    /// Packed API version that was asked for; devices may have less.
    pub api_version: u32,
    /// Whether objects can be named.
    pub debug_utils: bool,
    messenger: Option<messages::Messenger>,
    /// Whether it is ours to destroy.
    owned: bool,
}

impl std::fmt::Debug for InstanceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceContext").field("key", &self.key).field("library", &self.library).finish()
    }
}

/// The instances of this process.
struct Known {
    /// Alive until the process ends.
    kept: Vec<Arc<InstanceContext>>,
    /// Alive as long as a device uses them.
    validated: Vec<Weak<InstanceContext>>,
}

impl Known {
    fn kept(&mut self, key: InstanceKey) -> Result<Arc<InstanceContext>> {
        if let Some(found) = self.kept.iter().find(|i| i.key == key) {
            return Ok(found.clone());
        }
        let created = Arc::new(InstanceContext::create(key)?);
        self.kept.push(created.clone());
        Ok(created)
    }

    fn validated(&mut self, key: InstanceKey) -> Result<Arc<InstanceContext>> {
        self.validated.retain(|weak| weak.strong_count() > 0);
        if let Some(found) = self.validated.iter().filter_map(Weak::upgrade).find(|i| i.key == key) {
            return Ok(found);
        }
        let created = Arc::new(InstanceContext::create(key)?);
        self.validated.push(Arc::downgrade(&created));
        Ok(created)
    }
}

impl InstanceContext {
    /// The instance of a library for these options: one that is alive, or a new one. UNAVAILABLE when the library
    /// or what the options want of it is not there.
    ///
    /// Instances without validation are never destroyed, and there is one for each library: with its last instance,
    /// a loader unloads the drivers, and Mesa's leave exit handlers behind, which then run unmapped code when the
    /// process ends. Instances with validation are destroyed, because the layer reports leaks at that time.
    ///
    /// A child of `fork` makes its own: drivers on processors have threads for each instance, which stay in the parent.
    pub(crate) fn get(source: Source, options: &VulkanOptions) -> Result<Arc<Self>> {
        static KNOWN: PerProcess<Mutex<Known>> =
            PerProcess::new(|| Mutex::new(Known { kept: Vec::new(), validated: Vec::new() }));
        let key = InstanceKey {
            source,
            api_version: options.api_version,
            validation: options.validation,
            names: options.names_wanted(),
        };
        let mut known = KNOWN.get().lock();
        if !key.validation.any() {
            return known.kept(key);
        }
        known.kept(InstanceKey { validation: ValidationModes::default(), names: false, ..key.clone() })?;
        known.validated(key)
    }

    fn create(key: InstanceKey) -> Result<Self> {
        let _call = LoaderCall::begin()?;
        let library = match &key.source {
            Source::Loader(preferred) => VulkanLibrary::load(preferred)?,
            Source::Driver(path) => VulkanLibrary::load_driver(path)?,
            Source::Caller => return Err(status!(Internal, "an instance of the program's cannot be made")),
        };
        let api_version = supported_version(library)?.min(key.api_version);
        let request = InstanceRequest::choose(library, &key)?;
        let instance = request.create(library, api_version, key.validation)?;
        // SAFETY: the instance was just created by this library with VK_EXT_debug_utils enabled.
        let messenger = (request.messenger)
            .then(|| unsafe { messages::Messenger::create(&library.entry, &instance) })
            .transpose();
        let messenger = match messenger {
            Ok(messenger) => messenger,
            Err(result) => {
                // SAFETY: nothing was made from the instance yet.
                unsafe { instance.destroy_instance(None) };
                return Err(vk_error("vkCreateDebugUtilsMessengerEXT", result, "", ""));
            }
        };
        let debug_utils = request.debug_utils;
        Ok(InstanceContext { key, library, instance, api_version, debug_utils, messenger, owned: true })
    }

    /// An instance that the program made for this version, and will destroy. One context for each device that is opened.
    ///
    /// # Safety
    /// The function is `vkGetInstanceProcAddr`, and the instance comes from it and lives as long as the context.
    pub(crate) unsafe fn of_caller(
        functions: vk::PFN_vkGetInstanceProcAddr,
        instance: vk::Instance,
        api_version: u32,
    ) -> Result<Arc<Self>> {
        // SAFETY: as the caller vouches.
        let library = unsafe { VulkanLibrary::of_caller(functions) };
        // SAFETY: as the caller vouches.
        let instance = unsafe { ash::Instance::load(library.entry.static_fn(), instance) };
        let api_version = supported_version(library)?.min(api_version);
        let (validation, names) = (ValidationModes::default(), false);
        let key = InstanceKey { source: Source::Caller, api_version, validation, names };
        let (debug_utils, messenger, owned) = (false, None, false);
        Ok(Arc::new(InstanceContext { key, library, instance, api_version, debug_utils, messenger, owned }))
    }

    /// The physical devices, in the library's order.
    pub(crate) fn physical_devices(&self) -> Result<Vec<vk::PhysicalDevice>> {
        let _call = LoaderCall::begin()?;
        // SAFETY: the instance is alive as long as self.
        match unsafe { self.instance.enumerate_physical_devices() } {
            Ok(devices) => Ok(devices),
            // Some loaders report that no driver works here instead of at instance creation.
            Err(vk::Result::ERROR_INITIALIZATION_FAILED) => Ok(Vec::new()),
            Err(result) => Err(vk_error("vkEnumeratePhysicalDevices", result, "", "")),
        }
    }
}

impl Drop for InstanceContext {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // A fork without the lock's owner has made nothing that could be ended.
        let _call = LoaderCall::begin();
        if let Some(messenger) = self.messenger.take() {
            // SAFETY: the instance is still alive, and nobody else has the messenger.
            unsafe { messenger.destroy() };
        }
        // SAFETY: everything made from the instance holds an Arc of self, so nothing is left.
        unsafe { self.instance.destroy_instance(None) };
    }
}

fn supported_version(library: &VulkanLibrary) -> Result<u32> {
    let found = library.instance_version().map_err(|r| vk_error("vkEnumerateInstanceVersion", r, "", ""))?;
    if found < VERSION_1_1 {
        return Err(status!(
            Unavailable,
            "the {library} has Vulkan 1.0, and 1.1 is the lowest that works; {}",
            install_advice()
        ));
    }
    Ok(found)
}

/// What an instance is created with.
#[derive(Default)]
struct InstanceRequest {
    layers: Vec<&'static CStr>,
    extensions: Vec<&'static CStr>,
    debug_utils: bool,
    messenger: bool,
    portability: bool,
}

impl InstanceRequest {
    fn choose(library: &VulkanLibrary, key: &InstanceKey) -> Result<Self> {
        let mut request = InstanceRequest::default();
        let mut offered = extension_names(library, None)?;
        if key.validation.any() {
            require_layer(library)?;
            request.layers.push(VALIDATION_LAYER);
            offered.extend(extension_names(library, Some(VALIDATION_LAYER))?);
        }
        let has = |name: &CStr| offered.iter().any(|o| o.as_c_str() == name);
        if key.names && has(ash::ext::debug_utils::NAME) {
            request.extensions.push(ash::ext::debug_utils::NAME);
            request.debug_utils = true;
            request.messenger = key.validation.any();
        }
        if key.validation.synchronization || key.validation.gpu_assisted {
            if !has(ash::ext::validation_features::NAME) {
                return Err(status!(
                    Unavailable,
                    "option validation=sync or gpuav needs VK_EXT_validation_features, which the installed \
                     validation layer lacks; use validation=core"
                ));
            }
            request.extensions.push(ash::ext::validation_features::NAME);
        }
        if has(ash::khr::portability_enumeration::NAME) {
            request.extensions.push(ash::khr::portability_enumeration::NAME);
            request.portability = true;
        }
        Ok(request)
    }

    fn create(
        &self,
        library: &VulkanLibrary,
        api_version: u32,
        validation: ValidationModes,
    ) -> Result<ash::Instance> {
        let application =
            vk::ApplicationInfo::default().engine_name(c"Halite").engine_version(1).api_version(api_version);
        let layers: Vec<*const c_char> = self.layers.iter().map(|n| n.as_ptr()).collect();
        let extensions: Vec<*const c_char> = self.extensions.iter().map(|n| n.as_ptr()).collect();
        let mut info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
        if self.portability {
            info = info.flags(vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR);
        }
        let enables = validation_enables(validation);
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enables);
        if !enables.is_empty() {
            info = info.push_next(&mut features);
        }
        let mut messenger = messages::create_info();
        if self.messenger {
            info = info.push_next(&mut messenger);
        }
        // SAFETY: the create info and all it points to live until the call returns.
        unsafe { library.entry.create_instance(&info, None) }
            .map_err(|result| creation_error(library, result))
    }
}

fn validation_enables(modes: ValidationModes) -> Vec<vk::ValidationFeatureEnableEXT> {
    let mut enables = Vec::new();
    if modes.synchronization {
        enables.push(vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION);
    }
    if modes.gpu_assisted {
        enables.push(vk::ValidationFeatureEnableEXT::GPU_ASSISTED);
        enables.push(vk::ValidationFeatureEnableEXT::GPU_ASSISTED_RESERVE_BINDING_SLOT);
    }
    enables
}

fn creation_error(library: &VulkanLibrary, result: vk::Result) -> Status {
    if result == vk::Result::ERROR_INCOMPATIBLE_DRIVER && library.origin == Origin::Loader {
        return status!(
            Unavailable,
            "vkCreateInstance failed with ERROR_INCOMPATIBLE_DRIVER: the {library} found no Vulkan driver \
             that it can use; {}; if VK_DRIVER_FILES or VK_ICD_FILENAMES is set, check that it names a driver",
            install_advice()
        )
        .with_detail("vk.call", "vkCreateInstance")
        .with_detail("vk.result", "ERROR_INCOMPATIBLE_DRIVER");
    }
    vk_error("vkCreateInstance", result, &library.to_string(), "")
}

/// The error of asking for validation without a loader.
pub(crate) fn no_layers(library: &VulkanLibrary) -> Status {
    status!(
        Unavailable,
        "option validation needs Vulkan's loader, which loads the validation layer, and this device is reached \
         without it: {library}; leave validation out, or install the loader and the layer (on Debian or Ubuntu: apt \
         install libvulkan1 vulkan-validationlayers) and name the driver's manifest in VK_DRIVER_FILES"
    )
}

fn require_layer(library: &VulkanLibrary) -> Result<()> {
    if library.origin != Origin::Loader {
        return Err(no_layers(library));
    }
    // SAFETY: the entry's functions belong to a library that stays loaded.
    let layers = unsafe { library.entry.enumerate_instance_layer_properties() }
        .map_err(|r| vk_error("vkEnumerateInstanceLayerProperties", r, "", ""))?;
    if layers.iter().any(|l| l.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
        return Ok(());
    }
    Err(status!(
        Unavailable,
        "option validation needs the layer VK_LAYER_KHRONOS_validation, which is not installed ({} other layers \
         are); on Debian or Ubuntu: apt install vulkan-validationlayers",
        layers.len()
    ))
}

fn extension_names(library: &VulkanLibrary, layer: Option<&CStr>) -> Result<Vec<CString>> {
    // SAFETY: the entry's functions belong to a library that stays loaded; the layer name is a C string.
    let found = unsafe { library.entry.enumerate_instance_extension_properties(layer) }
        .map_err(|r| vk_error("vkEnumerateInstanceExtensionProperties", r, "", ""))?;
    Ok(found.iter().filter_map(|e| e.extension_name_as_c_str().ok().map(CStr::to_owned)).collect())
}
