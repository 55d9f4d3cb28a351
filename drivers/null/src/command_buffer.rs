//! Accepted recordings and how each command is carried out.

use std::any::Any;

use halite_abi::{Result, ResultExt, bail, status};
use halite_hal::{
    BindingTable, Buffer, BufferRef, BufferSpan, Command, CommandBuffer, CommandList, CommandTarget,
};

use crate::buffer::NullBuffer;

/// A recording. A driver with hardware would lower it here, once; this one interprets it.
#[derive(Debug)]
pub(crate) struct NullCommandBuffer {
    device_id: u64,
    list: CommandList,
}

impl NullCommandBuffer {
    /// Accepts a recording that validation has passed.
    pub(crate) fn new(device_id: u64, list: CommandList) -> Self {
        NullCommandBuffer { device_id, list }
    }

    /// Carries out all commands in order.
    pub(crate) fn execute(&self, table: &BindingTable) -> Result<()> {
        for (index, command) in self.list.commands.iter().enumerate() {
            execute(command, table).context(|| format!("command {index} ({})", command.name()))?;
        }
        Ok(())
    }
}

impl CommandBuffer for NullCommandBuffer {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn list(&self) -> &CommandList {
        &self.list
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn execute(command: &Command, table: &BindingTable) -> Result<()> {
    match command {
        Command::Fill { target, pattern, pattern_length } => match resolve(target, table)? {
            Some(target) => fill(&target, *pattern, *pattern_length),
            None => Ok(()),
        },
        Command::Update { source, target } => match resolve(target, table)? {
            Some(target) => target.write(0, source),
            None => Ok(()),
        },
        Command::Copy { source, target } => match (resolve(source, table)?, resolve(target, table)?) {
            (Some(source), Some(target)) => copy(&source, &target),
            _ => Ok(()),
        },
        Command::Dispatch { .. }
        | Command::Barrier
        | Command::BeginDebugGroup(_)
        | Command::EndDebugGroup => Ok(()),
    }
}

/// The span that a reference means in this execution; `None` for no bytes of an empty slot.
fn resolve(reference: &BufferRef, table: &BindingTable) -> Result<Option<BufferSpan>> {
    let base = match &reference.target {
        CommandTarget::Direct(buffer) => BufferSpan::whole(buffer.clone()),
        CommandTarget::Slot(slot) => match table.entries.get(*slot as usize).and_then(Option::as_ref) {
            Some(span) => span.clone(),
            None if reference.length == 0 => return Ok(None),
            None => bail!(InvalidArgument, "slot {slot} is empty"),
        },
    };
    base.subspan(reference.offset, reference.length).map(Some)
}

/// Fills a span of one of this driver's buffers.
pub(crate) fn fill(target: &BufferSpan, pattern: u64, pattern_length: u32) -> Result<()> {
    own(target)?.fill(target.offset, target.length, pattern, pattern_length as usize)
}

/// Copies between spans of this driver's buffers.
pub(crate) fn copy(source: &BufferSpan, target: &BufferSpan) -> Result<()> {
    if source.length != target.length {
        bail!(InvalidArgument, "copy of {} bytes to {} bytes", source.length, target.length);
    }
    own(target)?.copy_from(own(source)?, source.offset, target.offset, source.length)
}

/// The driver's own type behind a span. Validation has checked the owner, so a miss is a bug above this driver.
fn own(span: &BufferSpan) -> Result<&NullBuffer> {
    let buffer: &dyn Buffer = span.buffer.as_ref();
    buffer
        .as_any()
        .downcast_ref()
        .ok_or_else(|| status!(Internal, "{buffer:?} is no buffer of the null driver"))
}
