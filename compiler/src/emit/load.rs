//! What a module does when it is loaded on a target: executables, constants, what is computed of them, recordings; and the
//! functions that make recordings later.

use std::collections::{BTreeMap, BTreeSet};

use halite_abi::{
    BufferUsage, MemoryAccess, MemoryType,
    import::{hal, io_parameters},
    object,
};
use halite_formats::vmfb::{Attr, group_name};
use halite_vm::{asm::Reg, isa::Op};

use super::{
    code::{Code, Part},
    globals::{DEVICE, Globals, TARGET},
    module::Writer,
    needs, notes,
    parameters::{self, Source, Stored},
    record::{Buffers, Recorder},
    slots::Slots,
    table::Table,
};
use crate::{
    CompileError, Program,
    backend::Backend,
    control::Watch,
    graph::OpenSizes,
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
    /// What it is made of.
    pub program: &'a Program,
    /// What it does.
    pub plan: &'a ModulePlan,
    /// What its kernels are for.
    pub backend: &'a dyn Backend,
    /// Where it keeps what.
    pub globals: &'a Globals,
    /// Where each slab of constants comes from.
    pub stored: &'a Stored,
    /// The binding table of each version.
    pub slots: &'a [Vec<Slots>],
    /// Whether the work goes on.
    pub watch: Watch<'a>,
    /// Name and bytes of the executables that were written, by their codes.
    pub executables: BTreeMap<usize, (String, u64)>,
}

/// Registers of a function that loads.
pub(super) struct Registers {
    pub(super) device: Reg,
    allocator: Reg,
    /// For anything, for a short while.
    pub(super) object: Reg,
    file: Reg,
    pub(super) text: Reg,
    data: Reg,
    pub(super) signal: Reg,
    /// When all that was begun is done; null before anything was.
    pub(super) done: Reg,
    pub(super) executable: Reg,
    pub(super) ordinal: Reg,
    /// For each set of what is shared, whether some of it has to be computed.
    pub(super) missing: Vec<Reg>,
    /// Whether anything has to be computed.
    pub(super) any: Reg,
    /// For tables of parameters.
    tables: [Reg; 3],
}

impl Registers {
    fn new(code: &mut Code, sets: usize) -> Self {
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
            missing: (0..sets).map(|_| code.word()).collect(),
            any: code.word(),
            tables: [(); 3].map(|()| code.reference()),
        }
    }
}

/// The functions that make recordings, by function, group of versions, and segment.
pub type Recorders = Vec<Vec<Vec<u32>>>;

/// The tables of the groups of versions: function, group; none for a group of one.
pub type Tables = Vec<Vec<Option<Table>>>;

impl Load<'_> {
    /// The global and the name of each kernel of a target.
    fn kernels(&self, target: &TargetPlan) -> Vec<(u32, String)> {
        let each = target.kernels.iter().enumerate();
        each.map(|(i, k)| (self.globals.executable(i), self.plan.codes.all[k.code].name.clone())).collect()
    }

    /// Writes the function that loads a target and gives a fence for when all is there. Recordings of functions with one
    /// version are made at once, the others when they are needed.
    pub fn target(&mut self, index: usize, recorders: &Recorders) -> Result<u32, CompileError> {
        let target = &self.plan.targets[index];
        let kernels = self.kernels(target);
        let mut code = Code::new("0v_r", 0);
        let registers = Registers::new(&mut code, self.plan.shared.sets.len());
        self.writer.load(&mut code, DEVICE, object::DEVICE, registers.device);
        self.writer.call(&mut code, hal::DEVICE_ALLOCATOR, &[registers.device], &[registers.allocator]);
        self.executables(&mut code, target, &registers)?;
        let mut buffers = self.packed(&mut code, &registers, target)?;
        self.constants(&mut code, &registers, target, &mut buffers);
        self.pack(&mut code, &registers, target, &kernels, &mut buffers)?;
        for (function, groups) in recorders.iter().enumerate() {
            if !self.plan.is_recorded_at_load(function) {
                continue;
            }
            for (segment, ordinal) in groups[0].iter().enumerate() {
                code.call(*ordinal, &[], &[registers.object]);
                let global = self.globals.recording(function, 0, segment);
                self.writer.store(&mut code, global, object::COMMAND_BUFFER, registers.object);
            }
        }
        self.sizes(&mut code, target);
        let number = code.i32(index as i32);
        code.op(Op::GlobalStoreI32, &[TARGET.into(), number.into()]);
        code.op(Op::Return, &[vec![registers.done].into()]);
        self.writer.function(&format!("load.{}", target.target), false, code)
    }

    /// Writes a function for each segment of each group of versions on a target, which gives its recording.
    pub fn recorders(&mut self, target: &TargetPlan, tables: &mut Tables) -> Result<Recorders, CompileError> {
        let kernels = self.kernels(target);
        let mut recorders = Recorders::new();
        for (function, groups) in self.plan.groups.iter().enumerate() {
            let mut of_function = Vec::new();
            for (group, versions) in groups.iter().enumerate() {
                let lowered: Vec<_> = versions.iter().map(|v| &target.functions[function][*v]).collect();
                let mut of_group = Vec::new();
                for segment in 0..lowered[0].segments.len() {
                    self.watch.check()?;
                    let name = format!("record.{}.{function}.{group}.{segment}", target.target);
                    let commands: Vec<&[Command]> =
                        lowered.iter().map(|l| &l.segments[segment][..]).collect();
                    let slots = &self.slots[function][versions[0]];
                    let table = &mut tables[function][group];
                    let open = self.program.functions[function].versions[versions[0]].open.as_ref();
                    let notes = notes::attribute(self.plan, target, function, versions, segment);
                    of_group.push(self.recorder(&name, &kernels, slots, &commands, (table, open, notes))?);
                }
                of_function.push(of_group);
            }
            recorders.push(of_function);
        }
        Ok(recorders)
    }

    /// A function that gives the recording of a segment: of a group's version, by the group's table and its row.
    fn recorder(
        &mut self,
        name: &str,
        kernels: &[(u32, String)],
        slots: &Slots,
        commands: &[&[Command]],
        (table, open, notes): (&mut Option<Table>, Option<&OpenSizes>, Attr),
    ) -> Result<u32, CompileError> {
        let mut code = recorder_code(table.take(), open);
        let [device, recording, executable, text] = [(); 4].map(|()| code.reference());
        let ordinal = code.pair();
        self.writer.load(&mut code, DEVICE, object::DEVICE, device);
        let mut buffers = Buffers { slots: slots.clone(), ..Buffers::default() };
        for memory in memories(commands[0]) {
            let global = match memory {
                Memory::Constants(slab) => self.globals.constants(slab),
                Memory::Packed(slab) => self.globals.packed(slab),
                _ => continue,
            };
            let buffer = code.reference();
            self.writer.load(&mut code, global, object::BUFFER, buffer);
            buffers.known.insert(memory, buffer);
        }
        let (writer, buffers) = (&mut *self.writer, &buffers);
        let (code_of, target, watch) = (&mut code, recording, self.watch);
        let group = &group_name(&writer.name, name);
        let mut recorder = Recorder {
            writer,
            code: code_of,
            target,
            executable,
            text,
            ordinal,
            buffers,
            kernels,
            group,
            watch,
            conditions: &[],
        };
        recorder.record(device, false, commands)?;
        code.op(Op::Return, &[vec![recording].into()]);
        *table = code.take_table();
        self.writer.reflected_function(name, false, code, vec![notes])
    }

    fn executables(
        &mut self,
        code: &mut Code,
        target: &TargetPlan,
        registers: &Registers,
    ) -> Result<(), CompileError> {
        self.writer.text(code, self.backend.executable_format(), registers.text);
        for (index, kernel) in target.kernels.iter().enumerate() {
            self.watch.check()?;
            let of_kernel = &self.plan.codes.all[kernel.code];
            let executable = self.backend.executable(of_kernel)?;
            let size = (of_kernel.name.clone(), executable.len() as u64);
            self.executables.insert(kernel.code, size);
            let data = self.writer.data(executable);
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
            let queue = code.i64(needs::ANY_QUEUE);
            let args = [registers.device, queue, registers.text, registers.data, constants];
            self.writer.call(code, hal::EXECUTABLE_CREATE, &args, &[registers.object]);
            let global = self.globals.executable(index);
            self.writer.store(code, global, object::EXECUTABLE, registers.object);
        }
        Ok(())
    }

    /// Allocates and fills the slabs of constants that a target reads, but for those of which all that needs them is there.
    fn constants(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        target: &TargetPlan,
        buffers: &mut Buffers,
    ) {
        let loading: BTreeSet<Memory> = target.load.segments.iter().flat_map(|c| memories(c)).collect();
        let stored = self.stored;
        let mut fences: Vec<Reg> = self.load_apart(code, registers).into_iter().collect();
        for (index, slab) in (0..).zip(&self.plan.slabs.constant_slabs) {
            let memory = Memory::Constants(index);
            if !slab.resident && !loading.contains(&memory) {
                continue;
            }
            let buffer = code.reference();
            match &stored.sources[index as usize] {
                Source::Apart(place) => {
                    let (place, ty) = (code.i32(*place as i32), self.writer.ty(object::BUFFER));
                    let args = [registers.object.into(), place.into(), ty.into(), buffer.into()];
                    code.op(Op::ListGetRef, &args);
                }
                source => {
                    let fence = code.reference();
                    let after = slab.set.map(|set| code.only_if(registers.missing[set]));
                    self.allocate(code, registers, slab.bytes, needs::CONSTANT_USAGE, buffer);
                    self.writer.new_fence(code, registers.device, fence);
                    self.fill(code, registers, slab, source, buffer, fence);
                    after.into_iter().for_each(|after| code.end_if(after));
                    fences.push(fence);
                }
            }
            if slab.resident {
                self.writer.store(code, self.globals.constants(index), object::BUFFER, buffer);
            }
            buffers.known.insert(memory, buffer);
        }
        if !fences.is_empty() {
            let flags = code.i64(0);
            let parts = [Part::One(flags), Part::Span(fences.len(), &fences)];
            self.writer.call_variadic(code, hal::FENCE_JOIN, &parts, &[registers.done]);
        }
    }

    /// Asks for the constants that lie apart, whose buffers other modules of the model may have already. The list of them is in
    /// `registers.object`; gives the fence for when they are there, if there are any.
    fn load_apart(&mut self, code: &mut Code, registers: &Registers) -> Option<Reg> {
        let tables = &self.stored.apart;
        if tables.count() == 0 {
            return None;
        }
        let fence = code.reference();
        self.writer.new_fence(code, registers.device, fence);
        let (queue, nothing, scope) = (code.i64(needs::ANY_QUEUE), code.null(), self.scope(code, registers));
        let memory = code.u32(MemoryType::DEVICE_LOCAL.bits());
        let usage = code.u32(needs::CONSTANT_USAGE.bits());
        let [keys, key_data, spans] = self.tables(code, registers, tables);
        let device = registers.device;
        let args = [device, queue, nothing, fence, scope, queue, memory, usage, keys, key_data, spans];
        self.writer.call(code, io_parameters::LOAD, &args, &[registers.object]);
        Some(fence)
    }

    /// The scope of parameters; null stands for the empty one.
    pub(super) fn scope(&mut self, code: &mut Code, registers: &Registers) -> Reg {
        if self.stored.scope.is_empty() {
            return code.null();
        }
        self.writer.text(code, &self.stored.scope, registers.text);
        registers.text
    }

    pub(super) fn tables(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        tables: &parameters::Tables,
    ) -> [Reg; 3] {
        let all = [&tables.keys, &tables.key_data, &tables.spans];
        for (bytes, register) in all.into_iter().zip(registers.tables) {
            let data = self.writer.data(bytes.clone());
            code.op(Op::ConstRefRodata, &[data.into(), register.into()]);
        }
        registers.tables
    }

    pub(super) fn allocate(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        bytes: u64,
        usage: BufferUsage,
        to: Reg,
    ) {
        let (queue, memory) = (code.i64(needs::ANY_QUEUE), code.u32(MemoryType::DEVICE_LOCAL.bits()));
        let args = [registers.allocator, queue, memory, code.u32(usage.bits()), code.size(bytes)];
        self.writer.call(code, hal::ALLOCATOR_ALLOCATE, &args, &[to]);
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
        let (queue, zero) = (code.i64(needs::ANY_QUEUE), code.i64(0));
        let nothing = code.null();
        match source {
            Source::Data(ordinal) => {
                code.op(Op::ConstRefRodata, &[(*ordinal).into(), registers.data.into()]);
                let (access, flags) = (code.u32(MemoryAccess::READ.bits()), code.i32(0));
                let bytes = code.size(slab.bytes);
                let args = [registers.device, queue, access, registers.data, zero, bytes, flags];
                self.writer.call(code, hal::EX_FILE_FROM_MEMORY, &args, &[registers.file]);
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
                self.writer.call(code, hal::DEVICE_QUEUE_READ, &args, &[]);
            }
            // Nothing is left to do.
            Source::Apart(_) => {}
            Source::Parameters(tables) => {
                let (scope, [keys, key_data, spans]) =
                    (self.scope(code, registers), self.tables(code, registers, tables));
                let args = [registers.device, queue, nothing, fence, scope, buffer, keys, key_data, spans];
                self.writer.call(code, io_parameters::GATHER, &args, &[]);
            }
        }
    }

    fn sizes(&mut self, code: &mut Code, target: &TargetPlan) {
        for (function, versions) in target.functions.iter().enumerate() {
            let bytes = versions.iter().map(|lowered| lowered.transient_bytes.value()).max().unwrap_or(0);
            let bytes = code.size(bytes.max(4));
            let global = self.globals.transient_bytes(function);
            code.op(Op::GlobalStoreI64, &[global.into(), bytes.into()]);
        }
    }
}

/// The empty function that gives a recording: by a row of the table, or by the values of symbols.
fn recorder_code(table: Option<Table>, open: Option<&OpenSizes>) -> Code {
    match table {
        None => match open {
            Some(open) => {
                let symbols = "I".repeat(open.count());
                Code::with_symbols(&format!("0{symbols}_r"), 0, &open.trace)
            }
            None => Code::new("0v_r", 0),
        },
        Some(table) => Code::with_rows("0rI_r", 1, table),
    }
}

/// The memories that commands name.
pub(super) fn memories(commands: &[Command]) -> BTreeSet<Memory> {
    let mut found = BTreeSet::new();
    for command in commands {
        match command {
            Command::Dispatch { bindings, .. } => {
                found.extend(bindings.iter().map(|binding| binding.span.memory));
            }
            Command::Copy { from, to } => found.extend([from.memory, to.memory]),
            Command::Barrier => {}
        }
    }
    found
}
