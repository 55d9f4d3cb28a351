//! Owns how commands are recorded: in functions that make a recording of a version's segment, and at load. Does not own:
//! which commands.

use std::collections::BTreeMap;

use halite_vm::asm::Reg;

use super::{
    code::{Code, Part},
    hal,
    module::Writer,
    slots::Slots,
};
use crate::plan::schedule::{Command, Memory, Span};

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
}

impl Recorder<'_> {
    /// Makes a recording of these commands in `self.target`.
    pub fn record(&mut self, device: Reg, one_shot: bool, commands: &[Command]) {
        let mode = self.code.i32(if one_shot { hal::ONE_SHOT } else { 0 });
        let (categories, queue) = (self.code.i32(hal::CATEGORIES), self.code.i64(hal::ANY_QUEUE));
        let capacity = self.code.u32(self.buffers.slots.len());
        let args = [device, mode, categories, queue, capacity];
        self.writer.call(self.code, "hal.command_buffer.create", &args, &[self.target]);
        let mut current = None;
        for command in commands {
            match command {
                Command::Dispatch { kernel, grid, push, bindings } => {
                    if current != Some(*kernel) {
                        self.select(*kernel);
                        current = Some(*kernel);
                    }
                    self.dispatch(*grid, push, bindings);
                }
                Command::Copy { from, to } => self.copy(from, to),
                Command::Barrier => self.barrier(),
            }
        }
        self.writer.call(self.code, "hal.command_buffer.finalize", &[self.target], &[]);
    }

    fn select(&mut self, kernel: usize) {
        let (global, name) = &self.kernels[kernel];
        self.writer.load(self.code, *global, "!hal.executable", self.executable);
        self.writer.text(self.code, name, self.text);
        let args = [self.executable, self.text];
        self.writer.call(self.code, "hal.executable.lookup.function", &args, &[self.ordinal]);
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

    fn dispatch(&mut self, grid: [u32; 3], push: &[u32], bindings: &[Span]) {
        let [x, y, z] = grid.map(|count| self.code.u32(count));
        let flags = self.code.i64(0);
        let constants: Vec<Reg> = push.iter().map(|value| self.code.u32(*value)).collect();
        let mut bound = Vec::new();
        for span in bindings {
            let (slot, buffer) = self.place(span.memory);
            let reserved = self.code.i32(0);
            bound.extend([reserved, slot, buffer, self.code.size(span.offset), self.code.size(span.bytes)]);
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
            Part::Span(bindings.len(), &bound),
        ];
        self.writer.call_variadic(self.code, "hal.command_buffer.dispatch", &parts, &[]);
    }

    fn copy(&mut self, from: &Span, to: &Span) {
        let (from_slot, source) = self.place(from.memory);
        let (to_slot, target) = self.place(to.memory);
        let (from_offset, to_offset) = (self.code.size(from.offset), self.code.size(to.offset));
        let (bytes, flags) = (self.code.size(to.bytes), self.code.i64(0));
        let args = [self.target, from_slot, to_slot, source, from_offset, target, to_offset, bytes, flags];
        self.writer.call(self.code, "hal.command_buffer.copy_buffer", &args, &[]);
    }

    fn barrier(&mut self) {
        let (source, target) = hal::BARRIER_STAGES;
        let (source, target, flags) = (self.code.i32(source), self.code.i32(target), self.code.i64(0));
        let args = [self.target, source, target, flags];
        self.writer.call(self.code, "hal.command_buffer.execution_barrier", &args, &[]);
    }
}
