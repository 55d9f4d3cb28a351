//! Devices and helpers that the tests of the driver share.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "every test program uses a part of it")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use halite_formats::vmfb::{
    DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
    write_vulkan_executable,
};
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Deadline, Device, Driver as _, Executable, ExecutableDesc, Fence,
    Options, QueueAffinity, QueueOp, Semaphore,
};
use halite_vulkan::VulkanDriver;

pub const ANY: QueueAffinity = QueueAffinity::ANY;

/// The validation message counter is of the whole process, so tests take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints warnings and errors of the driver and of the validation layer.
struct Printer;

impl log::Log for Printer {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// `HALITE_TEST_VALIDATION=off` is for devices whose driver is newer than the installed validation layer.
pub fn validation() -> String {
    std::env::var("HALITE_TEST_VALIDATION").unwrap_or_else(|_| "sync".to_owned())
}

/// What every device of a test is opened with. `HALITE_TEST_ICD=<library or manifest>` runs all tests on that driver,
/// loaded directly: without a loader, hence without validation.
fn base_options() -> Options {
    let mut options: Options = [("pipeline_cache".to_owned(), "off".to_owned())].into();
    let (name, value) = match std::env::var("HALITE_TEST_ICD") {
        Ok(icd) => ("icd", icd),
        Err(_) => ("validation", validation()),
    };
    options.insert(name.to_owned(), value);
    options
}

/// Shows warnings and errors of the driver.
pub fn print_log() {
    if log::set_logger(&Printer).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// Runs a test on every device that is installed, under the validation layer, with each set of options.
pub fn on_devices(variants: &[&[(&str, &str)]], test: impl Fn(&Arc<dyn Device>)) {
    let _turn = turn();
    print_log();
    let (driver, base) = (VulkanDriver, base_options());
    let devices = match driver.enumerate(&base) {
        Ok(devices) => devices,
        Err(e) => {
            eprintln!("SKIPPED: no Vulkan here: {e}");
            return;
        }
    };
    if devices.iter().all(|d| d.unusable.is_some()) {
        eprintln!("SKIPPED: no usable Vulkan device among {}", devices.len());
    }
    for info in devices.iter().filter(|d| d.unusable.is_none()) {
        for variant in variants {
            let mut options = base.clone();
            options.extend(variant.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
            let before = halite_vulkan::validation_message_count();
            let device = match driver.open(&info.path, &options) {
                Ok(device) => device,
                Err(e) => {
                    eprintln!("SKIPPED: '{}' with {variant:?}: {e}", info.name);
                    continue;
                }
            };
            eprintln!("on '{}' with {variant:?}", info.name);
            test(&device);
            device.wait_idle(Deadline::after(Duration::from_secs(60))).unwrap();
            drop(device);
            let messages = halite_vulkan::validation_message_count() - before;
            assert_eq!(messages, 0, "validation messages on '{}' with {variant:?}", info.name);
        }
    }
}

/// As the driver is used by default, and with everything that goes another way.
pub const BOTH_WAYS: &[&[(&str, &str)]] =
    &[&[], &[("memory", "staged"), ("push_descriptors", "off"), ("timeline", "emulated")]];

pub fn seconds(n: u64) -> Deadline {
    Deadline::after(Duration::from_secs(n))
}

/// A fence of a new semaphore.
pub fn fence(device: &Arc<dyn Device>) -> Fence {
    Fence::new(device.create_semaphore(0).unwrap(), 1)
}

pub fn semaphore(fence: &Fence) -> &Arc<dyn Semaphore> {
    &fence.points()[0].semaphore
}

/// Submits one operation and waits for it.
pub fn run(device: &Arc<dyn Device>, op: QueueOp) {
    let done = fence(device);
    device.queue_submit(ANY, &Fence::default(), &done, op).unwrap();
    done.wait(seconds(30)).unwrap();
}

pub fn buffer(device: &Arc<dyn Device>, bytes: &[u8]) -> Arc<dyn Buffer> {
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, bytes.len() as u64).unwrap();
    buffer.write(0, bytes).unwrap();
    buffer
}

pub fn words_buffer(device: &Arc<dyn Device>, words: &[u32]) -> Arc<dyn Buffer> {
    buffer(device, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
}

pub fn read(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    BufferSpan::whole(buffer.clone()).read_all().unwrap()
}

pub fn read_words(buffer: &Arc<dyn Buffer>) -> Vec<u32> {
    read(buffer).chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub fn span(buffer: &Arc<dyn Buffer>, offset: u64, length: u64) -> BufferSpan {
    BufferSpan::whole(buffer.clone()).subspan(offset, length).unwrap()
}

const AFFINE: &[u8] = include_bytes!("../kernels/affine.spv");
const UNIFORM: &[u8] = include_bytes!("../kernels/uniform.spv");

/// Two kernels in one executable: `affine` (two storage buffers, two constants) and `uniform`.
pub fn kernels() -> VulkanExecutable {
    let storage = |binding| DescriptorBinding { binding, descriptor_type: 7, count: 1, stage_flags: 0x20 };
    let pipeline = |name: &str, index| Pipeline {
        name: name.to_owned(),
        entry_point: "main".to_owned(),
        shader_module: index,
        layout: index,
        subgroup_size: 0,
        abi: DispatchAbi::Descriptors,
        bda: None,
        location: None,
    };
    VulkanExecutable {
        pipelines: vec![pipeline("affine", 0), pipeline("uniform", 1)],
        set_layouts: vec![
            vec![storage(0), storage(1)],
            vec![DescriptorBinding { descriptor_type: 6, ..storage(0) }, storage(1)],
        ],
        pipeline_layouts: vec![
            PipelineLayout {
                set_layouts: vec![0],
                push_constants: vec![PushConstantRange { stage_flags: 0x20, offset: 0, size: 8 }],
            },
            PipelineLayout { set_layouts: vec![1], push_constants: vec![] },
        ],
        shader_modules: vec![Bytes::from_static(AFFINE), Bytes::from_static(UNIFORM)],
        source_files: vec![],
    }
}

pub fn desc(executable: &VulkanExecutable, constants: &[u32]) -> ExecutableDesc {
    ExecutableDesc {
        format: "vulkan-spirv-fb".to_owned(),
        data: write_vulkan_executable(executable).unwrap().into(),
        constants: constants.to_vec(),
        label: "test".to_owned(),
        subgroup_sizes: vec![],
    }
}

pub fn test_executable(device: &Arc<dyn Device>) -> Arc<dyn Executable> {
    device.create_executable(desc(&kernels(), &[7])).unwrap()
}

/// A folder of the corpus of real modules; `None`, with a message, when it is not here.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/vmfb")).join(path);
    let found =
        [full, PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb")).join(path)]
            .into_iter()
            .find(|p| p.exists());
    if found.is_none() {
        eprintln!("SKIPPED: the corpus has no {path} here");
    }
    found
}
