//! Owns the code of a version of a function: from tensors to tensors. Does not own: which version is run
//! ([`super::function`]), or branches and loops ([`super::course`]).

use halite_formats::vmfb::Attr;
use halite_vm::{
    asm::{Reg, reference},
    isa::Op,
};

use super::{
    code::{Code, Part},
    course::{self, Numbers},
    element::element_type,
    globals::{DEVICE, Globals},
    hal,
    module::Writer,
    slots::Slots,
};
use crate::{
    CompileError,
    graph::{Graph, Port},
    plan::{
        flow::{Flow, Item},
        lower::whole,
        schedule::Memory,
    },
};

/// What the code of a version is written from.
pub struct Version<'a> {
    /// Name of the function that it becomes.
    pub name: &'a str,
    /// The graph.
    pub graph: &'a Graph,
    /// Its course.
    pub flow: &'a Flow,
    /// Its binding table.
    pub slots: &'a Slots,
    /// Its place among functions and versions.
    pub index: (usize, usize),
    /// Whether it needs transient memory on any target.
    pub transient: bool,
    /// The function that tells whether an input has a value.
    pub equals: Option<u32>,
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
    inputs: Vec<Reg>,
    outputs: Vec<Reg>,
    /// Of the caller.
    done: Reg,
}

/// Writes the function of a version: inputs, a fence to wait for and one to signal; results. Gives its ordinal.
pub fn version(
    writer: &mut Writer,
    globals: &Globals,
    version: &Version<'_>,
    exported: Option<Vec<Attr>>,
) -> Result<u32, CompileError> {
    let (inputs, outputs) = (version.graph.inputs.len(), version.graph.outputs.len());
    let convention = convention(inputs + 2, outputs);
    let mut code = Code::new(&convention, inputs as u16 + 2);
    let argument = |index: usize| reference(index as u16);
    let (wait, done) = (argument(inputs), argument(inputs + 1));
    let bytes = code.pair();
    let flag = code.word();
    let numbers = course::numbers(&mut code, &version.flow.items);
    let mut call = Call {
        device: code.reference(),
        fence: code.reference(),
        signal: code.reference(),
        transient: (code.reference(), bytes),
        readback: code.reference(),
        recording: code.reference(),
        flag,
        inputs: (0..inputs).map(|_| code.reference()).collect(),
        outputs: (0..outputs).map(|_| code.reference()).collect(),
        done,
        writer,
        code,
        globals,
        version,
    };
    call.writer.load(&mut call.code, DEVICE, "!hal.device", call.device);
    call.check_inputs(&argument);
    call.check_values(&argument, wait)?;
    call.allocate(wait);
    call.run(numbers);
    call.finish();
    let Call { writer, code, .. } = call;
    match exported {
        Some(attrs) => writer.reflected_function(version.name, true, code, attrs),
        None => writer.function(version.name, false, code),
    }
}

/// A calling convention of references only.
pub fn convention(arguments: usize, results: usize) -> String {
    let some = |count: usize| if count == 0 { "v".to_owned() } else { "r".repeat(count) };
    format!("0{}_{}", some(arguments), some(results))
}

impl Call<'_> {
    /// Checks the inputs' types, dimensions and memory, and takes their buffers.
    fn check_inputs(&mut self, argument: &dyn Fn(usize) -> Reg) {
        let (text, allocator) = (self.code.reference(), self.code.reference());
        self.writer.call(&mut self.code, "hal.device.allocator", &[self.device], &[allocator]);
        for (index, port) in self.version.graph.inputs.iter().enumerate() {
            let tensor = self.version.graph.tensor(port.tensor);
            self.writer.text(&mut self.code, &describe(port, index), text);
            let (element, encoding) =
                (self.code.i32(element_type(tensor.element)), self.code.i32(hal::DENSE));
            let dims: Vec<Reg> = tensor.dims.iter().map(|dim| self.code.size(*dim)).collect();
            let one = Part::One;
            let view = argument(index);
            let parts = [one(view), one(text), one(element), one(encoding), Part::Span(dims.len(), &dims)];
            self.writer.call_variadic(&mut self.code, "hal.buffer_view.assert", &parts, &[]);
            let buffer = self.inputs[index];
            self.writer.call(&mut self.code, "hal.buffer_view.buffer", &[view], &[buffer]);
            if !self.version.flow.inputs_used[index] {
                continue;
            }
            let (bytes, memory) = (self.code.size(tensor.bytes()), self.code.i32(hal::DEVICE_VISIBLE));
            let usage = self.code.i32(hal::TENSOR_USAGE);
            let args = [buffer, text, allocator, bytes, memory, usage];
            self.writer.call(&mut self.code, "hal.buffer.assert", &args, &[]);
        }
    }

    /// Checks that inputs have the values that the version was made for.
    fn check_values(&mut self, argument: &dyn Fn(usize) -> Reg, wait: Reg) -> Result<(), CompileError> {
        let Some(equals) = self.version.equals else { return Ok(()) };
        let data = self.code.reference();
        for (index, port) in self.version.graph.inputs.iter().enumerate() {
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
            self.code.fail_with(hal::status::INVALID_ARGUMENT, &message);
            self.code.block(same);
        }
        Ok(())
    }

    /// Allocates outputs and what the call needs for itself.
    fn allocate(&mut self, wait: Reg) {
        let mut fences = Vec::new();
        for (index, bytes) in self.version.flow.outputs.iter().enumerate() {
            let bytes = self.code.size(whole(*bytes));
            let params = (hal::DEVICE_LOCAL, hal::TENSOR_USAGE);
            fences.push(self.alloca(wait, params, bytes, self.outputs[index]));
        }
        if self.version.transient {
            let (buffer, bytes) = self.transient;
            let (function, version) = self.version.index;
            let global = self.globals.transient_bytes(function, version);
            self.code.op(Op::GlobalLoadI64, &[global.into(), bytes.into()]);
            fences.push(self.alloca(wait, (hal::DEVICE_LOCAL, hal::TENSOR_USAGE), bytes, buffer));
        }
        if self.version.flow.readback_bytes > 0 {
            let bytes = self.code.size(self.version.flow.readback_bytes);
            fences.push(self.alloca(wait, (hal::HOST_READS, hal::READBACK_USAGE), bytes, self.readback));
        }
        match &fences[..] {
            [] => self.code.op(Op::AssignRef, &[wait.into(), self.fence.into()]),
            [only] => self.code.op(Op::AssignRef, &[(*only).into(), self.fence.into()]),
            several => {
                let flags = self.code.i64(0);
                let parts = [Part::One(flags), Part::Span(several.len(), several)];
                self.writer.call_variadic(&mut self.code, "hal.fence.join", &parts, &[self.fence]);
            }
        }
    }

    /// Allocates a buffer in the queue's order; gives the fence of that.
    fn alloca(&mut self, wait: Reg, (memory, usage): (i32, i32), bytes: Reg, buffer: Reg) -> Reg {
        let fence = self.code.reference();
        self.writer.new_fence(&mut self.code, self.device, fence);
        let (queue, zero) = (self.code.i64(hal::ANY_QUEUE), self.code.i64(0));
        let (memory, usage) = (self.code.i32(memory), self.code.i32(usage));
        let args = [self.device, queue, wait, fence, zero, memory, usage, bytes, zero];
        self.writer.call(&mut self.code, "hal.device.queue.alloca", &args, &[buffer]);
        fence
    }

    /// Runs the course, gives the transient memory back and signals the caller's fence.
    fn run(&mut self, mut numbers: Numbers) {
        let items = &self.version.flow.items;
        if let ([Item::Segment(segment)], false) = (&items[..], self.version.transient) {
            self.execute(*segment, self.done);
            return;
        }
        self.course(items, &mut numbers);
        let (queue, zero) = (self.code.i64(hal::ANY_QUEUE), self.code.i64(0));
        if self.version.transient {
            let args = [self.device, queue, self.fence, self.done, self.transient.0, zero];
            self.writer.call(&mut self.code, "hal.device.queue.dealloca", &args, &[]);
        } else {
            let args = [self.device, queue, self.fence, self.done, zero];
            self.writer.call(&mut self.code, "hal.device.queue.barrier", &args, &[]);
        }
    }

    /// Executes the recording of a segment after `self.fence`.
    pub fn execute(&mut self, segment: usize, signal: Reg) {
        let (function, version) = self.version.index;
        let global = self.globals.recording(function, version, segment);
        self.writer.load(&mut self.code, global, "!hal.command_buffer", self.recording);
        let (queue, zero) = (self.code.i64(hal::ANY_QUEUE), self.code.i64(0));
        let mut table = Vec::new();
        for memory in self.version.slots.iter() {
            let (buffer, bytes) = match memory {
                Memory::Input(index) => {
                    let tensor = self.version.graph.inputs[index as usize].tensor;
                    let bytes = self.version.graph.tensor(tensor).bytes();
                    (self.inputs[index as usize], self.code.size(bytes))
                }
                Memory::Output(index) => {
                    let bytes = whole(self.version.flow.outputs[index as usize]);
                    (self.outputs[index as usize], self.code.size(bytes))
                }
                Memory::Readback => (self.readback, self.code.size(self.version.flow.readback_bytes)),
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
        self.writer.call_variadic(&mut self.code, "hal.device.queue.execute.indirect", &parts, &[]);
    }

    /// Returns the outputs as tensors.
    fn finish(&mut self) {
        let mut views = Vec::new();
        for (index, port) in self.version.graph.outputs.iter().enumerate() {
            let tensor = self.version.graph.tensor(port.tensor);
            let (zero, bytes) = (self.code.i64(0), self.code.size(tensor.bytes()));
            let (element, encoding) =
                (self.code.i32(element_type(tensor.element)), self.code.i32(hal::DENSE));
            let dims: Vec<Reg> = tensor.dims.iter().map(|dim| self.code.size(*dim)).collect();
            let one = Part::One;
            let buffer = self.outputs[index];
            let parts = [
                one(buffer),
                one(zero),
                one(bytes),
                one(element),
                one(encoding),
                Part::Span(dims.len(), &dims),
            ];
            self.writer.call_variadic(&mut self.code, "hal.buffer_view.create", &parts, &[buffer]);
            views.push(buffer);
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
