//! How commands are recorded: in functions that make a recording of a version's segment, and at load.

use std::collections::BTreeMap;

use halite_abi::{CommandBufferMode, CommandCategory, import::hal, object};
use halite_sizes::Size;
use halite_vm::asm::{Label, Reg};

use super::{
    code::{Code, Part},
    module::Writer,
    needs,
    slots::Slots,
};
use crate::{
    CompileError,
    control::Watch,
    plan::schedule::{Command, Memory, Span},
};

/// Where a recording finds memory: in buffers that are known when it is made, and in slots of the binding table.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Registers of buffers.
    pub known: BTreeMap<Memory, Reg>,
    /// Slots of the rest.
    pub slots: Slots,
}

/// What a recording takes from the module: registers, and the global of each kernel's executable.
pub struct Recorder<'a> {
    /// The module.
    pub writer: &'a mut Writer,
    /// The function that records.
    pub code: &'a mut Code,
    /// The recording.
    pub target: Reg,
    /// For one executable at a time.
    pub executable: Reg,
    /// For a text.
    pub text: Reg,
    /// For the number of a kernel in its executable.
    pub ordinal: Reg,
    /// Memory.
    pub buffers: &'a Buffers,
    /// The global and the name of each kernel.
    pub kernels: &'a [(u32, String)],
    /// Name of the debug group around all commands; empty for none.
    pub group: &'a str,
    /// Whether the work goes on.
    pub watch: Watch<'a>,
    /// For each command the number that says whether it is recorded; all are where there is none.
    pub conditions: &'a [Option<Reg>],
}

impl Recorder<'_> {
    /// Makes a recording in `self.target` of the commands of the version at work: these are all versions with the same code.
    ///
    /// # Errors
    /// The work was ended.
    pub fn record(
        &mut self,
        device: Reg,
        one_shot: bool,
        versions: &[&[Command]],
    ) -> Result<(), CompileError> {
        let mode = if one_shot { CommandBufferMode::ONE_SHOT } else { CommandBufferMode::empty() };
        let mode = self.code.u32(mode.bits());
        let (categories, queue) =
            (self.code.u32(CommandCategory::ANY.bits()), self.code.i64(needs::ANY_QUEUE));
        let capacity = self.code.u32(self.buffers.slots.len());
        let args = [device, mode, categories, queue, capacity];
        self.writer.call(self.code, hal::COMMAND_BUFFER_CREATE, &args, &[self.target]);
        if !self.group.is_empty() {
            self.writer.text(self.code, self.group, self.text);
            let args = [self.target, self.text];
            self.writer.call(self.code, hal::COMMAND_BUFFER_BEGIN_DEBUG_GROUP, &args, &[]);
        }
        self.commands(versions)?;
        if !self.group.is_empty() {
            self.writer.call(self.code, hal::COMMAND_BUFFER_END_DEBUG_GROUP, &[self.target], &[]);
        }
        self.writer.call(self.code, hal::COMMAND_BUFFER_FINALIZE, &[self.target], &[]);
        Ok(())
    }

    fn commands(&mut self, versions: &[&[Command]]) -> Result<(), CompileError> {
        let (mut current, mut within): (_, Option<(Reg, Label)>) = (None, None);
        for index in 0..versions.first().map_or(0, |commands| commands.len()) {
            self.watch.check()?;
            let condition = self.conditions.get(index).copied().flatten();
            if condition != within.map(|(condition, _)| condition) {
                within.into_iter().for_each(|(_, after)| self.code.end_if(after));
                within = condition.map(|condition| (condition, self.code.only_if(condition)));
                // What was selected under a condition may not be selected.
                current = None;
            }
            self.code.begin_command();
            let same: Vec<&Command> = versions.iter().map(|commands| &commands[index]).collect();
            match same[0] {
                Command::Dispatch { kernel, .. } => {
                    if current != Some(*kernel) {
                        self.select(*kernel);
                        current = Some(*kernel);
                    }
                    self.dispatch(&same);
                }
                Command::Copy { .. } => self.copy(&same),
                Command::Barrier => self.barrier(),
            }
        }
        within.into_iter().for_each(|(_, after)| self.code.end_if(after));
        Ok(())
    }

    fn select(&mut self, kernel: usize) {
        let (global, name) = &self.kernels[kernel];
        self.writer.load(self.code, *global, object::EXECUTABLE, self.executable);
        self.writer.text(self.code, name, self.text);
        let args = [self.executable, self.text];
        self.writer.call(self.code, hal::EXECUTABLE_LOOKUP_FUNCTION, &args, &[self.ordinal]);
    }

    /// Slot and buffer of a memory; the slot counts where the register holds nothing.
    fn place(&mut self, memory: Memory) -> (Reg, Reg) {
        match self.buffers.known.get(&memory) {
            Some(buffer) => (self.code.i32(0), *buffer),
            None => {
                let slot = self.buffers.slots.slot(memory);
                (self.code.u32(slot), self.code.null())
            }
        }
    }

    /// A number that each version has.
    fn number(&mut self, versions: &[&Command], of: impl Fn(&Command) -> Size) -> Reg {
        let values: Vec<Size> = versions.iter().map(|command| of(command)).collect();
        self.code.amount(&values)
    }

    /// The same, where it has 32 bits.
    fn word(&mut self, versions: &[&Command], of: impl Fn(&Command) -> Size) -> Reg {
        let values: Vec<Size> = versions.iter().map(|command| of(command)).collect();
        self.code.amount_word(&values)
    }

    fn dispatch(&mut self, versions: &[&Command]) {
        let [x, y, z] = [0, 1, 2].map(|axis| self.word(versions, |command| grid(command)[axis]));
        let flags = self.code.i64(0);
        let constants: Vec<Reg> =
            (0..push(versions[0]).len()).map(|i| self.word(versions, |command| push(command)[i])).collect();
        let (mut bound, count) = (Vec::new(), spans(versions[0]).count());
        for index in 0..count {
            let (slot, buffer) = self.place(span(versions[0], index).memory);
            let reserved = self.code.i32(0);
            let offset = self.number(versions, |command| span(command, index).offset);
            let bytes = self.number(versions, |command| span(command, index).bytes);
            bound.extend([reserved, slot, buffer, offset, bytes]);
        }
        let one = |register| Part::One(register);
        let parts = [
            one(self.target),
            one(self.executable),
            one(self.ordinal),
            one(x),
            one(y),
            one(z),
            one(flags),
            Part::Span(constants.len(), &constants),
            Part::Span(count, &bound),
        ];
        self.writer.call_variadic(self.code, hal::COMMAND_BUFFER_DISPATCH, &parts, &[]);
    }

    fn copy(&mut self, versions: &[&Command]) {
        let (from_slot, source) = self.place(span(versions[0], 0).memory);
        let (to_slot, target) = self.place(span(versions[0], 1).memory);
        let [from_offset, to_offset] =
            [0, 1].map(|index| self.number(versions, |command| span(command, index).offset));
        let bytes = self.number(versions, |command| span(command, 1).bytes);
        let flags = self.code.i64(0);
        let args = [self.target, from_slot, to_slot, source, from_offset, target, to_offset, bytes, flags];
        self.writer.call(self.code, hal::COMMAND_BUFFER_COPY_BUFFER, &args, &[]);
    }

    fn barrier(&mut self) {
        let (source, target) = (needs::BARRIER_SOURCE.bits(), needs::BARRIER_TARGET.bits());
        let (source, target, flags) = (self.code.u32(source), self.code.u32(target), self.code.i64(0));
        let args = [self.target, source, target, flags];
        self.writer.call(self.code, hal::COMMAND_BUFFER_EXECUTION_BARRIER, &args, &[]);
    }
}

/// What a command accesses: bindings, or source and target.
fn spans(command: &Command) -> impl Iterator<Item = &Span> {
    let (bindings, ends) = match command {
        Command::Dispatch { bindings, .. } => (&bindings[..], [None, None]),
        Command::Copy { from, to } => (&[][..], [Some(from), Some(to)]),
        Command::Barrier => (&[][..], [None, None]),
    };
    bindings.iter().map(|binding| &binding.span).chain(ends.into_iter().flatten())
}

fn span(command: &Command, index: usize) -> &Span {
    spans(command).nth(index).expect("versions with the same code access as many spans")
}

fn grid(command: &Command) -> [Size; 3] {
    if let Command::Dispatch { grid, .. } = command { *grid } else { [Size::constant(0); 3] }
}

fn push(command: &Command) -> &[Size] {
    if let Command::Dispatch { push, .. } = command { push } else { &[] }
}
