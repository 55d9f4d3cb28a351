//! Owns the way of a recording in from the far end. Does not own: the way there (`lend`).

use bytes::Bytes;

use crate::{
    BufferRef, Command, CommandBufferMode, CommandCategory, CommandList, CommandTarget, DispatchCounts,
    DispatchFlags, QueueAffinity, Result, ResultExt, bail,
    plugin::{
        abi::*,
        buffer, executable,
        object::Count,
        peer::Peer,
        raw::{self, Grows},
    },
};

/// A recording that came in, with everything it names retained.
///
/// # Safety
/// `list` is null or there for the call, and so is what it points to.
pub(in crate::plugin) unsafe fn receive_list(
    list: *const HaliteCommandList,
    peer: Peer,
) -> Result<CommandList> {
    // SAFETY: the caller's promise.
    let list = unsafe { raw::structure(list, peer)? };
    let mut commands = raw::room(list.command_count)?;
    // SAFETY: the caller's promise.
    let stride = unsafe { stride(list, peer)? };
    for index in 0..list.command_count {
        // SAFETY: `stride` has checked that the array of so many commands can be there; the rest is the caller's promise.
        let command = unsafe { list.commands.byte_add(index * stride) };
        // SAFETY: the caller's promise.
        let command = unsafe { raw::structure(command, peer).and_then(|c| receive(c, peer)) };
        commands.push(command.context(|| format!("command {index}"))?);
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

/// # Safety
/// What the command names is alive.
unsafe fn receive(command: &HaliteCommand, peer: Peer) -> Result<Command> {
    debug_assert!(command.struct_size >= HaliteCommand::SIZE);
    // SAFETY: the caller's promise, here and for all below.
    let target = || unsafe { reference(&command.target, peer) };
    // SAFETY: as above.
    let data = |what| unsafe { raw::bytes(command.data, what, peer) };
    Ok(match command.kind {
        HALITE_COMMAND_FILL => Command::Fill {
            target: target()?,
            pattern: command.pattern,
            pattern_length: command.pattern_length,
        },
        HALITE_COMMAND_UPDATE => {
            Command::Update { source: Bytes::copy_from_slice(data("an update")?), target: target()? }
        }
        // SAFETY: as above.
        HALITE_COMMAND_COPY => unsafe {
            Command::Copy { source: reference(&command.source, peer)?, target: target()? }
        },
        // SAFETY: as above.
        HALITE_COMMAND_DISPATCH => unsafe { dispatch(command, peer)? },
        HALITE_COMMAND_BARRIER => Command::Barrier,
        HALITE_COMMAND_BEGIN_DEBUG_GROUP => {
            Command::BeginDebugGroup(String::from_utf8_lossy(data("the name of a group")?).into_owned())
        }
        HALITE_COMMAND_END_DEBUG_GROUP => Command::EndDebugGroup,
        unknown => bail!(Unimplemented, "{peer} recorded a command of the unknown kind {unknown}"),
    })
}

/// # Safety
/// What the command names is alive.
unsafe fn dispatch(command: &HaliteCommand, peer: Peer) -> Result<Command> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        let counts = match command.indirect_counts {
            0 => DispatchCounts::Direct(command.counts),
            _ => DispatchCounts::Indirect(reference(&command.target, peer)?),
        };
        let lent: &[HaliteBufferRef] = raw::array(command.bindings, command.binding_count, "bindings", peer)?;
        let constants: &[u32] = raw::array(command.constants, command.constant_count, "constants", peer)?;
        let mut bindings = smallvec::SmallVec::with_capacity(lent.len());
        for binding in lent {
            bindings.push(reference(binding, peer)?);
        }
        Ok(Command::Dispatch {
            executable: executable::receive(command.executable, Count::Borrowed, peer)?,
            function: command.function,
            counts,
            constants: smallvec::SmallVec::from_slice(constants),
            bindings,
            flags: DispatchFlags::from_bits_retain(command.flags),
        })
    }
}
