//! The way of a recording to the far end.

use std::{cell::Cell, ptr, sync::Arc};

use crate::{
    abi::*,
    buffer, executable,
    object::Exported,
    peer::Side,
    raw::{self, Grows},
};
use halite_hal::{Buffer, BufferRef, Command, CommandList, CommandTarget, DispatchCounts, Executable};

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
pub(crate) fn lend_list<R>(list: &CommandList, side: Side, body: impl FnOnce(&HaliteCommandList) -> R) -> R {
    // Taken, not borrowed: the far end may record, too, before it returns.
    let mut arena = ARENA.try_with(Cell::take).unwrap_or_default();
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
        // A thread that is ending keeps nothing.
        _ = ARENA.try_with(|kept| kept.set(arena));
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

    fn fill(&mut self, list: &CommandList, side: Side) {
        let Arena { commands, bindings, buffers, executables } = self;
        let mut lender = Lender { side, buffers, executables };
        // All bindings first: commands point to them, so they must not move any more.
        for command in &list.commands {
            if let Command::Dispatch { bindings: own, .. } = command {
                bindings.extend(own.iter().map(|binding| lender.reference(binding)));
            }
        }
        let mut rest = bindings.as_slice();
        commands.resize(list.commands.len(), NO_COMMAND);
        for (lent, command) in commands.iter_mut().zip(&list.commands) {
            lender.command(command, &mut rest, lent);
        }
    }
}

/// Puts objects into commands.
struct Lender<'a> {
    side: Side,
    buffers: &'a mut Vec<Arc<Exported<dyn Buffer>>>,
    executables: &'a mut Vec<Arc<Exported<dyn Executable>>>,
}

impl Lender<'_> {
    fn reference(&mut self, reference: &BufferRef) -> HaliteBufferRef {
        let (buffer, slot) = match &reference.target {
            CommandTarget::Direct(buffer) => (buffer::lend(buffer, self.side, self.buffers), 0),
            CommandTarget::Slot(slot) => (ptr::null_mut(), *slot),
        };
        HaliteBufferRef { buffer, offset: reference.offset, length: reference.length, slot, reserved: 0 }
    }

    /// Fills in what differs from [`NO_COMMAND`]. `bindings` are those of this dispatch and all after it.
    fn command(&mut self, command: &Command, bindings: &mut &[HaliteBufferRef], lent: &mut HaliteCommand) {
        match command {
            Command::Fill { target, pattern, pattern_length } => {
                lent.kind = HALITE_COMMAND_FILL;
                lent.target = self.reference(target);
                lent.pattern = *pattern;
                lent.pattern_length = *pattern_length;
            }
            Command::Update { source, target } => {
                lent.kind = HALITE_COMMAND_UPDATE;
                lent.target = self.reference(target);
                lent.data = raw::lend_bytes(source);
            }
            Command::Copy { source, target } => {
                lent.kind = HALITE_COMMAND_COPY;
                lent.target = self.reference(target);
                lent.source = self.reference(source);
            }
            Command::Dispatch { .. } => self.dispatch(command, bindings, lent),
            Command::Barrier => lent.kind = HALITE_COMMAND_BARRIER,
            Command::BeginDebugGroup(name) => {
                lent.kind = HALITE_COMMAND_BEGIN_DEBUG_GROUP;
                lent.data = raw::lend_bytes(name.as_bytes());
            }
            Command::EndDebugGroup => lent.kind = HALITE_COMMAND_END_DEBUG_GROUP,
        }
    }

    fn dispatch(&mut self, command: &Command, rest: &mut &[HaliteBufferRef], lent: &mut HaliteCommand) {
        let Command::Dispatch { executable, function, counts, constants, bindings, flags } = command else {
            return;
        };
        let (own, after) = rest.split_at(bindings.len());
        *rest = after;
        lent.kind = HALITE_COMMAND_DISPATCH;
        lent.function = *function;
        match counts {
            DispatchCounts::Direct(counts) => lent.counts = *counts,
            DispatchCounts::Indirect(target) => {
                lent.indirect_counts = 1;
                lent.target = self.reference(target);
            }
        }
        lent.flags = flags.bits();
        lent.executable = executable::lend(executable, self.side, self.executables);
        lent.constants = constants.as_ptr();
        lent.constant_count = constants.len();
        lent.bindings = own.as_ptr();
        lent.binding_count = own.len();
    }
}
