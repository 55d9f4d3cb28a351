//! A Vulkan device that the program opened: Halite runs on it, and leaves it to the program afterwards. The program here calls
//! Vulkan through ash, and the library as C does.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ash::vk::{self, Handle as _};
use common::*;
use halite_c::{builder::*, device::*, failure::*, session::*, source::*, tensor::*, values::*, vulkan::*};

/// The program: its instance, and one physical device that computes.
struct Program {
    functions: vk::PFN_vkGetInstanceProcAddr,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    version: u32,
}

/// Instances for this version of Vulkan, with each of their devices; nothing where there is no Vulkan loader.
fn programs(version: u32) -> Vec<Program> {
    // SAFETY: the loader is the system's, and stays loaded: it is opened by name, as Halite does.
    unsafe {
        let Some(functions) = loader() else {
            println!("SKIPPED: no Vulkan loader");
            return Vec::new();
        };
        let entry = ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: functions });
        let application = vk::ApplicationInfo::default().api_version(version);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let Ok(instance) = entry.create_instance(&info, None) else {
            println!("SKIPPED: no Vulkan driver");
            return Vec::new();
        };
        let devices = instance.enumerate_physical_devices().unwrap();
        devices
            .into_iter()
            .map(|physical| Program { functions, instance: instance.clone(), physical, version })
            .collect()
    }
}

/// `vkGetInstanceProcAddr` of the system's loader.
unsafe fn loader() -> Option<vk::PFN_vkGetInstanceProcAddr> {
    let names = ["libvulkan.so.1", "libvulkan.1.dylib", "vulkan-1.dll"];
    // SAFETY: the loader's initialisers are those that any Vulkan program runs; the symbol has this type in each.
    names.iter().find_map(|name| unsafe {
        let library = libloading::Library::new(*name).ok()?;
        let found = *library.get::<vk::PFN_vkGetInstanceProcAddr>(b"vkGetInstanceProcAddr").ok()?;
        std::mem::forget(library);
        Some(found)
    })
}

/// What a lent device's callbacks did.
#[derive(Default)]
struct Seen {
    locks: AtomicUsize,
    held: Mutex<Vec<usize>>,
    releases: AtomicUsize,
}

unsafe extern "C" fn lock(context: *mut c_void, queue: usize) {
    // SAFETY: the context is a `Seen` that outlives the device.
    let seen = unsafe { &*context.cast::<Seen>() };
    seen.locks.fetch_add(1, Ordering::SeqCst);
    seen.held.lock().unwrap().push(queue);
}

unsafe extern "C" fn unlock(context: *mut c_void, queue: usize) {
    // SAFETY: as above.
    let held = unsafe { &*context.cast::<Seen>() }.held.lock().unwrap().pop();
    assert_eq!(held, Some(queue));
}

unsafe extern "C" fn release(context: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*context.cast::<Seen>() }.releases.fetch_add(1, Ordering::SeqCst);
}

impl Program {
    fn stated(&self, seen: &Seen) -> halite_vulkan_device {
        // SAFETY: zeros are what is not set.
        let mut stated: halite_vulkan_device = unsafe { std::mem::zeroed() };
        stated.struct_size = size_of::<halite_vulkan_device>();
        stated.get_instance_proc_addr = self.functions as *const c_void;
        stated.instance = self.instance.handle().as_raw() as *mut c_void;
        stated.physical_device = self.physical.as_raw() as *mut c_void;
        stated.api_version = self.version;
        stated.context = ptr::from_ref(seen).cast_mut().cast();
        stated.lock = Some(lock);
        stated.unlock = Some(unlock);
        stated.release = Some(release);
        stated
    }

    /// A device with these extensions and, of Vulkan's first features, `shaderInt64` where it is there.
    fn device(&self, family: u32, extensions: &[*const c_char], int64: bool) -> ash::Device {
        let queue =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let features = vk::PhysicalDeviceFeatures::default().shader_int64(int64);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queue)
            .enabled_extension_names(extensions)
            .enabled_features(&features);
        // SAFETY: the info and what it points to live until the call returns.
        unsafe { self.instance.create_device(self.physical, &info, None) }.unwrap()
    }
}

fn texts(of: impl Fn(usize) -> *const c_char) -> Vec<CString> {
    (0..).map(of).take_while(|name| !name.is_null()).map(|name| CString::new(text(name)).unwrap()).collect()
}

/// Fills a buffer on the program's device, to see that it still works.
fn still_works(device: &ash::Device, family: u32) {
    // SAFETY: the device is alive, and nobody else uses its queue.
    unsafe {
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        let pool = device.create_command_pool(&pool, None).unwrap();
        let buffers = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&buffers).unwrap();
        device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
        device.end_command_buffer(commands[0]).unwrap();
        let queue = device.get_device_queue(family, 0);
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        device.queue_submit(queue, &[submit], vk::Fence::null()).unwrap();
        device.queue_wait_idle(queue).unwrap();
        device.destroy_command_pool(pool, None);
    }
}

/// Reads the demo's digit with the module of IREE's compiler, which asks for nothing but storage buffers.
unsafe fn read_digit(device: *mut halite_device) {
    // SAFETY: handles are ours.
    unsafe {
        let bytes = std::fs::read(repo("demo/digits/digits.vmfb").to_str().unwrap()).unwrap();
        let builder = halite_session_builder_create();
        let mut source: halite_source = std::mem::zeroed();
        source.struct_size = size_of::<halite_source>();
        (source.data, source.size) = (bytes.as_ptr(), bytes.len());
        halite_session_builder_model(builder, &source);
        halite_session_builder_open_device(builder, device);
        halite_session_builder_no_cache(builder);
        let session = made(|out| halite_session_builder_build(builder, ptr::null(), out)).unwrap();
        halite_session_builder_free(builder);
        let picture = floats(&array("sample_7.npy"), &[1, 1, 16, 16]);
        let by_place = halite_input { name: ptr::null(), tensor: picture, value: ptr::null() };
        let outputs = run(session, &[by_place]).unwrap();
        let (actual, expected) =
            (read(made(|out| halite_outputs_tensor_at(outputs, 0, out)).unwrap()), array("expected_7.npy"));
        halite_outputs_free(outputs);
        assert!(actual.iter().zip(&expected).all(|(a, e)| (a - e).abs() <= 1e-4), "{actual:?}");
        halite_tensor_free(picture);
        halite_session_free(session);
    }
}

#[test]
fn a_session_runs_on_the_programs_device_and_leaves_it() {
    for version in [vk::API_VERSION_1_1, vk::API_VERSION_1_3] {
        for program in programs(version) {
            let seen = Seen::default();
            let mut stated = program.stated(&seen);
            // SAFETY: handles are ours; arrays are as long as is said.
            unsafe {
                let wanted = made(|out| halite_vulkan_wanted_create(ptr::null(), &stated, out)).unwrap();
                let extensions = texts(|i| halite_vulkan_wanted_extension(wanted, i));
                let features = texts(|i| halite_vulkan_wanted_feature(wanted, i));
                let family = halite_vulkan_wanted_queue_family(wanted);
                halite_vulkan_wanted_free(wanted);
                let int64 = features.iter().any(|f| f.as_c_str() == c"shaderInt64");
                let names: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
                let device = program.device(family, &names, int64);

                // Of the features only one was enabled: no timeline semaphores, no 8- and 16-bit kernels.
                let enabled = [c"shaderInt64".as_ptr()];
                let queues = [halite_vulkan_queue {
                    queue: device.get_device_queue(family, 0).as_raw() as *mut c_void,
                    family,
                }];
                stated.device = device.handle().as_raw() as *mut c_void;
                (stated.queues, stated.queue_count) = (queues.as_ptr(), 1);
                (stated.extensions, stated.extension_count) = (names.as_ptr(), names.len());
                (stated.features, stated.feature_count) = (enabled.as_ptr(), usize::from(int64));
                let own = made(|out| halite_device_import_vulkan(ptr::null(), &stated, out)).unwrap();
                read_digit(own);
                assert_eq!(seen.releases.load(Ordering::SeqCst), 0);
                halite_device_free(own);
                assert_eq!(seen.releases.load(Ordering::SeqCst), 1, "nothing of Halite's is left on it");
                assert!(seen.locks.load(Ordering::SeqCst) > 0 && seen.held.lock().unwrap().is_empty());
                still_works(&device, family);
                device.destroy_device(None);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_said_and_the_device_released() {
    for program in programs(vk::API_VERSION_1_1) {
        // SAFETY: handles are ours; arrays are as long as is said.
        unsafe {
            let device = program.device(0, &[], false);
            let queue = halite_vulkan_queue {
                queue: device.get_device_queue(0, 0).as_raw() as *mut c_void,
                family: 0,
            };
            let (wrong, unknown) = ([c"shaderInt46".as_ptr()], [c"VK_KHR_no_such".as_ptr()]);
            type Change<'a> = &'a dyn Fn(&mut halite_vulkan_device);
            let cases: [(&str, Change<'_>); 7] = [
                ("must not be null", &|s| s.instance = ptr::null_mut()),
                ("must not be null", &|s| s.device = ptr::null_mut()),
                ("1 to 8 queues", &|s| s.queue_count = 0),
                ("1.1 is the lowest", &|s| s.api_version = vk::API_VERSION_1_0),
                ("come together", &|s| s.unlock = None),
                ("'shaderInt46'", &|s| (s.features, s.feature_count) = (wrong.as_ptr(), 1)),
                ("'VK_KHR_no_such'", &|s| (s.extensions, s.extension_count) = (unknown.as_ptr(), 1)),
            ];
            for (part, change) in cases {
                let seen = Seen::default();
                let mut stated = program.stated(&seen);
                stated.device = device.handle().as_raw() as *mut c_void;
                (stated.queues, stated.queue_count) = (&queue, 1);
                change(&mut stated);
                let told = made(|out| halite_device_import_vulkan(ptr::null(), &stated, out)).unwrap_err();
                assert_eq!(told.kind, HALITE_ERROR_INVALID_INPUT, "{}", told.text);
                assert!(told.text.contains(part), "'{part}' is missing from: {}", told.text);
                assert_eq!(seen.releases.load(Ordering::SeqCst), 1, "{part}");
            }
            still_works(&device, 0);
            device.destroy_device(None);
        }
    }
}
