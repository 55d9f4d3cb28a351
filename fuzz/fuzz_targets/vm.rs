//! Bytecode: whatever is accepted runs to an end without a panic, within its time, memory and stack. Input that is no
//! module file is taken as the code of one function in a module with something of everything.
#![no_main]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use halite_formats::vmfb::{ModuleDef, read_module, requirement};
use halite_vm::{
    Buffer, Context, ContextOptions, Invocation, Kind, Limits, Module, Param, Ref, Value,
    asm::{FunctionBuilder, ModuleBuilder},
    disassemble,
};
use libfuzzer_sys::fuzz_target;

/// A module whose `main` has this code.
fn scaffold(code: &[u8]) -> ModuleDef {
    let mut builder = ModuleBuilder::new("fuzz");
    for name in ["i8", "i64", "f32", "!vm.opaque", "!vm.buffer", "!vm.list<?>"] {
        builder.ty(name);
    }
    builder.rodata(&b"rodata of sixteen"[..]);
    builder.globals(64, 4);
    builder.import("absent.function", "0iCrID_i", true);
    let mut main = FunctionBuilder::new("0iIrr_ir");
    main.raw(code);
    builder.function(Some("main"), main).expect("there are no labels to resolve");
    let mut def = builder.finish();
    let function = &mut def.functions[0];
    (function.i32_register_count, function.ref_register_count) = (32, 16);
    function.requirements = requirement::EXT_F32 | requirement::EXT_F64;
    // The verifier wants the right number of blocks: let the input choose it without a header of its own.
    function.block_count = 1 + code.iter().filter(|b| **b == 0x79).count().min(100) as u16;
    def
}

fn value(param: &Param) -> Value {
    match param {
        Param::One(Kind::I32) => Value::I32(3),
        Param::One(Kind::I64) => Value::I64(2),
        Param::One(Kind::F32) => Value::F32(1.5),
        Param::One(Kind::F64) => Value::F64(-0.5),
        _ => Value::Ref(Ref::new(Buffer::from_vec(vec![7; 16]))),
    }
}

fn run(module: &Arc<Module>) {
    let until = || Invocation::until(Instant::now() + Duration::from_millis(20));
    let limits = Limits { call_depth: 64, memory_bytes: 1 << 20, ..Limits::default() };
    let options = ContextOptions { limits, init: until() };
    let Ok(context) = Context::with_options(&[], std::slice::from_ref(module), &options) else { return };
    for export in module.def().exports.iter().take(8) {
        let Ok(function) = context.lookup(module.name(), &export.local_name) else { continue };
        let args: Vec<Value> = function.signature().args.iter().map(value).collect();
        let _ = context.invoke(&function, &args, &until());
    }
}

fuzz_target!(|data: &[u8]| {
    let def = read_module(Bytes::copy_from_slice(data)).unwrap_or_else(|_| scaffold(data));
    for ordinal in 0..def.functions.len().min(64) as u32 {
        let _ = disassemble(&def, ordinal);
    }
    if let Ok(module) = Module::load(def) {
        run(&module);
    }
});
