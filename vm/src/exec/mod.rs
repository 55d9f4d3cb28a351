//! The interpreter: frames, calls, and the loop over instructions.

mod buffer;
mod call;
mod float;
mod int;
mod object;
mod registers;
mod stack;

use std::{any::Any, sync::Arc};

use halite_abi::{Result, Status, status};

use crate::{
    Arguments, Module, NativeModule, Ref, Results, Value,
    code::{Function, Insn},
    invocation::Watch,
    isa::Op,
    memory::Memory,
};

pub(crate) use registers::Env;
pub(crate) use stack::{Frame, Stack};

/// A module with its imports resolved.
#[derive(Debug)]
pub(crate) struct Linked {
    pub module: Arc<Module>,
    /// By import ordinal; absent when optional and not there.
    pub imports: Vec<Option<Target>>,
}

/// What an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Function `ordinal` of a native module.
    Native { module: u32, ordinal: u32 },
    /// Function of a bytecode module.
    Bytecode { module: u32, function: u32 },
}

/// Global variables of one module in one context.
#[derive(Debug)]
pub(crate) struct Globals {
    pub bytes: Vec<u8>,
    pub refs: Vec<Ref>,
}

/// What changes while a context runs.
pub(crate) struct State {
    pub globals: Vec<Globals>,
    pub natives: Vec<Box<dyn Any + Send>>,
    pub stack: Stack,
    /// Storage that native calls reuse.
    pub args: Arguments,
    pub results: Results,
}

/// One invocation under way.
pub(crate) struct Machine<'a> {
    pub linked: &'a [Linked],
    pub natives: &'a [Arc<dyn NativeModule>],
    pub state: &'a mut State,
    pub watch: Watch,
    pub memory: &'a Arc<Memory>,
}

/// Why the loop over instructions stops.
enum Event {
    /// A call, by site index.
    Call(u32),
    /// A return, by return-list index.
    Return(u32),
}

impl Machine<'_> {
    /// Runs a function to its end. Arguments must fit its signature. Errors carry a stack trace.
    pub(crate) fn run(&mut self, module: u32, function: u32, args: &[Value]) -> Result<Vec<Value>> {
        self.state.stack.clear();
        self.state.args.invocation = self.watch.invocation.clone();
        let result = self.start(module, function, args).and_then(|()| self.run_frames());
        let result = result.map_err(|status| self.trace(status));
        self.state.stack.clear();
        self.state.args.reset();
        self.state.results.values.clear();
        result
    }

    fn run_frames(&mut self) -> Result<Vec<Value>> {
        loop {
            match self.segment()? {
                Event::Call(site) => self.call(site)?,
                Event::Return(list) => {
                    if let Some(results) = self.ret(list)? {
                        return Ok(results);
                    }
                }
            }
        }
    }

    /// Runs the top frame until it calls or returns.
    fn segment(&mut self) -> Result<Event> {
        let State { globals, stack, .. } = &mut *self.state;
        let frame = stack.frames.last_mut().ok_or_else(no_frame)?;
        let linked = &self.linked[frame.module as usize];
        let function = &linked.module.functions[frame.function as usize];
        let mut env = Env {
            cells: &mut stack.cells[frame.cells..][..function.cells as usize],
            refs: &mut stack.refs[frame.refs..][..function.refs as usize],
            globals: &mut globals[frame.module as usize],
            function,
            linked,
            watch: &mut self.watch,
            memory: self.memory,
        };
        interpret(&mut env, function, &mut frame.pc)
    }

    /// Adds where each frame was, innermost first.
    fn trace(&self, mut status: Status) -> Status {
        let frames = &self.state.stack.frames;
        for (depth, frame) in frames.iter().rev().take(TRACE_FRAMES).enumerate() {
            let module = &self.linked[frame.module as usize].module;
            let offsets = &module.functions[frame.function as usize].offsets;
            let offset = offsets.get((frame.pc as usize).saturating_sub(1)).copied().unwrap_or(0);
            status = status.annotate(format!("[{depth:2}] {}", module.describe(frame.function, offset)));
        }
        if frames.len() > TRACE_FRAMES {
            status = status.annotate(format!("… and {} more frames", frames.len() - TRACE_FRAMES));
        }
        status
    }
}

/// Frames a stack trace shows.
const TRACE_FRAMES: usize = 24;

fn no_frame() -> Status {
    status!(Internal, "the VM stack is empty while code runs")
}

/// The loop. `position` is the index of the next instruction, before and after.
fn interpret(env: &mut Env<'_>, function: &Function, position: &mut u32) -> Result<Event> {
    let mut pc = *position as usize;
    let result = loop {
        // Only a `fail` that did not fail can run past the end.
        let Some(insn) = function.code.get(pc) else {
            break Err(status!(InvalidArgument, "the code ended without a return or branch"));
        };
        pc += 1;
        let edge = match insn.op {
            Op::Br | Op::Break | Op::CondBreak | Op::Yield => insn.x,
            Op::CondBr => {
                if env.u32(insn.a) != 0 {
                    insn.x
                } else {
                    insn.y
                }
            }
            Op::BrTable => {
                let index = env.u32(insn.a);
                if index < insn.y { insn.x + 1 + index } else { insn.x }
            }
            Op::Call | Op::CallVariadic | Op::CallYieldable | Op::CallVariadicYieldable => {
                break Ok(Event::Call(insn.x));
            }
            Op::Return => break Ok(Event::Return(insn.x)),
            // What kernels do most is not looked for through all the groups below.
            Op::BufferLoadI8U
            | Op::BufferLoadI8S
            | Op::BufferLoadI16U
            | Op::BufferLoadI16S
            | Op::BufferLoadI32
            | Op::BufferLoadI64
            | Op::BufferLoadF32
            | Op::BufferLoadF64
            | Op::BufferStoreI8
            | Op::BufferStoreI16
            | Op::BufferStoreI32
            | Op::BufferStoreI64
            | Op::BufferStoreF32
            | Op::BufferStoreF64 => match buffer::step(env, insn) {
                Ok(()) => continue,
                Err(status) => break Err(status),
            },
            _ => match int::step(env, insn) {
                Ok(()) => continue,
                Err(status) => break Err(status),
            },
        };
        match branch(env, function, edge) {
            Ok(target) => pc = target,
            Err(status) => break Err(status),
        }
    };
    *position = pc as u32;
    result
}

/// Takes an edge: remaps registers in order and gives the target.
#[inline(always)]
fn branch(env: &mut Env<'_>, function: &Function, edge: u32) -> Result<usize> {
    let edge = &function.edges[edge as usize];
    for (from, to) in edge.cells.of(&function.pairs) {
        env.cells[usize::from(*to)] = env.cells[usize::from(*from)];
    }
    for (from, to) in edge.refs.of(&function.pairs) {
        let value = env.reference(*from);
        env.set_reference(*to, value);
    }
    if edge.backward {
        env.watch.charge(1)?;
    }
    Ok(edge.target as usize)
}
