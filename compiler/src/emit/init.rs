//! `__init`: which device, which target, and loading on it.

use halite_abi::{Code as StatusCode, export, import::hal, object, query};
use halite_vm::{asm::Reg, isa::Op};

use super::{code::Code, globals::DEVICE, module::Writer};
use crate::{CompileError, plan::ModulePlan};

struct Registers {
    count: Reg,
    index: Reg,
    answered: Reg,
    yes: Reg,
    best: Reg,
    known: Reg,
    value: Reg,
    rank: Reg,
    device: Reg,
    category: Reg,
    key: Reg,
    fence: Reg,
}

impl Registers {
    fn new(code: &mut Code) -> Self {
        Registers {
            count: code.word(),
            index: code.word(),
            answered: code.word(),
            yes: code.word(),
            best: code.word(),
            known: code.word(),
            value: code.pair(),
            rank: code.pair(),
            device: code.reference(),
            category: code.reference(),
            key: code.reference(),
            fence: code.reference(),
        }
    }
}

/// Writes `__init`; `loads` are the functions that load each target.
pub fn init(writer: &mut Writer, plan: &ModulePlan, format: &str, loads: &[u32]) -> Result<(), CompileError> {
    let mut code = Code::new("0v_v", 0);
    let registers = Registers::new(&mut code);
    device(writer, &mut code, &registers, plan, format);
    choose(writer, &mut code, &registers, plan);
    let done = code.label();
    let blocks: Vec<_> = loads.iter().map(|_| code.label()).collect();
    let edge = |label| (label, Vec::new());
    let mut cases = vec![edge(blocks[0])];
    cases.extend(blocks.iter().map(|block| edge(*block)));
    code.op(Op::BrTable, &[registers.best.into(), cases.into()]);
    for (block, load) in blocks.iter().zip(loads) {
        code.block(*block);
        code.call(*load, &[], &[registers.fence]);
        code.jump(done);
    }
    code.block(done);
    writer.wait(&mut code, registers.fence, registers.yes);
    code.op(Op::Return, &[Vec::<Reg>::new().into()]);
    writer.function(export::INIT, true, code).map(drop)
}

/// Asks the device for a number: (whether it answered, the number).
fn query(writer: &mut Writer, code: &mut Code, registers: &Registers, category: &str, key: &str) {
    writer.text(code, category, registers.category);
    writer.text(code, key, registers.key);
    let args = [registers.device, registers.category, registers.key];
    writer.call(code, hal::DEVICE_QUERY_I64, &args, &[registers.answered, registers.value]);
}

/// Finds the first device that takes the kernels' format.
fn device(writer: &mut Writer, code: &mut Code, registers: &Registers, plan: &ModulePlan, format: &str) {
    let [next, look, step, none, found] = [(); 5].map(|()| code.label());
    writer.call(code, hal::DEVICES_COUNT, &[], &[registers.count]);
    code.op(Op::ConstI32Zero, &[registers.index.into()]);
    code.jump(next);
    code.block(next);
    code.op(Op::CmpLtI32S, &[registers.index.into(), registers.count.into(), registers.yes.into()]);
    code.branch(registers.yes, look, none);
    code.block(look);
    writer.call(code, hal::DEVICES_GET, &[registers.index], &[registers.device]);
    query(writer, code, registers, query::EXECUTABLE_FORMAT, format);
    code.op(Op::CmpNzI64, &[registers.value.into(), registers.yes.into()]);
    code.op(Op::AndI32, &[registers.yes.into(), registers.answered.into(), registers.yes.into()]);
    code.branch(registers.yes, found, step);
    code.block(step);
    let one = code.i32(1);
    code.op(Op::AddI32, &[registers.index.into(), one.into(), registers.index.into()]);
    code.jump(next);
    code.block(none);
    let targets: Vec<_> = plan.targets.iter().map(|target| target.target.to_string()).collect();
    let message = format!(
        "no device of the session runs Vulkan kernels (executable format {format}); the module was compiled for {}: choose a \
         Vulkan device, such as --device=vulkan",
        targets.join(", ")
    );
    code.fail_with(StatusCode::Incompatible, &message);
    code.block(found);
    writer.store(code, DEVICE, object::DEVICE, registers.device);
}

/// Puts the number of the target that fits the device best into `best`.
fn choose(writer: &mut Writer, code: &mut Code, registers: &Registers, plan: &ModulePlan) {
    let first = code.i32(plan.baseline.unwrap_or(0) as i32);
    code.op(Op::OrI32, &[first.into(), first.into(), registers.best.into()]);
    if plan.targets.len() == 1 && plan.baseline.is_some() {
        return;
    }
    code.op(Op::ConstI64Zero, &[registers.rank.into()]);
    code.op(Op::ConstI32Zero, &[registers.known.into()]);
    for (index, target) in plan.targets.iter().enumerate() {
        if plan.baseline == Some(index) {
            continue;
        }
        query(writer, code, registers, query::TARGET, &target.target.to_string());
        let (yes, known) = (registers.yes, registers.known);
        code.op(Op::OrI32, &[known.into(), registers.answered.into(), known.into()]);
        code.op(Op::CmpLtI64S, &[registers.rank.into(), registers.value.into(), yes.into()]);
        code.op(Op::AndI32, &[yes.into(), registers.answered.into(), yes.into()]);
        let (number, best) = (code.i32(index as i32), registers.best);
        code.op(Op::SelectI32, &[yes.into(), number.into(), best.into(), best.into()]);
        let (value, rank) = (registers.value, registers.rank);
        code.op(Op::SelectI64, &[yes.into(), value.into(), rank.into(), rank.into()]);
    }
    if plan.baseline.is_none() {
        refuse(code, registers, plan);
    }
}

/// Fails where the device knows targets and none of the module's fits it.
fn refuse(code: &mut Code, registers: &Registers, plan: &ModulePlan) {
    let (check, fail, go) = (code.label(), code.label(), code.label());
    code.branch(registers.known, check, go);
    code.block(check);
    code.op(Op::CmpNzI64, &[registers.rank.into(), registers.yes.into()]);
    code.branch(registers.yes, go, fail);
    code.block(fail);
    let targets: Vec<_> = plan.targets.iter().map(|target| target.target.to_string()).collect();
    let message = format!(
        "the module was compiled for {} only, and none of them fits the device; compile it for the device's target, or \
         with the baseline",
        targets.join(", ")
    );
    code.fail_with(StatusCode::Incompatible, &message);
    code.block(go);
}
