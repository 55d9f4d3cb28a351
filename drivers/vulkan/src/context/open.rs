//! Creating the device as its plan says.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    sync::OnceLock,
};

use ash::vk;
use halite_hal::{Code, Opener, Result, Status, next_device_id};

use super::{DeviceContext, QueueHandle, device_text};
use halite_facts::{DeviceFacts, Feature};

use crate::{
    discovery::Found,
    error::vk_error,
    external::Handles,
    forks::{LoaderCall, SharesThreads},
    import::Caller,
    instance::{InstanceContext, no_layers},
    loader::Origin,
    options::VulkanOptions,
    pipeline_cache::PipelineCache,
    plan::{DevicePlan, PlanError},
    probe::features::FeatureChain,
    target::TargetRanks,
    workarounds::{Avoid, Workarounds},
};

pub(super) fn open(found: &Found, options: VulkanOptions) -> Result<DeviceContext> {
    let Found { instance, physical, info, facts } = found.clone();
    if options.validation.any() && instance.library.origin != Origin::Loader {
        return Err(no_layers(instance.library));
    }
    let workarounds = Workarounds::chosen(&facts, &options.workarounds);
    let plan = DevicePlan::new(&facts, &options, &workarounds).map_err(plan_status)?;
    for workaround in &plan.workarounds {
        log::info!("device '{}': workaround {}: {}", facts.name, workaround.name, workaround.reason);
    }
    let shared = workarounds.find(Avoid::ForkedDevices);
    let shares_threads = shared.map(|why| SharesThreads::count(&info, why)).transpose()?;
    let device = create(&instance, physical, &facts, &plan)?;
    let queues = plan.queues.iter().map(|q| QueueHandle {
        // SAFETY: the device was created with this queue.
        queue: unsafe { device.get_device_queue(q.family, q.index) },
        family: q.family,
    });
    let queues = queues.collect();
    let found = Found { instance, physical, info, facts };
    let mut context = assemble(found, options, plan, (device, queues), None);
    context.shares_threads = shares_threads;
    Ok(context)
}

/// The context of a device that the program opened.
pub(super) fn adopt(
    found: Found,
    options: VulkanOptions,
    plan: DevicePlan,
    (device, queues): (vk::Device, &[(vk::Queue, u32)]),
    caller: Caller,
) -> DeviceContext {
    // SAFETY: whoever named the device vouched that it is alive and of this instance.
    let device = unsafe { load_functions(&found.instance.instance, device) };
    let queues =
        queues.iter().map(|(queue, family)| QueueHandle { queue: *queue, family: *family }).collect();
    assemble(found, options, plan, (device, queues), Some(caller))
}

fn assemble(
    Found { instance, physical, info, facts }: Found,
    options: VulkanOptions,
    plan: DevicePlan,
    (device, queues): (ash::Device, Vec<QueueHandle>),
    caller: Option<Caller>,
) -> DeviceContext {
    let push_descriptor = (plan.push_descriptors > 0)
        .then(|| ash::khr::push_descriptor::Device::new(&instance.instance, &device));
    let debug_utils = (instance.debug_utils && options.names_wanted())
        .then(|| ash::ext::debug_utils::Device::new(&instance.instance, &device));
    let device_fault = (plan.features.has(Feature::DeviceFault))
        .then(|| ash::ext::device_fault::Device::new(&instance.instance, &device));
    let external = Handles::new(&instance.instance, &device, &plan.external);
    let pipeline_cache = PipelineCache::open(&device, &facts, &options, plan.pipeline_cache);
    DeviceContext {
        id: next_device_id(),
        opener: Opener::here(),
        instance,
        physical,
        device,
        facts,
        plan,
        targets: TargetRanks::default(),
        options,
        info,
        queues,
        push_descriptor,
        debug_utils,
        device_fault,
        external,
        pipeline_cache,
        caller,
        shares_threads: None,
        loss: OnceLock::new(),
    }
}

/// The status of a device that cannot be opened as asked.
fn plan_status(error: PlanError) -> Status {
    let code = match error {
        PlanError::Option { .. } => Code::InvalidArgument,
        _ => Code::Unavailable,
    };
    Status::new(code, error.to_string())
}

fn create(
    instance: &InstanceContext,
    physical: vk::PhysicalDevice,
    facts: &DeviceFacts,
    plan: &DevicePlan,
) -> Result<ash::Device> {
    let priorities = [1.0; VulkanOptions::MAX_QUEUES as usize];
    let family = plan.queues.first().map_or(0, |q| q.family);
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&priorities[..plan.queues.len().min(priorities.len())])];
    let names: Vec<CString> = plan.extensions.iter().filter_map(|e| CString::new(*e).ok()).collect();
    let names: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
    let mut chain = FeatureChain::enabling(facts, plan.features);
    let mut root = chain.root(plan.features);
    let mut info =
        vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&names);
    info.p_next = std::ptr::from_mut(&mut root).cast();
    let mut handle = vk::Device::null();
    let _call = LoaderCall::begin()?;
    // SAFETY: the physical device belongs to the instance; the create info and all that it points to (queues,
    // names, chain, root) live until the call returns, and the chain holds only structures the device
    // defines.
    let result = unsafe {
        (instance.instance.fp_v1_0().create_device)(physical, &info, std::ptr::null(), &mut handle)
    };
    if result != vk::Result::SUCCESS {
        let object = format!("extensions: {}", plan.extensions.join(" "));
        return Err(vk_error("vkCreateDevice", result, &object, &device_text(facts)));
    }
    // SAFETY: the device was just created from this instance.
    Ok(unsafe { load_functions(&instance.instance, handle) })
}

/// Loads the device's functions; those unknown under their core name are looked up under their extension
/// names.
///
/// # Safety
/// The device must be alive and belong to the instance.
unsafe fn load_functions(instance: &ash::Instance, device: vk::Device) -> ash::Device {
    // SAFETY: as the caller vouches; the name is a C string.
    let find = |name: &CStr| unsafe { (instance.fp_v1_0().get_device_proc_addr)(device, name.as_ptr()) };
    let load = |name: &CStr| -> *const c_void {
        let suffixed = |suffix: &str| {
            let name = CString::new([name.to_bytes(), suffix.as_bytes()].concat()).ok()?;
            find(&name)
        };
        let function = find(name).or_else(|| suffixed("KHR")).or_else(|| suffixed("EXT"));
        function.map_or(std::ptr::null(), |f| f as *const c_void)
    };
    // SAFETY: each function pointer comes from this device under the name that its type belongs to.
    unsafe { ash::Device::load_with(load, device) }
}
