//! Devices that the program opened itself: Halite works on the program's Vulkan instance, device and queues, beside whatever the
//! program does there.

use std::{any::Any, ffi::c_void, fmt, sync::Arc};

use ash::vk::{self, Handle as _};
use halite_facts::{DeviceFacts, Feature, VERSION_1_1};
use halite_hal::{Device, Options, Result, bail, status};

use crate::{
    context::DeviceContext,
    device::VulkanDevice,
    discovery::Found,
    enumerate::ordered,
    instance::InstanceContext,
    options::VulkanOptions,
    plan::{DevicePlan, QueuePlan},
    probe::probe,
    workarounds::Workarounds,
};

/// Keeps other threads of the program away from a queue while Halite uses it. Vulkan takes one call on a queue at a time.
pub trait QueueLock: Send + Sync {
    /// Returns when the calling thread may use the queue with this place in the list of queues.
    fn lock(&self, queue: usize);

    /// The calling thread, which locked it, does not use the queue any more.
    fn unlock(&self, queue: usize);
}

/// A physical device of the program's instance.
pub struct CallersInstance {
    functions: vk::PFN_vkGetInstanceProcAddr,
    instance: vk::Instance,
    physical: vk::PhysicalDevice,
    api_version: u32,
}

impl CallersInstance {
    /// Names a physical device. `functions` is `vkGetInstanceProcAddr`, the next two are a `VkInstance` and one of its
    /// `VkPhysicalDevice`s, and `api_version` is what the instance was made for (`VkApplicationInfo::apiVersion`).
    ///
    /// # Errors
    /// A pointer is null, or the version is below 1.1.
    ///
    /// # Safety
    /// The pointers are what they are said to be, and stay so as long as what is made of this lives.
    pub unsafe fn new(
        functions: *const c_void,
        instance: *mut c_void,
        physical: *mut c_void,
        api_version: u32,
    ) -> Result<Self> {
        if functions.is_null() || instance.is_null() || physical.is_null() {
            bail!(
                InvalidArgument,
                "vkGetInstanceProcAddr, the instance and the physical device must not be null"
            );
        }
        if api_version < VERSION_1_1 {
            bail!(
                InvalidArgument,
                "the instance was made for Vulkan {}.{}, and 1.1 is the lowest that works; ask for more in \
                 VkApplicationInfo::apiVersion",
                vk::api_version_major(api_version),
                vk::api_version_minor(api_version)
            );
        }
        Ok(CallersInstance {
            // SAFETY: a function pointer as large as any; its type is what the caller says.
            functions: unsafe {
                std::mem::transmute::<*const c_void, vk::PFN_vkGetInstanceProcAddr>(functions)
            },
            instance: vk::Instance::from_raw(instance as u64),
            physical: vk::PhysicalDevice::from_raw(physical as u64),
            api_version,
        })
    }

    fn found(&self) -> Result<Found> {
        // SAFETY: `new`'s caller vouches for the handles.
        let instance =
            unsafe { InstanceContext::of_caller(self.functions, self.instance, self.api_version) }?;
        let facts = probe(&instance, self.physical)?;
        let info = described(&facts)?;
        Ok(Found { instance, physical: self.physical, info, facts })
    }
}

fn described(facts: &DeviceFacts) -> Result<halite_hal::DeviceInfo> {
    let listed = ordered(&[facts]).into_iter().next();
    listed.map(|(_, info)| info).ok_or_else(|| status!(Internal, "a device was not described"))
}

/// What Halite would enable on a device, for programs that create it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Extensions of the device.
    pub extensions: Vec<String>,
    /// Features, by the names of their fields: `shaderFloat16`, `timelineSemaphore`. Each is in the structure that Vulkan puts it
    /// in. All are optional: what is left out is not used.
    pub features: Vec<String>,
    /// The queue family that Halite would take.
    pub queue_family: u32,
}

/// What Halite would enable on a physical device with these options, as for a device that it opens itself.
///
/// # Errors
/// The device cannot be used, and the text says why; or an option is not known.
pub fn wanted(instance: &CallersInstance, options: &Options) -> Result<Wanted> {
    let options = VulkanOptions::parse(options)?;
    let facts = instance.found()?.facts;
    let workarounds = Workarounds::chosen(&facts, &options.workarounds);
    let plan = DevicePlan::new(&facts, &options, &workarounds)
        .map_err(|e| status!(Unavailable, "the device cannot be used: {e}"))?;
    Ok(Wanted {
        extensions: plan.extensions.iter().map(|name| (*name).to_owned()).collect(),
        features: plan.features.iter().map(|feature| feature.vulkan_name().to_owned()).collect(),
        queue_family: plan.queues.first().map_or(0, |queue| queue.family),
    })
}

/// A logical device of the program's, and what was enabled on it.
pub struct CallersDevice {
    instance: CallersInstance,
    device: vk::Device,
    queues: Vec<(vk::Queue, u32)>,
    extensions: Vec<String>,
    features: Vec<String>,
    lock: Option<Box<dyn QueueLock>>,
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for CallersDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallersDevice")
            .field("queues", &self.queues)
            .field("extensions", &self.extensions)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl CallersDevice {
    /// Names a `VkDevice` of the physical device, and those of its queues that Halite may use: `VkQueue`s with their family.
    ///
    /// # Errors
    /// A pointer is null, there is no queue or more than eight, or they are of several families.
    ///
    /// # Safety
    /// - The pointers are what they are said to be.
    /// - Device and instance live until the keeper ([`CallersDevice::keep`]) is dropped.
    /// - What [`CallersDevice::enabled`] is told was enabled when the device was created.
    /// - While Halite's device lives, other threads use these queues only under the lock, or not at all.
    pub unsafe fn new(
        instance: CallersInstance,
        device: *mut c_void,
        queues: &[(*mut c_void, u32)],
    ) -> Result<Self> {
        if device.is_null() || queues.iter().any(|(queue, _)| queue.is_null()) {
            bail!(InvalidArgument, "the device and its queues must not be null");
        }
        let most = VulkanOptions::MAX_QUEUES as usize;
        if queues.is_empty() || queues.len() > most {
            bail!(InvalidArgument, "a device has 1 to {most} queues, and {} were given", queues.len());
        }
        if queues.iter().any(|(_, family)| *family != queues[0].1) {
            bail!(
                InvalidArgument,
                "all queues must be of one family: buffers are not handed from one to another"
            );
        }
        Ok(CallersDevice {
            instance,
            device: vk::Device::from_raw(device as u64),
            queues: queues.iter().map(|(q, family)| (vk::Queue::from_raw(*q as u64), *family)).collect(),
            extensions: Vec::new(),
            features: Vec::new(),
            lock: None,
            keeper: None,
        })
    }

    /// What was enabled when the device was created, of what [`wanted`] names: extensions, and features by the names of their
    /// fields. Nothing else is used.
    #[must_use]
    pub fn enabled(mut self, extensions: Vec<String>, features: Vec<String>) -> Self {
        (self.extensions, self.features) = (extensions, features);
        self
    }

    /// What keeps others from a queue while Halite uses it. Without one the queues belong to Halite while its device lives.
    #[must_use]
    pub fn lock(mut self, lock: Box<dyn QueueLock>) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Dropped when Halite does not use the Vulkan objects any more, also when opening fails: the owner of the device, or what
    /// tells it.
    #[must_use]
    pub fn keep(mut self, keeper: Box<dyn Any + Send + Sync>) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// A device that works on this one. Options are those of the driver, except `validation`, `debug_names`, `queues` and those
    /// that choose a library: they are the program's to decide.
    ///
    /// # Errors
    /// An option is not known or not possible here, something is said to be enabled that the device does not have, or the
    /// device lacks what Halite needs.
    pub fn open(self, options: &Options) -> Result<Arc<dyn Device>> {
        for name in ["validation", "debug_names", "queues", "icd", "libvulkan", "swiftshader", "api_version"]
        {
            if options.contains_key(name) {
                bail!(
                    InvalidArgument,
                    "option {name} is for devices that Halite opens; this one was opened by the program, which decides that"
                );
            }
        }
        let options = VulkanOptions::parse(options)?;
        let mut found = self.instance.found()?;
        confine(&mut found.facts, &self.extensions, &self.features)?;
        found.info = described(&found.facts)?;
        let family = self.queues[0].1;
        if !found.facts.queue_families.get(family as usize).is_some_and(halite_facts::QueueFamily::compute) {
            bail!(InvalidArgument, "queue family {family} of device '{}' cannot compute", found.facts.name);
        }
        let workarounds = Workarounds::chosen(&found.facts, &options.workarounds);
        let mut plan = DevicePlan::new(&found.facts, &options, &workarounds)
            .map_err(|e| status!(Unavailable, "the program's device cannot be used: {e}"))?;
        if let Some(missing) = plan.extensions.iter().find(|name| !found.facts.has_extension(name)) {
            bail!(
                InvalidArgument,
                "the features that are enabled need the extension {missing}, which is not"
            );
        }
        plan.queues = (0..self.queues.len() as u32).map(|index| QueuePlan { family, index }).collect();
        let (queues, caller) = (self.queues, Caller { lock: self.lock, _keeper: self.keeper });
        let context = DeviceContext::adopt(found, options, plan, (self.device, &queues), caller);
        Ok(Arc::new(VulkanDevice::new(context)?))
    }
}

/// What the program keeps of a device that it lent.
pub(crate) struct Caller {
    /// Keeps its threads from the queues.
    pub lock: Option<Box<dyn QueueLock>>,
    /// Dropped when the device is not used any more.
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

/// Takes what is not enabled out of the facts. What is said to be enabled must be there.
fn confine(facts: &mut DeviceFacts, extensions: &[String], features: &[String]) -> Result<()> {
    if let Some(unknown) = extensions.iter().find(|name| !facts.has_extension(name)) {
        bail!(
            InvalidArgument,
            "extension '{unknown}' is said to be enabled, and device '{}' does not have it",
            facts.name
        );
    }
    let mut enabled = Vec::new();
    for name in features {
        let Some(feature) = Feature::from_vulkan_name(name) else {
            bail!(
                InvalidArgument,
                "'{name}' is no feature that Halite knows of; give those that it wants, and of these the enabled ones"
            );
        };
        if !facts.features.has(feature) {
            bail!(
                InvalidArgument,
                "feature '{name}' is said to be enabled, and device '{}' does not have it",
                facts.name
            );
        }
        enabled.push(feature);
    }
    facts.extensions.retain(|name| extensions.contains(name));
    let present: Vec<Feature> = facts.features.present().iter().collect();
    for feature in present.into_iter().filter(|feature| !enabled.contains(feature)) {
        facts.features.set(feature, false);
    }
    if !enabled.contains(&Feature::CooperativeMatrix) {
        facts.cooperative_matrices.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::recorded;

    #[test]
    fn only_what_is_enabled_is_left() {
        let mut facts = recorded("nvidia_h200");
        confine(&mut facts, &[], &["shaderInt64".to_owned()]).unwrap();
        assert_eq!(facts.features.present().iter().collect::<Vec<_>>(), [Feature::ShaderInt64]);
        assert!(facts.extensions.is_empty() && facts.cooperative_matrices.is_empty());
        let plan = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::default()).unwrap();
        assert!(plan.extensions.is_empty() && plan.timeline == crate::plan::TimelineKind::Emulated);
    }

    #[test]
    fn what_the_device_lacks_cannot_have_been_enabled() {
        let confined = |extension: &str, feature: &str| {
            let list = |name: &str| if name.is_empty() { vec![] } else { vec![name.to_owned()] };
            confine(&mut recorded("swiftshader"), &list(extension), &list(feature)).unwrap_err().to_string()
        };
        assert!(confined("VK_KHR_no_such", "").contains("'VK_KHR_no_such'"));
        assert!(confined("", "shaderFloat16").contains("does not have it"));
        assert!(confined("", "geometryShader").contains("no feature that Halite knows"));
    }
}
