//! Memory that is shared with others: a second Vulkan device of the process stands for them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::*;
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Code, Device, Driver as _, ExternalHandle, ExternalKind,
    ExternalMemory, ExternalSupport, MemoryAccess, Options, QueueOp, read_all,
};

const PARAMS: BufferParams = BufferParams::DEVICE;
const KINDS: [ExternalKind; 2] = [ExternalKind::OpaqueFd, ExternalKind::DmaBuf];

/// What the device does with a kind; says so where it is nothing.
fn support(device: &Arc<dyn Device>, kind: ExternalKind) -> Option<ExternalSupport> {
    let found = device.info().external_memory.iter().find(|support| support.kind == kind).copied();
    if found.is_none() {
        eprintln!("SKIPPED: '{}' has no memory of the kind {kind}", device.info().name);
    }
    found
}

/// The same device, opened once more.
fn again(device: &Arc<dyn Device>) -> Arc<dyn Device> {
    let mut options: Options = [("pipeline_cache".to_owned(), "off".to_owned())].into();
    match std::env::var("HALITE_TEST_ICD") {
        Ok(icd) => options.insert("icd".to_owned(), icd),
        Err(_) => options.insert("validation".to_owned(), validation()),
    };
    halite_vulkan::VulkanDriver.open(&device.info().path, &options).unwrap()
}

/// Does one operation, and waits for it.
fn done(device: &Arc<dyn Device>, op: QueueOp) {
    let signal = fence(device);
    device.queue_submit(ANY, &Default::default(), &signal, op).unwrap();
    signal.wait(seconds(30)).unwrap();
}

fn acquire(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>) {
    done(device, QueueOp::Acquire { buffer: buffer.clone() });
}

fn release(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>) {
    done(device, QueueOp::Release { buffer: buffer.clone() });
}

fn fill(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>, pattern: u64) {
    done(device, QueueOp::Fill { target: BufferSpan::whole(buffer.clone()), pattern, pattern_length: 4 });
}

/// A multiple of pages, aligned to one, as `Bytes` that say when they are gone.
fn pages(count: usize, alignment: usize) -> (Bytes, Arc<()>) {
    struct Aligned(Vec<u8>, usize, usize, #[allow(dead_code, reason = "it is only counted")] Arc<()>);
    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1..self.1 + self.2]
        }
    }
    let (length, token) = (count * alignment, Arc::new(()));
    let memory: Vec<u8> = (0..length + alignment).map(|i| (i % 251) as u8).collect();
    let start = memory.as_ptr().align_offset(alignment);
    (Bytes::from_owner(Aligned(memory, start, length, token.clone())), token)
}

#[test]
fn what_one_device_gives_another_takes() {
    on_devices(BOTH_WAYS, |device| {
        for kind in KINDS {
            let Some(support) = support(device, kind) else { continue };
            if !(support.import && support.export) {
                continue;
            }
            let other = again(device);
            let given = device.allocate_exportable(&PARAMS, 70_000, kind).unwrap();
            fill(device, &given, 0x0102_0304);
            let memory = device.export_buffer(&given, kind).unwrap();
            assert!(memory.size >= 70_000 && memory.memory_type.is_some());
            let taken = other.import_buffer(&PARAMS, memory).unwrap();
            assert!(taken.byte_length() >= 70_000 && taken.byte_length().is_multiple_of(64));
            release(device, &given);
            acquire(&other, &taken);
            let seen = read_all(taken.as_ref(), 70_000).unwrap();
            assert!(seen.chunks(4).all(|word| word == [4, 3, 2, 1]), "{kind}");
            fill(&other, &taken, 0xA5A5_A5A5);
            release(&other, &taken);
            acquire(device, &given);
            assert!(read_all(given.as_ref(), 70_000).unwrap().iter().all(|byte| *byte == 0xA5), "{kind}");
            // The memory lives as long as anybody has it.
            acquire(&other, &taken);
            drop(given);
            device.trim();
            assert_eq!(read_all(taken.as_ref(), 4).unwrap()[..], [0xA5; 4]);
        }
    });
}

#[test]
fn work_waits_until_the_memory_is_back() {
    on_devices(&[&[]], |device| {
        let kind = ExternalKind::OpaqueFd;
        let Some(_) = support(device, kind).filter(|support| support.export && support.import) else {
            return;
        };
        let given = device.allocate_exportable(&PARAMS, 4096, kind).unwrap();
        fill(device, &given, 0);
        let memory = device.export_buffer(&given, kind).unwrap();
        release(device, &given);
        release(device, &given);
        let told = read_all(given.as_ref(), 4).unwrap_err();
        assert_eq!(told.code(), Code::FailedPrecondition);
        assert!(told.message().contains("acquire it first"), "{told}");
        let target = BufferSpan::whole(given.clone());
        let signal = fence(device);
        let op = QueueOp::Fill { target, pattern: 0, pattern_length: 4 };
        assert!(device.queue_submit(ANY, &Default::default(), &signal, op).is_err());
        acquire(device, &given);
        acquire(device, &given);
        read_all(given.as_ref(), 4).unwrap();
        // What was imported begins with the others.
        let taken = device.import_buffer(&PARAMS, memory).unwrap();
        assert_eq!(read_all(taken.as_ref(), 4).unwrap_err().code(), Code::FailedPrecondition);
        acquire(device, &taken);
        read_all(taken.as_ref(), 4).unwrap();
        // Buffers that nobody shares are left alone.
        let own = device.allocate_buffer(&PARAMS, 64).unwrap();
        release(device, &own);
        own.write(0, &[1]).unwrap();
        assert_eq!(device.export_buffer(&own, kind).unwrap_err().code(), Code::FailedPrecondition);
    });
}

#[test]
fn memory_of_the_process_is_read_where_it_lies() {
    on_devices(BOTH_WAYS, |device| {
        let Some(support) = support(device, ExternalKind::Host) else { return };
        let (bytes, alive) = pages(3, support.alignment as usize);
        let taken = device.import_buffer(&PARAMS, ExternalMemory::host(bytes.clone())).unwrap();
        acquire(device, &taken);
        assert_eq!(taken.access(), MemoryAccess::READ);
        let copy = device.allocate_buffer(&PARAMS, bytes.len() as u64).unwrap();
        let (source, target) = (BufferSpan::whole(taken.clone()), BufferSpan::whole(copy.clone()));
        done(device, QueueOp::Copy { source, target });
        assert_eq!(read_all(copy.as_ref(), bytes.len() as u64).unwrap(), bytes);
        assert_eq!(taken.write(0, &[0; 4]).unwrap_err().code(), Code::PermissionDenied);
        drop((bytes, taken));
        device.wait_idle(seconds(30)).unwrap();
        device.trim();
        assert_eq!(Arc::strong_count(&alive), 1, "the program has its memory back");
    });
}

#[test]
fn what_cannot_be_is_refused_before_vulkan_sees_it() {
    on_devices(&[&[]], |device| {
        let refused = |memory: ExternalMemory, code: Code, text: &str| {
            let told = device.import_buffer(&PARAMS, memory).unwrap_err();
            assert!(told.code() == code && told.to_string().contains(text), "{told}");
        };
        if let Some(support) = support(device, ExternalKind::Host) {
            let (bytes, alive) = pages(2, support.alignment as usize);
            let longer = ExternalMemory::new(ExternalHandle::Host(bytes), 4 * support.alignment);
            refused(longer, Code::InvalidArgument, "the memory has");
            assert_eq!(Arc::strong_count(&alive), 1);
            let told = device.allocate_exportable(&PARAMS, 64, ExternalKind::Host).unwrap_err();
            assert_eq!(told.code(), Code::Unimplemented);
        }
        for kind in KINDS.into_iter().filter(|kind| support(device, *kind).is_none()) {
            let told = device.allocate_exportable(&PARAMS, 64, kind).unwrap_err();
            assert!(
                told.code() == Code::Unimplemented && told.to_string().contains("it can export"),
                "{told}"
            );
        }
        let Some(_) = support(device, ExternalKind::OpaqueFd).filter(|support| support.export) else {
            return;
        };
        let given = device.allocate_exportable(&PARAMS, 4096, ExternalKind::OpaqueFd).unwrap();
        let export = || device.export_buffer(&given, ExternalKind::OpaqueFd).unwrap();
        let before = open_files();
        drop(export());
        assert_eq!(open_files(), before, "a handle that nobody imports is closed");
        refused(ExternalMemory { size: 63, ..export() }, Code::InvalidArgument, "too small");
        let huge = ExternalMemory { size: u64::MAX, ..export() };
        assert_eq!(device.import_buffer(&PARAMS, huge).unwrap_err().code(), Code::InvalidArgument);
        let wrong = ExternalMemory { memory_type: Some(77), ..export() };
        refused(wrong, Code::InvalidArgument, "memory type 77");
        assert_eq!(open_files(), before, "and so is one that is refused");
    });
}

/// Descriptors of this process.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[test]
fn shared_memory_is_counted_and_limited() {
    on_devices(&[&[("memory_limit", "8388608")]], |device| {
        let kind = ExternalKind::OpaqueFd;
        let Some(_) = support(device, kind).filter(|support| support.export) else { return };
        let before = device.memory_stats();
        let given = device.allocate_exportable(&PARAMS, 1 << 20, kind).unwrap();
        assert!(device.memory_stats().used >= before.used + (1 << 20));
        let told = device.allocate_exportable(&PARAMS, 16 << 20, kind).unwrap_err();
        assert_eq!(told.code(), Code::ResourceExhausted);
        drop(given);
        let after = device.memory_stats();
        assert_eq!((after.used, after.reserved), (before.used, before.reserved));
    });
}
