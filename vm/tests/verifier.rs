//! The checks that the verifier refuses what it must, and says where and why.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use halite_abi::Code;
use halite_formats::vmfb::{Export, Function, ModuleDef};
use halite_vm::{
    Module,
    asm::{Arg, FunctionBuilder, ModuleBuilder, PLAIN, Reg, cell, moved, reference as r},
    isa::Op,
};

/// A module with something of everything, whose `main` is the given function.
fn def(function: FunctionBuilder) -> ModuleDef {
    let mut b = ModuleBuilder::new("m");
    b.ty("!vm.buffer");
    b.rodata(&b"x"[..]);
    b.globals(8, 1);
    b.import("host.plain", "0iIr_I", false);
    b.import("host.many", "0iCrID_i", false);
    b.function(Some("main"), function).unwrap();
    let mut callee = FunctionBuilder::new("0iIr_Ir");
    callee.op(Op::Return, &[vec![cell(2), r(0)].into()]).unwrap();
    b.function(None, callee).unwrap();
    b.finish()
}

/// The message with which a module is refused.
fn refusal(def: ModuleDef) -> String {
    let status = Module::load(def).expect_err("must be refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    status.to_string()
}

/// One instruction, then a return.
fn one(op: Op, args: &[Arg]) -> FunctionBuilder {
    let mut f = FunctionBuilder::new("0v_v");
    f.op(op, args).unwrap();
    f.op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    f
}

fn refuse(op: Op, args: &[Arg], why: &str) {
    let message = refusal(def(one(op, args)));
    let place = format!("module 'm' function 'main' at 0x1, {}: ", op.info().mnemonic);
    assert!(message.contains(&place) && message.contains(why), "{op:?}: {message}");
}

#[test]
fn registers() {
    let (c, p, f) = (cell(0), cell(1), Arg::U32(0));
    refuse(Op::AddI32, &[r(0).into(), c.into(), c.into()], "is a ref where a number is expected");
    refuse(Op::AddI64, &[p.into(), c.into(), c.into()], "is odd");
    refuse(Op::CmpNzRef, &[c.into(), c.into()], "is a number where a ref is expected");
    refuse(Op::CmpNzRef, &[moved(0).into(), c.into()], "may not be moved");
    refuse(Op::DiscardRefs, &[vec![c].into()], "is a number where a ref is expected");
    refuse(Op::SwitchI64, &[c.into(), c.into(), vec![p].into(), c.into()], "is odd");
    refuse(Op::SwitchRef, &[c.into(), f, r(0).into(), vec![c].into(), r(0).into()], "a ref is expected");
    for (cells, refs, ok) in [(3, 1, true), (2, 1, false), (3, 0, false), (0, 0, false)] {
        // A count of 3 is rounded up to 4, as the official runtime does.
        let mut d = def(one(Op::CmpNzRef, &[r(0).into(), cell(3).into()]));
        (d.functions[0].i32_register_count, d.functions[0].ref_register_count) = (cells, refs);
        assert_eq!(Module::load(d).is_ok(), ok, "{cells} {refs}");
    }
}

#[test]
fn ordinals() {
    let (c, no) = (cell(0), Arg::U32(9));
    refuse(
        Op::ConstRefRodata,
        &[no.clone(), r(0).into()],
        "rodata segment 9 does not exist; the module has 1",
    );
    refuse(Op::ListAlloc, &[no.clone(), c.into(), r(0).into()], "type 9 does not exist");
    refuse(Op::GlobalLoadRef, &[no.clone(), Arg::U32(0), r(0).into()], "ref global 9 does not exist");
    refuse(Op::ImportResolved, &[no.clone(), c.into()], "import 9 does not exist; the module has 2");
    refuse(Op::Call, &[no, vec![c].into(), vec![c].into()], "function 9 does not exist; the module has 2");
    let import = Arg::U32(halite_vm::asm::import(2));
    refuse(Op::Call, &[import, vec![c].into(), vec![c].into()], "import 2 does not exist");
    refuse(Op::GlobalLoadI32, &[Arg::U32(5), c.into()], "does not fit");
    refuse(Op::GlobalStoreI64, &[Arg::U32(4), c.into()], "does not fit");
    refuse(Op::GlobalStoreI64, &[Arg::U32(u32::MAX), c.into()], "does not fit");
}

#[test]
fn call_lists() {
    let none: Vec<Reg> = Vec::new();
    let args = vec![cell(0), cell(2), r(0)];
    let results = vec![cell(0), r(0)];
    let call = |a: &[Reg], x: &[Reg]| [Arg::U32(1), a.to_vec().into(), x.to_vec().into()];
    assert!(Module::load(def(one(Op::Call, &call(&args, &results)))).is_ok());
    refuse(Op::Call, &call(&args[..2], &results), "2 argument registers given, but the signature has 3");
    refuse(Op::Call, &call(&args, &none), "0 result registers given, but the signature has 2");
    refuse(Op::Call, &call(&[cell(0), cell(1), r(0)], &results), "argument 1: cell 1 is odd");
    refuse(Op::Call, &call(&args, &[r(0), cell(0)]), "result 0: ");
    refuse(Op::Return, &[vec![cell(0)].into()], "1 return registers given");

    let many = |segments: &[u16], regs: &[Reg]| {
        let many = Arg::U32(halite_vm::asm::import(1));
        [many, segments.to_vec().into(), regs.to_vec().into(), vec![cell(0)].into()]
    };
    let two = [cell(0), r(0), cell(2), r(0), cell(2)];
    assert!(Module::load(def(one(Op::CallVariadic, &many(&[PLAIN, 2], &two)))).is_ok());
    assert!(Module::load(def(one(Op::CallVariadic, &many(&[PLAIN, 0], &two[..1])))).is_ok());
    refuse(Op::CallVariadic, &many(&[PLAIN, 1], &two), "5 argument registers given, but the signature has 3");
    refuse(Op::CallVariadic, &many(&[PLAIN, 60000], &two), "a span of 60000 elements");
    refuse(Op::CallVariadic, &many(&[1, 2], &two), "a parameter that is no span");
    refuse(Op::CallVariadic, &many(&[2], &two), "1 segments given, but the callee has 2 parameters");
    let plain = [Arg::U32(halite_vm::asm::import(1)), two.to_vec().into(), vec![cell(0)].into()];
    refuse(Op::Call, &plain, "needs a segment list");
    let internal = [Arg::U32(1), vec![PLAIN, PLAIN, PLAIN].into(), args.into(), results.into()];
    refuse(Op::CallVariadic, &internal, "only imports");
}

#[test]
fn blocks() {
    let refused = |bytes: &[u8], why: &str| {
        let mut f = FunctionBuilder::new("0v_v");
        f.raw(bytes);
        let message = refusal(def(f));
        assert!(message.contains(why), "{bytes:x?}: {message}");
    };
    refused(&[], "does not end in a terminator");
    refused(&[0x0C, 0, 0], "cell 0 is out of range; the function has 0");
    refused(&[0x79, 0x5A, 0, 0], "the block before does not end in a terminator");
    refused(&[0x5A, 0, 0, 0x0C, 0, 0], "outside of a block");
    refused(&[0x5A, 0, 0, 0x79, 0x5A, 0, 0], "2 blocks found, but the descriptor says 1");
    refused(&[0x56, 1, 0, 0, 0, 0, 0], "branch target 0x1 is not the beginning of a block");
    refused(&[0x56, 0, 0, 0, 0, 1, 0], "the code ends within the instruction");
    refused(&[0xFF], "no operation has opcode 0xff in the Core set");
    refused(&[0xE0, 0xFF], "no operation has opcode 0xff in the F32 set");
    refused(&[0xE0], "the code ends within the instruction");
    refused(&[0xE0, 0x04, 0, 0], "does not declare the f32 requirement");
    refused(&[0xE1, 0x04, 0, 0], "does not declare the f64 requirement");
}

#[test]
fn descriptors_and_headers() {
    fn refused(change: impl FnOnce(&mut ModuleDef), why: &str) {
        let mut d = def(one(Op::ImportResolved, &[0u32.into(), cell(0).into()]));
        change(&mut d);
        let message = refusal(d);
        assert!(message.contains(why), "{message}");
    }
    let function = |change: fn(&mut Function)| move |d: &mut ModuleDef| change(&mut d.functions[0]);
    refused(function(|f| f.block_count = 0), "at least one block");
    refused(function(|f| f.bytecode_length = 0), "at least one block");
    refused(function(|f| f.bytecode_offset = u32::MAX), "outside of the module's bytecode");
    refused(function(|f| f.i32_register_count = 0x8000), "more than");
    refused(function(|f| f.ref_register_count = 0x4000), "more than");
    refused(function(|f| f.requirements = 16), "requirement bits 0x10");
    refused(function(|f| f.signature.calling_convention = "0CiD_v".into()), "only imports may be variadic");
    refused(function(|f| f.signature.calling_convention = "0q".into()), "unexpected 'q'");
    refused(function(|f| f.signature.calling_convention = "0iiiii".into()), "arguments need 5 cells");
    refused(|d| d.name.clear(), "no name");
    refused(|d| d.bytecode_version = 18 << 16, "18.0, but this runtime reads 17.0");
    refused(|d| d.bytecode_version += 1, "17.1");
    refused(|d| d.requirements = 0x20, "requires features 0x20");
    refused(|d| d.types.push("!oops".into()), "type '!oops' is not known");
    refused(|d| d.imports[0].full_name = "nodot".into(), "'module.function'");
    refused(|d| d.imports[0].signature.calling_convention = "9".into(), "version '0'");
    refused(|d| d.exports[0].ordinal = 2, "names function 2; the module has 2");
    refused(
        |d| d.exports.push(Export { local_name: "__init".into(), ordinal: 1 }),
        "must neither take nor return",
    );
    // Many functions over the same bytes would multiply memory.
    refused(|d| d.functions = vec![d.functions[0].clone(); 100], "bytes of bytecode");
}
