//! The calls on devices that can fail, and those that destroy what they made.

use std::{
    ffi::{CStr, c_void},
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use ash::vk::{self, Handle};

use crate::{commands, disguise, instance::real_as, rules};

/// How long a stalled wait that has no end of its own sleeps between two looks.
const LOOK: Duration = Duration::from_millis(5);

fn sleep(time: Duration) {
    let nothing = Mutex::new(());
    let guard = nothing.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody notifies: the time-out is what is wanted.
    _ = Condvar::new().wait_timeout(guard, time);
}

/// Calls that make `n` objects, or none of anything, and only have to be failed and counted.
macro_rules! fallible {
    ($($name:ident: $pfn:ident($device:ident: $device_type:ty $(, $arg:ident: $ty:ty)*) $(makes $kind:literal)?;)*) => {
        $(
            #[allow(non_snake_case, reason = "Vulkan's own names")]
            unsafe extern "system" fn $name($device: $device_type $(, $arg: $ty)*) -> vk::Result {
                let call = stringify!($name);
                let owner = Owner::device(&$device);
                if let Some(result) = rules::lock().enter(call, owner) {
                    return result;
                }
                while_hanging(call);
                // SAFETY: the type is that of the function with this name; arguments are the caller's.
                let result = unsafe {
                    let name = CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes());
                    real_as::<vk::$pfn>(name)($device $(, $arg)*)
                };
                $(if result == vk::Result::SUCCESS {
                    rules::lock().count($kind, 1);
                })?
                result
            }
        )*

        fn find_fallible(name: &CStr) -> Option<*const ()> {
            match name.to_bytes_with_nul() {
                $(bytes if bytes == concat!(stringify!($name), "\0").as_bytes() => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}

/// Calls that destroy an object.
macro_rules! destroying {
    ($($name:ident: $pfn:ident($handle:ty) of $kind:literal;)*) => {
        $(
            #[allow(non_snake_case, reason = "Vulkan's own names")]
            unsafe extern "system" fn $name(
                device: vk::Device,
                handle: $handle,
                allocator: *const vk::AllocationCallbacks<'_>,
            ) {
                if !handle.is_null() {
                    rules::lock().count($kind, -1);
                }
                // SAFETY: the type is that of the function with this name; arguments are the caller's.
                unsafe {
                    let name = CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes());
                    real_as::<vk::$pfn>(name)(device, handle, allocator);
                }
            }
        )*

        fn find_destroying(name: &CStr) -> Option<*const ()> {
            match name.to_bytes_with_nul() {
                $(bytes if bytes == concat!(stringify!($name), "\0").as_bytes() => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}

/// Which device a call is about.
trait Owner {
    fn device(&self) -> u64;
}

impl Owner for vk::Device {
    fn device(&self) -> u64 {
        self.as_raw()
    }
}

impl Owner for vk::CommandBuffer {
    fn device(&self) -> u64 {
        0
    }
}

type Allocator<'a> = *const vk::AllocationCallbacks<'a>;

fallible! {
    vkAllocateMemory: PFN_vkAllocateMemory(device: vk::Device, info: *const vk::MemoryAllocateInfo<'_>,
        allocator: Allocator<'_>, out: *mut vk::DeviceMemory) makes "memory";
    vkMapMemory: PFN_vkMapMemory(device: vk::Device, memory: vk::DeviceMemory, offset: u64, size: u64,
        flags: vk::MemoryMapFlags, out: *mut *mut c_void);
    vkBindBufferMemory: PFN_vkBindBufferMemory(device: vk::Device, buffer: vk::Buffer,
        memory: vk::DeviceMemory, offset: u64);
    vkCreateBuffer: PFN_vkCreateBuffer(device: vk::Device, info: *const vk::BufferCreateInfo<'_>,
        allocator: Allocator<'_>, out: *mut vk::Buffer) makes "buffer";
    vkCreateSemaphore: PFN_vkCreateSemaphore(device: vk::Device, info: *const vk::SemaphoreCreateInfo<'_>,
        allocator: Allocator<'_>, out: *mut vk::Semaphore) makes "semaphore";
    vkCreateFence: PFN_vkCreateFence(device: vk::Device, info: *const vk::FenceCreateInfo<'_>,
        allocator: Allocator<'_>, out: *mut vk::Fence) makes "fence";
    vkResetFences: PFN_vkResetFences(device: vk::Device, count: u32, fences: *const vk::Fence);
    vkCreateCommandPool: PFN_vkCreateCommandPool(device: vk::Device,
        info: *const vk::CommandPoolCreateInfo<'_>, allocator: Allocator<'_>, out: *mut vk::CommandPool)
        makes "command pool";
    vkResetCommandPool: PFN_vkResetCommandPool(device: vk::Device, pool: vk::CommandPool,
        flags: vk::CommandPoolResetFlags);
    vkAllocateCommandBuffers: PFN_vkAllocateCommandBuffers(device: vk::Device,
        info: *const vk::CommandBufferAllocateInfo<'_>, out: *mut vk::CommandBuffer);
    vkBeginCommandBuffer: PFN_vkBeginCommandBuffer(buffer: vk::CommandBuffer,
        info: *const vk::CommandBufferBeginInfo<'_>);
    vkEndCommandBuffer: PFN_vkEndCommandBuffer(buffer: vk::CommandBuffer);
    vkCreateDescriptorPool: PFN_vkCreateDescriptorPool(device: vk::Device,
        info: *const vk::DescriptorPoolCreateInfo<'_>, allocator: Allocator<'_>, out: *mut vk::DescriptorPool)
        makes "descriptor pool";
    vkAllocateDescriptorSets: PFN_vkAllocateDescriptorSets(device: vk::Device,
        info: *const vk::DescriptorSetAllocateInfo<'_>, out: *mut vk::DescriptorSet);
    vkCreateDescriptorSetLayout: PFN_vkCreateDescriptorSetLayout(device: vk::Device,
        info: *const vk::DescriptorSetLayoutCreateInfo<'_>, allocator: Allocator<'_>,
        out: *mut vk::DescriptorSetLayout) makes "descriptor set layout";
    vkCreatePipelineLayout: PFN_vkCreatePipelineLayout(device: vk::Device,
        info: *const vk::PipelineLayoutCreateInfo<'_>, allocator: Allocator<'_>, out: *mut vk::PipelineLayout)
        makes "pipeline layout";
    vkCreatePipelineCache: PFN_vkCreatePipelineCache(device: vk::Device,
        info: *const vk::PipelineCacheCreateInfo<'_>, allocator: Allocator<'_>, out: *mut vk::PipelineCache)
        makes "pipeline cache";
    vkCreateShaderModule: PFN_vkCreateShaderModule(device: vk::Device,
        info: *const vk::ShaderModuleCreateInfo<'_>, allocator: Allocator<'_>, out: *mut vk::ShaderModule)
        makes "shader module";
    vkCreateComputePipelines: PFN_vkCreateComputePipelines(device: vk::Device, cache: vk::PipelineCache,
        count: u32, infos: *const vk::ComputePipelineCreateInfo<'_>, allocator: Allocator<'_>,
        out: *mut vk::Pipeline) makes "pipeline";
}

destroying! {
    vkFreeMemory: PFN_vkFreeMemory(vk::DeviceMemory) of "memory";
    vkDestroyBuffer: PFN_vkDestroyBuffer(vk::Buffer) of "buffer";
    vkDestroySemaphore: PFN_vkDestroySemaphore(vk::Semaphore) of "semaphore";
    vkDestroyCommandPool: PFN_vkDestroyCommandPool(vk::CommandPool) of "command pool";
    vkDestroyDescriptorPool: PFN_vkDestroyDescriptorPool(vk::DescriptorPool) of "descriptor pool";
    vkDestroyDescriptorSetLayout: PFN_vkDestroyDescriptorSetLayout(vk::DescriptorSetLayout)
        of "descriptor set layout";
    vkDestroyFence: PFN_vkDestroyFence(vk::Fence) of "fence";
    vkDestroyPipelineLayout: PFN_vkDestroyPipelineLayout(vk::PipelineLayout) of "pipeline layout";
    vkDestroyPipelineCache: PFN_vkDestroyPipelineCache(vk::PipelineCache) of "pipeline cache";
    vkDestroyShaderModule: PFN_vkDestroyShaderModule(vk::ShaderModule) of "shader module";
    vkDestroyPipeline: PFN_vkDestroyPipeline(vk::Pipeline) of "pipeline";
}

/// Our function in the place of the loader's.
pub(crate) fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
    let address = match name.to_bytes() {
        b"vkGetDeviceQueue" => get_device_queue as *const (),
        b"vkQueueSubmit" => queue_submit as *const (),
        b"vkQueueWaitIdle" => queue_wait_idle as *const (),
        b"vkDeviceWaitIdle" => device_wait_idle as *const (),
        b"vkWaitForFences" => wait_for_fences as *const (),
        b"vkGetFenceStatus" => get_fence_status as *const (),
        b"vkWaitSemaphores" => wait_semaphores as *const (),
        b"vkGetSemaphoreCounterValue" => get_semaphore_counter_value as *const (),
        _ => find_fallible(name).or_else(|| find_destroying(name)).or_else(|| commands::find(name))?,
    };
    as_function(address)
}

/// The invented `vkGetDeviceFaultInfoEXT`, while it is offered.
pub(crate) fn fault_info() -> vk::PFN_vkVoidFunction {
    rules::lock().device_fault.then(|| as_function(get_device_fault_info as *const ()))?
}

fn as_function(address: *const ()) -> vk::PFN_vkVoidFunction {
    // SAFETY: a function pointer of one type as a function pointer of another; callers know the right one.
    unsafe { std::mem::transmute::<*const (), vk::PFN_vkVoidFunction>(address) }
}

/// Whether a call of a device fails by a rule, or because the device is lost.
fn refused(call: &str, device: u64) -> Option<vk::Result> {
    let mut rules = rules::lock();
    let result = rules.enter(call, device);
    result.or_else(|| rules.is_lost(device).then_some(vk::Result::ERROR_DEVICE_LOST))
}

unsafe extern "system" fn get_device_queue(
    device: vk::Device,
    family: u32,
    index: u32,
    queue: *mut vk::Queue,
) {
    // SAFETY: arguments are the caller's.
    unsafe {
        let real = real_as::<vk::PFN_vkGetDeviceQueue>(c"vkGetDeviceQueue");
        if index > 0 && rules::lock().twin_queues {
            real(device, family, 0, queue);
            *queue = disguise::twin(*queue);
        } else {
            real(device, family, index, queue);
        }
        rules::lock().note_queue((*queue).as_raw(), device.as_raw());
    }
}

unsafe extern "system" fn queue_submit(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let device = rules::lock().device_of(queue.as_raw());
    let refused = refused("vkQueueSubmit", device);
    while_hanging("vkQueueSubmit");
    if let Some(result) = refused {
        return result;
    }
    let result = {
        let (queue, _turn) = disguise::real_queue(queue);
        // SAFETY: arguments are the caller's.
        unsafe { real_as::<vk::PFN_vkQueueSubmit>(c"vkQueueSubmit")(queue, count, infos, fence) }
    };
    if rules::lock().tells("vkQueueSubmit") {
        eprintln!("vkQueueSubmit is done");
    }
    result
}

/// Blocks while everything stands still.
fn while_stalled() {
    while rules::lock().stalled {
        sleep(LOOK);
    }
}

/// Blocks while a call is to hang.
fn while_hanging(call: &str) {
    while rules::lock().hangs(call) {
        sleep(LOOK);
    }
}

unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    while_stalled();
    while_hanging("vkQueueWaitIdle");
    let device = rules::lock().device_of(queue.as_raw());
    let refused = refused("vkQueueWaitIdle", device);
    let (queue, _turn) = disguise::real_queue(queue);
    // SAFETY: arguments are the caller's. Work that a lost device seems to have dropped goes on in truth: it has to end.
    let result = unsafe { real_as::<vk::PFN_vkQueueWaitIdle>(c"vkQueueWaitIdle")(queue) };
    refused.unwrap_or(result)
}

unsafe extern "system" fn device_wait_idle(device: vk::Device) -> vk::Result {
    while_stalled();
    let refused = refused("vkDeviceWaitIdle", device.as_raw());
    // SAFETY: as for queues.
    let result = unsafe { real_as::<vk::PFN_vkDeviceWaitIdle>(c"vkDeviceWaitIdle")(device) };
    refused.unwrap_or(result)
}

unsafe extern "system" fn wait_semaphores(
    device: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    if let Some(result) = refused("vkWaitSemaphores", device.as_raw()) {
        return result;
    }
    if rules::lock().stalled {
        sleep(Duration::from_nanos(timeout));
        return vk::Result::TIMEOUT;
    }
    // SAFETY: arguments are the caller's.
    unsafe { real_as::<vk::PFN_vkWaitSemaphores>(c"vkWaitSemaphores")(device, info, timeout) }
}

unsafe extern "system" fn get_semaphore_counter_value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    if let Some(result) = refused("vkGetSemaphoreCounterValue", device.as_raw()) {
        return result;
    }
    // SAFETY: arguments are the caller's.
    unsafe {
        if rules::lock().stalled {
            value.write(0);
            return vk::Result::SUCCESS;
        }
        let next = real_as::<vk::PFN_vkGetSemaphoreCounterValue>(c"vkGetSemaphoreCounterValue");
        next(device, semaphore, value)
    }
}

unsafe extern "system" fn wait_for_fences(
    device: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    if let Some(result) = refused("vkWaitForFences", device.as_raw()) {
        return result;
    }
    if rules::lock().stalled {
        sleep(Duration::from_nanos(timeout));
        return vk::Result::TIMEOUT;
    }
    // SAFETY: arguments are the caller's.
    unsafe { real_as::<vk::PFN_vkWaitForFences>(c"vkWaitForFences")(device, count, fences, all, timeout) }
}

unsafe extern "system" fn get_fence_status(device: vk::Device, fence: vk::Fence) -> vk::Result {
    if let Some(result) = refused("vkGetFenceStatus", device.as_raw()) {
        return result;
    }
    if rules::lock().stalled {
        return vk::Result::NOT_READY;
    }
    // SAFETY: arguments are the caller's.
    unsafe { real_as::<vk::PFN_vkGetFenceStatus>(c"vkGetFenceStatus")(device, fence) }
}

unsafe extern "system" fn get_device_fault_info(
    device: vk::Device,
    counts: *mut vk::DeviceFaultCountsEXT<'_>,
    info: *mut vk::DeviceFaultInfoEXT<'_>,
) -> vk::Result {
    let call = "vkGetDeviceFaultInfoEXT";
    if let Some(result) = rules::lock().enter(call, device.as_raw()) {
        return result;
    }
    while_hanging(call);
    // SAFETY: arguments are the caller's; arrays are written only as far as the caller's counts say.
    unsafe {
        if info.is_null() {
            (*counts).address_info_count = 1;
            (*counts).vendor_info_count = 1;
            (*counts).vendor_binary_size = 1000;
            return vk::Result::SUCCESS;
        }
        put(&mut (*info).description, "an invented page fault");
        if (*counts).address_info_count > 0 {
            (*info).p_address_infos.write(vk::DeviceFaultAddressInfoEXT {
                address_type: vk::DeviceFaultAddressTypeEXT::WRITE_INVALID,
                reported_address: 0xDEAD_BEEF,
                address_precision: 4096,
            });
        }
        if (*counts).vendor_info_count > 0 {
            let vendor = &mut *(*info).p_vendor_infos;
            put(&mut vendor.description, "an invented cause");
            (vendor.vendor_fault_code, vendor.vendor_fault_data) = (0x2A, 0x2B);
        }
    }
    vk::Result::SUCCESS
}

fn put(target: &mut [std::ffi::c_char], text: &str) {
    target.fill(0);
    for (to, from) in target.iter_mut().zip(text.bytes()) {
        *to = from as std::ffi::c_char;
    }
}
