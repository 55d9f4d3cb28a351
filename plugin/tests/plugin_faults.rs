//! Drivers that panic or fail behind the plug-in interface: the panic becomes a failure, its object is closed, others go on,
//! and failures keep all they say.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

#[path = "../../layers/tests/common/mod.rs"]
mod common;

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use common::*;
use halite_hal::*;
use halite_layers::{Layer, Layered};

/// A null driver that panics where its device's path says.
#[derive(Debug)]
struct Panics;

/// A device that panics in the function with this name.
#[derive(Debug)]
struct PanicDevice {
    inner: Arc<dyn Device>,
    at: String,
}

/// An object whose functions all panic, also its end.
#[derive(Debug)]
struct PanicObject(u64);

impl Drop for PanicObject {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

impl Driver for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn description(&self) -> &str {
        "for tests"
    }
    fn options(&self) -> &[(&'static str, &'static str)] {
        &[("at", "where"), ("why", "anything")]
    }
    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        match options.get("why") {
            Some(why) => panic!("enumerating: {why}"),
            None => Ok(Vec::new()),
        }
    }
    fn open(&self, path: &str, _options: &Options) -> Result<Arc<dyn Device>> {
        if path == "fail" {
            let status = Status::new(Code::DataLoss, "the device is gone").annotate("while looking at it");
            return Err(status.with_detail("vk.result", "ERROR_DEVICE_LOST").with_detail("ü", "ö"));
        }
        let inner = halite_null::NullDriver.open("", &Options::new())?;
        Ok(Layered::new(PanicDevice { inner, at: path.to_owned() }))
    }
}

impl PanicDevice {
    fn at(&self, name: &str) {
        assert_ne!(self.at, name, "asked to");
    }
}

impl Layer for PanicDevice {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.inner
    }

    fn info(&self) -> &DeviceInfo {
        self.at("info");
        self.inner.info()
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        self.at("query_i64");
        self.inner.query_i64(category, key)
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.at("allocate_buffer");
        match self.at.as_str() {
            "objects" => Ok(Arc::new(PanicObject(self.id()))),
            _ => self.inner.allocate_buffer(params, byte_length),
        }
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        self.at("create_executable");
        self.inner.create_executable(desc)
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        self.at("create_command_buffer");
        self.inner.create_command_buffer(list)
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        self.at("queue_submit");
        self.inner.queue_submit(affinity, wait, signal, op)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Buffer for PanicObject {
    fn device_id(&self) -> u64 {
        self.0
    }
    fn byte_length(&self) -> u64 {
        64
    }
    fn memory_type(&self) -> MemoryType {
        MemoryType::HOST_LOCAL
    }
    fn usage(&self) -> BufferUsage {
        BufferUsage::DEFAULT
    }
    fn read(&self, _offset: u64, _target: &mut [u8]) -> Result<()> {
        panic!("in read")
    }
    fn write(&self, _offset: u64, _source: &[u8]) -> Result<()> {
        std::panic::panic_any(42)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn open(at: &str) -> Arc<dyn Device> {
    halite_plugin::loopback(Arc::new(Panics)).unwrap().open(at, &Options::new()).unwrap()
}

const CLOSED: &[&str] = &["this device is closed", "panicked"];

#[test]
fn a_panicking_driver_fails_and_is_closed_and_others_go_on() {
    let driver = halite_plugin::loopback(Arc::new(Panics)).unwrap();
    assert_eq!(driver.enumerate(&Options::new()).unwrap(), []);
    let device = driver.open("", &Options::new()).unwrap();
    let why = Options::from([("why".to_owned(), "no reason".to_owned())]);
    refused(driver.enumerate(&why), Code::Internal, &["'enumerate' panicked", "enumerating: no reason"]);
    refused(
        driver.enumerate(&Options::new()),
        Code::FailedPrecondition,
        &["driver is closed", "'enumerate'"],
    );
    refused(driver.open("", &Options::new()), Code::FailedPrecondition, &["driver is closed"]);
    submit(&device, QueueOp::Barrier).unwrap();
    halite_plugin::loopback(Arc::new(Panics)).unwrap().enumerate(&Options::new()).unwrap();
}

#[test]
fn a_panicking_device_is_closed_and_its_objects_live() {
    let device = open("queue_submit");
    let (buffer, semaphore) = (buffer(&device, 8), device.create_semaphore(0).unwrap());
    refused(submit(&device, QueueOp::Barrier), Code::Internal, &["'queue_submit' panicked", "asked to"]);
    refused(submit(&device, QueueOp::Barrier), Code::FailedPrecondition, CLOSED);
    refused(device.create_semaphore(0), Code::FailedPrecondition, CLOSED);
    refused(device.wait_idle(Deadline::Now), Code::FailedPrecondition, CLOSED);
    buffer.write(0, &[3; 8]).unwrap();
    let mut bytes = [0; 8];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 8]);
    semaphore.signal(2).unwrap();
    assert_eq!(semaphore.query().unwrap(), 2);
}

#[test]
fn every_kind_of_call_stops_a_panic() {
    let driver = halite_plugin::loopback(Arc::new(Panics)).unwrap();
    refused(driver.open("info", &Options::new()), Code::Internal, &["'info' panicked"]);
    refused(
        open("allocate_buffer").allocate_buffer(&BufferParams::DEVICE, 1),
        Code::Internal,
        &["'allocate_buffer' panicked"],
    );
    refused(
        open("create_command_buffer").create_command_buffer(list(vec![], 0)),
        Code::Internal,
        &["'create_command_buffer' panicked"],
    );
    let device = open("query_i64");
    assert_eq!(device.query_i64("hal.device.id", "null"), None);
    assert_eq!(device.query_i64("hal.device.id", "null"), None);
    refused(device.create_semaphore(0), Code::FailedPrecondition, CLOSED);
}

#[test]
fn code_comes_back_also_from_a_panic() {
    struct Owner(&'static [u8], Arc<AtomicU32>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let device = open("create_executable");
    let drops = Arc::new(AtomicU32::new(0));
    for expected in 1..3 {
        let desc = ExecutableDesc {
            format: "null-json".to_owned(),
            data: Bytes::from_owner(Owner(b"[]", drops.clone())),
            constants: vec![1],
            label: "x".to_owned(),
            subgroup_sizes: vec![32],
        };
        device.create_executable(desc).unwrap_err();
        assert_eq!(drops.load(Ordering::SeqCst), expected);
    }
}

#[test]
fn panicking_objects_fail_and_their_end_is_survived() {
    let device = open("objects");
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
    refused(buffer.read(0, &mut [0; 4]), Code::Internal, &["'read' panicked: in read"]);
    refused(buffer.read(0, &mut [0; 4]), Code::FailedPrecondition, &["this buffer is closed"]);
    drop(buffer);
    let odd = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
    refused(odd.write(0, &[0; 4]), Code::Internal, &["a value that is no text"]);
    drop(odd);
    submit(&device, QueueOp::Barrier).unwrap();
}

#[test]
fn failures_keep_message_annotations_and_details() {
    let there = Panics.open("fail", &Options::new()).unwrap_err();
    let here = halite_plugin::loopback(Arc::new(Panics)).unwrap().open("fail", &Options::new()).unwrap_err();
    assert_eq!(format!("{here:?}"), format!("{there:?}"));
    assert_eq!(here.detail("vk.result"), Some("ERROR_DEVICE_LOST"));
    let semaphore = open("").create_semaphore(0).unwrap();
    semaphore.fail(there.clone());
    for seen in [semaphore.query().unwrap_err(), semaphore.wait(1, Deadline::Never).unwrap_err()] {
        assert_eq!(format!("{seen:?}"), format!("{there:?}"));
    }
}
