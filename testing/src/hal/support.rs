//! Short forms of what tests do with devices.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use halite_hal::{
    BindingTable, Buffer, BufferParams, BufferRef, BufferSpan, Command, CommandBuffer, CommandBufferMode,
    CommandCategory, CommandList, CommandTarget, Deadline, Device, DispatchCounts, DispatchFlags, Executable,
    Fence, QueueAffinity, QueueOp, Result, Semaphore,
};

/// Any queue.
pub const ANY: QueueAffinity = QueueAffinity::ANY;

/// A handle on a device.
pub type Dev = Arc<dyn Device>;

const LIMIT: Duration = Duration::from_secs(20);

/// A time in which anything that a case starts has ended.
pub fn soon() -> Deadline {
    Deadline::after(LIMIT)
}

/// Whether a condition comes true in the time in which anything that a case starts has ended. For what nobody signals.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        if Instant::now() >= limit {
            return false;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    true
}

/// A fence of a new semaphore.
pub fn fence(device: &Dev) -> Result<Fence> {
    Ok(Fence::new(device.create_semaphore(0)?, 1))
}

/// The semaphore of a fence of one point.
pub fn semaphore(fence: &Fence) -> &Arc<dyn Semaphore> {
    &fence.points()[0].semaphore
}

/// Submits an operation that waits for `wait`; returns what it signals.
pub fn after(device: &Dev, wait: &Fence, op: QueueOp) -> Result<Fence> {
    let done = fence(device)?;
    device.queue_submit(ANY, wait, &done, op)?;
    Ok(done)
}

/// Submits an operation and waits for it.
pub fn run(device: &Dev, op: QueueOp) -> Result<()> {
    after(device, &Fence::default(), op)?.wait(soon())
}

/// A device buffer with these contents.
pub fn buffer(device: &Dev, bytes: &[u8]) -> Result<Arc<dyn Buffer>> {
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, bytes.len() as u64)?;
    buffer.write(0, bytes)?;
    Ok(buffer)
}

/// A device buffer with these words.
pub fn words_buffer(device: &Dev, words: &[u32]) -> Result<Arc<dyn Buffer>> {
    buffer(device, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
}

/// All bytes of a buffer.
pub fn read(buffer: &Arc<dyn Buffer>) -> Result<Vec<u8>> {
    whole(buffer).read_all()
}

/// All words of a buffer.
pub fn read_words(buffer: &Arc<dyn Buffer>) -> Result<Vec<u32>> {
    let bytes = read(buffer)?;
    Ok(bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}

/// All of a buffer.
pub fn whole(buffer: &Arc<dyn Buffer>) -> BufferSpan {
    BufferSpan::whole(buffer.clone())
}

/// A part of a buffer, whether or not it lies within it.
pub fn span(buffer: &Arc<dyn Buffer>, offset: u64, length: u64) -> BufferSpan {
    BufferSpan { buffer: buffer.clone(), offset, length }
}

/// A part of a binding table's entry.
pub fn slot(slot: u32, offset: u64, length: u64) -> BufferRef {
    BufferRef { target: CommandTarget::Slot(slot), offset, length }
}

/// A queue fill.
pub fn fill(target: BufferSpan, pattern: u64, pattern_length: u32) -> QueueOp {
    QueueOp::Fill { target, pattern, pattern_length }
}

/// What a fill writes.
pub fn pattern_bytes(pattern: u64, pattern_length: u32, length: u64) -> Vec<u8> {
    let unit = &pattern.to_le_bytes()[..pattern_length as usize];
    repeated(unit, length as usize)
}

fn repeated(block: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = block.repeat(length.div_ceil(block.len()));
    bytes.truncate(length);
    bytes
}

/// A recorded dispatch.
pub fn dispatch(
    executable: &Arc<dyn Executable>,
    function: u32,
    counts: [u32; 3],
    constants: &[u32],
    bindings: impl IntoIterator<Item = BufferRef>,
) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function,
        counts: DispatchCounts::Direct(counts),
        constants: constants.into(),
        bindings: bindings.into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

/// Records commands that may execute any number of times.
pub fn record(device: &Dev, slots: u32, commands: Vec<Command>) -> Result<Arc<dyn CommandBuffer>> {
    record_as(device, CommandBufferMode::empty(), slots, commands)
}

/// Records commands.
pub fn record_as(
    device: &Dev,
    mode: CommandBufferMode,
    slots: u32,
    commands: Vec<Command>,
) -> Result<Arc<dyn CommandBuffer>> {
    let categories = CommandCategory::ANY;
    device.create_command_buffer(CommandList {
        mode,
        categories,
        affinity: ANY,
        binding_capacity: slots,
        commands,
    })
}

/// An execution with these slots.
pub fn execute(
    commands: &Arc<dyn CommandBuffer>,
    entries: impl IntoIterator<Item = Option<BufferSpan>>,
) -> QueueOp {
    QueueOp::Execute {
        command_buffer: commands.clone(),
        bindings: BindingTable { entries: entries.into_iter().collect() },
    }
}

/// Bytes that look different when they are shifted or cut. They repeat after a prime number of them, so that no block size
/// hides a block in the wrong place.
pub fn counting(length: usize) -> Vec<u8> {
    const PERIOD: u32 = 65_521;
    let mix = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ (i as u8);
    repeated(&(0..PERIOD).map(mix).collect::<Vec<_>>(), length)
}
