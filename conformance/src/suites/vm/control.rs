//! Cases of operations that decide what comes next: branches, switches, calls, failures, and what is only noted.

use std::{any::Any, sync::Arc};

use halite_abi::Result;
use halite_hal::Code;
use halite_testing::Random;
use halite_vm::{
    Arguments, NativeFunction, NativeModule, Results, Value,
    asm::{Arg, FunctionBuilder, PLAIN, Reg, cell, import, moved, reference as r},
    isa::Op,
};

use super::program::{Assembled, Ready, buffer};
use crate::suites::{Cases, Outcome, case::same};

pub fn add(cases: &mut Cases, seed: u64) {
    for op in [Op::SwitchI32, Op::SwitchF32, Op::SwitchI64, Op::SwitchF64] {
        cases.add(format!("control.{}", op.info().mnemonic), &[], move |_| switches(op));
    }
    for op in [Op::Block, Op::Br, Op::CondBr] {
        cases.add(format!("control.{}:seed={seed}", op.info().mnemonic), &[], move |_| loops(seed));
    }
    cases.add("control.cond_br:remap=swap", &[], |_| swaps());
    cases.add("control.br_table", &[], |_| tables());
    for op in [Op::Break, Op::CondBreak, Op::Yield] {
        cases.add(format!("control.{}", op.info().mnemonic), &[], |_| jumps());
    }
    for op in [Op::Call, Op::Return] {
        cases.add(format!("control.{}", op.info().mnemonic), &[], |_| recursion());
    }
    cases.add("control.call:depth=endless", &[], |_| endless_recursion());
    cases.add("control.call.yieldable", &[], |_| yieldable_call());
    cases.add("control.call.variadic", &[], |_| variadic(false));
    cases.add("control.call.variadic.yieldable", &[], |_| variadic(true));
    cases.add("control.import.resolved", &[], |_| imports());
    cases.add("control.fail", &[], |_| failures());
    for op in [Op::Trace, Op::Print] {
        cases.add(format!("control.{}", op.info().mnemonic), &[], move |_| notes(op));
    }
}

fn switches(op: Op) -> Outcome {
    let wide = matches!(op, Op::SwitchI64 | Op::SwitchF64);
    let reg = |n: u16| if wide { cell(2 + 2 * n) } else { cell(1 + n) };
    let mut program = Assembled::new(if wide { "0iIII_I" } else { "0iiii_i" });
    let list: Vec<Reg> = vec![reg(1), reg(2)];
    program.op(op, &[cell(0).into(), reg(0).into(), list.into(), reg(0).into()])?;
    let program = program.returns(&[reg(0)])?;
    let value = |v: i64| if wide { Value::I64(v * 9_000_000_000) } else { Value::I32(v as i32) };
    for (index, wanted) in [(0, 8), (1, 9), (2, 7), (-1, 7), (i32::MAX, 7), (i32::MIN, 7)] {
        let args = [Value::I32(index), value(7), value(8), value(9)];
        program.gives(&args, &super::program::show(&[value(wanted)]))?;
    }
    Ok(())
}

/// Sums the numbers below the argument that are odd, in a loop with a branch in it.
fn loops(seed: u64) -> Outcome {
    let mut program = Assembled::new("0I_I");
    let main = &mut program.main;
    let [head, body, add, next, end] = [(); 5].map(|()| main.label());
    // c2: number, c4: sum.
    program.op(Op::ConstI64Zero, &[cell(2).into()])?.op(Op::ConstI64Zero, &[cell(4).into()])?;
    program.l(6, 1)?.op(Op::Br, &[head.into()])?;
    program.main.block(head);
    program.op(Op::CmpLtI64S, &[cell(2).into(), cell(0).into(), cell(8).into()])?;
    program.op(Op::CondBr, &[cell(8).into(), body.into(), end.into()])?;
    program.main.block(body);
    program.op(Op::AndI64, &[cell(2).into(), cell(6).into(), cell(10).into()])?;
    program.op(Op::CmpNzI64, &[cell(10).into(), cell(9).into()])?;
    program.op(Op::CondBr, &[cell(9).into(), add.into(), next.into()])?;
    program.main.block(add);
    program.op(Op::AddI64, &[cell(4).into(), cell(2).into(), cell(4).into()])?.op(Op::Br, &[next.into()])?;
    program.main.block(next);
    program.op(Op::AddI64, &[cell(2).into(), cell(6).into(), cell(2).into()])?.op(Op::Br, &[head.into()])?;
    program.main.block(end);
    let program = program.returns(&[cell(4)])?;
    let mut random = Random::new(seed);
    let some = (0..8).map(|_| random.below(3000) as i64);
    for n in [-5, 0, 1, 2, 3].into_iter().chain(some) {
        let wanted: i64 = (0..n).filter(|v| v % 2 == 1).sum();
        program.gives(&[Value::I64(n)], &format!("{wanted}l"))?;
    }
    Ok(())
}

/// Registers on an edge move one after the other.
fn swaps() -> Outcome {
    let mut program = Assembled::new("0iii_ii");
    let [swap, other] = [(); 2].map(|()| program.main.label());
    let swapped = vec![(cell(1), cell(3)), (cell(2), cell(1)), (cell(3), cell(2))];
    let kept = vec![(cell(1), cell(2))];
    program.op(Op::CondBr, &[cell(0).into(), (swap, swapped).into(), (other, kept).into()])?;
    program.main.block(swap);
    program.op(Op::Br, &[(other, Vec::new()).into()])?;
    program.main.block(other);
    let program = program.returns(&[cell(1), cell(2)])?;
    let values = |condition| [condition, 7, 8].map(Value::I32);
    program.gives(&values(1), "8 7")?;
    program.gives(&values(-3), "8 7")?;
    program.gives(&values(0), "7 7")
}

fn tables() -> Outcome {
    let mut program = Assembled::new("0iiii_i");
    let end = program.main.label();
    let case = |from: u16| (end, vec![(cell(from), cell(0))]);
    program.op(Op::BrTable, &[cell(0).into(), vec![case(1), case(2), case(3)].into()])?;
    program.main.block(end);
    let program = program.returns(&[cell(0)])?;
    for (index, wanted) in [(0, 20), (1, 30), (2, 10), (-1, 10), (i32::MAX, 10), (i32::MIN, 10)] {
        program.gives(&[index, 10, 20, 30].map(Value::I32), &wanted.to_string())?;
    }
    Ok(())
}

/// Breakpoints and yields go on at their target; their registers move as on branches.
fn jumps() -> Outcome {
    let mut program = Assembled::new("0ii_i");
    let [one, two, three] = [(); 3].map(|()| program.main.label());
    program.op(Op::Break, &[(one, vec![(cell(1), cell(2))]).into()])?;
    program.main.block(one);
    program.op(Op::CondBreak, &[cell(0).into(), (two, vec![(cell(2), cell(3))]).into()])?;
    program.main.block(two);
    program.op(Op::Yield, &[(three, vec![(cell(3), cell(4))]).into()])?;
    program.main.block(three);
    let program = program.returns(&[cell(4)])?;
    program.gives(&[Value::I32(0), Value::I32(7)], "7")?;
    program.gives(&[Value::I32(1), Value::I32(-8)], "-8")
}

/// The module's function 0, which calls itself: n + f(n - 1), with every kind of argument passed on.
fn recursive(base_at: i32) -> Result<Ready> {
    let mut program = Assembled::new("0iIrfF_IrfF");
    let mut f = FunctionBuilder::new("0iIrfF_IrfF");
    let [more, done] = [(); 2].map(|()| f.label());
    // c0: n, c2: sum, r0, c4: f32, c6: f64.
    f.op(Op::ConstI32, &[base_at.into(), cell(8).into()])?;
    f.op(Op::CmpEqI32, &[cell(0).into(), cell(8).into(), cell(9).into()])?;
    f.op(Op::CondBr, &[cell(9).into(), done.into(), more.into()])?;
    f.block(more).op(Op::ExtI32I64S, &[cell(0).into(), cell(10).into()])?;
    f.op(Op::AddI64, &[cell(2).into(), cell(10).into(), cell(2).into()])?;
    f.op(Op::ConstI32, &[(-1i32).into(), cell(12).into()])?;
    f.op(Op::AddI32, &[cell(0).into(), cell(12).into(), cell(0).into()])?;
    let args = vec![cell(0), cell(2), moved(0), cell(4), cell(6)];
    let results = vec![cell(2), r(0), cell(4), cell(6)];
    f.op(Op::Call, &[0u32.into(), args.clone().into(), results.clone().into()])?;
    f.op(Op::Br, &[done.into()])?;
    f.block(done).op(Op::Return, &[results.clone().into()])?;
    program.module.function(None, f)?;
    program.op(Op::Call, &[0u32.into(), args.into(), results.clone().into()])?;
    program.returns(&results)
}

fn arguments(n: i32) -> [Value; 5] {
    [Value::I32(n), Value::I64(1 << 40), buffer(b"x"), Value::F32(1.5), Value::F64(0.1)]
}

fn recursion() -> Outcome {
    let program = recursive(0)?;
    for n in [0, 1, 2, 10] {
        let sum = (1i64 << 40) + i64::from(n * (n + 1) / 2);
        program.gives(&arguments(n), &format!("{sum}l vm.buffer 1.5f 0.1d"))?;
    }
    Ok(())
}

/// Recursion without end is an error, not the end of the process.
fn endless_recursion() -> Outcome {
    recursive(i32::MAX)?.fails(&arguments(0), Code::ResourceExhausted)?;
    Ok(())
}

fn yieldable_call() -> Outcome {
    let mut program = Assembled::new("0iIrfF_IrfFi");
    let mut callee = FunctionBuilder::new("0iIrfF_FfrIi");
    callee.op(Op::Return, &[vec![cell(6), cell(4), moved(0), cell(2), cell(0)].into()])?;
    program.module.function(None, callee)?;
    let after = program.main.label();
    let args = vec![cell(0), cell(2), moved(0), cell(4), cell(6)];
    let results = vec![cell(8), cell(10), r(1), cell(12), cell(14)];
    program.op(Op::CallYieldable, &[0u32.into(), args.into(), Arg::Target(after), results.into()])?;
    program.main.block(after);
    let program = program.returns(&[cell(12), r(1), cell(10), cell(8), cell(14)])?;
    program.gives(&arguments(-3), "1099511627776l vm.buffer 1.5f 0.1d -3")
}

/// A module with one function, which adds what its spans hold.
struct Host;

/// Takes a number, a span of pairs and a span of buffers; gives 1000 * number + sum, and the number of buffers.
const SUM: &str = "0ICiIDCrD_Ii";

impl NativeModule for Host {
    fn name(&self) -> &str {
        "host"
    }

    fn version(&self) -> u32 {
        0
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        (name == "sum").then_some(NativeFunction { ordinal: 0, signature: SUM })
    }

    fn call(
        &self,
        _: &mut (dyn Any + Send),
        _: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()> {
        let mut sum = args.i64()?.wrapping_mul(1000);
        for _ in 0..args.span()? {
            sum += i64::from(args.i32()?) * args.i64()?;
        }
        let mut buffers = 0;
        for _ in 0..args.span()? {
            buffers += i32::from(!args.reference()?.is_null());
        }
        results.i64(sum);
        results.i32(buffers);
        Ok(())
    }
}

fn variadic(yields: bool) -> Outcome {
    for (pairs, buffers) in [(0u16, 0u16), (1, 0), (0, 1), (2, 1), (5, 3)] {
        let mut program = Assembled::new("0IiIr_Ii");
        let callee = program.module.import("host.sum", SUM, false);
        // c0: number, c2 and c4: a pair, r0: a buffer.
        let mut args = vec![cell(0)];
        args.extend((0..pairs).flat_map(|_| [cell(2), cell(4)]));
        args.extend((0..buffers).map(|_| r(0)));
        let segments = vec![PLAIN, pairs, buffers];
        let results = vec![cell(6), cell(8)];
        if yields {
            let after = program.main.label();
            let call =
                [callee.into(), segments.into(), args.into(), Arg::Target(after), results.clone().into()];
            program.op(Op::CallVariadicYieldable, &call)?;
            program.main.block(after);
        } else {
            program.op(
                Op::CallVariadic,
                &[callee.into(), segments.into(), args.into(), results.clone().into()],
            )?;
        }
        program.op(Op::Return, &[results.into()])?;
        let program = program.finish(&[Arc::new(Host)])?;
        let wanted = 7000 + i64::from(pairs) * 3 * (1 << 33);
        let values = [Value::I64(7), Value::I32(3), Value::I64(1 << 33), buffer(b"x")];
        program.gives(&values, &format!("{wanted}l {buffers}"))?;
    }
    Ok(())
}

fn imports() -> Outcome {
    for (name, there) in [("host.sum", "1"), ("host.nothing", "0"), ("nowhere.sum", "0")] {
        let mut program = Assembled::new("0v_i");
        program.module.import(name, SUM, true);
        program.op(Op::ImportResolved, &[import(0).into(), cell(0).into()])?;
        program.op(Op::Return, &[vec![cell(0)].into()])?;
        program.finish(&[Arc::new(Host)])?.gives(&[], there)?;
    }
    let mut program = Assembled::new("0v_v");
    program.module.import("host.nothing", SUM, false);
    program.op(Op::Return, &[Vec::<Reg>::new().into()])?;
    let refused = program.finish(&[Arc::new(Host)]).map(drop);
    crate::suites::case::refused("an import that is not there", refused, &[Code::NotFound])?;
    Ok(())
}

fn failures() -> Outcome {
    let mut program = Assembled::new("0i_i");
    let next = program.main.label();
    program.op(Op::Fail, &[cell(0).into(), "it broke".into()])?;
    program.main.block(next);
    let program = program.returns(&[cell(0)])?;
    let codes = [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];
    for (number, code) in (1..).zip(codes) {
        let status = program.fails(&[Value::I32(number)], code)?;
        same("the message", status.message(), "it broke")?;
    }
    // Beyond the codes there are, but none of its low bits.
    program.fails(&[Value::I32(32)], Code::Unknown)?;
    program.gives(&[Value::I32(0)], "0")
}

/// What is noted for people changes nothing, but takes what is moved.
fn notes(op: Op) -> Outcome {
    let mut program = Assembled::new("0rri_rri");
    program.op(op, &["note".into(), vec![r(0), moved(1), cell(0)].into()])?;
    let program = program.returns(&[r(0), r(1), cell(0)])?;
    program.gives(&[buffer(b"a"), buffer(b"b"), Value::I32(5)], "vm.buffer null 5")
}
