//! The checks of contexts: control flow and calls, linking, native modules, limits, set-up and teardown.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::{
    any::Any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use halite_abi::{Code, Result, bail};
use halite_vm::{
    Arguments, Buffer, Context, ContextOptions, Invocation, Limits, Module, NativeFunction, NativeModule,
    Ref, Results, Value,
    asm::{Arg, FunctionBuilder, ModuleBuilder, PLAIN, Reg, cell, import, moved, reference as r},
    isa::Op,
};

/// A native module that records what it is asked.
#[derive(Default)]
struct Host {
    log: Mutex<Vec<String>>,
}

const FUNCTIONS: &[(&str, &str)] = &[
    ("note", "0i_v"),
    ("sum", "0ICiIDr_Ir"),
    ("swap", "0iIfFr_rFfIi"),
    ("broken", "0v_i"),
    ("fails", "0v_v"),
    ("count", "0v_i"),
    ("wait", "0iCrD_i"),
];

impl NativeModule for Host {
    fn name(&self) -> &str {
        "host"
    }

    fn version(&self) -> u32 {
        3
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        let ordinal = FUNCTIONS.iter().position(|f| f.0 == name)?;
        Some(NativeFunction { ordinal: ordinal as u32, signature: FUNCTIONS[ordinal].1 })
    }

    fn create_state(&self) -> Result<Box<dyn Any + Send>> {
        Ok(Box::new(0i32))
    }

    fn call(
        &self,
        state: &mut (dyn Any + Send),
        ordinal: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()> {
        match FUNCTIONS[ordinal as usize].0 {
            "note" => self.log.lock().unwrap().push(format!("note {}", args.i32()?)),
            "sum" => {
                let mut sum = args.i64()?;
                for _ in 0..args.span()? {
                    sum += i64::from(args.i32()?) * args.i64()?;
                }
                let last = args.reference()?;
                results.i64(sum);
                results.reference(last);
            }
            "swap" => {
                let (a, b, c, d) = (args.i32()?, args.i64()?, args.f32()?, args.f64()?);
                results.reference(args.reference()?);
                results.push(Value::F64(d));
                results.push(Value::F32(c));
                results.i64(b);
                results.i32(a);
            }
            "broken" => results.i64(1),
            "fails" => bail!(Unavailable, "the host refuses"),
            "count" => {
                let count = state.downcast_mut::<i32>().unwrap();
                *count += 1;
                results.i32(*count);
            }
            _ => {
                let deadline = args.invocation().deadline.is_some();
                let first = args.i32()?;
                let n = args.span()? as i32;
                results.i32(first + n + 100 * i32::from(deadline));
            }
        }
        Ok(())
    }
}

fn host() -> (Arc<Host>, Vec<Arc<dyn NativeModule>>) {
    let host = Arc::new(Host::default());
    (host.clone(), vec![host])
}

/// A function from (operation, operands) rows.
fn function(convention: &str, ops: &[(Op, Vec<Arg>)]) -> FunctionBuilder {
    let mut f = FunctionBuilder::new(convention);
    ops.iter().for_each(|(op, args)| {
        f.op(*op, args).unwrap();
    });
    f
}

fn ret(regs: &[Reg]) -> (Op, Vec<Arg>) {
    (Op::Return, vec![regs.to_vec().into()])
}

fn call(callee: u32, args: &[Reg], results: &[Reg]) -> (Op, Vec<Arg>) {
    (Op::Call, vec![callee.into(), args.to_vec().into(), results.to_vec().into()])
}

fn invoke(natives: &[Arc<dyn NativeModule>], module: ModuleBuilder, args: &[Value]) -> Result<Vec<Value>> {
    let module = Module::load(module.finish())?;
    let context = Context::new(natives, std::slice::from_ref(&module))?;
    context.invoke(&context.lookup(module.name(), "main")?, args, &common::soon())
}

/// A function that never ends.
fn endless() -> FunctionBuilder {
    let mut f = FunctionBuilder::new("0v_v");
    f.op(Op::Br, &[f.entry().into()]).unwrap();
    f
}

/// A function that calls itself.
fn recursive() -> FunctionBuilder {
    function("0v_v", &[call(0, &[], &[]), ret(&[])])
}

#[test]
fn branches_remap_in_order() {
    let mut f = FunctionBuilder::new("0iii_ii");
    let [swap, table, other, end] = [(); 4].map(|()| f.label());
    let swapped = vec![(cell(1), cell(3)), (cell(2), cell(1)), (cell(3), cell(2))];
    f.op(Op::CondBr, &[cell(0).into(), (swap, swapped).into(), table.into()]).unwrap();
    f.block(swap).op(Op::Break, &[end.into()]).unwrap();
    f.block(table);
    let case = |from: u16| (other, vec![(cell(from), cell(1))]);
    f.op(Op::BrTable, &[cell(1).into(), vec![case(0), case(1), case(2)].into()]).unwrap();
    f.block(other).op(Op::CondBreak, &[cell(0).into(), end.into()]).unwrap();
    f.block(end);
    let last = f.label();
    f.op(Op::Yield, &[last.into()]).unwrap();
    f.block(last).op(Op::Return, &[vec![cell(1), cell(2)].into()]).unwrap();
    let module = common::module(f).unwrap();
    let run = |a, b, c| format!("{:?}", common::run(&module, &[a, b, c].map(Value::I32)).unwrap());
    assert_eq!(run(1, 7, 8), "[I32(8), I32(7)]");
    assert_eq!(run(0, 0, 9), "[I32(0), I32(9)]");
    assert_eq!(run(0, 1, 9), "[I32(9), I32(9)]");
    assert_eq!(run(0, 5, 9), "[I32(0), I32(9)]");
    assert_eq!(run(0, -5, 9), "[I32(0), I32(9)]");
}

#[test]
fn internal_calls_align_pairs_and_return_all_kinds() {
    let mut b = ModuleBuilder::new("test");
    let callee = function("0iIrfF_FfrIi", &[ret(&[cell(6), cell(4), moved(0), cell(2), cell(0)])]);
    let callee = b.function(None, callee).unwrap();
    let main = "0iIrfF_FfrIi";
    let mut f = FunctionBuilder::new(main);
    let after = f.label();
    let results = vec![cell(8), cell(10), r(1), cell(12), cell(14)];
    let args = vec![cell(0), cell(2), moved(0), cell(4), cell(6)];
    f.op(Op::CallYieldable, &[callee.into(), args.into(), Arg::Target(after), results.clone().into()])
        .unwrap();
    f.block(after).op(Op::Return, &[results.into()]).unwrap();
    b.function(Some("main"), f).unwrap();
    let buffer = Ref::new(Buffer::from_vec(vec![1]));
    let args =
        [Value::I32(-1), Value::I64(-1 << 40), Value::Ref(buffer.clone()), Value::F32(1.5), Value::F64(0.1)];
    let out = invoke(&[], b, &args).unwrap();
    assert!(matches!(&out[2], Value::Ref(v) if v.same(&buffer)));
    let [Value::F64(d), Value::F32(f), _, Value::I64(l), Value::I32(i)] = out[..] else { panic!("{out:?}") };
    assert_eq!((d, f, l, i), (0.1, 1.5, -1 << 40, -1));
}

#[test]
fn native_calls_pass_spans_and_all_kinds() {
    let (_, natives) = host();
    let mut b = ModuleBuilder::new("test");
    let sum = b.import("host.sum", "0ICiIDr_Ir", false);
    let swap = b.import("host.swap", "0iIfFr_rFfIi", false);
    let wait = b.import("host.wait", "0iCrD_i", false);
    let mut f = FunctionBuilder::new("0iIfFr_rFfIiIi");
    let args = vec![cell(2), cell(0), cell(2), cell(0), cell(2), r(0)];
    let args = [sum.into(), vec![PLAIN, 2, PLAIN].into(), args.into(), vec![cell(8), r(1)].into()];
    f.op(Op::CallVariadic, &args).unwrap();
    let (args, out) =
        ([cell(0), cell(2), cell(4), cell(6), moved(1)], [r(2), cell(10), cell(12), cell(14), cell(16)]);
    f.op(Op::Call, &call(swap, &args, &out).1).unwrap();
    let after = f.label();
    let args = vec![cell(0), r(0), r(0), r(0)];
    let segments = vec![PLAIN, 3];
    let waits = [wait.into(), segments.into(), args.into(), Arg::Target(after), vec![cell(17)].into()];
    f.op(Op::CallVariadicYieldable, &waits).unwrap();
    f.block(after).op(Op::Return, &[[&out[..], &[cell(8), cell(17)]].concat().into()]).unwrap();
    b.function(Some("main"), f).unwrap();
    let args = [Value::I32(3), Value::I64(10), Value::F32(1.5), Value::F64(0.1), Value::Ref(Ref::NULL)];
    let out = invoke(&natives, b, &args).unwrap();
    let expected = "[Ref(null), F64(0.1), F32(1.5), I64(10), I32(3), I64(70), I32(106)]";
    assert_eq!(format!("{out:?}"), expected);
}

#[test]
fn native_errors_say_which_import() {
    let (_, natives) = host();
    for (name, convention, code, text) in [
        ("host.fails", "0v_v", Code::Unavailable, "the host refuses"),
        ("host.broken", "0v_i", Code::Internal, "[\"i64\"] where its signature says [\"i32\"]"),
    ] {
        let mut b = ModuleBuilder::new("test");
        let callee = b.import(name, convention, false);
        let results: &[Reg] = if convention == "0v_i" { &[cell(0)] } else { &[] };
        b.function(Some("main"), function("0v_v", &[call(callee, &[], results), ret(&[])])).unwrap();
        let e = invoke(&natives, b, &[]).unwrap_err();
        assert!(e.code() == code && e.to_string().contains(text), "{e}");
        let trail: Vec<_> = e.annotations().iter().map(String::as_str).collect();
        let calling = format!("calling import '{name}'");
        assert_eq!(trail, [calling.as_str(), "[ 0] at test.main+0x1", "invoking function 'test.main'"]);
    }
}

#[test]
fn linking_errors_name_what_is_missing() {
    let (_, natives) = host();
    let error = |natives: &[Arc<dyn NativeModule>], change: &dyn Fn(&mut ModuleBuilder)| {
        let mut b = ModuleBuilder::new("test");
        change(&mut b);
        let module = Module::load(b.finish()).unwrap();
        let e = Context::new(natives, &[module]).unwrap_err();
        format!("{e}")
    };
    let import = |name: &'static str, convention: &'static str| {
        move |b: &mut ModuleBuilder| {
            b.import(name, convention, false);
        }
    };
    let e = error(&[], &import("host.note", "0i_v"));
    assert!(e.starts_with("NOT_FOUND; required import 'host.note' was not found: no module 'host'"), "{e}");
    let e = error(&natives, &import("host.other.thing", "0i_v"));
    assert!(e.contains("module 'host' (version [3]) is registered but has no function 'other.thing'"), "{e}");
    let e = error(&natives, &import("host.note", "0I_v"));
    assert!(e.contains("'host.note' has signature '0I_v' but module 'host' provides it with '0i_v'"), "{e}");
    let needs = |version: u32| {
        move |b: &mut ModuleBuilder| {
            b.dependency("host", version, false);
        }
    };
    let e = error(&natives, &needs(4));
    assert!(e.contains("needs module 'host' version 4 or later, but version [3] is registered"), "{e}");
    let e = error(&[], &needs(4));
    assert!(e.contains("which is not registered; registered: none"), "{e}");
    let mut b = ModuleBuilder::new("test");
    b.dependency("host", 3, false).dependency("absent", 9, true);
    assert!(Context::new(&natives, &[Module::load(b.finish()).unwrap()]).is_ok());
}

#[test]
fn optional_imports_may_be_absent() {
    let (_, natives) = host();
    for (name, there) in [("host.count", 1), ("host.absent", 0)] {
        let mut b = ModuleBuilder::new("test");
        let callee = b.import(name, "0v_i", true);
        let resolved = (Op::ImportResolved, vec![import(0).into(), cell(0).into()]);
        b.function(Some("main"), function("0v_i", &[resolved, ret(&[cell(0)])])).unwrap();
        b.function(Some("call"), function("0v_i", &[call(callee, &[], &[cell(0)]), ret(&[cell(0)])]))
            .unwrap();
        let context = Context::new(&natives, &[Module::load(b.finish()).unwrap()]).unwrap();
        let run = |f: &str| context.invoke(&context.lookup("test", f).unwrap(), &[], &common::soon());
        assert_eq!(format!("{:?}", run("main").unwrap()), format!("[I32({there})]"));
        match there {
            1 => assert_eq!(
                format!("{:?}{:?}", run("call").unwrap(), run("call").unwrap()),
                "[I32(1)][I32(2)]"
            ),
            _ => assert_eq!(run("call").unwrap_err().code(), Code::NotFound),
        }
    }
}

/// A module whose `__init` and `__deinit` note a number, and whose `get` returns it.
fn noting(name: &str, number: i32) -> ModuleBuilder {
    let mut b = ModuleBuilder::new(name);
    let note = b.import("host.note", "0i_v", false);
    let load = |v: i32| (Op::ConstI32, vec![v.into(), cell(0).into()]);
    for (export, v) in [("__init", number), ("__deinit", -number)] {
        b.function(Some(export), function("0v_v", &[load(v), call(note, &[cell(0)], &[]), ret(&[])]))
            .unwrap();
    }
    b.function(Some("get"), function("0v_i", &[load(number), ret(&[cell(0)])])).unwrap();
    b
}

#[test]
fn modules_import_each_other_later_first() {
    let (host, natives) = host();
    let mut user = noting("user", 3);
    let get = user.import("lib.get", "0v_i", false);
    user.function(Some("main"), function("0v_i", &[call(get, &[], &[cell(0)]), ret(&[cell(0)])])).unwrap();
    let modules = [noting("lib", 1), noting("lib", 2), user].map(|b| Module::load(b.finish()).unwrap());
    let context = Context::new(&natives, &modules).unwrap();
    let main = context.lookup("user", "main").unwrap();
    assert_eq!(format!("{:?}", context.invoke(&main, &[], &common::soon()).unwrap()), "[I32(2)]");
    let e = context.lookup("user", "absent").unwrap_err();
    assert!(e.to_string().contains("exports are [\"get\", \"main\"]"), "{e}");
    assert!(
        context.lookup("nobody", "main").unwrap_err().to_string().contains("[\"lib\", \"lib\", \"user\"]")
    );
    context.close(&common::soon()).unwrap();
    let log = host.log.lock().unwrap().join(" ");
    assert_eq!(log, "note 1 note 2 note 3 note -3 note -2 note -1");
}

#[test]
fn failed_init_tears_down_what_was_ready() {
    let (host, natives) = host();
    let mut broken = ModuleBuilder::new("broken");
    let ops =
        [(Op::ConstI32, vec![5.into(), cell(0).into()]), (Op::Fail, vec![cell(0).into(), "no luck".into()])];
    broken.function(Some("__init"), function("0v_v", &ops)).unwrap();
    let modules = [noting("first", 1), broken].map(|b| Module::load(b.finish()).unwrap());
    let e = Context::new(&natives, &modules).unwrap_err();
    assert!(e.code() == Code::NotFound && e.to_string().contains("running __init of module 'broken'"), "{e}");
    assert_eq!(host.log.lock().unwrap().join(" "), "note 1 note -1");
}

#[test]
fn arguments_are_checked() {
    let module = common::module(function("0iF_i", &[ret(&[cell(0)])])).unwrap();
    assert!(common::run(&module, &[Value::I32(1), Value::F64(1.0)]).is_ok());
    for (args, text) in [
        (vec![], "takes 2 arguments but 0 were given"),
        (vec![Value::I32(1), Value::F32(1.0)], "argument 1 must be f64 but is f32"),
        (vec![Value::Ref(Ref::NULL), Value::F64(1.0)], "argument 0 must be i32 but is ref"),
    ] {
        let e = common::run(&module, &args).unwrap_err();
        assert!(e.code() == Code::InvalidArgument && e.to_string().contains(text), "{e}");
    }
    let [a, b] = [(); 2].map(|()| Context::new(&[], std::slice::from_ref(&module)).unwrap());
    let handle = a.lookup("test", "main").unwrap();
    assert_eq!(b.invoke(&handle, &[], &common::soon()).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn endless_code_ends_at_the_deadline_or_when_cancelled() {
    let module = common::module(endless()).unwrap();
    let context = Context::new(&[], &[module]).unwrap();
    let main = context.lookup("test", "main").unwrap();
    let late = Invocation::until(Instant::now() + Duration::from_millis(10));
    assert_eq!(context.invoke(&main, &[], &late).unwrap_err().code(), Code::DeadlineExceeded);
    let cancel = Arc::new(AtomicBool::new(false));
    let invocation = Invocation { deadline: None, cancel: Some(cancel.clone()) };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| context.invoke(&main, &[], &invocation));
        // A second caller waits for the first no longer than its deadline.
        let late = Invocation::until(Instant::now() + Duration::from_millis(10));
        assert_eq!(context.invoke(&main, &[], &late).unwrap_err().code(), Code::DeadlineExceeded);
        // Nor longer than it wants to.
        let given_up = Invocation { deadline: None, cancel: Some(Arc::new(AtomicBool::new(true))) };
        assert_eq!(context.invoke(&main, &[], &given_up).unwrap_err().code(), Code::Cancelled);
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap().unwrap_err().code(), Code::Cancelled);
    });
}

#[test]
fn endless_init_ends_at_the_deadline() {
    let mut b = ModuleBuilder::new("test");
    b.function(Some("__init"), endless()).unwrap();
    let init = Invocation::until(Instant::now() + Duration::from_millis(10));
    let options = ContextOptions { init, ..ContextOptions::default() };
    let e = Context::with_options(&[], &[Module::load(b.finish()).unwrap()], &options).unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded);
}

#[test]
fn recursion_and_globals_are_bounded() {
    let module = common::module(recursive()).unwrap();
    let e = common::run(&module, &[]).unwrap_err();
    assert!(e.code() == Code::ResourceExhausted && e.to_string().contains("4096 frames"), "{e}");
    assert!(e.annotations().len() < 30);
    let mut b = ModuleBuilder::new("test");
    b.globals(i32::MAX as u32, 0);
    let huge = Module::load(b.finish()).unwrap();
    assert_eq!(Context::new(&[], &[huge]).unwrap_err().code(), Code::ResourceExhausted);
    // Wide frames hit the register limit long before the depth limit.
    let wide =
        function("0v_v", &[(Op::ConstI32Zero, vec![cell(0x7FFE).into()]), call(0, &[], &[]), ret(&[])]);
    let limits = Limits { call_depth: 1 << 20, ..Limits::default() };
    let options = ContextOptions { limits, ..ContextOptions::default() };
    let context = Context::with_options(&[], &[common::module(wide).unwrap()], &options).unwrap();
    let e = context.invoke(&context.lookup("test", "main").unwrap(), &[], &common::soon()).unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted);
}

#[test]
fn memory_is_given_back_when_refs_die() {
    // A loop of a thousand 64 KiB buffers under a 1 MiB budget.
    let mut f = FunctionBuilder::new("0i_v");
    let (again, end) = (f.label(), f.label());
    f.op(Op::ConstI64, &[65536i64.into(), cell(2).into()])
        .unwrap()
        .op(Op::ConstI32, &[1.into(), cell(1).into()])
        .unwrap();
    f.op(Op::Br, &[again.into()]).unwrap();
    f.block(again).op(Op::BufferAlloc, &[cell(2).into(), cell(1).into(), r(0).into()]).unwrap();
    f.op(Op::SubI32, &[cell(0).into(), cell(1).into(), cell(0).into()]).unwrap();
    f.op(Op::CondBr, &[cell(0).into(), again.into(), end.into()]).unwrap();
    f.block(end).op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let options = ContextOptions { limits, ..ContextOptions::default() };
    let context = Context::with_options(&[], &[common::module(f).unwrap()], &options).unwrap();
    let main = context.lookup("test", "main").unwrap();
    context.invoke(&main, &[Value::I32(1000)], &common::soon()).unwrap();
}

#[test]
fn each_of_very_many_functions_is_found_at_once() {
    const MANY: u32 = 20_000;
    let mut b = ModuleBuilder::new("many");
    for number in 0..MANY {
        b.function(Some(&format!("f{number}")), function("0v_v", &[ret(&[])])).unwrap();
    }
    let context = Context::new(&[], &[Module::load(b.finish()).unwrap()]).unwrap();
    let begin = Instant::now();
    for number in 0..MANY {
        context.lookup("many", &format!("f{number}")).unwrap();
    }
    // Looking at each for each took 11 s; this takes milliseconds on any machine.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}
