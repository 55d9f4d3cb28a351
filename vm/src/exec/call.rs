//! Calls and returns: between functions, to native modules, and from and to the host.

use halite_abi::{Result, ResultExt, Status, bail, status};

use super::{Frame, Machine, Stack, Target, no_frame, registers};
use crate::{
    Value,
    code::{CallSite, Callee, Function, TypedReg},
    isa::REG_MOVE,
    signature::{ArgLayout, Kind, Param},
};

impl Machine<'_> {
    /// Pushes the first frame and its arguments.
    pub(super) fn start(&mut self, module: u32, ordinal: u32, args: &[Value]) -> Result<()> {
        self.watch.charge(1)?;
        let function = &self.linked[module as usize].module.functions[ordinal as usize];
        check_arguments(function, args)?;
        let stack = &mut self.state.stack;
        let frame = stack.push(module, ordinal, function)?;
        let mut layout = ArgLayout::default();
        for value in args {
            let reg = layout.next(Kind::of(value)) as u16;
            write(stack, &frame, reg, value.clone());
        }
        Ok(())
    }

    pub(super) fn call(&mut self, site: u32) -> Result<()> {
        let frame = *self.state.stack.frames.last().ok_or_else(no_frame)?;
        let linked = &self.linked[frame.module as usize];
        let function = &linked.module.functions[frame.function as usize];
        let site = &function.sites[site as usize];
        self.watch.charge(1)?;
        match site.callee {
            Callee::Internal(callee) => self.enter(&frame, function, site, frame.module, callee),
            Callee::Import(import) => match linked.imports[import as usize] {
                Some(Target::Bytecode { module, function: callee }) => {
                    self.enter(&frame, function, site, module, callee)
                }
                Some(Target::Native { module, ordinal }) => {
                    let called = self.native(&frame, function, site, (module, ordinal));
                    called.context(|| format!("calling import '{}'", import_name(linked, import)))
                }
                None => bail!(
                    NotFound,
                    "optional import '{}' is called but no registered module provides it",
                    import_name(linked, import)
                ),
            },
        }
    }

    fn enter(
        &mut self,
        caller: &Frame,
        function: &Function,
        site: &CallSite,
        module: u32,
        ordinal: u32,
    ) -> Result<()> {
        let callee = &self.linked[module as usize].module.functions[ordinal as usize];
        let stack = &mut self.state.stack;
        let frame = stack.push(module, ordinal, callee)?;
        for arg in site.args.of(&function.typed) {
            transfer(stack, caller, &frame, arg, arg.dst);
        }
        Ok(())
    }

    /// Returns from the top frame; gives the results when it was the first.
    pub(super) fn ret(&mut self, list: u32) -> Result<Option<Vec<Value>>> {
        let stack = &mut self.state.stack;
        let frame = *stack.frames.last().ok_or_else(no_frame)?;
        let function = &self.linked[frame.module as usize].module.functions[frame.function as usize];
        let returns = function.returns[list as usize].of(&function.typed);
        let Some(parent) = stack.frames.len().checked_sub(2) else {
            let results = returns.iter().map(|r| read(stack, &frame, r)).collect();
            stack.pop();
            return Ok(Some(results));
        };
        let caller = stack.frames[parent];
        let outer = &self.linked[caller.module as usize].module.functions[caller.function as usize];
        let call = &outer.code[caller.pc as usize - 1];
        let site = &outer.sites[call.x as usize];
        for (from, to) in returns.iter().zip(site.results.of(&outer.typed)) {
            transfer(stack, &frame, &caller, from, to.reg);
        }
        stack.pop();
        if let Some(target) = site.target {
            stack.frames[parent].pc = target;
        }
        Ok(None)
    }

    /// Calls function `ordinal` of native module `module`.
    fn native(
        &mut self,
        frame: &Frame,
        function: &Function,
        site: &CallSite,
        (module, ordinal): (u32, u32),
    ) -> Result<()> {
        // Native functions may take long: look at the clock more often than for instructions.
        self.watch.charge(32)?;
        let state = &mut *self.state;
        let (values, spans) = state.args.reset();
        for arg in site.args.of(&function.typed) {
            values.push(read(&mut state.stack, frame, arg));
        }
        spans.extend_from_slice(site.spans.of(&function.regs));
        state.results.values.clear();
        let context = &mut *state.natives[module as usize];
        self.natives[module as usize].call(context, ordinal, &mut state.args, &mut state.results)?;
        state.args.reset();
        let wanted = site.results.of(&function.typed);
        let given = &mut state.results.values;
        if given.len() != wanted.len() || given.iter().zip(wanted).any(|(v, w)| Kind::of(v) != w.kind) {
            return Err(bad_results(given, wanted));
        }
        for (value, to) in given.drain(..).zip(wanted) {
            write(&mut state.stack, frame, to.reg, value);
        }
        if let (Some(target), Some(top)) = (site.target, state.stack.frames.last_mut()) {
            top.pc = target;
        }
        Ok(())
    }
}

fn import_name(linked: &super::Linked, import: u32) -> &str {
    linked.module.def().imports.get(import as usize).map_or("?", |i| i.full_name.as_str())
}

fn check_arguments(function: &Function, args: &[Value]) -> Result<()> {
    let wanted = &function.signature.args;
    if wanted.len() != args.len() {
        bail!(InvalidArgument, "the function takes {} arguments but {} were given", wanted.len(), args.len());
    }
    for (i, (param, value)) in wanted.iter().zip(args).enumerate() {
        let actual = Kind::of(value);
        match param {
            Param::One(kind) if *kind == actual => {}
            Param::One(kind) => {
                bail!(InvalidArgument, "argument {i} must be {} but is {}", kind.name(), actual.name())
            }
            Param::Span(_) => bail!(InvalidArgument, "argument {i} is variadic, which hosts cannot pass"),
        }
    }
    Ok(())
}

#[cold]
fn bad_results(given: &[Value], wanted: &[TypedReg]) -> Status {
    let given: Vec<_> = given.iter().map(|v| Kind::of(v).name()).collect();
    let wanted: Vec<_> = wanted.iter().map(|w| w.kind.name()).collect();
    status!(Internal, "the native function returned {given:?} where its signature says {wanted:?}")
}

/// Copies or moves a register of one frame to `dst` of another.
#[inline(always)]
fn transfer(stack: &mut Stack, from: &Frame, to: &Frame, source: &TypedReg, dst: u16) {
    match source.kind {
        Kind::I32 | Kind::F32 => {
            stack.cells[to.cells + usize::from(dst)] = stack.cells[from.cells + usize::from(source.reg)];
        }
        Kind::I64 | Kind::F64 => {
            let (src, dst) = (from.cells + usize::from(source.reg), to.cells + usize::from(dst));
            (stack.cells[dst], stack.cells[dst + 1]) = (stack.cells[src], stack.cells[src + 1]);
        }
        Kind::Ref => {
            let value = take(stack, from, source.reg);
            stack.refs[to.refs + registers::index(dst)] = value;
        }
    }
}

fn take(stack: &mut Stack, frame: &Frame, reg: u16) -> crate::Ref {
    let slot = &mut stack.refs[frame.refs + registers::index(reg)];
    if reg & REG_MOVE != 0 { slot.take() } else { slot.clone() }
}

#[inline(always)]
fn read(stack: &mut Stack, frame: &Frame, source: &TypedReg) -> Value {
    let cells = &stack.cells[frame.cells..];
    match source.kind {
        Kind::I32 => Value::I32(cells[usize::from(source.reg)] as i32),
        Kind::F32 => Value::F32(f32::from_bits(cells[usize::from(source.reg)])),
        Kind::I64 => Value::I64(registers::get64(cells, source.reg) as i64),
        Kind::F64 => Value::F64(f64::from_bits(registers::get64(cells, source.reg))),
        Kind::Ref => Value::Ref(take(stack, frame, source.reg)),
    }
}

#[inline(always)]
fn write(stack: &mut Stack, frame: &Frame, reg: u16, value: Value) {
    let cells = &mut stack.cells[frame.cells..];
    match value {
        Value::I32(v) => cells[usize::from(reg)] = v as u32,
        Value::F32(v) => cells[usize::from(reg)] = v.to_bits(),
        Value::I64(v) => registers::set64(cells, reg, v as u64),
        Value::F64(v) => registers::set64(cells, reg, v.to_bits()),
        Value::Ref(v) => stack.refs[frame.refs + registers::index(reg)] = v,
    }
}
