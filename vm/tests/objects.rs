//! The semantic checks of operations on references, lists, buffers and globals.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::collections::HashSet;

use halite_abi::{Code, Result, Status};
use halite_vm::{
    Buffer, Context, ContextOptions, Limits, List, Module, Ref, Value,
    asm::{Arg, FunctionBuilder, ModuleBuilder, Reg, cell, moved, reference as r},
    isa::Op,
};

/// Types every test module has, in this order.
const TYPES: [&str; 6] = ["i8", "i64", "f32", "!vm.opaque", "!vm.buffer", "!vm.list<i8>"];
const I8: Arg = Arg::U32(0);
const I64: Arg = Arg::U32(1);
const F32: Arg = Arg::U32(2);
const ANY: Arg = Arg::U32(3);
const BUFFER: Arg = Arg::U32(4);
const LIST: Arg = Arg::U32(5);

/// A function under construction; operations are noted so that coverage can be checked.
struct Program(FunctionBuilder);

impl Program {
    fn new(convention: &str) -> Self {
        Program(FunctionBuilder::new(convention))
    }

    fn op(&mut self, op: Op, args: &[Arg]) -> &mut Self {
        self.0.op(op, args).unwrap();
        self
    }

    /// 32-bit constant in a cell.
    fn i(&mut self, n: u16, value: i32) -> &mut Self {
        self.op(Op::ConstI32, &[value.into(), cell(n).into()])
    }

    /// 64-bit constant in a pair.
    fn l(&mut self, n: u16, value: i64) -> &mut Self {
        self.op(Op::ConstI64, &[value.into(), cell(n).into()])
    }

    fn run(&self, results: &[Reg]) -> Result<Vec<Value>> {
        self.run_with(results, &[])
    }

    fn run_with(&self, results: &[Reg], args: &[Value]) -> Result<Vec<Value>> {
        let mut function = self.0.clone();
        function.op(Op::Return, &[results.to_vec().into()])?;
        let mut builder = ModuleBuilder::new("test");
        TYPES.iter().for_each(|t| {
            builder.ty(t);
        });
        builder.rodata(&b"\x01\x02\x03\xFFabcd"[..]);
        builder.globals(32, 2).function(Some("main"), function)?;
        let module = Module::load(builder.finish())?;
        let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
        let options = ContextOptions { limits, ..ContextOptions::default() };
        let context = Context::with_options(&[], &[module], &options)?;
        context.invoke(&context.lookup("test", "main")?, args, &common::soon())
    }
}

fn buffer(bytes: &[u8]) -> Value {
    Value::Ref(Ref::new(Buffer::from_vec(bytes.to_vec())))
}

fn show(values: &[Value]) -> String {
    let show = |v: &Value| match v {
        Value::I32(v) => format!("{v}"),
        Value::I64(v) => format!("{v}l"),
        Value::F32(v) => format!("{v}f"),
        Value::F64(v) => format!("{v}d"),
        Value::Ref(v) => v.type_name().unwrap_or("null").to_owned(),
    };
    values.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn code(status: Result<Vec<Value>>) -> Code {
    status.expect_err("must fail").code()
}

#[test]
fn buffer_loads_and_stores_index_by_element() {
    let mut f = Program::new("0r_iiiiiIfF");
    f.l(0, 3).l(2, 1).l(4, 0);
    f.op(Op::BufferLoadI8U, &[r(0).into(), cell(0).into(), cell(6).into()]);
    f.op(Op::BufferLoadI8S, &[r(0).into(), cell(0).into(), cell(7).into()]);
    f.op(Op::BufferLoadI16U, &[r(0).into(), cell(2).into(), cell(8).into()]);
    f.op(Op::BufferLoadI16S, &[r(0).into(), cell(2).into(), cell(9).into()]);
    f.op(Op::BufferLoadI32, &[r(0).into(), cell(4).into(), cell(10).into()]);
    f.op(Op::BufferLoadI64, &[r(0).into(), cell(4).into(), cell(12).into()]);
    f.op(Op::BufferLoadF32, &[r(0).into(), cell(2).into(), cell(14).into()]);
    f.op(Op::BufferLoadF64, &[r(0).into(), cell(4).into(), cell(16).into()]);
    let bytes = [1, 2, 3, 0xFF, 0, 0, 0x80, 0x3F];
    let results: Vec<Reg> = [6, 7, 8, 9, 10, 12, 14, 16].map(cell).into();
    let out = f.run_with(&results, &[buffer(&bytes)]).unwrap();
    let (wide, low) = (i64::from_le_bytes(bytes), i32::from_le_bytes([1, 2, 3, 0xFF]));
    let expected = format!("255 -1 65283 -253 {low} {wide}l 1f {}d", f64::from_bits(wide as u64));
    assert_eq!(show(&out), expected);

    let mut f = Program::new("0r_r");
    f.l(0, 0).l(2, 1).l(4, 0x1122_3344_5566_7788).i(6, 0x7FFF_FF05).l(8, 4);
    f.op(Op::BufferStoreI64, &[r(0).into(), cell(2).into(), cell(4).into()]);
    f.op(Op::BufferStoreI8, &[r(0).into(), cell(0).into(), cell(6).into()]);
    f.op(Op::BufferStoreI16, &[r(0).into(), cell(2).into(), cell(6).into()]);
    f.op(Op::BufferStoreI32, &[r(0).into(), cell(2).into(), cell(4).into()]);
    f.op(Op::BufferStoreF32, &[r(0).into(), cell(8).into(), cell(5).into()]);
    f.l(8, 3).op(Op::BufferStoreF64, &[r(0).into(), cell(8).into(), cell(4).into()]);
    let Value::Ref(out) = f.run_with(&[r(0)], &[buffer(&[0; 32])]).unwrap().remove(0) else { panic!() };
    let mut expected =
        vec![5, 0, 5, 0xFF, 0x88, 0x77, 0x66, 0x55, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
    expected.extend([0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(out.downcast_ref::<Buffer>().unwrap().to_bytes().unwrap()[..], expected);
}

#[test]
fn buffer_bulk_operations() {
    for (op, width) in [
        (Op::BufferFillI8, 1),
        (Op::BufferFillI16, 2),
        (Op::BufferFillI32, 4),
        (Op::BufferFillF32, 4),
        (Op::BufferFillI64, 8),
        (Op::BufferFillF64, 8),
    ] {
        let mut f = Program::new("0r_r");
        f.l(0, 1).l(2, 2).l(4, 0x0807_0605_0403_0201);
        f.op(op, &[r(0).into(), cell(0).into(), cell(2).into(), cell(4).into()]);
        let Value::Ref(out) = f.run_with(&[r(0)], &[buffer(&[9; 24])]).unwrap().remove(0) else { panic!() };
        let out = out.downcast_ref::<Buffer>().unwrap().to_bytes().unwrap();
        let pattern = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let mut expected = vec![9; 24];
        expected[width..2 * width].copy_from_slice(&pattern[..width]);
        expected[2 * width..3 * width].copy_from_slice(&pattern[..width]);
        assert_eq!(out[..], expected, "{op:?}");
    }

    // r1 = alloc 16; copy rodata[2..6] to r1[1..]; r2 = clone r1[0..8]; compare; hash; length.
    let mut f = Program::new("0v_iiIIrr");
    f.op(Op::ConstRefRodata, &[0u32.into(), r(0).into()])
        .l(0, 16)
        .i(2, 16)
        .l(4, 2)
        .l(6, 1)
        .l(8, 4)
        .l(10, 8)
        .l(12, 0);
    f.op(Op::BufferAlloc, &[cell(0).into(), cell(2).into(), r(1).into()]);
    f.op(Op::BufferCopy, &[r(0).into(), cell(4).into(), r(1).into(), cell(6).into(), cell(8).into()]);
    f.op(Op::BufferClone, &[r(1).into(), cell(12).into(), cell(10).into(), cell(2).into(), r(2).into()]);
    let compare = |len: u16, out: u16| [r(1), cell(12), r(2), cell(12), cell(len), cell(out)].map(Arg::from);
    f.op(Op::BufferCompare, &compare(10, 14));
    f.op(Op::BufferCompare, &[r(1), cell(12), r(0), cell(12), cell(10), cell(15)].map(Arg::from));
    f.op(Op::BufferLength, &[r(1).into(), cell(16).into()]);
    f.op(Op::BufferAlloc, &[cell(10).into(), cell(2).into(), r(3).into()]);
    f.op(Op::BufferHash, &[r(3).into(), cell(12).into(), cell(10).into(), cell(18).into()]);
    let out = f.run(&[cell(14), cell(15), cell(16), cell(18), r(1), r(2)]).unwrap();
    assert_eq!(show(&out), "1 0 16l 4166820438245540263l vm.buffer vm.buffer");
    let Value::Ref(clone) = &out[5] else { panic!() };
    assert_eq!(clone.downcast_ref::<Buffer>().unwrap().to_bytes().unwrap()[..], *b"\0\x03\xFFab\0\0\0");
}

#[test]
fn buffer_errors() {
    let load = |index: i64, value: Value| {
        let mut f = Program::new("0r_i");
        f.l(0, index).op(Op::BufferLoadI32, &[r(0).into(), cell(0).into(), cell(2).into()]);
        f.run_with(&[cell(2)], &[value])
    };
    let e = load(8, buffer(&[0; 8])).unwrap_err();
    assert_eq!((e.code(), e.message()), {
        let m = "out-of-bounds access detected (offset=32, length=4, alignment=4, buffer length=8)";
        (Code::OutOfRange, m)
    });
    assert!(e.annotations()[0].starts_with("[ 0] at test.main+0xc"), "{e}");
    assert_eq!(code(load(-1, buffer(&[0; 8]))), Code::OutOfRange);
    assert_eq!(code(load(0, Value::Ref(Ref::NULL))), Code::InvalidArgument);
    assert_eq!(code(load(0, Value::Ref(Ref::new(List::any())))), Code::InvalidArgument);

    let mut f = Program::new("0v_v");
    f.op(Op::ConstRefRodata, &[0u32.into(), r(0).into()]).l(0, 0).i(2, 1);
    f.op(Op::BufferStoreI8, &[r(0).into(), cell(0).into(), cell(2).into()]);
    assert_eq!(code(f.run(&[])), Code::PermissionDenied);

    for size in [2 << 20, -1, i64::MAX] {
        let mut f = Program::new("0v_v");
        f.l(0, size).i(2, 1).op(Op::BufferAlloc, &[cell(0).into(), cell(2).into(), r(0).into()]);
        assert_eq!(code(f.run(&[])), Code::ResourceExhausted, "{size}");
    }
}

#[test]
fn lists_convert_and_check() {
    let mut f = Program::new("0v_iiIfrr");
    f.i(0, 3).i(1, 0x1FF).i(2, 1).op(Op::ListAlloc, &[I8, cell(0).into(), r(0).into()]);
    f.op(Op::ListReserve, &[r(0).into(), cell(0).into()]).op(Op::ListResize, &[r(0).into(), cell(0).into()]);
    f.op(Op::ListSetI32, &[r(0).into(), cell(2).into(), cell(1).into()]);
    f.op(Op::ListSize, &[r(0).into(), cell(3).into()]);
    f.op(Op::ListGetI32, &[r(0).into(), cell(2).into(), cell(4).into()]);
    f.op(Op::ListGetI64, &[r(0).into(), cell(2).into(), cell(6).into()]);
    f.op(Op::ListAlloc, &[F32, cell(0).into(), r(1).into()])
        .op(Op::ListResize, &[r(1).into(), cell(0).into()]);
    f.op(Op::ConstF64, &[1.5f64.to_bits().into(), cell(8).into()]);
    f.op(Op::ListSetF64, &[r(1).into(), cell(2).into(), cell(8).into()]);
    f.op(Op::ListGetF32, &[r(1).into(), cell(2).into(), cell(10).into()]);
    f.op(Op::ListSetF32, &[r(1).into(), cell(2).into(), cell(10).into()]);
    f.op(Op::ListGetF64, &[r(1).into(), cell(2).into(), cell(8).into()]);
    f.op(Op::ListSetI64, &[r(0).into(), cell(2).into(), cell(6).into()]);
    // A list of anything: set by MOVE, get a wrong type, then take out.
    f.op(Op::ListAlloc, &[ANY, cell(0).into(), r(2).into()])
        .op(Op::ListResize, &[r(2).into(), cell(0).into()]);
    f.op(Op::ListSetRef, &[r(2).into(), cell(2).into(), moved(1).into()]);
    f.op(Op::ListGetRef, &[r(2).into(), cell(2).into(), BUFFER, r(3).into()]);
    f.op(Op::ListGetRef, &[r(2).into(), cell(2).into(), LIST, moved(1).into()]);
    let out = f.run(&[cell(3), cell(4), cell(6), cell(10), r(1), r(3)]).unwrap();
    assert_eq!(show(&out), "3 -1 -1l 1.5f vm.list null");

    let get = |op: Op, ty: Arg, index: i32| {
        let mut f = Program::new("0v_v");
        f.i(0, 2).i(1, index).op(Op::ListAlloc, &[ty, cell(0).into(), r(0).into()]);
        f.op(Op::ListResize, &[r(0).into(), cell(0).into()]);
        f.op(op, &[r(0).into(), cell(1).into(), cell(2).into()]).run(&[])
    };
    assert!(get(Op::ListGetI32, I64, 1).is_ok());
    assert_eq!(code(get(Op::ListGetI32, I64, 2)), Code::OutOfRange);
    assert_eq!(code(get(Op::ListGetI32, I64, -1)), Code::OutOfRange);
    assert_eq!(code(get(Op::ListSetI32, I64, 2)), Code::OutOfRange);
    assert_eq!(code(get(Op::ListGetF32, I64, 0)), Code::InvalidArgument);
    assert_eq!(code(get(Op::ListGetI32, BUFFER, 0)), Code::InvalidArgument);

    let mut f = Program::new("0v_v");
    f.i(0, -1).op(Op::ListAlloc, &[I64, cell(0).into(), r(0).into()]);
    f.op(Op::ListResize, &[r(0).into(), cell(0).into()]);
    assert_eq!(code(f.run(&[])), Code::ResourceExhausted);
}

#[test]
fn lists_that_hold_themselves_go_with_their_context() {
    let kept = |results: &[Reg], convention: &str| {
        let mut f = Program::new(convention);
        f.i(0, 2).i(1, 0).i(2, 1).op(Op::ListAlloc, &[ANY, cell(0).into(), r(1).into()]);
        f.op(Op::ListResize, &[r(1).into(), cell(0).into()]);
        f.op(Op::ListSetRef, &[r(1).into(), cell(1).into(), r(1).into()]);
        f.op(Op::ListSetRef, &[r(1).into(), cell(2).into(), r(0).into()]);
        let Value::Ref(content) = buffer(b"held") else { panic!() };
        let weak = std::sync::Arc::downgrade(content.object().unwrap());
        let out = f.run_with(results, &[Value::Ref(content)]).unwrap();
        (weak, out)
    };
    let (content, _) = kept(&[], "0r_v");
    assert_eq!(content.strong_count(), 0);
    // What the caller got stays, until the caller lets go of it.
    let (content, out) = kept(&[r(1)], "0r_r");
    let [Value::Ref(list)] = &out[..] else { panic!("{out:?}") };
    let list = list.downcast_ref::<List>().unwrap();
    assert_eq!((content.strong_count(), list.len()), (1, 2));
    list.resize(0).unwrap();
    assert_eq!(content.strong_count(), 0);
}

#[test]
fn references_move_copy_and_compare() {
    let mut f = Program::new("0rr_iiiirrr");
    f.op(Op::CmpEqRef, &[r(0).into(), r(1).into(), cell(0).into()]);
    f.op(Op::AssignRef, &[r(0).into(), r(2).into()])
        .op(Op::CmpNeRef, &[r(0).into(), r(2).into(), cell(1).into()]);
    f.op(Op::AssignRef, &[moved(2).into(), r(3).into()]).op(Op::CmpNzRef, &[r(2).into(), cell(2).into()]);
    f.op(Op::CastAnyRef, &[moved(3).into(), BUFFER, r(4).into()])
        .op(Op::CmpNzRef, &[r(3).into(), cell(3).into()]);
    f.i(4, 0).op(Op::SelectRef, &[cell(4).into(), BUFFER, moved(0).into(), r(1).into(), r(5).into()]);
    f.op(Op::SwitchRef, &[cell(4).into(), ANY, r(5).into(), vec![moved(4)].into(), r(6).into()]);
    let out =
        f.run_with(&[cell(0), cell(1), cell(2), cell(3), r(0), r(5), r(6)], &[buffer(b"a"), buffer(b"b")]);
    let out = out.unwrap();
    assert_eq!(show(&out), "0 0 0 0 null vm.buffer vm.buffer");
    let content = |v: &Value| match v {
        Value::Ref(v) => v.downcast_ref::<Buffer>().unwrap().to_bytes().unwrap(),
        _ => panic!(),
    };
    assert_eq!((&content(&out[5])[..], &content(&out[6])[..]), (&b"b"[..], &b"a"[..]));

    let mut f = Program::new("0r_r");
    f.op(Op::CastAnyRef, &[r(0).into(), LIST, r(1).into()]);
    assert_eq!(code(f.run_with(&[r(1)], &[buffer(b"")])), Code::InvalidArgument);
    let mut f = Program::new("0rr_rrr");
    f.op(Op::DiscardRefs, &[vec![r(0)].into()])
        .op(Op::Trace, &["note".into(), vec![moved(1), cell(0)].into()]);
    f.op(Op::ConstRefRodata, &[0u32.into(), r(2).into()]).op(Op::ConstRefZero, &[r(2).into()]);
    f.op(Op::Print, &["note".into(), vec![r(2)].into()]);
    let out = f.run_with(&[r(0), r(1), r(2)], &[buffer(b"a"), buffer(b"b")]).unwrap();
    assert_eq!(show(&out), "null null null");
}

#[test]
fn globals_keep_values() {
    let mut f = Program::new("0r_iIiIfFrrr");
    f.i(0, -5).l(2, -6).i(4, 20).i(5, 24).i(6, 1);
    f.op(Op::GlobalStoreI32, &[0u32.into(), cell(0).into()])
        .op(Op::GlobalLoadI32, &[0u32.into(), cell(7).into()]);
    f.op(Op::GlobalStoreI64, &[8u32.into(), cell(2).into()])
        .op(Op::GlobalLoadI64, &[8u32.into(), cell(8).into()]);
    f.op(Op::GlobalStoreIndirectI32, &[cell(4).into(), cell(0).into()]);
    f.op(Op::GlobalLoadIndirectI32, &[cell(4).into(), cell(10).into()]);
    f.op(Op::GlobalStoreIndirectI64, &[cell(5).into(), cell(2).into()]);
    f.op(Op::GlobalLoadIndirectI64, &[cell(5).into(), cell(12).into()]);
    f.op(Op::ConstF32, &[1.5f32.to_bits().into(), cell(14).into()]);
    f.op(Op::GlobalStoreF32, &[4u32.into(), cell(14).into()])
        .op(Op::GlobalLoadF32, &[4u32.into(), cell(15).into()]);
    f.op(Op::GlobalStoreIndirectF32, &[cell(4).into(), cell(15).into()]);
    f.op(Op::GlobalLoadIndirectF32, &[cell(4).into(), cell(16).into()]);
    f.op(Op::ConstF64, &[2.5f64.to_bits().into(), cell(18).into()]);
    f.op(Op::GlobalStoreF64, &[8u32.into(), cell(18).into()])
        .op(Op::GlobalLoadF64, &[8u32.into(), cell(20).into()]);
    f.op(Op::GlobalStoreIndirectF64, &[cell(5).into(), cell(20).into()]);
    f.op(Op::GlobalLoadIndirectF64, &[cell(5).into(), cell(22).into()]);
    f.op(Op::GlobalStoreRef, &[0u32.into(), BUFFER, r(0).into()]);
    f.op(Op::GlobalStoreIndirectRef, &[cell(6).into(), BUFFER, moved(0).into()]);
    f.op(Op::GlobalLoadRef, &[1u32.into(), BUFFER, moved(1).into()]);
    f.op(Op::GlobalLoadIndirectRef, &[cell(6).into(), BUFFER, r(2).into()]);
    let cells = [7, 8, 10, 12, 16, 22].map(cell);
    let out = f.run_with(&[&cells[..], &[r(0), r(1), r(2)]].concat(), &[buffer(b"")]).unwrap();
    assert_eq!(show(&out), "-5 -6l -5 -6l 1.5f 2.5d null vm.buffer null");

    let far = |op: Op, index: i32, args: &[Arg]| {
        let mut f = Program::new("0v_v");
        f.i(0, index).op(op, &[&[cell(0).into()], args].concat()).0.clone()
    };
    for f in [
        far(Op::GlobalLoadIndirectI32, 29, &[cell(2).into()]),
        far(Op::GlobalStoreIndirectI64, 25, &[cell(2).into()]),
        far(Op::GlobalLoadIndirectI32, -1, &[cell(2).into()]),
        far(Op::GlobalLoadIndirectRef, 2, &[BUFFER, r(0).into()]),
        far(Op::GlobalStoreIndirectRef, -1, &[BUFFER, r(0).into()]),
    ] {
        assert_eq!(code(Program(f).run(&[])), Code::OutOfRange);
    }
    let mut f = Program::new("0r_v");
    f.op(Op::GlobalStoreRef, &[0u32.into(), LIST, r(0).into()]);
    assert_eq!(code(f.run_with(&[], &[buffer(b"")])), Code::InvalidArgument);
}

#[test]
fn fail_carries_code_and_message() {
    let fail = |status: i32| -> Result<Vec<Value>, Status> {
        let mut f = Program::new("0v_v");
        f.i(0, status).op(Op::Fail, &[cell(0).into(), "it broke".into()]);
        let next = f.0.label();
        f.0.block(next);
        f.run(&[])
    };
    assert!(fail(0).is_ok());
    let e = fail(18).unwrap_err();
    assert_eq!((e.code(), e.message()), (Code::Incompatible, "it broke"));
    assert_eq!(fail(32).unwrap_err().code(), Code::Unknown);
}

#[test]
fn lists_may_contain_themselves() {
    let mut f = Program::new("0v_i");
    f.i(0, 1).i(1, 0).op(Op::ListAlloc, &[ANY, cell(0).into(), r(0).into()]);
    f.op(Op::ListResize, &[r(0).into(), cell(0).into()]);
    f.op(Op::ListSetRef, &[r(0).into(), cell(1).into(), r(0).into()]);
    f.op(Op::ListSetRef, &[r(0).into(), cell(1).into(), moved(0).into()]);
    f.op(Op::CmpNzRef, &[r(0).into(), cell(2).into()]);
    assert_eq!(show(&f.run(&[cell(2)]).unwrap()), "0");
}

#[test]
fn operations_of_this_file_are_all_there_are() {
    let source = include_str!("objects.rs");
    let elsewhere: HashSet<&str> = ["import.resolved"].into();
    for row in halite_vm::isa::table() {
        let family = row.mnemonic.split('.').next().unwrap();
        let here = ["list", "buffer", "global", "assign", "cast.any", "discard", "trace", "print", "fail"];
        if (here.contains(&family) || row.mnemonic.ends_with(".ref")) && !elsewhere.contains(row.mnemonic) {
            assert!(source.contains(&format!("Op::{:?}", row.op)), "no test of {}", row.mnemonic);
        }
    }
}
