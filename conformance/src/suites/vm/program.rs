//! The short way to assemble a program of one function and to run it.

use std::{sync::Arc, time::Instant};

use halite_abi::{Result, Status};
use halite_hal::Code;
use halite_testing::hal::support;
use halite_vm::{
    Buffer, Context, ContextOptions, FunctionHandle, Invocation, Limits, Module, NativeModule, Ref, Value,
    asm::{Arg, FunctionBuilder, ModuleBuilder, Reg, cell},
    isa::Op,
};

use crate::suites::{Outcome, Stop, case::same};

/// Types that every program has, in this order.
const TYPES: [&str; 6] = ["i8", "i64", "f32", "!vm.opaque", "!vm.buffer", "!vm.list<i8>"];
/// Index of a type in a program.
pub const I8: Arg = Arg::U32(0);
/// Index of a type in a program.
pub const I64: Arg = Arg::U32(1);
/// Index of a type in a program.
pub const F32: Arg = Arg::U32(2);
/// Index of a type in a program.
pub const ANY: Arg = Arg::U32(3);
/// Index of a type in a program.
pub const BUFFER: Arg = Arg::U32(4);
/// Index of a type in a program.
pub const LIST: Arg = Arg::U32(5);

/// Read-only data of every program, ordinal 0.
pub const RODATA: &[u8] = b"\x01\x02\x03\xFFabcd";
/// Bytes and references of every program's globals.
pub const GLOBALS: (u32, u32) = (32, 2);
/// Most memory that a program may allocate.
pub const MEMORY: u64 = 1 << 20;

/// A function under construction, and the module around it.
pub struct Assembled {
    /// The module; `main` is added at the end.
    pub module: ModuleBuilder,
    /// The function `main`.
    pub main: FunctionBuilder,
}

impl Assembled {
    /// A program whose function has this calling convention.
    pub fn new(convention: &str) -> Self {
        let mut module = ModuleBuilder::new("test");
        TYPES.iter().for_each(|name| {
            module.ty(name);
        });
        module.rodata(RODATA);
        module.globals(GLOBALS.0, GLOBALS.1);
        Assembled { module, main: FunctionBuilder::new(convention) }
    }

    /// Appends an operation.
    pub fn op(&mut self, op: Op, args: &[Arg]) -> Result<&mut Self> {
        self.main.op(op, args)?;
        Ok(self)
    }

    /// Appends a 32-bit constant.
    pub fn i(&mut self, n: u16, value: i32) -> Result<&mut Self> {
        self.op(Op::ConstI32, &[value.into(), cell(n).into()])
    }

    /// Appends a 64-bit constant.
    pub fn l(&mut self, n: u16, value: i64) -> Result<&mut Self> {
        self.op(Op::ConstI64, &[value.into(), cell(n).into()])
    }

    /// Ends the function with a return of these registers.
    pub fn returns(mut self, results: &[Reg]) -> Result<Ready> {
        self.main.op(Op::Return, &[results.to_vec().into()])?;
        self.finish(&[])
    }

    /// A program whose function has ended, with modules that it may import from.
    pub fn finish(mut self, natives: &[Arc<dyn NativeModule>]) -> Result<Ready> {
        self.module.function(Some("main"), self.main)?;
        let module = Module::load(self.module.finish())?;
        let limits = Limits { memory_bytes: MEMORY, ..Limits::default() };
        let options = ContextOptions { limits, ..ContextOptions::default() };
        let context = Context::with_options(natives, &[module], &options)?;
        let main = context.lookup("test", "main")?;
        Ok(Ready { context, main })
    }
}

/// A program that can be called.
pub struct Ready {
    context: Context,
    main: FunctionHandle,
}

impl Ready {
    /// Calls it.
    pub fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        self.context.invoke(&self.main, args, &soon())
    }

    /// Calls it and compares what it returns, as [`show`] tells it.
    pub fn gives(&self, args: &[Value], wanted: &str) -> Outcome {
        same(&format!("what main({}) returns", show(args)), show(&self.call(args)?).as_str(), wanted)
    }

    /// Calls it; it must fail with this code.
    pub fn fails(&self, args: &[Value], code: Code) -> std::result::Result<Status, Stop> {
        crate::suites::case::refused(&format!("main({})", show(args)), self.call(args), &[code])
    }
}

/// An invocation with the suite's deadline.
pub fn soon() -> Invocation {
    match support::soon() {
        halite_hal::Deadline::At(at) => Invocation::until(at),
        _ => Invocation::until(Instant::now()),
    }
}

/// A reference to a buffer of these bytes.
pub fn buffer(bytes: &[u8]) -> Value {
    Value::Ref(Ref::new(Buffer::from_vec(bytes.to_vec())))
}

/// The bytes of a buffer.
pub fn bytes_of(value: Option<&Value>) -> std::result::Result<Vec<u8>, Stop> {
    match value {
        Some(Value::Ref(reference)) => Ok(reference.expect::<Buffer>("a buffer")?.to_bytes()?.to_vec()),
        other => Err(Stop::Fail(format!("{other:?} where a buffer should be"))),
    }
}

/// Values as text: `7 7l 1.5f 1.5d null vm.buffer`.
pub fn show(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::I32(v) => v.to_string(),
        Value::I64(v) => format!("{v}l"),
        Value::F32(v) => format!("{v}f"),
        Value::F64(v) => format!("{v}d"),
        Value::Ref(v) => v.type_name().unwrap_or("null").to_owned(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(" ")
}
