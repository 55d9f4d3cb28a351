//! Recordings that name foreign buffers: such buffers become slots that every execution fills.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use super::mirror::{ALIGNMENT, Access};
use halite_hal::{
    BindingTable, BufferRef, BufferSpan, Command, CommandBuffer, CommandList, CommandTarget, Device,
    DispatchCounts, Result, WHOLE_BUFFER,
};

/// A command buffer with slots for the foreign buffers that its recording named.
#[derive(Debug)]
pub(super) struct PeerCommandBuffer {
    inner: Arc<dyn CommandBuffer>,
    /// Slots that the recording declared.
    declared: usize,
    /// What follows them.
    foreign: Vec<BufferSpan>,
}

impl PeerCommandBuffer {
    /// What the device made of the recording.
    pub(super) fn inner(&self) -> &Arc<dyn CommandBuffer> {
        &self.inner
    }

    /// Appends the foreign buffers to the table of an execution.
    pub(super) fn extend(&self, bindings: &mut BindingTable) {
        bindings.entries.resize(self.declared, None);
        bindings.entries.extend(self.foreign.iter().cloned().map(Some));
    }
}

impl CommandBuffer for PeerCommandBuffer {
    fn device_id(&self) -> u64 {
        self.inner.device_id()
    }

    fn list(&self) -> &CommandList {
        self.inner.list()
    }

    fn prepare_as(&self, before: &dyn CommandBuffer) -> Result<()> {
        match before.as_any().downcast_ref::<Self>() {
            Some(before) => self.inner.prepare_as(&*before.inner),
            None => Ok(()),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Hands a recording to the device, without foreign buffers.
pub(super) fn create(device: &dyn Device, mut list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
    let mut foreign: Vec<BufferSpan> = Vec::new();
    let id = device.id();
    for command in &mut list.commands {
        visit(command, |reference, _| gather(&mut foreign, id, reference))?;
    }
    if foreign.is_empty() {
        return device.create_command_buffer(list);
    }
    let declared = list.binding_capacity;
    for command in &mut list.commands {
        visit(command, |reference, _| {
            outsource(&foreign, declared, reference);
            Ok(())
        })?;
    }
    // A sum that does not fit is above the limit that validation knows.
    list.binding_capacity = declared.saturating_add(u32::try_from(foreign.len()).unwrap_or(u32::MAX));
    let inner = device.create_command_buffer(list)?;
    Ok(Arc::new(PeerCommandBuffer { inner, declared: declared as usize, foreign }))
}

/// Extends the span of a foreign buffer by what a reference needs of it.
fn gather(foreign: &mut Vec<BufferSpan>, device_id: u64, reference: &BufferRef) -> Result<()> {
    let CommandTarget::Direct(buffer) = &reference.target else { return Ok(()) };
    if buffer.device_id() == device_id {
        return Ok(());
    }
    let mut needed = BufferSpan::whole(buffer.clone()).subspan(reference.offset, reference.length)?;
    // What was aligned in the buffer has to be aligned in the slot.
    let rest = needed.offset % ALIGNMENT;
    (needed.offset, needed.length) = (needed.offset - rest, needed.length + rest);
    match foreign.iter_mut().find(|span| Arc::ptr_eq(&span.buffer, buffer)) {
        Some(span) => {
            let end = (span.offset + span.length).max(needed.offset + needed.length);
            span.offset = span.offset.min(needed.offset);
            span.length = end - span.offset;
        }
        None => foreign.push(needed),
    }
    Ok(())
}

/// Lets a reference to a foreign buffer name the slot that stands for it.
fn outsource(foreign: &[BufferSpan], declared: u32, reference: &mut BufferRef) {
    let CommandTarget::Direct(buffer) = &reference.target else { return };
    let place = (declared..).zip(foreign).find(|(_, span)| Arc::ptr_eq(&span.buffer, buffer));
    let Some((slot, span)) = place else { return };
    if reference.length == WHOLE_BUFFER {
        reference.length = buffer.byte_length().saturating_sub(reference.offset);
    }
    reference.offset -= span.offset;
    reference.target = CommandTarget::Slot(slot);
}

/// What the commands of a recording do to its slots.
pub(super) fn slot_uses(list: &CommandList) -> BTreeMap<u32, Access> {
    let mut uses = BTreeMap::new();
    for command in &list.commands {
        // The visitor of this copy changes nothing and cannot fail.
        _ = visit(&mut command.clone(), |reference, access| {
            if let CommandTarget::Slot(slot) = reference.target {
                uses.entry(slot)
                    .and_modify(|known: &mut Access| *known = known.and(access))
                    .or_insert(access);
            }
            Ok(())
        });
    }
    uses
}

/// Shows all references of a command. What a dispatch does to its bindings only its code knows.
fn visit(command: &mut Command, mut f: impl FnMut(&mut BufferRef, Access) -> Result<()>) -> Result<()> {
    match command {
        Command::Fill { target, .. } | Command::Update { target, .. } => f(target, Access::Write),
        Command::Copy { source, target } => {
            f(source, Access::Read)?;
            f(target, Access::Write)
        }
        Command::Dispatch { counts, bindings, .. } => {
            if let DispatchCounts::Indirect(counts) = counts {
                f(counts, Access::Read)?;
            }
            bindings.iter_mut().try_for_each(|binding| f(binding, Access::Write))
        }
        Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => Ok(()),
    }
}
