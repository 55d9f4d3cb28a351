//! Opening the devices of this machine. Each test skips, loudly, where there is none.

use super::*;
use halite_facts::{DeviceType, VERSION_1_1, VERSION_1_2};

use crate::{
    discovery::discover,
    instance::{COUNTING, validation_message_count},
    loader::Origin,
    options::{PipelineCacheChoice, TimelineChoice, ValidationModes},
    plan::TimelineKind,
};

/// The devices of this machine, or nothing where Vulkan is missing.
fn devices(options: &VulkanOptions) -> Option<Vec<Found>> {
    match discover(options) {
        Ok(found) if !found.devices.is_empty() => Some(found.devices),
        Ok(found) => {
            eprintln!("SKIPPED: {}", found.nothing_usable());
            None
        }
        Err(e) if e.code() == halite_hal::Code::Unavailable => {
            eprintln!("SKIPPED: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// The devices that can be used, and validated if the options say so.
fn usable(options: &VulkanOptions) -> Vec<Found> {
    let mut found = devices(options).unwrap_or_default();
    found.retain(|d| d.info.unusable.is_none());
    if options.validation.any() && found.iter().any(|d| d.instance.library.origin != Origin::Loader) {
        eprintln!("SKIPPED: devices without a loader have no validation layer");
        found.retain(|d| d.instance.library.origin == Origin::Loader);
    }
    found
}

/// Writes and reads a mapped word through memory of the device, to prove that its functions work.
fn memory_round_trip(context: &DeviceContext) {
    let index =
        context.facts.memory.types.iter().position(|t| t.host_visible() && t.host_coherent()).unwrap();
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
    if context.plan.timeline == TimelineKind::Emulated {
        return;
    }
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
    for found in usable(&options) {
        let context = DeviceContext::open(&found, options.clone()).unwrap();
        let Found { info, facts, .. } = found;
        assert_eq!((&context.info, &context.facts), (&info, &facts));
        assert!(info.path.starts_with("GPU-") && info.path.len() >= 36, "{}", info.path);
        memory_round_trip(&context);
        semaphore_round_trip(&context);
        eprintln!("opened {} {}", info.uri(), device_text(&facts));
    }
}

/// Options that lead down different paths at opening.
fn variants() -> Vec<VulkanOptions> {
    let base = VulkanOptions { pipeline_cache: PipelineCacheChoice::Off, ..VulkanOptions::default() };
    vec![
        base.clone(),
        VulkanOptions { robust_buffer_access: Some(true), ..base.clone() },
        VulkanOptions { push_descriptors: false, synchronization2: false, ..base.clone() },
        VulkanOptions { timeline: TimelineChoice::Emulated, ..base.clone() },
        VulkanOptions { queues: 8, dedicated_compute_queue: false, ..base.clone() },
        VulkanOptions { memory: crate::options::MemoryChoice::Staged, ..base },
    ]
}

const CORE_AND_SYNC: ValidationModes =
    ValidationModes { core: true, synchronization: true, gpu_assisted: false };

/// The devices of an instance with validation; none where the layer or Vulkan is missing.
fn validated(validation: ValidationModes) -> Vec<Found> {
    usable(&VulkanOptions { validation, ..VulkanOptions::default() })
}

#[test]
fn opening_with_validation_is_silent() {
    let _alone = COUNTING.lock();
    let found = validated(CORE_AND_SYNC);
    let before = validation_message_count();
    for device in &found {
        for options in variants() {
            let options = VulkanOptions { validation: CORE_AND_SYNC, ..options };
            let context = DeviceContext::open(device, options).unwrap();
            assert!(context.debug_utils.is_some() && !context.queues.is_empty());
            memory_round_trip(&context);
            semaphore_round_trip(&context);
        }
    }
    assert_eq!(validation_message_count(), before);
}

#[test]
fn older_versions_work_through_extensions() {
    let _alone = COUNTING.lock();
    for api_version in [VERSION_1_1, VERSION_1_2] {
        let options = VulkanOptions { api_version, validation: CORE_AND_SYNC, ..variants().remove(0) };
        let found = usable(&options);
        let before = validation_message_count();
        for device in &found {
            let context = DeviceContext::open(device, options.clone()).unwrap();
            let Found { info, facts, .. } = device;
            assert_eq!(facts.api_version >> 12, api_version >> 12, "{}", info.name);
            let timeline = context.plan.extensions.contains(&"VK_KHR_timeline_semaphore");
            assert_eq!(timeline, api_version == VERSION_1_1);
            assert!(context.plan.extensions.contains(&"VK_KHR_synchronization2"));
            memory_round_trip(&context);
            semaphore_round_trip(&context);
        }
        assert_eq!(validation_message_count(), before);
    }
}

#[test]
fn misuse_is_counted() {
    let _alone = COUNTING.lock();
    for device in validated(CORE_AND_SYNC) {
        let options = VulkanOptions { validation: CORE_AND_SYNC, ..variants().remove(0) };
        let context = DeviceContext::open(&device, options).unwrap();
        let before = validation_message_count();
        let info = vk::BufferCreateInfo::default().size(0).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: the layer stops the wrong call, or lets a driver make an empty buffer, which is destroyed.
        unsafe {
            if let Ok(buffer) = context.device.create_buffer(&info, None) {
                context.device.destroy_buffer(buffer, None);
            }
        }
        assert!(validation_message_count() > before, "an empty buffer is an error");
    }
}

#[test]
fn gpu_assisted_validation_opens() {
    let _alone = COUNTING.lock();
    let validation = ValidationModes { gpu_assisted: true, ..CORE_AND_SYNC };
    for device in validated(validation) {
        let options = VulkanOptions { validation, ..variants().remove(0) };
        let context = DeviceContext::open(&device, options).unwrap();
        memory_round_trip(&context);
    }
}

#[test]
fn instances_are_shared_while_they_live() {
    let first = |options| devices(&options).map(|found| found[0].instance.clone());
    let Some(plain) = first(VulkanOptions::default()) else { return };
    let queues = first(VulkanOptions { queues: 2, ..VulkanOptions::default() }).unwrap();
    assert!(Arc::ptr_eq(&plain, &queues), "queues do not concern the instance");
    let named = first(VulkanOptions { debug_names: true, ..VulkanOptions::default() }).unwrap();
    assert!(!Arc::ptr_eq(&plain, &named));
}

/// A compute shader that does nothing.
const EMPTY_SHADER: &[u32] = &[
    0x7230203, 0x10300, 0x70000, 0x5, 0x0, 0x20011, 0x1, 0x3000E, 0x0, 0x1, 0x5000F, 0x5, 0x1, 0x6E69616D,
    0x0, 0x60010, 0x1, 0x11, 0x1, 0x1, 0x1, 0x20013, 0x2, 0x30021, 0x3, 0x2, 0x50036, 0x2, 0x1, 0x0, 0x3,
    0x200F8, 0x4, 0x100FD, 0x10038,
];

/// Compiles the empty shader, so that the cache holds something.
fn compile(context: &DeviceContext) {
    let device = &context.device;
    // SAFETY: the device is alive, the shader is valid, and everything made is destroyed once, in order.
    unsafe {
        let info = vk::ShaderModuleCreateInfo::default().code(EMPTY_SHADER);
        let module = device.create_shader_module(&info, None).unwrap();
        let layout = device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default(), None).unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        let cache = context.pipeline_cache.handle();
        let made = device.create_compute_pipelines(cache, &[info], None).unwrap();
        made.into_iter().for_each(|pipeline| device.destroy_pipeline(pipeline, None));
        device.destroy_pipeline_layout(layout, None);
        device.destroy_shader_module(module, None);
    }
}

/// Options with a cache in a folder, also for drivers whose caches are avoided.
fn keeping_pipelines_in(folder: &std::path::Path) -> VulkanOptions {
    let workarounds = ("workarounds".to_owned(), "-all".to_owned());
    let parsed = VulkanOptions::parse(&[workarounds].into()).unwrap();
    VulkanOptions { pipeline_cache: PipelineCacheChoice::Directory(folder.to_owned()), ..parsed }
}

/// The files in a folder that hold pipelines.
fn kept_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "halite")).collect()
}

#[test]
fn the_pipeline_cache_lands_in_its_directory() {
    for device in usable(&VulkanOptions::default()) {
        let folder = tempfile::tempdir().unwrap();
        let options = keeping_pipelines_in(folder.path());
        let Found { info, facts, .. } = &device;
        for round in 0..3 {
            let context = DeviceContext::open(&device, options.clone()).unwrap();
            compile(&context);
            context.flush_pipeline_cache();
            drop(context);
            let files = kept_files(folder.path());
            if files.is_empty() {
                eprintln!("SKIPPED: {} keeps nothing in its pipeline cache", info.name);
                break;
            }
            assert_eq!(files.len(), 1, "{files:?}");
            if round == 1 {
                // Damage must not reach the driver, and must be repaired by the next flush.
                std::fs::write(&files[0], b"HALITECE and then nonsense").unwrap();
            } else {
                assert!(crate::pipeline_cache::kept_in(folder.path(), facts).is_some(), "{}", info.name);
            }
        }
    }
}

#[test]
fn a_stored_pipeline_cache_is_read_back() {
    for device in usable(&VulkanOptions::default()) {
        let folder = tempfile::tempdir().unwrap();
        let options = keeping_pipelines_in(folder.path());
        let open = || DeviceContext::open(&device, options.clone()).unwrap();
        let context = open();
        assert_eq!(context.pipeline_cache.stored_bytes(), None, "nothing is stored yet");
        // SAFETY: the device and its cache are alive.
        let data =
            unsafe { context.device.get_pipeline_cache_data(context.pipeline_cache.handle()) }.unwrap();
        drop(context);
        crate::pipeline_cache::keep_in(folder.path(), &device.facts, &data);
        assert_eq!(open().pipeline_cache.stored_bytes(), Some(data.len()));
        let files = kept_files(folder.path());
        std::fs::write(&files[0], b"nonsense").unwrap();
        assert_eq!(open().pipeline_cache.stored_bytes(), None, "damage is ignored");
    }
}

#[test]
fn errors_name_call_result_and_device() {
    let Some(device) = usable(&VulkanOptions::default()).into_iter().next() else { return };
    let options = VulkanOptions { pipeline_cache: PipelineCacheChoice::Off, ..VulkanOptions::default() };
    let context = DeviceContext::open(&device, options).unwrap();
    let info = &device.info;
    let e = context.error("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, "12 bytes");
    assert_eq!(e.code(), halite_hal::Code::ResourceExhausted);
    let text = e.to_string();
    for part in ["vkAllocateMemory", "ERROR_OUT_OF_DEVICE_MEMORY", "12 bytes", &info.name] {
        assert!(text.contains(part), "'{part}' missing from: {text}");
    }
    assert_eq!(e.detail("vk.result"), Some("ERROR_OUT_OF_DEVICE_MEMORY"));
}

/// Writes the facts of every device to the folder named by HALITE_CAPS_OUT: how `tests/caps` is recorded.
#[test]
#[ignore = "a recording tool, not a test: run it on a machine whose devices are to be recorded"]
fn record_caps() {
    let folder = std::env::var("HALITE_CAPS_OUT").expect("HALITE_CAPS_OUT names the folder to write to");
    for facts in crate::capture_facts(&VulkanOptions::default()).unwrap() {
        let name: String =
            facts.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let kind = if facts.device_type == DeviceType::Cpu { "cpu" } else { "gpu" };
        std::fs::write(format!("{folder}/{kind}_{name}.json"), facts.to_json() + "\n").unwrap();
    }
}
