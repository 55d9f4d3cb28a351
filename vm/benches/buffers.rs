//! How long a loop over a buffer takes, for each kind of memory behind it:
//! `cargo bench -p halite-vm --bench buffers`. One number a line: nanoseconds for a load, an addition, a store and the
//! branch.
#![allow(clippy::unwrap_used, reason = "a failure ends the program")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

use halite_abi::Result;
use halite_vm::{
    Buffer, Context, HostMemory, Invocation, Module, Ref, Value,
    asm::{FunctionBuilder, ModuleBuilder, Reg, cell, reference as r},
    isa::Op,
};

/// Elements of a buffer.
const LENGTH: usize = 4096;
/// Rounds over all of them in one measurement, of which the best counts.
const ROUNDS: u32 = 50;

/// Memory that is copied byte by byte: what a driver's own copy costs is to be added.
#[derive(Debug)]
struct Bytes(Vec<AtomicU8>);

impl HostMemory for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    fn load(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let part = &self.0[offset as usize..][..target.len()];
        part.iter().zip(target).for_each(|(from, to)| *to = from.load(Ordering::Relaxed));
        Ok(())
    }

    fn store(&self, offset: u64, source: &[u8]) -> Result<()> {
        let part = &self.0[offset as usize..][..source.len()];
        part.iter().zip(source).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        Ok(())
    }
}

/// `for i in 0..length { out[i] = in[i] + out[i] }` on 32-bit integers.
fn program() -> Arc<Module> {
    let mut f = FunctionBuilder::new("0rrI_v");
    let [body, end] = [f.label(), f.label()];
    // Cells 0 and 1 are the length, 2 and 3 the index, 4 and 5 one.
    f.op(Op::ConstI64, &[0_i64.into(), cell(2).into()]).unwrap();
    f.op(Op::ConstI64, &[1_i64.into(), cell(4).into()]).unwrap();
    f.op(Op::Br, &[body.into()]).unwrap();
    f.block(body);
    f.op(Op::BufferLoadI32, &[r(0).into(), cell(2).into(), cell(6).into()]).unwrap();
    f.op(Op::BufferLoadI32, &[r(1).into(), cell(2).into(), cell(7).into()]).unwrap();
    f.op(Op::AddI32, &[cell(6).into(), cell(7).into(), cell(6).into()]).unwrap();
    f.op(Op::BufferStoreI32, &[r(1).into(), cell(2).into(), cell(6).into()]).unwrap();
    f.op(Op::AddI64, &[cell(2).into(), cell(4).into(), cell(2).into()]).unwrap();
    f.op(Op::CmpLtI64S, &[cell(2).into(), cell(0).into(), cell(8).into()]).unwrap();
    f.op(Op::CondBr, &[cell(8).into(), body.into(), end.into()]).unwrap();
    f.block(end);
    f.op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    let mut module = ModuleBuilder::new("bench");
    module.ty("!vm.buffer");
    module.function(Some("add"), f).unwrap();
    Module::load(module.finish()).unwrap()
}

fn main() {
    // `cargo bench` says so; tests only see that it works.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let (samples, rounds) = if measured { (20, ROUNDS) } else { (1, 1) };
    let context = Context::new(&[], &[program()]).unwrap();
    let add = context.lookup("bench", "add").unwrap();
    let owned = || Buffer::from_vec(vec![1; LENGTH * 4]);
    let foreign = || {
        let bytes = (0..LENGTH * 4).map(|_| AtomicU8::new(1)).collect();
        Buffer::from_host_memory(Arc::new(Bytes(bytes)))
    };
    let cases: [(&str, Buffer, Buffer); 3] = [
        ("owned", owned(), owned()),
        ("constant to owned", Buffer::from_bytes(vec![1; LENGTH * 4].into()), owned()),
        ("foreign", foreign(), foreign()),
    ];
    for (name, input, output) in cases {
        let args = [Value::Ref(Ref::new(input)), Value::Ref(Ref::new(output)), Value::I64(LENGTH as i64)];
        let best = (0..samples).map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                context.invoke(&add, &args, &Invocation::default()).unwrap();
            }
            start.elapsed()
        });
        let best = best.min().unwrap_or_default();
        println!("{:6.2} ns  {name}", best.as_nanos() as f64 / f64::from(rounds) / LENGTH as f64);
    }
}
