//! Cases of operations that work on numbers alone: every one over the edges of its types, and over random values. Owns the
//! inputs and the comparison; the rules are in `integers.rs` and `floats.rs`.

use halite_abi::Result;
use halite_hal::Code;
use halite_testing::Random;
use halite_vm::{
    Value,
    asm::{Arg, cell},
    isa::{Op, OpInfo, OpSet, Operand, table},
};

use super::{
    floats, integers,
    program::{Assembled, Ready},
};
use crate::suites::{Cases, Outcome, Stop, case::same};

/// Random inputs of a case.
const RANDOM: usize = 200;

pub fn add(cases: &mut Cases, seed: u64) {
    for info in table().iter().filter(|info| is_scalar(info)) {
        let op = info.op;
        let tag = match info.set {
            OpSet::Core => "integers",
            OpSet::F32 => "f32",
            OpSet::F64 => "f64",
        };
        let name = info.mnemonic;
        cases.add_tagged(format!("scalar.{name}:inputs=edges"), &[], vec![tag], move |_| {
            check(op, &edges(op))
        });
        if sources(op).next().is_some() {
            let name = format!("scalar.{name}:inputs=random;seed={seed}");
            cases.add_tagged(name, &[], vec![tag], move |_| check(op, &random(op, seed)));
        }
    }
}

/// Whether an operation has a result and only numbers as operands.
fn is_scalar(info: &OpInfo) -> bool {
    use Operand::{Cell, CellOut, Imm32, Imm64, Pair, PairOut};
    let numbers = |o: &Operand| matches!(o, Cell | CellOut | Pair | PairOut | Imm32 | Imm64);
    info.operands.iter().any(|o| o.is_result())
        && info.operands.iter().all(numbers)
        && !info.mnemonic.starts_with("global.")
}

/// What an operand of an operation holds.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    I32,
    I64,
    F32,
    F64,
    /// An exponent of `fpowi`.
    Exponent,
    /// The base of `fpowi`, whose powers are exact.
    Base {
        wide: bool,
    },
}

/// The operands that are read, in order.
fn sources(op: Op) -> impl Iterator<Item = Kind> {
    let info = op.info();
    let read = info.operands.iter().filter(|o| !o.is_result()).enumerate();
    read.map(move |(index, operand)| {
        let wide = matches!(operand, Operand::Pair | Operand::Imm64);
        let name = info.mnemonic;
        let integers = info.set == OpSet::Core
            || name.starts_with("cast.si")
            || name.starts_with("cast.ui")
            || name.starts_with("bitcast.i")
            || name.starts_with("select.") && index == 0;
        match (name.starts_with("fpowi"), integers, wide) {
            (true, ..) if index == 1 => Kind::Exponent,
            (true, _, wide) => Kind::Base { wide },
            (_, true, false) => Kind::I32,
            (_, true, true) => Kind::I64,
            (_, false, false) => Kind::F32,
            (_, false, true) => Kind::F64,
        }
    })
}

/// Values at which operations change what they do.
fn edge_values(kind: Kind) -> Vec<u64> {
    let ints = [0i64, 1, -1, 2, 7, -7, 31, 33, 63, 127, 128, 255, 32_768, 65_535];
    let floats = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        0.1,
        1e-40,
        7.25,
        -1e3,
        65_504.0,
        3e10,
        -3e10,
        1e20,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    match kind {
        Kind::I32 => {
            let own = [i32::MIN, i32::MAX].map(|v| u64::from(v as u32));
            ints.iter().map(|v| u64::from(*v as u32)).chain(own).collect()
        }
        Kind::I64 => {
            let own = [i64::MIN, i64::MAX, 1 << 40, -1 << 40, i64::from(i32::MIN)].map(|v| v as u64);
            ints.iter().map(|v| *v as u64).chain(own).collect()
        }
        Kind::F32 => floats.iter().map(|v| u64::from((*v as f32).to_bits())).collect(),
        Kind::F64 => floats.iter().map(|v| v.to_bits()).collect(),
        Kind::Exponent => [0i64, 1, 2, 3, 5, -1, -2, -3, 1 << 32].iter().map(|v| *v as u64).collect(),
        Kind::Base { wide } => {
            let bases = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, f64::INFINITY, f64::NAN];
            let bits = |v: &f64| if wide { v.to_bits() } else { u64::from((*v as f32).to_bits()) };
            bases.iter().map(bits).collect()
        }
    }
}

/// Every combination of edges.
fn edges(op: Op) -> Vec<Vec<u64>> {
    let mut rows = vec![Vec::new()];
    for kind in sources(op) {
        let values = edge_values(kind);
        let longer = |row: &Vec<u64>| {
            let row = row.clone();
            values.iter().map(move |value| [&row[..], &[*value]].concat()).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    rows
}

fn random(op: Op, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random::new(seed ^ (op as u64) << 32);
    let mut value = |kind: Kind| match kind {
        Kind::I32 => u64::from(random.next_u64() as u32) >> random.below(32),
        Kind::I64 => random.next_u64() >> random.below(64),
        // Any exponent, but neither infinite nor NaN; those are edges.
        Kind::F32 => {
            let value = (random.below(2000) as f32 - 1000.0) / 7.0 * 10f32.powi(random.below(13) as i32 - 6);
            u64::from(value.to_bits())
        }
        Kind::F64 => {
            let value = (random.below(1 << 40) as f64 - (1u64 << 39) as f64) / 7e9;
            (value * 10f64.powi(random.below(17) as i32 - 8)).to_bits()
        }
        Kind::Exponent | Kind::Base { .. } => {
            let values = edge_values(kind);
            values[random.index(values.len())]
        }
    };
    (0..RANDOM).map(|_| sources(op).map(&mut value).collect()).collect()
}

/// Runs an operation on rows of inputs, and compares each with its rule.
fn check(op: Op, rows: &[Vec<u64>]) -> Outcome {
    let immediate = op.info().operands.iter().any(|o| matches!(o, Operand::Imm32 | Operand::Imm64));
    // An immediate is a part of the program, so each has its own.
    let shared = if immediate { None } else { Some(assemble(op, &[])?) };
    for inputs in rows {
        let own;
        let program = match &shared {
            Some(program) => program,
            None => {
                own = assemble(op, inputs)?;
                &own
            }
        };
        let arguments = if immediate { Vec::new() } else { values(op, inputs) };
        compare(op, inputs, program, &arguments)?;
    }
    Ok(())
}

/// A function that does the operation on its arguments, or on these immediates.
fn assemble(op: Op, immediates: &[u64]) -> Result<Ready> {
    let (mut convention, mut args, mut next) = (String::from("0"), Vec::<Arg>::new(), 0u16);
    let mut immediates = immediates.iter();
    let mut result = (cell(0), 'i');
    for operand in op.info().operands {
        let wide = matches!(operand, Operand::Pair | Operand::PairOut);
        let letter = if wide { 'I' } else { 'i' };
        next = if wide { next.next_multiple_of(2) } else { next };
        match operand {
            Operand::Imm32 => args.push(Arg::U32(immediates.next().copied().unwrap_or(0) as u32)),
            Operand::Imm64 => args.push(Arg::U64(immediates.next().copied().unwrap_or(0))),
            operand => {
                args.push(cell(next).into());
                if operand.is_result() {
                    result = (cell(next), letter);
                } else {
                    convention.push(letter);
                }
                next += 1 + u16::from(wide);
            }
        }
    }
    if convention.len() == 1 {
        convention.push('v');
    }
    let mut program = Assembled::new(&format!("{convention}_{}", result.1));
    program.op(op, &args)?;
    program.returns(&[result.0])
}

fn values(op: Op, inputs: &[u64]) -> Vec<Value> {
    let reads = op.info().operands.iter().filter(|o| !o.is_result());
    let value = |(operand, bits): (&Operand, &u64)| match operand {
        Operand::Pair => Value::I64(*bits as i64),
        _ => Value::I32(*bits as u32 as i32),
    };
    reads.zip(inputs).map(value).collect()
}

fn compare(op: Op, inputs: &[u64], program: &Ready, arguments: &[Value]) -> Outcome {
    let name = op.info().mnemonic;
    let what = || {
        let shown: Vec<_> = inputs.iter().map(|bits| format!("{bits:#x}")).collect();
        format!("{name}({})", shown.join(", "))
    };
    let run = || -> std::result::Result<u64, Stop> {
        match program.call(arguments)?[..] {
            [Value::I32(v)] => Ok(u64::from(v as u32)),
            [Value::I64(v)] => Ok(v as u64),
            ref other => Err(Stop::Fail(format!("{} gave {other:?}", what()))),
        }
    };
    if let Some(rule) = integers::rule(op) {
        let Some(wanted) = rule(inputs) else {
            let status = program.fails(arguments, Code::InvalidArgument)?;
            let told = status.message().ends_with(name);
            return same(&format!("the name of the operation at the end of '{status}'"), told, true);
        };
        return same(&what(), format!("{:#x}", run()?), format!("{wanted:#x}"));
    }
    let wide = op.info().operands.iter().any(|o| matches!(o, Operand::PairOut));
    let number = |bits: u64| if wide { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) };
    match floats::rule(op) {
        None => Err(Stop::Fail(format!("the suite has no rule for {name}"))),
        Some(floats::Rule::Exact(rule)) => {
            let (got, wanted) = (run()?, rule(inputs));
            let gives_float = name.starts_with("cast.f") || name.starts_with("cmp.");
            if !gives_float && number(got).is_nan() && number(wanted).is_nan() {
                return Ok(());
            }
            same(&what(), format!("{got:#x}"), format!("{wanted:#x}"))
        }
        Some(floats::Rule::Near(formula, slack)) => {
            let operands: Vec<f64> = inputs.iter().map(|bits| number(*bits)).collect();
            let (got, wanted) = (number(run()?), formula(&operands));
            if near(got, wanted, wide, slack) { Ok(()) } else { same(&what(), got, wanted) }
        }
    }
}

/// Whether a number is within so many units in the last place of what it should be, after rounding to its width.
fn near(got: f64, wanted: f64, wide: bool, slack: f64) -> bool {
    let rounded = if wide { wanted } else { f64::from(wanted as f32) };
    if got == rounded || got.is_nan() && wanted.is_nan() {
        return true;
    }
    let (epsilon, least) = if wide {
        (f64::EPSILON, f64::MIN_POSITIVE)
    } else {
        (f32::EPSILON.into(), f32::MIN_POSITIVE.into())
    };
    (got - wanted).abs() <= slack * epsilon * wanted.abs().max(least)
}
