//! What the tests of layers and plug-ins share: a validated null device and short ways to build things.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{any::Any, path::PathBuf, sync::Arc};

use bytes::Bytes;
use halite_hal::*;
use halite_null as _;

/// The null driver: as it is linked, or, in the test programs that run all tests again, through the plug-in interface.
pub fn driver() -> Arc<dyn Driver> {
    match env!("CARGO_CRATE_NAME") {
        "loopback" => halite_plugin::loopback(Arc::new(halite_null::NullDriver)).unwrap(),
        "library" => halite_plugin::load(&library_path()).unwrap().driver,
        _ => Arc::new(halite_null::NullDriver),
    }
}

/// The null driver's library, which Cargo builds for the tests of its own package only, beside them.
pub fn library_path() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let name = format!("{}halite_driver_null{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    tests.parent().unwrap().join(name)
}

/// A validated null device of its own.
pub fn device() -> Arc<dyn Device> {
    let mut registry = DriverRegistry::empty();
    registry.register(driver());
    halite_layers::open(&registry, "null", &Options::new()).unwrap()
}

/// A buffer with these usage bits.
pub fn buffer_for(device: &Arc<dyn Device>, usage: BufferUsage, length: u64) -> Arc<dyn Buffer> {
    device.allocate_buffer(&BufferParams { usage, ..BufferParams::DEVICE }, length).unwrap()
}

/// A buffer for transfers and dispatches.
pub fn buffer(device: &Arc<dyn Device>, length: u64) -> Arc<dyn Buffer> {
    buffer_for(device, BufferUsage::DEFAULT, length)
}

/// A range of a buffer that was not checked by anybody.
pub fn span(buffer: &Arc<dyn Buffer>, offset: u64, length: u64) -> BufferSpan {
    BufferSpan { buffer: buffer.clone(), offset, length }
}

/// A reference to a range of a buffer.
pub fn direct(buffer: &Arc<dyn Buffer>, offset: u64, length: u64) -> BufferRef {
    span(buffer, offset, length).into()
}

/// A reference to a range of a slot.
pub fn slot(slot: u32, offset: u64, length: u64) -> BufferRef {
    BufferRef { target: CommandTarget::Slot(slot), offset, length }
}

pub fn fill(target: BufferRef, pattern_length: u32) -> Command {
    Command::Fill { target, pattern: 0x0807_0605_0403_0201, pattern_length }
}

pub fn update(bytes: &'static [u8], target: BufferRef) -> Command {
    Command::Update { source: Bytes::from_static(bytes), target }
}

pub fn copy(source: BufferRef, target: BufferRef) -> Command {
    Command::Copy { source, target }
}

/// An executable with the function `f`: two bindings, one constant.
pub fn executable(device: &Arc<dyn Device>) -> Arc<dyn Executable> {
    let desc = ExecutableDesc {
        format: halite_null::EXECUTABLE_FORMAT.to_owned(),
        data: Bytes::from_static(br#"[{"name": "f", "bindings": 2, "constants": 1}]"#),
        constants: Vec::new(),
        label: "test".to_owned(),
        subgroup_sizes: Vec::new(),
    };
    device.create_executable(desc).unwrap()
}

/// A well-formed dispatch of `f`, with these bindings.
pub fn dispatch(executable: &Arc<dyn Executable>, bindings: &[BufferRef]) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: [7].into_iter().collect(),
        bindings: bindings.iter().cloned().collect(),
        flags: DispatchFlags::empty(),
    }
}

/// A reusable recording with room for this many slots.
pub fn list(commands: Vec<Command>, binding_capacity: u32) -> CommandList {
    CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity,
        commands,
    }
}

/// Records; the error of a recording that is refused.
pub fn record(
    device: &Arc<dyn Device>,
    commands: Vec<Command>,
    binding_capacity: u32,
) -> Result<Arc<dyn CommandBuffer>> {
    device.create_command_buffer(list(commands, binding_capacity))
}

/// Submits one operation after nothing and waits until it is done.
pub fn submit(device: &Arc<dyn Device>, op: QueueOp) -> Result<()> {
    let signal = Fence::new(device.create_semaphore(0)?, 1);
    device.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, op)?;
    signal.wait(Deadline::from_millis(20_000))
}

/// Executes with these slots and waits.
pub fn execute(
    device: &Arc<dyn Device>,
    command_buffer: &Arc<dyn CommandBuffer>,
    entries: &[Option<BufferSpan>],
) -> Result<()> {
    let bindings = BindingTable { entries: entries.iter().cloned().collect() };
    submit(device, QueueOp::Execute { command_buffer: command_buffer.clone(), bindings })
}

/// Asserts that a check refused, with this code and these words.
#[track_caller]
pub fn refused<T>(result: Result<T>, code: Code, words: &[&str]) {
    let Err(status) = result else { panic!("accepted, expected {code} with {words:?}") };
    assert_eq!(status.code(), code, "{status}");
    for word in words {
        assert!(status.to_string().contains(word), "'{status}' lacks '{word}'");
    }
}

/// A buffer of a device that allows only some accesses.
#[derive(Debug)]
pub struct Guarded {
    pub device_id: u64,
    pub access: MemoryAccess,
}

impl Buffer for Guarded {
    fn device_id(&self) -> u64 {
        self.device_id
    }
    fn byte_length(&self) -> u64 {
        16
    }
    fn memory_type(&self) -> MemoryType {
        MemoryType::HOST_LOCAL
    }
    fn usage(&self) -> BufferUsage {
        BufferUsage::DEFAULT
    }
    fn access(&self) -> MemoryAccess {
        self.access
    }
    fn read(&self, _offset: u64, target: &mut [u8]) -> Result<()> {
        target.fill(9);
        Ok(())
    }
    fn write(&self, _offset: u64, _source: &[u8]) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
