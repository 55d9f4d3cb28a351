//! Owns what a module does when it is loaded on a target: executables, constants, what is computed of them, recordings.
//! Does not own: which target it is ([`super::init`]).

use std::collections::BTreeSet;

use bytes::Bytes;
use halite_vm::{asm::Reg, isa::Op};

use super::{
    code::{Code, Part},
    executable::executable,
    globals::{DEVICE, Globals},
    hal,
    module::Writer,
    parameters::Source,
    record::{Buffers, Recorder},
    slots::Slots,
};
use crate::{
    CompileError,
    plan::{
        ModulePlan, TargetPlan,
        schedule::{Command, Memory},
        slabs::Slab,
    },
};

/// What loading writes on, for any target.
pub struct Load<'a> {
    /// The module.
    pub writer: &'a mut Writer,
    /// What it does.
    pub plan: &'a ModulePlan,
    /// Where it keeps what.
    pub globals: &'a Globals,
    /// Where each slab of constants comes from.
    pub sources: &'a [Source],
    /// The binding table of each version.
    pub slots: &'a [Vec<Slots>],
}

/// Registers of a function that loads.
struct Registers {
    device: Reg,
    allocator: Reg,
    /// For anything, for a short while.
    object: Reg,
    file: Reg,
    text: Reg,
    data: Reg,
    signal: Reg,
    /// When all that was begun is done; null before anything was.
    done: Reg,
    executable: Reg,
    ordinal: Reg,
}

impl Registers {
    fn new(code: &mut Code) -> Self {
        Registers {
            device: code.reference(),
            allocator: code.reference(),
            object: code.reference(),
            file: code.reference(),
            text: code.reference(),
            data: code.reference(),
            signal: code.reference(),
            done: code.reference(),
            executable: code.reference(),
            ordinal: code.pair(),
        }
    }
}

impl Load<'_> {
    /// Writes the functions that load a target; gives the one whose result is a fence for when all is there.
    pub fn target(&mut self, target: &TargetPlan) -> Result<u32, CompileError> {
        let kernels: Vec<(u32, String)> = target
            .kernels
            .iter()
            .enumerate()
            .map(|(i, k)| (self.globals.executable(i), self.plan.codes.all[k.code].name.clone()))
            .collect();
        let recorders = self.recorders(target, &kernels)?;
        let mut code = Code::new("0v_r", 0);
        let registers = Registers::new(&mut code);
        self.writer.load(&mut code, DEVICE, "!hal.device", registers.device);
        self.writer.call(&mut code, "hal.device.allocator", &[registers.device], &[registers.allocator]);
        self.executables(&mut code, target, &registers)?;
        let mut buffers = self.constants(&mut code, &registers, target);
        if let Some(commands) = target.load.segments.first() {
            self.pack(&mut code, &registers, target.load.transient_bytes, &kernels, commands, &mut buffers);
        }
        for (global, ordinal) in recorders {
            code.call(ordinal, &[], &[registers.object]);
            self.writer.store(&mut code, global, "!hal.command_buffer", registers.object);
        }
        self.sizes(&mut code, target);
        code.op(Op::Return, &[vec![registers.done].into()]);
        self.writer.function(&format!("load.{}", target.target), false, code)
    }

    /// A function for each segment, with the global of its recording.
    fn recorders(
        &mut self,
        target: &TargetPlan,
        kernels: &[(u32, String)],
    ) -> Result<Vec<(u32, u32)>, CompileError> {
        let mut recorders = Vec::new();
        for (function, versions) in target.functions.iter().enumerate() {
            for (version, lowered) in versions.iter().enumerate() {
                for (segment, commands) in lowered.segments.iter().enumerate() {
                    let name = format!("record.{}.{function}.{version}.{segment}", target.target);
                    let slots = &self.slots[function][version];
                    let ordinal = self.recorder(&name, kernels, slots, commands)?;
                    recorders.push((self.globals.recording(function, version, segment), ordinal));
                }
            }
        }
        Ok(recorders)
    }

    /// A function that gives the recording of a segment.
    fn recorder(
        &mut self,
        name: &str,
        kernels: &[(u32, String)],
        slots: &Slots,
        commands: &[Command],
    ) -> Result<u32, CompileError> {
        let mut code = Code::new("0v_r", 0);
        let [device, recording, executable, text] = [(); 4].map(|()| code.reference());
        let ordinal = code.pair();
        self.writer.load(&mut code, DEVICE, "!hal.device", device);
        let mut buffers = Buffers { slots: slots.clone(), ..Buffers::default() };
        for memory in memories(commands) {
            let global = match memory {
                Memory::Constants(slab) => self.globals.constants(slab),
                Memory::Packed(slab) => self.globals.packed(slab),
                _ => continue,
            };
            let buffer = code.reference();
            self.writer.load(&mut code, global, "!hal.buffer", buffer);
            buffers.known.insert(memory, buffer);
        }
        let (writer, buffers) = (&mut *self.writer, &buffers);
        let target = recording;
        Recorder { writer, code: &mut code, target, executable, text, ordinal, buffers, kernels }
            .record(device, false, commands);
        code.op(Op::Return, &[vec![recording].into()]);
        self.writer.function(name, false, code)
    }

    fn executables(
        &mut self,
        code: &mut Code,
        target: &TargetPlan,
        registers: &Registers,
    ) -> Result<(), CompileError> {
        self.writer.text(code, hal::FORMAT, registers.text);
        for (index, kernel) in target.kernels.iter().enumerate() {
            let data = self.writer.data(executable(&self.plan.codes.all[kernel.code])?);
            code.op(Op::ConstRefRodata, &[data.into(), registers.data.into()]);
            let constants = match kernel.constants.is_empty() {
                true => code.null(),
                false => {
                    let bytes: Vec<u8> =
                        kernel.constants.iter().flat_map(|word| word.to_le_bytes()).collect();
                    let data = self.writer.data(bytes);
                    code.op(Op::ConstRefRodata, &[data.into(), registers.file.into()]);
                    registers.file
                }
            };
            let queue = code.i64(hal::ANY_QUEUE);
            let args = [registers.device, queue, registers.text, registers.data, constants];
            self.writer.call(code, "hal.executable.create", &args, &[registers.object]);
            let global = self.globals.executable(index);
            self.writer.store(code, global, "!hal.executable", registers.object);
        }
        Ok(())
    }

    /// Allocates and fills the slabs of constants that a target reads; gives their buffers.
    fn constants(&mut self, code: &mut Code, registers: &Registers, target: &TargetPlan) -> Buffers {
        let mut buffers = Buffers::default();
        let loading: BTreeSet<Memory> = target.load.segments.iter().flat_map(|c| memories(c)).collect();
        let mut fences = Vec::new();
        for (index, slab) in (0..).zip(&self.plan.slabs.constant_slabs) {
            let memory = Memory::Constants(index);
            if !slab.resident && !loading.contains(&memory) {
                continue;
            }
            let (buffer, fence) = (code.reference(), code.reference());
            self.allocate(code, registers, slab.bytes, hal::CONSTANT_USAGE, buffer);
            self.writer.new_fence(code, registers.device, fence);
            self.fill(code, registers, slab, &self.sources[index as usize].clone(), buffer, fence);
            if slab.resident {
                self.writer.store(code, self.globals.constants(index), "!hal.buffer", buffer);
            }
            buffers.known.insert(memory, buffer);
            fences.push(fence);
        }
        if !fences.is_empty() {
            let flags = code.i64(0);
            let parts = [Part::One(flags), Part::Span(fences.len(), &fences)];
            self.writer.call_variadic(code, "hal.fence.join", &parts, &[registers.done]);
        }
        buffers
    }

    fn allocate(&mut self, code: &mut Code, registers: &Registers, bytes: u64, usage: i32, to: Reg) {
        let (queue, memory) = (code.i64(hal::ANY_QUEUE), code.i32(hal::DEVICE_LOCAL));
        let args = [registers.allocator, queue, memory, code.i32(usage), code.size(bytes)];
        self.writer.call(code, "hal.allocator.allocate", &args, &[to]);
    }

    fn fill(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        slab: &Slab,
        source: &Source,
        buffer: Reg,
        fence: Reg,
    ) {
        let (queue, zero) = (code.i64(hal::ANY_QUEUE), code.i64(0));
        let nothing = code.null();
        match source {
            Source::Data(ordinal) => {
                code.op(Op::ConstRefRodata, &[(*ordinal).into(), registers.data.into()]);
                let (access, flags) = (code.i32(hal::READ_ACCESS), code.i32(0));
                let bytes = code.size(slab.bytes);
                let args = [registers.device, queue, access, registers.data, zero, bytes, flags];
                self.writer.call(code, "hal.ex.file.from_memory", &args, &[registers.file]);
                let args = [
                    registers.device,
                    queue,
                    nothing,
                    fence,
                    registers.file,
                    zero,
                    buffer,
                    zero,
                    bytes,
                    zero,
                ];
                self.writer.call(code, "hal.device.queue.read", &args, &[]);
            }
            Source::Parameters { scope, tables } => {
                self.writer.text(code, scope, registers.text);
                let tables: [Reg; 3] =
                    [&tables.keys, &tables.key_data, &tables.spans].map(|bytes: &Bytes| {
                        let data = self.writer.data(bytes.clone());
                        let register = code.reference();
                        code.op(Op::ConstRefRodata, &[data.into(), register.into()]);
                        register
                    });
                let [keys, key_data, spans] = tables;
                let scope = if scope.is_empty() { nothing } else { registers.text };
                let args = [registers.device, queue, nothing, fence, scope, buffer, keys, key_data, spans];
                self.writer.call(code, "io_parameters.gather", &args, &[]);
            }
        }
    }

    /// Computes what is packed, after the constants are there.
    fn pack(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        transient_bytes: u64,
        kernels: &[(u32, String)],
        commands: &[Command],
        buffers: &mut Buffers,
    ) {
        for (index, slab) in (0..).zip(&self.plan.slabs.packed_slabs) {
            let buffer = code.reference();
            self.allocate(code, registers, slab.bytes, hal::TENSOR_USAGE, buffer);
            self.writer.store(code, self.globals.packed(index), "!hal.buffer", buffer);
            buffers.known.insert(Memory::Packed(index), buffer);
        }
        if transient_bytes > 0 {
            let buffer = code.reference();
            self.allocate(code, registers, transient_bytes, hal::TENSOR_USAGE, buffer);
            buffers.known.insert(Memory::Transient, buffer);
        }
        let Registers { device, object: target, executable, text, ordinal, .. } = *registers;
        let (writer, buffers) = (&mut *self.writer, &*buffers);
        Recorder { writer, code, target, executable, text, ordinal, buffers, kernels }
            .record(device, true, commands);
        self.writer.new_fence(code, device, registers.signal);
        let (queue, flags) = (code.i64(hal::ANY_QUEUE), code.i64(0));
        let args = [device, queue, registers.done, registers.signal, target, flags];
        self.writer.call(code, "hal.device.queue.execute", &args, &[]);
        code.op(Op::AssignRef, &[registers.signal.into(), registers.done.into()]);
    }

    fn sizes(&mut self, code: &mut Code, target: &TargetPlan) {
        for (function, versions) in target.functions.iter().enumerate() {
            for (version, lowered) in versions.iter().enumerate() {
                let bytes = code.size(lowered.transient_bytes.max(4));
                let global = self.globals.transient_bytes(function, version);
                code.op(Op::GlobalStoreI64, &[global.into(), bytes.into()]);
            }
        }
    }
}

/// The memories that commands name.
fn memories(commands: &[Command]) -> BTreeSet<Memory> {
    let mut found = BTreeSet::new();
    for command in commands {
        match command {
            Command::Dispatch { bindings, .. } => found.extend(bindings.iter().map(|span| span.memory)),
            Command::Copy { from, to } => found.extend([from.memory, to.memory]),
            Command::Barrier => {}
        }
    }
    found
}
