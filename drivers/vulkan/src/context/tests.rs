//! Opening the devices of this machine. Each test skips, loudly, where there is none.

use super::*;
use crate::{
    caps::DeviceType,
    instance::{COUNTING, validation_message_count},
    options::{PipelineCacheChoice, ValidationModes},
};

/// An instance and its devices, or nothing where Vulkan is missing.
fn devices(
    options: &VulkanOptions,
) -> Option<(Arc<InstanceContext>, Vec<(vk::PhysicalDevice, DeviceInfo, DeviceCaps)>)> {
    let found = InstanceContext::get(options).and_then(|i| Ok((i.clone(), enumerate(&i)?)));
    match found {
        Ok((instance, devices)) if !devices.is_empty() => Some((instance, devices)),
        Ok(_) => {
            eprintln!("SKIPPED: the Vulkan loader lists no device");
            None
        }
        Err(e) if e.code() == halite_hal::Code::Unavailable => {
            eprintln!("SKIPPED: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Writes and reads a mapped word through memory of the device, to prove that its functions work.
fn memory_round_trip(context: &DeviceContext) {
    let index = context.caps.memory.types.iter().position(|t| t.host_visible() && t.host_coherent()).unwrap();
    let info = vk::MemoryAllocateInfo::default().allocation_size(4096).memory_type_index(index as u32);
    // SAFETY: the device is alive; the memory is mapped whole, written inside its size, and freed once.
    let value = unsafe {
        let memory = context.device.allocate_memory(&info, None).unwrap();
        context.set_name(memory, "round trip");
        let mapped =
            context.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap();
        mapped.cast::<u32>().write(0xC0FFEE);
        let value = mapped.cast::<u32>().read();
        context.device.free_memory(memory, None);
        value
    };
    assert_eq!(value, 0xC0FFEE);
}

/// Signals a timeline semaphore from the host and waits for it: core in 1.2, an extension before.
fn semaphore_round_trip(context: &DeviceContext) {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: the device is alive, the semaphore is a timeline, used as such, and destroyed once.
    unsafe {
        let semaphore = context.device.create_semaphore(&info, None).unwrap();
        let signal = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(3);
        context.device.signal_semaphore(&signal).unwrap();
        let wait = vk::SemaphoreWaitInfo::default().semaphores(std::slice::from_ref(&semaphore)).values(&[3]);
        context.device.wait_semaphores(&wait, 1_000_000_000).unwrap();
        assert_eq!(context.device.get_semaphore_counter_value(semaphore).unwrap(), 3);
        context.device.destroy_semaphore(semaphore, None);
    }
}

#[test]
fn every_device_opens_and_works() {
    let options = VulkanOptions { pipeline_cache: PipelineCacheChoice::Off, ..VulkanOptions::default() };
    let Some((instance, found)) = devices(&options) else { return };
    for (physical, info, caps) in found {
        if info.unusable.is_some() {
            continue;
        }
        let context = DeviceContext::open(instance.clone(), physical, options.clone()).unwrap();
        assert_eq!((&context.info, &context.caps), (&info, &caps));
        assert!(info.path.starts_with("GPU-") && info.path.len() >= 36, "{}", info.path);
        memory_round_trip(&context);
        semaphore_round_trip(&context);
        eprintln!("opened {} {}", info.uri(), device_text(&caps));
    }
}

#[test]
fn opening_with_validation_is_silent() {
    let mut options = VulkanOptions { pipeline_cache: PipelineCacheChoice::Off, ..VulkanOptions::default() };
    options.validation = ValidationModes { core: true, synchronization: true, gpu_assisted: false };
    let Some((instance, found)) = devices(&options) else { return };
    let _alone = COUNTING.lock();
    let before = validation_message_count();
    for (physical, info, _) in found {
        if info.unusable.is_some() {
            continue;
        }
        let context = DeviceContext::open(instance.clone(), physical, options.clone()).unwrap();
        assert!(context.debug_utils.is_some());
        memory_round_trip(&context);
        semaphore_round_trip(&context);
    }
    assert_eq!(validation_message_count(), before);
}

#[test]
fn the_pipeline_cache_lands_in_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let options = VulkanOptions {
        pipeline_cache: PipelineCacheChoice::Directory(folder.path().to_owned()),
        ..VulkanOptions::default()
    };
    let Some((instance, found)) = devices(&options) else { return };
    let Some((physical, ..)) = found.into_iter().find(|(_, info, _)| info.unusable.is_none()) else { return };
    for _ in 0..2 {
        let context = DeviceContext::open(instance.clone(), physical, options.clone()).unwrap();
        assert_ne!(context.pipeline_cache.handle(), vk::PipelineCache::null());
        context.flush_pipeline_cache();
    }
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(files <= 1, "{files} files for one device");
}

#[test]
fn errors_name_call_result_and_device() {
    let Some((instance, found)) = devices(&VulkanOptions::default()) else { return };
    let Some((physical, info, _)) = found.into_iter().find(|(_, info, _)| info.unusable.is_none()) else {
        return;
    };
    let options = VulkanOptions { pipeline_cache: PipelineCacheChoice::Off, ..VulkanOptions::default() };
    let context = DeviceContext::open(instance, physical, options).unwrap();
    let e = context.error("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, "12 bytes");
    assert_eq!(e.code(), halite_hal::Code::ResourceExhausted);
    let text = e.to_string();
    for part in ["vkAllocateMemory", "ERROR_OUT_OF_DEVICE_MEMORY", "12 bytes", &info.name] {
        assert!(text.contains(part), "'{part}' missing from: {text}");
    }
    assert_eq!(e.detail("vk.result"), Some("ERROR_OUT_OF_DEVICE_MEMORY"));
}

/// Writes the caps of every device to the folder named by HALITE_CAPS_OUT: how `tests/caps` is recorded.
#[test]
#[ignore = "a recording tool, not a test: run it on a machine whose devices are to be recorded"]
fn record_caps() {
    let folder = std::env::var("HALITE_CAPS_OUT").expect("HALITE_CAPS_OUT names the folder to write to");
    for caps in crate::capture_caps(&VulkanOptions::default()).unwrap() {
        let name: String =
            caps.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let kind = if caps.device_type == DeviceType::Cpu { "cpu" } else { "gpu" };
        std::fs::write(format!("{folder}/{kind}_{name}.json"), caps.to_json() + "\n").unwrap();
    }
}
