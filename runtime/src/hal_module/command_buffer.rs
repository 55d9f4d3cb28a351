//! The functions `hal.command_buffer.*`: they append data to a recording.

use std::sync::Arc;

use halite_abi::{Result, bail, import::hal, object};
use halite_hal::{
    BufferRef, BufferSpan, Command, CommandBufferMode, CommandCategory, CommandList, CommandTarget,
    DispatchCounts, DispatchFlags,
};
use halite_vm::{Arguments, Results};
use smallvec::SmallVec;

use super::{
    Entry, HalModule,
    args::{self, bits, device, length, size},
    built::ExecutableObject,
    channel, entry,
    objects::CommandBufferObject,
};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::COMMAND_BUFFER_CREATE, create),
    entry(hal::COMMAND_BUFFER_FINALIZE, finalize),
    entry(hal::COMMAND_BUFFER_BEGIN_DEBUG_GROUP, begin_debug_group),
    entry(hal::COMMAND_BUFFER_END_DEBUG_GROUP, end_debug_group),
    entry(hal::COMMAND_BUFFER_EXECUTION_BARRIER, execution_barrier),
    entry(hal::COMMAND_BUFFER_ADVISE_BUFFER, advise_buffer),
    entry(hal::COMMAND_BUFFER_FILL_BUFFER, fill_buffer),
    entry(hal::COMMAND_BUFFER_UPDATE_BUFFER, update_buffer),
    entry(hal::COMMAND_BUFFER_COPY_BUFFER, copy_buffer),
    entry(hal::COMMAND_BUFFER_COLLECTIVE, channel::unsupported),
    entry(hal::COMMAND_BUFFER_DISPATCH, dispatch),
    entry(hal::COMMAND_BUFFER_DISPATCH_INDIRECT, dispatch_indirect),
];

type Recorder = Arc<CommandBufferObject>;

fn recorder(args: &mut Arguments) -> Result<Recorder> {
    args.object(object::COMMAND_BUFFER)
}

/// A range of a buffer known now, or of whatever `slot` holds at execution.
fn buffer_ref(buffer: Option<BufferSpan>, slot: u32, offset: u64, length: u64) -> Result<BufferRef> {
    match buffer {
        Some(span) => span.subspan(offset, length).map(BufferRef::from),
        None => Ok(BufferRef { target: CommandTarget::Slot(slot), offset, length }),
    }
}

fn create(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let device = device(args)?;
    let list = CommandList {
        mode: CommandBufferMode::from_bits_retain(bits(args)?),
        categories: CommandCategory::from_bits_retain(bits(args)?),
        affinity: args::affinity(args)?,
        binding_capacity: bits(args)?,
        commands: Vec::new(),
    };
    results.object(CommandBufferObject::new(device.device.clone(), list));
    Ok(())
}

fn finalize(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    recorder(args)?.finalize()
}

fn begin_debug_group(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let target = recorder(args)?;
    target.push(Command::BeginDebugGroup(vmdata::label(&args.reference()?)))
}

fn end_debug_group(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    recorder(args)?.push(Command::EndDebugGroup)
}

/// Stages and flags are not looked at: every barrier is a full one, which is what compiled programs ask for.
fn execution_barrier(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    recorder(args)?.push(Command::Barrier)
}

/// A hint, and one that no driver uses.
fn advise_buffer(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    recorder(args).map(drop)
}

fn fill_buffer(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let recorder = recorder(args)?;
    let buffer = args::optional_buffer(args)?;
    let (offset, byte_length) = (size(args, "offset")?, length(args)?);
    let target = buffer_ref(buffer, bits(args)?, offset, byte_length)?;
    let pattern = args.i64()?.cast_unsigned();
    recorder.push(Command::Fill { target, pattern, pattern_length: bits(args)? })
}

fn update_buffer(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let recorder = recorder(args)?;
    let source = args.reference()?;
    let source_offset = args.i64()?;
    let buffer = args::optional_buffer(args)?;
    let target_offset = size(args, "target offset")?;
    let byte_length = args.i64()?;
    let slot = bits(args)?;
    let source = vmdata::range(&source, source_offset, byte_length)?;
    let target = buffer_ref(buffer, slot, target_offset, source.len() as u64)?;
    recorder.push(Command::Update { source, target })
}

fn copy_buffer(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let recorder = recorder(args)?;
    let (source_slot, target_slot) = (bits(args)?, bits(args)?);
    let (source, source_offset) = (args::optional_buffer(args)?, size(args, "source offset")?);
    let (target, target_offset) = (args::optional_buffer(args)?, size(args, "target offset")?);
    let byte_length = length(args)?;
    let source = buffer_ref(source, source_slot, source_offset, byte_length)?;
    let target = buffer_ref(target, target_slot, target_offset, source.length)?;
    recorder.push(Command::Copy { source, target })
}

fn dispatch(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let recorder = recorder(args)?;
    let (executable, function) = function(args)?;
    let counts = DispatchCounts::Direct([bits(args)?, bits(args)?, bits(args)?]);
    let tail = DispatchTail::read(args)?;
    tail.record(&recorder, &executable, function, counts)
}

fn dispatch_indirect(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    /// Three u32.
    const COUNTS_LENGTH: u64 = 12;
    let recorder = recorder(args)?;
    let (executable, function) = function(args)?;
    let slot = bits(args)?;
    let buffer = args::optional_buffer(args)?;
    let offset = size(args, "workgroup count offset")?;
    let counts = DispatchCounts::Indirect(buffer_ref(buffer, slot, offset, COUNTS_LENGTH)?);
    let tail = DispatchTail::read(args)?;
    tail.record(&recorder, &executable, function, counts)
}

fn function(args: &mut Arguments) -> Result<(Arc<ExecutableObject>, u32)> {
    let executable = args.object::<ExecutableObject>(object::EXECUTABLE)?;
    let function = args.i64()?;
    let count = executable.executable.functions().len();
    match u32::try_from(function) {
        Ok(index) if (index as usize) < count => Ok((executable, index)),
        _ => bail!(OutOfRange, "function {function} is not one of the executable's {count} functions"),
    }
}

/// What both forms of dispatch end with: flags, constants, bindings.
struct DispatchTail {
    flags: DispatchFlags,
    constants: SmallVec<[u32; 8]>,
    bindings: SmallVec<[BufferRef; 4]>,
}

impl DispatchTail {
    fn read(args: &mut Arguments) -> Result<Self> {
        let flags = DispatchFlags::from_bits_retain(args.i64()?.cast_unsigned());
        let constants = (0..args.span()?).map(|_| bits(args)).collect::<Result<_>>()?;
        let mut bindings = SmallVec::new();
        for _ in 0..args.span()? {
            let _reserved = args.i32()?;
            let slot = bits(args)?;
            let buffer = args::optional_buffer(args)?;
            let (offset, byte_length) = (size(args, "binding offset")?, length(args)?);
            bindings.push(buffer_ref(buffer, slot, offset, byte_length)?);
        }
        Ok(DispatchTail { flags, constants, bindings })
    }

    fn record(
        self,
        recorder: &Recorder,
        executable: &Arc<ExecutableObject>,
        function: u32,
        counts: DispatchCounts,
    ) -> Result<()> {
        recorder.note_dispatch(executable, function);
        recorder.push(Command::Dispatch {
            executable: executable.executable.clone(),
            function,
            counts,
            constants: self.constants,
            bindings: self.bindings,
            flags: self.flags,
        })
    }
}
