//! The way of a recording in from the far end.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{abi::*, buffer, executable, object::Count, peer::Peer, raw};
use halite_hal::{
    BufferRef, Command, CommandBufferMode, CommandCategory, CommandList, CommandTarget, DispatchCounts,
    DispatchFlags, QueueAffinity, Result, ResultExt, bail,
};

/// A recording that came in, with everything it names retained.
///
/// # Safety
/// `list` is null or there for the call, and so is what it points to.
pub(crate) unsafe fn receive_list(list: *const HaliteCommandList, peer: Peer) -> Result<CommandList> {
    // SAFETY: the caller's promise.
    let list = unsafe { raw::structure(list, peer)? };
    let mut commands = raw::room(list.command_count)?;
    // SAFETY: the caller's promise.
    let stride = unsafe { stride(list, peer)? };
    for index in 0..list.command_count {
        // SAFETY: `stride` has checked that the array of so many commands can be there; the rest is the caller's promise.
        let command = unsafe { list.commands.byte_add(index * stride) };
        // SAFETY: the caller's promise.
        let received = unsafe { raw::structure(command, peer).and_then(|c| receive(c, &mut commands, peer)) };
        received.context(|| format!("command {index}"))?;
    }
    Ok(CommandList {
        mode: CommandBufferMode::from_bits_retain(list.mode),
        categories: CommandCategory::from_bits_retain(list.categories),
        affinity: QueueAffinity(list.affinity),
        binding_capacity: list.binding_capacity,
        commands,
    })
}

/// The distance from one command to the next, which is the size that the first one tells.
///
/// # Safety
/// As for [`receive_list`].
unsafe fn stride(list: &HaliteCommandList, peer: Peer) -> Result<usize> {
    if list.command_count == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise: there is at least one command.
    let stride = unsafe { raw::structure(list.commands, peer)? }.struct_size as usize;
    let bytes = stride.checked_mul(list.command_count).and_then(|bytes| isize::try_from(bytes).ok());
    if bytes.is_none() || !stride.is_multiple_of(align_of::<HaliteCommand>()) {
        return Err(
            peer.broke(format_args!("{} commands of {stride} bytes cannot be in memory", list.command_count))
        );
    }
    Ok(stride)
}

/// # Safety
/// What the reference names is alive.
unsafe fn reference(reference: &HaliteBufferRef, peer: Peer) -> Result<BufferRef> {
    let target = if reference.buffer.is_null() {
        CommandTarget::Slot(reference.slot)
    } else {
        // SAFETY: the caller's promise.
        CommandTarget::Direct(unsafe { buffer::receive(reference.buffer, Count::Borrowed, peer)? })
    };
    Ok(BufferRef { target, offset: reference.offset, length: reference.length })
}

/// Adds the command to `commands`. They are large, so they are made where they stay.
///
/// # Safety
/// What the command names is alive.
unsafe fn receive(command: &HaliteCommand, commands: &mut Vec<Command>, peer: Peer) -> Result<()> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        match command.kind {
            HALITE_COMMAND_FILL => commands.push(Command::Fill {
                target: reference(&command.target, peer)?,
                pattern: command.pattern,
                pattern_length: command.pattern_length,
            }),
            HALITE_COMMAND_UPDATE => commands.push(Command::Update {
                source: Bytes::copy_from_slice(raw::bytes(command.data, "an update", peer)?),
                target: reference(&command.target, peer)?,
            }),
            HALITE_COMMAND_COPY => commands.push(Command::Copy {
                source: reference(&command.source, peer)?,
                target: reference(&command.target, peer)?,
            }),
            HALITE_COMMAND_DISPATCH => return dispatch(command, commands, peer),
            HALITE_COMMAND_BARRIER => commands.push(Command::Barrier),
            HALITE_COMMAND_BEGIN_DEBUG_GROUP => {
                let name = String::from_utf8_lossy(raw::bytes(command.data, "the name of a group", peer)?);
                commands.push(Command::BeginDebugGroup(name.into_owned()));
            }
            HALITE_COMMAND_END_DEBUG_GROUP => commands.push(Command::EndDebugGroup),
            unknown => bail!(Unimplemented, "{peer} recorded a command of the unknown kind {unknown}"),
        }
    }
    Ok(())
}

/// # Safety
/// What the command names is alive.
unsafe fn dispatch(command: &HaliteCommand, commands: &mut Vec<Command>, peer: Peer) -> Result<()> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        let counts = match command.indirect_counts {
            0 => DispatchCounts::Direct(command.counts),
            _ => DispatchCounts::Indirect(reference(&command.target, peer)?),
        };
        let lent_bindings = raw::array(command.bindings, command.binding_count, "bindings", peer)?;
        let lent_constants = raw::array(command.constants, command.constant_count, "constants", peer)?;
        commands.push(Command::Dispatch {
            executable: executable::receive(command.executable, Count::Borrowed, peer)?,
            function: command.function,
            counts,
            constants: SmallVec::new(),
            bindings: SmallVec::new(),
            flags: DispatchFlags::from_bits_retain(command.flags),
        });
        // Filled where they stay: a command is moved by copying all of its inline room.
        if let Some(Command::Dispatch { constants, bindings, .. }) = commands.last_mut() {
            constants.extend_from_slice(lent_constants);
            bindings.reserve_exact(lent_bindings.len());
            for binding in lent_bindings {
                bindings.push(reference(binding, peer)?);
            }
        }
    }
    Ok(())
}
