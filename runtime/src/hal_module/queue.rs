//! The functions `hal.device.queue.*`.

use std::sync::Arc;

use bytes::Bytes;
use halite_abi::{Result, bail, import::hal, object};
use halite_hal::{BindingTable, BufferSpan, CommandBuffer, QueueOp};
use halite_vm::{Arguments, Results};

use super::{
    Entry, HalModule,
    args::{self, QueueArgs, buffer, buffer_params, length, size},
    entry,
    objects::{BufferObject, CommandBufferObject, FileObject},
};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::DEVICE_QUEUE_ALLOCA, alloca),
    entry(hal::DEVICE_QUEUE_DEALLOCA, dealloca),
    entry(hal::DEVICE_QUEUE_FILL, fill),
    entry(hal::DEVICE_QUEUE_UPDATE, update),
    entry(hal::DEVICE_QUEUE_COPY, copy),
    entry(hal::DEVICE_QUEUE_READ, read),
    entry(hal::DEVICE_QUEUE_WRITE, write),
    entry(hal::DEVICE_QUEUE_BARRIER, barrier),
    entry(hal::DEVICE_QUEUE_EXECUTE, execute),
    entry(hal::DEVICE_QUEUE_EXECUTE_INDIRECT, execute_indirect),
    entry(hal::DEVICE_QUEUE_FLUSH, flush),
];

fn submit(queue: &QueueArgs, op: QueueOp) -> Result<()> {
    queue.device().queue_submit(queue.affinity, &queue.wait, &queue.signal, op)
}

fn alloca(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let pool = args.i64()?;
    if pool != 0 {
        bail!(InvalidArgument, "queue.alloca names pool {pool}; devices have only the default pool 0");
    }
    let params = buffer_params(args, queue.affinity)?;
    let byte_length = size(args, "allocation size")?;
    let buffer =
        queue.device().queue_alloca(queue.affinity, &queue.wait, &queue.signal, &params, byte_length)?;
    results.object(BufferObject(BufferSpan::whole(buffer)));
    Ok(())
}

fn dealloca(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    submit(&queue, QueueOp::Dealloca { buffer: buffer(args)?.buffer })
}

fn fill(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let target = buffer(args)?.subspan(size(args, "offset")?, length(args)?)?;
    let pattern = args.i64()?.cast_unsigned();
    submit(&queue, QueueOp::Fill { target, pattern, pattern_length: args::bits(args)? })
}

fn update(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let source = args.reference()?;
    let source_offset = args.i64()?;
    let target = buffer(args)?;
    let target_offset = size(args, "target offset")?;
    let byte_length = args.i64()?;
    // The program may change the bytes right after the call: they are captured now.
    let source: Bytes = vmdata::range(&source, source_offset, byte_length)?;
    let target = target.subspan(target_offset, source.len() as u64)?;
    submit(&queue, QueueOp::Update { source, target })
}

fn copy(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let (source, source_offset) = (buffer(args)?, size(args, "source offset")?);
    let (target, target_offset) = (buffer(args)?, size(args, "target offset")?);
    let byte_length = length(args)?;
    let source = source.subspan(source_offset, byte_length)?;
    let target = target.subspan(target_offset, source.length)?;
    submit(&queue, QueueOp::Copy { source, target })
}

fn read(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let file = args.object::<FileObject>(object::FILE)?;
    let source_offset = size(args, "file offset")?;
    let target = buffer(args)?.subspan(size(args, "target offset")?, length(args)?)?;
    submit(&queue, QueueOp::Read { source: file.0.clone(), source_offset, target })
}

fn write(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let (source, source_offset) = (buffer(args)?, size(args, "source offset")?);
    let file = args.object::<FileObject>(object::FILE)?;
    let target_offset = size(args, "file offset")?;
    let source = source.subspan(source_offset, length(args)?)?;
    submit(&queue, QueueOp::Write { source, target: file.0.clone(), target_offset })
}

fn barrier(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    submit(&QueueArgs::read(args)?, QueueOp::Barrier)
}

/// Next argument, a recording that was accepted, once its code is ready.
fn recording(hal: &HalModule, args: &mut Arguments) -> Result<Arc<dyn CommandBuffer>> {
    let command_buffer = args.object::<CommandBufferObject>(object::COMMAND_BUFFER)?;
    let finished = command_buffer.finished()?.clone();
    command_buffer.wait_built(&hal.executables, args.invocation())?;
    Ok(finished)
}

fn execute(hal: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let command_buffer = recording(hal, args)?;
    submit(&queue, QueueOp::Execute { command_buffer, bindings: BindingTable::default() })
}

fn execute_indirect(hal: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let queue = QueueArgs::read(args)?;
    let command_buffer = recording(hal, args)?;
    let _flags = args.i64()?;
    let mut bindings = BindingTable::default();
    for _ in 0..args.span()? {
        let target = args::optional_buffer(args)?;
        let (offset, byte_length) = (size(args, "binding offset")?, length(args)?);
        let span = target.map(|buffer| buffer.subspan(offset, byte_length)).transpose()?;
        bindings.entries.push(span);
    }
    submit(&queue, QueueOp::Execute { command_buffer, bindings })
}

fn flush(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let device = args::device(args)?;
    device.device.queue_flush(args::affinity(args)?)
}
