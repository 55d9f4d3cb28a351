//! The code of a version of a function, or of several with the same code: from tensors to tensors.

use std::collections::BTreeSet;

use halite_abi::{
    BufferUsage, Code as StatusCode, ElementType, Encoding, MemoryType, export, import::hal, object,
};
use halite_formats::vmfb::Attr;
use halite_sizes::Size;
use halite_vm::{
    asm::{Reg, reference},
    isa::Op,
};

use super::{
    code::{Code, Part},
    globals::{DEVICE, Globals},
    module::Writer,
    needs,
    numbers::{self, Numbers},
    slots::Slots,
    table::Table,
};
use crate::{
    CompileError,
    graph::{Graph, Port},
    plan::{
        flow::{Flow, Item},
        memory::whole_size,
        schedule::Memory,
    },
};

/// What the code of versions with the same code is written from; most often of one.
pub struct Version<'a> {
    /// Name of the function that they become.
    pub name: &'a str,
    /// Their graphs.
    pub graphs: Vec<&'a Graph>,
    /// Their flows.
    pub flows: Vec<&'a Flow>,
    /// Their binding table.
    pub slots: &'a Slots,
    /// Their function.
    pub function: usize,
    /// Their places among its versions.
    pub versions: &'a [usize],
    /// Whether they need transient memory on any target.
    pub transient: bool,
    /// How much of it in each era, where the sizes are open.
    pub open_transient: Vec<Size>,
    /// The function that tells whether an input has a value.
    pub equals: Option<u32>,
    /// The memories that the recording of each segment names on any target.
    pub used: Vec<BTreeSet<Memory>>,
    /// The functions that make the recording of a segment on each target, where loading has not made it.
    pub recorders: Option<Vec<Vec<u32>>>,
}

impl Version<'_> {
    /// What versions with the same code have in common.
    pub fn flow(&self) -> &Flow {
        self.flows[0]
    }
}

/// The code of a version in the making.
pub struct Call<'a> {
    /// The module.
    pub writer: &'a mut Writer,
    /// The function.
    pub code: Code,
    /// Where the module keeps what.
    pub globals: &'a Globals,
    /// The version.
    pub version: &'a Version<'a>,
    /// The device.
    pub device: Reg,
    /// When everything so far is done; null while there is nothing to wait for.
    pub fence: Reg,
    /// For new fences.
    pub signal: Reg,
    /// The transient memory, and its bytes.
    pub transient: (Reg, Reg),
    /// What the host reads.
    pub readback: Reg,
    /// For a recording.
    pub recording: Reg,
    /// For a status or a truth.
    pub flag: Reg,
    pub(super) inputs: Vec<Reg>,
    pub(super) outputs: Vec<Reg>,
    /// The transient memories of later eras.
    pub(super) later: Vec<Reg>,
    /// What was allocated so far.
    pub(super) there: Vec<Memory>,
    /// Symbols that the loops around give values in each run: what they are behind the last one counts.
    pub(super) unsettled: Vec<u32>,
    /// For a number.
    pub(super) number: (Reg, Reg),
    /// Of the caller.
    done: Reg,
}

/// Writes the function of versions with the same code: inputs, a fence to wait for and one to signal, the table and its row if
/// there are several; results. Gives its ordinal.
pub fn version(
    writer: &mut Writer,
    globals: &Globals,
    version: &Version<'_>,
    table: &mut Option<Table>,
    exported: Option<Vec<Attr>>,
) -> Result<u32, CompileError> {
    let inputs = version.graphs[0].inputs.len();
    let code = empty(version, table.take());
    let _entered = version.graphs[0].enter();
    let argument = |index: usize| reference(index as u16);
    let (wait, done) = (argument(inputs), argument(inputs + 1));
    let (mut call, numbers) = begin(writer, globals, version, code, done);
    call.writer.load(&mut call.code, DEVICE, object::DEVICE, call.device);
    call.check_inputs(&argument);
    call.check_values(&argument, wait)?;
    call.forget_data();
    call.allocate(wait);
    call.run(numbers);
    call.finish();
    let Call { writer, mut code, .. } = call;
    *table = code.take_table();
    match exported {
        Some(attrs) => writer.reflected_function(version.name, true, code, attrs),
        None => writer.function(version.name, false, code),
    }
}

/// The code of a call in an empty function, with the registers that it has; `done` is the caller's fence.
pub(super) fn begin<'a>(
    writer: &'a mut Writer,
    globals: &'a Globals,
    version: &'a Version<'a>,
    mut code: Code,
    done: Reg,
) -> (Call<'a>, Numbers) {
    let (inputs, outputs) = (version.graphs[0].inputs.len(), version.graphs[0].outputs.len());
    let (bytes, flag) = (code.pair(), code.word());
    let numbers = numbers::numbers(&mut code, &version.flow().items);
    let number = (code.pair(), code.pair());
    let later = version.flow().reads.iter().map(|_| code.reference()).collect();
    let call = Call {
        device: code.reference(),
        fence: code.reference(),
        signal: code.reference(),
        transient: (code.reference(), bytes),
        readback: code.reference(),
        recording: code.reference(),
        flag,
        inputs: (0..inputs).map(|_| code.reference()).collect(),
        outputs: (0..outputs).map(|_| code.reference()).collect(),
        later,
        there: Vec::new(),
        unsettled: Vec::new(),
        number,
        done,
        writer,
        code,
        globals,
        version,
    };
    (call, numbers)
}

/// The empty function of versions with the same code, which takes the table and its row, or the values of symbols, last.
fn empty(version: &Version<'_>, table: Option<Table>) -> Code {
    let (inputs, outputs) = (version.graphs[0].inputs.len(), version.graphs[0].outputs.len());
    let arguments = inputs + export::FENCES;
    match table {
        None => match &version.graphs[0].open {
            Some(open) => {
                let symbols = "I".repeat(open.symbols.len());
                let convention = convention(arguments, outputs).replacen('_', &format!("{symbols}_"), 1);
                Code::with_symbols(&convention, arguments as u16, &open.trace)
            }
            None => Code::new(&convention(arguments, outputs), arguments as u16),
        },
        Some(table) => {
            let convention = convention(arguments + 1, outputs).replacen('_', "I_", 1);
            Code::with_rows(&convention, arguments as u16 + 1, table)
        }
    }
}

/// A calling convention of references only.
pub fn convention(arguments: usize, results: usize) -> String {
    let some = |count: usize| if count == 0 { "v".to_owned() } else { "r".repeat(count) };
    format!("0{}_{}", some(arguments), some(results))
}

impl Call<'_> {
    /// A number that each version has.
    pub(super) fn varied(&mut self, of: impl Fn(&Graph, &Flow) -> Size) -> Reg {
        let each = self.version.graphs.iter().zip(&self.version.flows);
        let values: Vec<Size> = each.map(|(graph, flow)| of(graph, flow)).collect();
        self.code.amount(&values)
    }

    /// The dimensions of an input or output of each version, as callers know them.
    fn dims(&mut self, port: &dyn Fn(&Graph) -> &Port) -> Vec<Reg> {
        let first = self.version.graphs[0];
        let rank = first.port_sizes(port(first)).len();
        (0..rank).map(|axis| self.varied(|graph, _| graph.port_sizes(port(graph))[axis])).collect()
    }

    /// Checks the inputs' types, dimensions and memory, and takes their buffers.
    fn check_inputs(&mut self, argument: &dyn Fn(usize) -> Reg) {
        let (text, allocator) = (self.code.reference(), self.code.reference());
        self.writer.call(&mut self.code, hal::DEVICE_ALLOCATOR, &[self.device], &[allocator]);
        let first = self.version.graphs[0];
        for (index, port) in first.inputs.iter().enumerate() {
            self.code.begin_command();
            self.writer.text(&mut self.code, &describe(port, index), text);
            let element = ElementType::from(first.tensor(port.tensor).element);
            let (element, encoding) = (self.code.u32(element.0), self.code.u32(Encoding::DENSE_ROW_MAJOR.0));
            let dims = self.dims(&|graph| &graph.inputs[index]);
            let one = Part::One;
            let view = argument(index);
            let parts = [one(view), one(text), one(element), one(encoding), Part::Span(dims.len(), &dims)];
            self.writer.call_variadic(&mut self.code, hal::BUFFER_VIEW_ASSERT, &parts, &[]);
            let buffer = self.inputs[index];
            self.writer.call(&mut self.code, hal::BUFFER_VIEW_BUFFER, &[view], &[buffer]);
            if !self.version.flow().inputs_used[index] {
                continue;
            }
            let bytes = self.varied(|graph, _| graph.tensor(graph.inputs[index].tensor).byte_size());
            let memory = self.code.u32(MemoryType::DEVICE_VISIBLE.bits());
            let usage = self.code.u32(needs::TENSOR_USAGE.bits());
            let args = [buffer, text, allocator, bytes, memory, usage];
            self.writer.call(&mut self.code, hal::BUFFER_ASSERT, &args, &[]);
        }
    }

    /// Checks that inputs have the values that the version was made for.
    fn check_values(&mut self, argument: &dyn Fn(usize) -> Reg, wait: Reg) -> Result<(), CompileError> {
        let Some(equals) = self.version.equals else { return Ok(()) };
        let data = self.code.reference();
        for (index, port) in self.version.graphs[0].inputs.iter().enumerate() {
            let Some(value) = port.value.as_ref().filter(|value| !value.is_empty()) else { continue };
            let ordinal = self.writer.data(value.clone());
            self.code.op(Op::ConstRefRodata, &[ordinal.into(), data.into()]);
            self.code.call(equals, &[argument(index), data, wait], &[self.flag]);
            let (same, other) = (self.code.label(), self.code.label());
            self.code.branch(self.flag, same, other);
            self.code.block(other);
            let message = format!(
                "{} has another value than the one that '{}' was compiled for; compile it for this value too",
                describe(port, index),
                self.version.name
            );
            self.code.fail_with(StatusCode::InvalidArgument, &message);
            self.code.block(same);
        }
        Ok(())
    }

    /// Allocates outputs and what the call needs for itself.
    fn allocate(&mut self, wait: Reg) {
        let mut fences = Vec::new();
        self.allocate_outputs(0, wait, &mut fences);
        if self.version.transient {
            self.code.begin_command();
            let (buffer, bytes) = self.transient;
            self.transient_bytes(bytes);
            fences.push(self.alloca(wait, (MemoryType::DEVICE_LOCAL, needs::TENSOR_USAGE), bytes, buffer));
            self.there.push(Memory::Transient(0));
        }
        if self.version.flow().readback_bytes > 0 {
            let bytes = self.code.size(self.version.flow().readback_bytes);
            fences.push(self.alloca(wait, (needs::HOST_READS, needs::READBACK_USAGE), bytes, self.readback));
            self.there.push(Memory::Readback);
        }
        self.join(&fences, wait);
    }

    /// Allocates the outputs whose sizes are known from an era on.
    pub(super) fn allocate_outputs(&mut self, era: usize, wait: Reg, fences: &mut Vec<Reg>) {
        let flow = self.version.flow();
        for (index, size) in flow.outputs.iter().enumerate() {
            if flow.state_input(index).is_some() || flow.era(*size) != era {
                continue;
            }
            self.code.begin_command();
            let bytes = self.varied(|_, flow| whole_size(flow.outputs[index]));
            let params = (MemoryType::DEVICE_LOCAL, needs::TENSOR_USAGE);
            fences.push(self.alloca(wait, params, bytes, self.outputs[index]));
            self.there.push(Memory::Output(index as u32));
        }
    }

    /// Makes what comes next wait for all of these.
    pub(super) fn join(&mut self, fences: &[Reg], wait: Reg) {
        match fences {
            [] => self.code.op(Op::AssignRef, &[wait.into(), self.fence.into()]),
            [only] => self.code.op(Op::AssignRef, &[(*only).into(), self.fence.into()]),
            several => {
                let flags = self.code.i64(0);
                let parts = [Part::One(flags), Part::Span(several.len(), several)];
                self.writer.call_variadic(&mut self.code, hal::FENCE_JOIN, &parts, &[self.fence]);
            }
        }
    }

    /// Puts the bytes of the transient memory into a register: those of the version at hand where its sizes are open, else of any.
    fn transient_bytes(&mut self, bytes: Reg) {
        match self.version.open_transient.first() {
            Some(size) => {
                let computed = self.code.amount(&[*size]);
                self.code.op(Op::OrI64, &[computed.into(), computed.into(), bytes.into()]);
            }
            None => {
                let global = self.globals.transient_bytes(self.version.function);
                self.code.op(Op::GlobalLoadI64, &[global.into(), bytes.into()]);
            }
        }
    }

    /// Allocates a buffer in the queue's order; gives the fence of that.
    pub(super) fn alloca(
        &mut self,
        wait: Reg,
        (memory, usage): (MemoryType, BufferUsage),
        bytes: Reg,
        buffer: Reg,
    ) -> Reg {
        let fence = self.code.reference();
        self.writer.new_fence(&mut self.code, self.device, fence);
        let (queue, zero) = (self.code.i64(needs::ANY_QUEUE), self.code.i64(0));
        let (memory, usage) = (self.code.u32(memory.bits()), self.code.u32(usage.bits()));
        let args = [self.device, queue, wait, fence, zero, memory, usage, bytes, zero];
        self.writer.call(&mut self.code, hal::DEVICE_QUEUE_ALLOCA, &args, &[buffer]);
        fence
    }

    /// Runs the control flow, gives the transient memory back and signals the caller's fence.
    fn run(&mut self, mut numbers: Numbers) {
        let items = &self.version.flow().items;
        if let ([Item::Segment(segment)], false) = (&items[..], self.version.transient) {
            self.execute(*segment, self.done);
            return;
        }
        self.control_flow(items, &mut numbers);
        self.end_eras();
        let (queue, zero) = (self.code.i64(needs::ANY_QUEUE), self.code.i64(0));
        if self.version.transient {
            let args = [self.device, queue, self.fence, self.done, self.transient.0, zero];
            self.writer.call(&mut self.code, hal::DEVICE_QUEUE_DEALLOCA, &args, &[]);
        } else {
            let args = [self.device, queue, self.fence, self.done, zero];
            self.writer.call(&mut self.code, hal::DEVICE_QUEUE_BARRIER, &args, &[]);
        }
    }

    /// Executes the recording of a segment after `self.fence`.
    pub fn execute(&mut self, segment: usize, signal: Reg) {
        self.code.begin_command();
        self.recording(segment);
        let (queue, zero) = (self.code.i64(needs::ANY_QUEUE), self.code.i64(0));
        let mut table = Vec::new();
        for memory in self.version.slots.iter() {
            let is_there = self.is_there(segment, memory);
            let (buffer, bytes) = match memory {
                // Nothing in the segment is bound to it, but a slot holds something.
                _ if !is_there => (self.readback, self.code.size(self.version.flow().readback_bytes)),
                Memory::Input(index) | Memory::State(index) => {
                    let index = index as usize;
                    let bytes = self.varied(|graph, _| graph.tensor(graph.inputs[index].tensor).byte_size());
                    (self.inputs[index], bytes)
                }
                Memory::Output(index) => {
                    let bytes = self.varied(|_, flow| whole_size(flow.outputs[index as usize]));
                    (self.outputs[index as usize], bytes)
                }
                Memory::Readback => (self.readback, self.code.size(self.version.flow().readback_bytes)),
                Memory::Transient(era) if era > 0 => self.later_memory(era),
                _ => self.transient,
            };
            table.extend([buffer, zero, bytes]);
        }
        let one = Part::One;
        let parts = [
            one(self.device),
            one(queue),
            one(self.fence),
            one(signal),
            one(self.recording),
            one(zero),
            Part::Span(table.len() / 3, &table),
        ];
        self.writer.call_variadic(&mut self.code, hal::DEVICE_QUEUE_EXECUTE_INDIRECT, &parts, &[]);
    }

    /// Returns the outputs as tensors.
    fn finish(&mut self) {
        let mut views = Vec::new();
        let first = self.version.graphs[0];
        for (index, port) in first.outputs.iter().enumerate() {
            self.code.begin_command();
            let zero = self.code.i64(0);
            let bytes = self.varied(|graph, _| graph.tensor(graph.outputs[index].tensor).byte_size());
            let element = ElementType::from(first.tensor(port.tensor).element);
            let (element, encoding) = (self.code.u32(element.0), self.code.u32(Encoding::DENSE_ROW_MAJOR.0));
            let dims = self.dims(&|graph| &graph.outputs[index]);
            let one = Part::One;
            let made = self.outputs[index];
            // A state is in the buffer that came in.
            let buffer = self.version.flow().state_input(index).map_or(made, |input| self.inputs[input]);
            let parts = [
                one(buffer),
                one(zero),
                one(bytes),
                one(element),
                one(encoding),
                Part::Span(dims.len(), &dims),
            ];
            self.writer.call_variadic(&mut self.code, hal::BUFFER_VIEW_CREATE, &parts, &[made]);
            views.push(made);
        }
        self.code.op(Op::Return, &[views.into()]);
    }
}

/// An input as messages name it.
pub fn describe(port: &Port, index: usize) -> String {
    match port.name.as_str() {
        "" => format!("input {index}"),
        name => format!("input {index} ('{name}')"),
    }
}
