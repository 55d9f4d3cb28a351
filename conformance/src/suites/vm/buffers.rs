//! Cases of operations on buffers: loads, stores and fills of every width, against slices; copies, clones, comparisons,
//! hashes; what is out of bounds.

use halite_abi::Result;
use halite_hal::Code;
use halite_testing::Random;
use halite_vm::{
    Value,
    asm::{Arg, cell, reference as r},
    isa::Op,
};

use super::program::{Assembled, MEMORY, RODATA, Ready, buffer, bytes_of};
use crate::suites::{
    Cases, Outcome,
    case::{same, same_bytes},
};

/// Operations that load: width, and whether narrow values are extended by their sign.
const LOADS: [(Op, usize, bool); 8] = [
    (Op::BufferLoadI8U, 1, false),
    (Op::BufferLoadI8S, 1, true),
    (Op::BufferLoadI16U, 2, false),
    (Op::BufferLoadI16S, 2, true),
    (Op::BufferLoadI32, 4, false),
    (Op::BufferLoadI64, 8, false),
    (Op::BufferLoadF32, 4, false),
    (Op::BufferLoadF64, 8, false),
];
const STORES: [(Op, usize); 6] = [
    (Op::BufferStoreI8, 1),
    (Op::BufferStoreI16, 2),
    (Op::BufferStoreI32, 4),
    (Op::BufferStoreI64, 8),
    (Op::BufferStoreF32, 4),
    (Op::BufferStoreF64, 8),
];
const FILLS: [(Op, usize); 6] = [
    (Op::BufferFillI8, 1),
    (Op::BufferFillI16, 2),
    (Op::BufferFillI32, 4),
    (Op::BufferFillI64, 8),
    (Op::BufferFillF32, 4),
    (Op::BufferFillF64, 8),
];
/// Elements of the buffers of loads, stores and fills.
const COUNT: usize = 37;
const ROUNDS: usize = 40;

pub fn add(cases: &mut Cases, seed: u64) {
    for (op, width, signed) in LOADS {
        let name = format!("buffer.{}:seed={seed}", op.info().mnemonic);
        cases.add(name, &[], move |_| loads(op, width, signed, seed));
    }
    for (op, width) in STORES {
        let name = format!("buffer.{}:seed={seed}", op.info().mnemonic);
        cases.add(name, &[], move |_| stores(op, width, seed));
        cases.add(format!("buffer.{}:target=rodata", op.info().mnemonic), &[], move |_| read_only(op, width));
    }
    for (op, width) in FILLS {
        let name = format!("buffer.{}:seed={seed}", op.info().mnemonic);
        cases.add(name, &[], move |_| fills(op, width, seed));
    }
    cases.add(format!("buffer.buffer.copy:seed={seed}"), &[], move |_| copies(seed));
    cases.add(format!("buffer.buffer.compare:seed={seed}"), &[], move |_| compares(seed));
    cases.add(format!("buffer.buffer.clone:seed={seed}"), &[], move |_| clones(seed));
    cases.add("buffer.buffer.alloc", &[], |_| allocates());
    cases.add("buffer.buffer.length", &[], |_| lengths());
    cases.add(format!("buffer.buffer.hash:seed={seed}"), &[], move |_| hashes(seed));
}

/// A value of a width as an argument of a function, and its letter.
fn wide(width: usize) -> (bool, char) {
    if width == 8 { (true, 'I') } else { (false, 'i') }
}

fn number(width: usize, bits: u64) -> Value {
    if width == 8 { Value::I64(bits as i64) } else { Value::I32(bits as u32 as i32) }
}

fn loads(op: Op, width: usize, signed: bool, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let bytes = random.bytes(COUNT * width);
    let mut program = Assembled::new(&format!("0rI_{}", wide(width).1));
    program.op(op, &[r(0).into(), cell(0).into(), cell(2).into()])?;
    let program = program.returns(&[cell(2)])?;
    let source = buffer(&bytes);
    for index in 0..COUNT {
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(&bytes[index * width..(index + 1) * width]);
        let raw = u64::from_le_bytes(word);
        let shift = 64 - 8 * width as u32;
        let value = if signed { ((raw << shift) as i64 >> shift) as u64 } else { raw };
        let got = program.call(&[source.clone(), Value::I64(index as i64)])?;
        let wanted = vec![number(width, value)];
        same(&format!("element {index}"), format!("{got:?}"), format!("{wanted:?}"))?;
    }
    for index in [COUNT as i64, -1, i64::MAX, i64::MIN] {
        program.fails(&[source.clone(), Value::I64(index)], Code::OutOfRange)?;
    }
    program.fails(&[Value::Ref(Default::default()), Value::I64(0)], Code::InvalidArgument)?;
    Ok(())
}

fn store(op: Op, width: usize) -> Result<Ready> {
    let mut program = Assembled::new(&format!("0rI{}_r", wide(width).1));
    program.op(op, &[r(0).into(), cell(0).into(), cell(2).into()])?;
    program.returns(&[r(0)])
}

fn stores(op: Op, width: usize, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let program = store(op, width)?;
    let mut model = random.bytes(COUNT * width);
    for _ in 0..ROUNDS {
        let (index, bits) = (random.index(COUNT), random.next_u64());
        let target = buffer(&model);
        let out = program.call(&[target, Value::I64(index as i64), number(width, bits)])?;
        model[index * width..(index + 1) * width].copy_from_slice(&bits.to_le_bytes()[..width]);
        same_bytes(&format!("the buffer after a store to element {index}"), &bytes_of(out.first())?, &model)?;
    }
    for index in [COUNT as i64, -1, i64::MAX] {
        program.fails(&[buffer(&model), Value::I64(index), number(width, 0)], Code::OutOfRange)?;
    }
    Ok(())
}

fn read_only(op: Op, width: usize) -> Outcome {
    let mut program = Assembled::new(&format!("0I{}_v", wide(width).1));
    program.op(Op::ConstRefRodata, &[0u32.into(), r(0).into()])?;
    program.op(op, &[r(0).into(), cell(0).into(), cell(2).into()])?;
    program.returns(&[])?.fails(&[Value::I64(0), number(width, 1)], Code::PermissionDenied)?;
    Ok(())
}

fn fills(op: Op, width: usize, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut program = Assembled::new(&format!("0rII{}_r", wide(width).1));
    program.op(op, &[r(0).into(), cell(0).into(), cell(2).into(), cell(4).into()])?;
    let program = program.returns(&[r(0)])?;
    let mut model = random.bytes(COUNT * width);
    for _ in 0..ROUNDS {
        let start = random.index(COUNT + 1);
        let (length, bits) = (random.index(COUNT - start + 1), random.next_u64());
        let args = [buffer(&model), Value::I64(start as i64), Value::I64(length as i64), number(width, bits)];
        let out = program.call(&args)?;
        let pattern = &bits.to_le_bytes()[..width];
        model[start * width..(start + length) * width].chunks_exact_mut(width).for_each(|element| {
            element.copy_from_slice(pattern);
        });
        same_bytes(
            &format!("the buffer after a fill of {length} from {start} on"),
            &bytes_of(out.first())?,
            &model,
        )?;
    }
    for (start, length) in [(COUNT as i64, 1), (0, COUNT as i64 + 1), (-1, 1), (1, -1), (i64::MAX, i64::MAX)]
    {
        let args = [buffer(&model), Value::I64(start), Value::I64(length), number(width, 0)];
        program.fails(&args, Code::OutOfRange)?;
    }
    Ok(())
}

/// Three places of a random length within two buffers of these lengths.
fn places(random: &mut Random, source: usize, target: usize) -> [usize; 3] {
    let (from, to) = (random.index(source + 1), random.index(target + 1));
    [from, to, random.index((source - from).min(target - to) + 1)]
}

fn copies(seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut program = Assembled::new("0rrIII_r");
    let args = [r(0), cell(0), r(1), cell(2), cell(4)].map(Arg::from);
    program.op(Op::BufferCopy, &args)?;
    let program = program.returns(&[r(1)])?;
    let (source, mut model) = (random.bytes(61), random.bytes(47));
    for _ in 0..ROUNDS {
        let [from, to, length] = places(&mut random, source.len(), model.len());
        let numbers = [from, to, length].map(|n| Value::I64(n as i64));
        let out = program.call(&[&[buffer(&source), buffer(&model)], &numbers[..]].concat())?;
        model[to..to + length].copy_from_slice(&source[from..from + length]);
        same_bytes(&format!("the buffer after a copy of {length} to {to}"), &bytes_of(out.first())?, &model)?;
    }
    for (from, to, length) in [(61, 0, 1), (0, 47, 1), (0, 0, 48), (-1, 0, 1), (0, -1, 1), (0, 0, -1)] {
        let numbers = [from, to, length].map(Value::I64);
        let args = [&[buffer(&source), buffer(&model)], &numbers[..]].concat();
        program.fails(&args, Code::OutOfRange)?;
    }
    Ok(())
}

fn compares(seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut program = Assembled::new("0rrIII_i");
    let args = [r(0), cell(0), r(1), cell(2), cell(4), cell(6)].map(Arg::from);
    program.op(Op::BufferCompare, &args)?;
    let program = program.returns(&[cell(6)])?;
    // Few values, so that some parts are equal.
    let bytes = |random: &mut Random| (0..40).map(|_| random.below(2) as u8).collect::<Vec<u8>>();
    let (a, b) = (bytes(&mut random), bytes(&mut random));
    let mut equal = 0;
    for _ in 0..10 * ROUNDS {
        let [from, to, length] = places(&mut random, a.len(), b.len());
        let length = length.min(3);
        let numbers = [from, to, length].map(|n| Value::I64(n as i64));
        let wanted = a[from..from + length] == b[to..to + length];
        equal += usize::from(wanted && length > 0);
        let args = [&[buffer(&a), buffer(&b)], &numbers[..]].concat();
        program.gives(&args, if wanted { "1" } else { "0" })?;
    }
    same("whether any parts were equal", equal > 0, true)?;
    let args = [&[buffer(&a), buffer(&b)], &[0, 0, 41].map(Value::I64)[..]].concat();
    program.fails(&args, Code::OutOfRange)?;
    Ok(())
}

fn clones(seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut program = Assembled::new("0rII_rr");
    program.i(4, 16)?;
    let args = [r(0), cell(0), cell(2), cell(4), r(1)].map(Arg::from);
    program.op(Op::BufferClone, &args)?;
    // A clone is memory of its own: what is written to it does not reach the source.
    program.l(6, 0)?.i(5, 0x5A)?.l(8, 1)?;
    program.op(Op::BufferFillI8, &[r(1).into(), cell(6).into(), cell(8).into(), cell(5).into()])?;
    let program = program.returns(&[r(0), r(1)])?;
    let source = random.bytes(50);
    for _ in 0..ROUNDS {
        let start = random.index(source.len());
        let length = 1 + random.index(source.len() - start);
        let out = program.call(&[buffer(&source), Value::I64(start as i64), Value::I64(length as i64)])?;
        let mut wanted = source[start..start + length].to_vec();
        wanted[0] = 0x5A;
        same_bytes("the source", &bytes_of(out.first())?, &source)?;
        same_bytes("the clone", &bytes_of(out.get(1))?, &wanted)?;
    }
    for (start, length) in [(0, 51), (51, 1), (-1, 1), (0, -1)] {
        program.fails(&[buffer(&source), Value::I64(start), Value::I64(length)], Code::OutOfRange)?;
    }
    Ok(())
}

fn allocates() -> Outcome {
    let mut program = Assembled::new("0I_r");
    program.i(2, 16)?.op(Op::BufferAlloc, &[cell(0).into(), cell(2).into(), r(0).into()])?;
    let program = program.returns(&[r(0)])?;
    for length in [0usize, 1, 7, 4096] {
        let out = program.call(&[Value::I64(length as i64)])?;
        same_bytes("a new buffer", &bytes_of(out.first())?, &vec![0; length])?;
    }
    for length in [MEMORY as i64 + 1, -1, i64::MAX] {
        program.fails(&[Value::I64(length)], Code::ResourceExhausted)?;
    }
    Ok(())
}

fn lengths() -> Outcome {
    let mut program = Assembled::new("0r_II");
    program.op(Op::BufferLength, &[r(0).into(), cell(0).into()])?;
    program.op(Op::ConstRefRodata, &[0u32.into(), r(1).into()])?;
    program.op(Op::BufferLength, &[r(1).into(), cell(2).into()])?;
    let program = program.returns(&[cell(0), cell(2)])?;
    for length in [0usize, 1, 1000] {
        program.gives(&[buffer(&vec![1; length])], &format!("{length}l {}l", RODATA.len()))?;
    }
    Ok(())
}

/// The hash is that of the original: SipHash-2-4 with its key. Equal parts hash alike, wherever they lie.
fn hashes(seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut program = Assembled::new("0rII_I");
    program.op(Op::BufferHash, &[r(0).into(), cell(0).into(), cell(2).into(), cell(4).into()])?;
    let program = program.returns(&[cell(4)])?;
    let part = |bytes: &[u8], start: usize, length: usize| {
        [buffer(bytes), Value::I64(start as i64), Value::I64(length as i64)]
    };
    // As iree-run-module 3.13.0 computes it.
    program.gives(&part(&[0; 8], 0, 8), "4166820438245540263l")?;
    let bytes = random.bytes(64);
    let hash = |args: &[Value]| -> std::result::Result<String, crate::suites::Stop> {
        Ok(super::program::show(&program.call(args)?))
    };
    for length in [0, 1, 7, 8, 9, 33] {
        let alone = hash(&part(&bytes[5..5 + length], 0, length))?;
        same("a part's hash", hash(&part(&bytes, 5, length))?, alone.clone())?;
        if length > 0 {
            let mut other = bytes.clone();
            other[5 + length - 1] ^= 1;
            let changed = hash(&part(&other, 5, length))? != alone;
            same("whether another byte gives another hash", changed, true)?;
        }
    }
    program.fails(&part(&bytes, 60, 5), Code::OutOfRange)?;
    Ok(())
}
