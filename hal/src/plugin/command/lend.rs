//! Owns the way of a recording to the far end. Does not own: the way back (`receive`).

use std::{cell::Cell, ptr, sync::Arc};

use crate::{
    Buffer, BufferRef, Command, CommandList, CommandTarget, DispatchCounts, Executable,
    plugin::{
        abi::*,
        buffer, executable,
        object::Exported,
        peer::Side,
        raw::{self, Grows},
    },
};

const NO_REF: HaliteBufferRef =
    HaliteBufferRef { buffer: ptr::null_mut(), offset: 0, length: 0, slot: 0, reserved: 0 };

const NO_COMMAND: HaliteCommand = HaliteCommand {
    struct_size: HaliteCommand::SIZE,
    kind: 0,
    target: NO_REF,
    source: NO_REF,
    pattern: 0,
    pattern_length: 0,
    function: 0,
    counts: [0; 3],
    indirect_counts: 0,
    flags: 0,
    executable: ptr::null_mut(),
    data: HaliteBytes { data: ptr::null(), length: 0 },
    constants: ptr::null(),
    constant_count: 0,
    bindings: ptr::null(),
    binding_count: 0,
};

/// Commands up to which the arrays are kept for the next recording of the thread: about one and a half megabytes.
const KEEP: usize = 8192;

thread_local! {
    /// Recordings come one after the other and are of much the same size; fresh pages for each cost more than filling them.
    static ARENA: Cell<Arena> = Cell::default();
}

/// The arrays of a recording.
#[derive(Default)]
struct Arena {
    commands: Vec<HaliteCommand>,
    bindings: Vec<HaliteBufferRef>,
    buffers: Vec<Arc<Exported<dyn Buffer>>>,
    executables: Vec<Arc<Exported<dyn Executable>>>,
}

/// Calls `body` with the recording as the interface has it, lent for the call.
pub(in crate::plugin) fn lend_list<R>(
    list: &CommandList,
    side: Side,
    body: impl FnOnce(&HaliteCommandList) -> R,
) -> R {
    // Taken, not borrowed: the far end may record, too, before it returns.
    let mut arena = ARENA.take();
    arena.fill(list, side);
    let result = body(&HaliteCommandList {
        struct_size: HaliteCommandList::SIZE,
        mode: list.mode.bits(),
        categories: list.categories.bits(),
        binding_capacity: list.binding_capacity,
        affinity: list.affinity.0,
        commands: arena.commands.as_ptr(),
        command_count: arena.commands.len(),
    });
    arena.clear();
    if arena.commands.capacity() <= KEEP && arena.bindings.capacity() <= 4 * KEEP {
        ARENA.set(arena);
    }
    result
}

impl Arena {
    fn clear(&mut self) {
        self.commands.clear();
        self.bindings.clear();
        self.buffers.clear();
        self.executables.clear();
    }

    /// All bindings first: commands point to them, so they must not move any more.
    fn fill(&mut self, list: &CommandList, side: Side) {
        for command in &list.commands {
            if let Command::Dispatch { bindings, .. } = command {
                for binding in bindings {
                    let lent = self.reference(binding, side);
                    self.bindings.push(lent);
                }
            }
        }
        self.commands.reserve_exact(list.commands.len());
        let mut rest = 0;
        for command in &list.commands {
            let lent = self.command(command, side, &mut rest);
            self.commands.push(lent);
        }
    }

    fn reference(&mut self, reference: &BufferRef, side: Side) -> HaliteBufferRef {
        let (buffer, slot) = match &reference.target {
            CommandTarget::Direct(buffer) => (buffer::lend(buffer, side, &mut self.buffers), 0),
            CommandTarget::Slot(slot) => (ptr::null_mut(), *slot),
        };
        HaliteBufferRef { buffer, offset: reference.offset, length: reference.length, slot, reserved: 0 }
    }

    /// `next_binding` counts the bindings of dispatches before this command.
    fn command(&mut self, command: &Command, side: Side, next_binding: &mut usize) -> HaliteCommand {
        match command {
            Command::Fill { target, pattern, pattern_length } => HaliteCommand {
                kind: HALITE_COMMAND_FILL,
                target: self.reference(target, side),
                pattern: *pattern,
                pattern_length: *pattern_length,
                ..NO_COMMAND
            },
            Command::Update { source, target } => HaliteCommand {
                kind: HALITE_COMMAND_UPDATE,
                target: self.reference(target, side),
                data: raw::lend_bytes(source),
                ..NO_COMMAND
            },
            Command::Copy { source, target } => HaliteCommand {
                kind: HALITE_COMMAND_COPY,
                target: self.reference(target, side),
                source: self.reference(source, side),
                ..NO_COMMAND
            },
            Command::Dispatch { .. } => self.dispatch(command, side, next_binding),
            Command::Barrier => HaliteCommand { kind: HALITE_COMMAND_BARRIER, ..NO_COMMAND },
            Command::BeginDebugGroup(name) => HaliteCommand {
                kind: HALITE_COMMAND_BEGIN_DEBUG_GROUP,
                data: raw::lend_bytes(name.as_bytes()),
                ..NO_COMMAND
            },
            Command::EndDebugGroup => HaliteCommand { kind: HALITE_COMMAND_END_DEBUG_GROUP, ..NO_COMMAND },
        }
    }

    fn dispatch(&mut self, command: &Command, side: Side, next_binding: &mut usize) -> HaliteCommand {
        let Command::Dispatch { executable, function, counts, constants, bindings, flags } = command else {
            return NO_COMMAND;
        };
        let first = *next_binding;
        *next_binding += bindings.len();
        let (counts, target, indirect_counts) = match counts {
            DispatchCounts::Direct(counts) => (*counts, NO_REF, 0),
            DispatchCounts::Indirect(target) => ([0; 3], self.reference(target, side), 1),
        };
        HaliteCommand {
            kind: HALITE_COMMAND_DISPATCH,
            target,
            function: *function,
            counts,
            indirect_counts,
            flags: flags.bits(),
            executable: executable::lend(executable, side, &mut self.executables),
            constants: constants.as_ptr(),
            constant_count: constants.len(),
            bindings: self.bindings[first..].as_ptr(),
            binding_count: bindings.len(),
            ..NO_COMMAND
        }
    }
}
