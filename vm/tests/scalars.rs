//! One or more semantic checks for every operation that works on numbers alone.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::collections::HashSet;

use halite_abi::{Code, Result};
use halite_vm::{
    Value,
    asm::{Arg, FunctionBuilder, Reg, cell},
    isa::{Op, Operand, table},
};

/// Runs one operation on raw bits, and gives the raw bits of its result.
fn eval(op: Op, inputs: &[u64]) -> Result<u64> {
    let operands = op.info().operands;
    let (mut convention, mut values, mut args, mut next) = (String::from("0"), Vec::new(), Vec::new(), 0u16);
    let mut inputs = inputs.iter();
    let mut result = 'i';
    for operand in operands {
        let wide = matches!(operand, Operand::Pair | Operand::PairOut);
        next = if wide { next.next_multiple_of(2) } else { next };
        match operand {
            Operand::Imm32 => args.push(Arg::U32(*inputs.next().unwrap() as u32)),
            Operand::Imm64 => args.push(Arg::U64(*inputs.next().unwrap())),
            Operand::CellOut | Operand::PairOut => {
                result = if wide { 'I' } else { 'i' };
                args.push(cell(next).into());
            }
            Operand::Cell | Operand::Pair => {
                let bits = *inputs.next().unwrap();
                convention.push(if wide { 'I' } else { 'i' });
                values.push(if wide { Value::I64(bits as i64) } else { Value::I32(bits as i32) });
                args.push(cell(next).into());
                next += 1 + u16::from(wide);
            }
            other => panic!("{other:?} is not an operand of scalar operations"),
        }
    }
    assert!(inputs.next().is_none(), "{op:?} takes fewer inputs");
    let Some(Arg::Reg(out)) = args.last().cloned() else { panic!("{op:?} has no result") };
    let mut f = FunctionBuilder::new(&format!("{convention}_{result}"));
    f.op(op, &args)?.op(Op::Return, &[vec![out].into()])?;
    match common::run(&common::module(f)?, &values)?.remove(0) {
        Value::I32(v) => Ok(u64::from(v as u32)),
        Value::I64(v) => Ok(v as u64),
        other => panic!("{other:?}"),
    }
}

fn i(v: i32) -> u64 {
    u64::from(v as u32)
}

fn l(v: i64) -> u64 {
    v as u64
}

fn f(v: f32) -> u64 {
    u64::from(v.to_bits())
}

fn d(v: f64) -> u64 {
    v.to_bits()
}

type Row = (Op, Vec<u64>, u64);

#[rustfmt::skip]
fn integer_rows() -> Vec<Row> {
    let (min32, min64, big) = (i(i32::MIN), l(i64::MIN), 1u64 << 40);
    vec![
        (Op::ConstI32Zero, vec![], 0), (Op::ConstI32, vec![i(-7)], i(-7)),
        (Op::ConstI64Zero, vec![], 0), (Op::ConstI64, vec![l(-7) ^ big], l(-7) ^ big),
        (Op::AddI32, vec![i(i32::MAX), 1], min32), (Op::SubI32, vec![0, 1], i(-1)),
        (Op::MulI32, vec![i(65536), i(65537)], 65536), (Op::FmaI32, vec![i(-3), 4, 5], i(-7)),
        (Op::DivI32S, vec![i(-7), 2], i(-3)), (Op::DivI32S, vec![min32, i(-1)], min32),
        (Op::DivI32U, vec![i(-1), 2], i(i32::MAX)), (Op::RemI32S, vec![i(-7), 2], i(-1)),
        (Op::RemI32S, vec![min32, i(-1)], 0), (Op::RemI32U, vec![i(-1), 10], 5),
        (Op::AddI64, vec![l(i64::MAX), 1], min64), (Op::SubI64, vec![0, 1], l(-1)),
        (Op::MulI64, vec![big, big | 1], big), (Op::FmaI64, vec![l(-3), big, 5], l(-3 << 40).wrapping_add(5)),
        (Op::DivI64S, vec![l(-7), 2], l(-3)), (Op::DivI64S, vec![min64, l(-1)], min64),
        (Op::DivI64U, vec![l(-1), 2], l(i64::MAX)), (Op::RemI64S, vec![l(-7), 2], l(-1)),
        (Op::RemI64S, vec![min64, l(-1)], 0), (Op::RemI64U, vec![l(-1), 10], 5),
        (Op::NotI32, vec![0], i(-1)), (Op::AndI32, vec![12, 10], 8), (Op::OrI32, vec![12, 10], 14), (Op::XorI32, vec![12, 10], 6),
        (Op::NotI64, vec![0], l(-1)), (Op::AndI64, vec![big | 12, big | 10], big | 8), (Op::OrI64, vec![big, 10], big | 10),
        (Op::XorI64, vec![big | 1, big], 1),
        (Op::ShlI32, vec![1, 33], 2), (Op::ShrI32S, vec![min32, 31], i(-1)), (Op::ShrI32U, vec![min32, 31], 1),
        (Op::ShlI64, vec![1, 65], 2), (Op::ShrI64S, vec![min64, 63], l(-1)), (Op::ShrI64U, vec![min64, 63], 1),
        (Op::TruncI32I8, vec![0x1FF], 0xFF), (Op::TruncI32I16, vec![0x1FFFF], 0xFFFF), (Op::TruncI64I32, vec![big | 5], 5),
        (Op::ExtI8I32S, vec![0x180], i(-128)), (Op::ExtI8I32U, vec![0x180], 0x80),
        (Op::ExtI16I32S, vec![0x18000], i(-32768)), (Op::ExtI16I32U, vec![0x18000], 0x8000),
        (Op::ExtI32I64S, vec![i(-2)], l(-2)), (Op::ExtI32I64U, vec![i(-2)], 0xFFFF_FFFE),
        (Op::CmpEqI32, vec![3, 3], 1), (Op::CmpNeI32, vec![3, 3], 0), (Op::CmpLtI32S, vec![i(-1), 0], 1),
        (Op::CmpLtI32U, vec![i(-1), 0], 0), (Op::CmpNzI32, vec![8], 1),
        (Op::CmpEqI64, vec![big, 0], 0), (Op::CmpNeI64, vec![big, 0], 1), (Op::CmpLtI64S, vec![l(-1), 0], 1),
        (Op::CmpLtI64U, vec![l(-1), 0], 0), (Op::CmpNzI64, vec![big], 1),
        (Op::SelectI32, vec![2, 5, 6], 5), (Op::SelectI32, vec![0, 5, 6], 6),
        (Op::SelectI64, vec![1, big, 6], big), (Op::SelectI64, vec![0, 5, big], big),
        (Op::CtlzI32, vec![0], 32), (Op::CtlzI32, vec![1], 31), (Op::CtlzI64, vec![0], 64), (Op::CtlzI64, vec![1], 63),
        (Op::AbsI32, vec![i(-5)], 5), (Op::AbsI32, vec![min32], min32), (Op::AbsI64, vec![l(-5)], 5), (Op::AbsI64, vec![min64], min64),
        (Op::MinI32S, vec![i(-1), 1], i(-1)), (Op::MinI32U, vec![i(-1), 1], 1),
        (Op::MaxI32S, vec![i(-1), 1], 1), (Op::MaxI32U, vec![i(-1), 1], i(-1)),
        (Op::MinI64S, vec![l(-1), 1], l(-1)), (Op::MinI64U, vec![l(-1), 1], 1),
        (Op::MaxI64S, vec![l(-1), 1], 1), (Op::MaxI64U, vec![l(-1), 1], l(-1)),
    ]
}

/// Rows that hold for both widths, with `v` making a float.
macro_rules! float_rows {
    ($v:ident, $float:ty, $($name:ident: $op:ident),* $(,)?) => {{
        struct Ops { $($name: Op),* }
        let o = Ops { $($name: Op::$op),* };
        let nan = $v(<$float>::NAN);
        let inf = $v(<$float>::INFINITY);
        vec![
            (o.zero, vec![], $v(0.0)), (o.constant, vec![$v(-2.5)], $v(-2.5)),
            (o.select, vec![1, $v(1.5), $v(2.5)], $v(1.5)), (o.select, vec![0, $v(1.5), $v(2.5)], $v(2.5)),
            (o.add, vec![$v(1.5), $v(2.0)], $v(3.5)), (o.sub, vec![$v(1.5), $v(2.0)], $v(-0.5)),
            (o.mul, vec![$v(1.5), $v(2.0)], $v(3.0)), (o.div, vec![$v(1.0), $v(0.0)], inf),
            (o.rem, vec![$v(5.0), $v(3.0)], $v(-1.0)), (o.fma, vec![$v(2.0), $v(3.0), $v(0.5)], $v(6.5)),
            (o.abs, vec![$v(-2.5)], $v(2.5)), (o.neg, vec![$v(0.0)], $v(-0.0)),
            (o.ceil, vec![$v(1.2)], $v(2.0)), (o.floor, vec![$v(-1.2)], $v(-2.0)),
            (o.round, vec![$v(2.5)], $v(3.0)), (o.round, vec![$v(-2.5)], $v(-3.0)),
            (o.even, vec![$v(2.5)], $v(2.0)), (o.even, vec![$v(3.5)], $v(4.0)),
            (o.min, vec![nan, $v(1.0)], nan), (o.min, vec![$v(1.0), nan], $v(1.0)), (o.min, vec![$v(2.0), $v(1.0)], $v(1.0)),
            (o.max, vec![nan, $v(1.0)], nan), (o.max, vec![$v(1.0), nan], $v(1.0)), (o.max, vec![$v(2.0), $v(3.0)], $v(3.0)),
            (o.atan, vec![$v(1.0)], $v(std::f64::consts::FRAC_PI_4 as $float)),
            (o.atan2, vec![$v(1.0), $v(0.0)], $v(std::f64::consts::FRAC_PI_2 as $float)),
            (o.cos, vec![$v(0.0)], $v(1.0)), (o.sin, vec![$v(0.0)], $v(0.0)),
            (o.exp, vec![$v(0.0)], $v(1.0)), (o.exp2, vec![$v(3.0)], $v(8.0)), (o.expm1, vec![$v(0.0)], $v(0.0)),
            (o.log, vec![$v(1.0)], $v(0.0)), (o.log10, vec![$v(1000.0)], $v(3.0)), (o.log1p, vec![$v(0.0)], $v(0.0)),
            (o.log2, vec![$v(8.0)], $v(3.0)), (o.pow, vec![$v(2.0), $v(10.0)], $v(1024.0)),
            (o.rsqrt, vec![$v(4.0)], $v(0.5)), (o.sqrt, vec![$v(9.0)], $v(3.0)),
            (o.tanh, vec![inf], $v(1.0)), (o.erf, vec![inf], $v(1.0)),
            (o.eqo, vec![nan, nan], 0), (o.eqo, vec![$v(1.0), $v(1.0)], 1), (o.equ, vec![nan, $v(1.0)], 1), (o.equ, vec![$v(2.0), $v(1.0)], 0),
            (o.neo, vec![nan, $v(1.0)], 1), (o.neo, vec![$v(1.0), $v(1.0)], 0), (o.neu, vec![nan, nan], 1),
            (o.lto, vec![$v(1.0), $v(2.0)], 1), (o.lto, vec![nan, $v(2.0)], 0), (o.ltu, vec![nan, $v(2.0)], 1), (o.ltu, vec![$v(3.0), $v(2.0)], 0),
            (o.lteo, vec![$v(2.0), $v(2.0)], 1), (o.lteo, vec![nan, nan], 0), (o.lteu, vec![$v(2.0), nan], 1), (o.lteu, vec![$v(3.0), $v(2.0)], 0),
            (o.isnan, vec![nan], 1), (o.isnan, vec![inf], 0),
            // As iree-run-module 3.13.0 computes them.
            (o.powi, vec![$v(2.0), l(10)], $v(1024.0)), (o.powi, vec![$v(2.0), l(-3)], $v(0.125)),
            (o.powi, vec![$v(-3.0), l(3)], $v(-27.0)), (o.powi, vec![nan, l(0)], $v(1.0)),
            (o.powi, vec![$v(0.0), l(0)], $v(1.0)), (o.powi, vec![$v(-0.0), l(-1)], $v(<$float>::NEG_INFINITY)),
            (o.powi, vec![$v(2.0), l(-1074)], $v(0.0)), (o.powi, vec![$v(-1.0), l(i64::MAX)], $v(-1.0)),
            (o.powi, vec![$v(-1.0), l(i64::MIN)], $v(1.0)), (o.powi, vec![$v(2.0), l(-1 << 32)], $v(1.0)),
            (o.si64, vec![$v(-2.5)], l(-3)), (o.ui64, vec![$v(2.5)], 3),
            (o.from_si64, vec![l(-3)], $v(-3.0)), (o.from_ui64, vec![l(i64::MIN)], $v(9_223_372_036_854_775_808.0)),
            (o.si32, vec![$v(-2.5)], i(-3)), (o.ui32, vec![$v(2.5)], 3), (o.si32, vec![$v(3e10)], {
                (3e10 as $float as i64) as u32 as u64
            }),
            (o.from_si32, vec![i(-3)], $v(-3.0)), (o.from_ui32, vec![i(i32::MIN)], $v(2_147_483_648.0)),
            (o.to_bits, vec![$v(1.0)], $v(1.0)), (o.from_bits, vec![$v(1.0)], $v(1.0)),
        ]
    }};
}

#[rustfmt::skip]
fn f32_rows() -> Vec<Row> {
    float_rows!(f, f32, zero: ConstF32Zero, constant: ConstF32, select: SelectF32, add: AddF32, sub: SubF32,
        mul: MulF32, div: DivF32, rem: RemF32, fma: FmaF32, abs: AbsF32, neg: NegF32, ceil: CeilF32, floor: FloorF32,
        round: RoundF32, even: RoundF32Even, min: MinF32, max: MaxF32, atan: AtanF32, atan2: Atan2F32, cos: CosF32,
        sin: SinF32, exp: ExpF32, exp2: Exp2F32, expm1: Expm1F32, log: LogF32, log10: Log10F32, log1p: Log1pF32,
        log2: Log2F32, pow: PowF32, rsqrt: RsqrtF32, sqrt: SqrtF32, tanh: TanhF32, erf: ErfF32, eqo: CmpEqF32O,
        equ: CmpEqF32U, neo: CmpNeF32O, neu: CmpNeF32U, lto: CmpLtF32O, ltu: CmpLtF32U, lteo: CmpLteF32O,
        lteu: CmpLteF32U, isnan: CmpNanF32, powi: FpowiF32, si64: CastF32Si64, ui64: CastF32Ui64, from_si64: CastSi64F32,
        from_ui64: CastUi64F32, si32: CastF32Si32, ui32: CastF32Ui32, from_si32: CastSi32F32, from_ui32: CastUi32F32,
        to_bits: BitcastF32I32, from_bits: BitcastI32F32)
}

#[rustfmt::skip]
fn f64_rows() -> Vec<Row> {
    let mut rows = float_rows!(d, f64, zero: ConstF64Zero, constant: ConstF64, select: SelectF64, add: AddF64, sub: SubF64,
        mul: MulF64, div: DivF64, rem: RemF64, fma: FmaF64, abs: AbsF64, neg: NegF64, ceil: CeilF64, floor: FloorF64,
        round: RoundF64, even: RoundF64Even, min: MinF64, max: MaxF64, atan: AtanF64, atan2: Atan2F64, cos: CosF64,
        sin: SinF64, exp: ExpF64, exp2: Exp2F64, expm1: Expm1F64, log: LogF64, log10: Log10F64, log1p: Log1pF64,
        log2: Log2F64, pow: PowF64, rsqrt: RsqrtF64, sqrt: SqrtF64, tanh: TanhF64, erf: ErfF64, eqo: CmpEqF64O,
        equ: CmpEqF64U, neo: CmpNeF64O, neu: CmpNeF64U, lto: CmpLtF64O, ltu: CmpLtF64U, lteo: CmpLteF64O,
        lteu: CmpLteF64U, isnan: CmpNanF64, powi: FpowiF64, si64: CastF64Si64, ui64: CastF64Ui64, from_si64: CastSi64F64,
        from_ui64: CastUi64F64, si32: CastF64Si32, ui32: CastF64Ui32, from_si32: CastSi32F64, from_ui32: CastUi32F64,
        to_bits: BitcastF64I64, from_bits: BitcastI64F64);
    rows.extend([(Op::TruncF64F32, vec![d(0.1)], f(0.1)), (Op::ExtF32F64, vec![f(0.1)], d(f64::from(0.1f32)))]);
    rows
}

#[test]
fn every_scalar_operation_means_what_it_should() {
    let rows: Vec<Row> = [integer_rows(), f32_rows(), f64_rows()].concat();
    let mut seen = HashSet::new();
    for (op, inputs, expected) in &rows {
        let actual = eval(*op, inputs).unwrap_or_else(|e| panic!("{op:?} {inputs:x?}: {e}"));
        assert_eq!(actual, *expected, "{op:?} {inputs:x?} gave {actual:#x} instead of {expected:#x}");
        seen.insert(*op);
    }
    let scalar = |operands: &[Operand]| {
        operands.iter().any(|o| o.is_result())
            && operands.iter().all(|o| {
                use Operand::{Cell, CellOut, Imm32, Imm64, Pair, PairOut};
                matches!(o, Cell | CellOut | Pair | PairOut | Imm32 | Imm64)
            })
    };
    for row in table().iter().filter(|r| scalar(r.operands) && !r.mnemonic.starts_with("global.")) {
        assert!(seen.contains(&row.op), "no row tests {}", row.mnemonic);
    }
}

#[test]
fn casts_out_of_range_wrap_like_the_real_runtime() {
    assert_eq!(eval(Op::CastF32Si32, &[f(3e10)]).unwrap(), i(-64_770_048));
    assert_eq!(eval(Op::CastF64Si64, &[d(f64::NAN)]).unwrap(), l(i64::MIN));
}

#[test]
fn division_by_zero_is_an_error_that_names_the_operation() {
    for op in [
        Op::DivI32S,
        Op::DivI32U,
        Op::RemI32S,
        Op::RemI32U,
        Op::DivI64S,
        Op::DivI64U,
        Op::RemI64S,
        Op::RemI64U,
    ] {
        let e = eval(op, &[1, 0]).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.message().ends_with(op.info().mnemonic), "{e}");
    }
}

#[test]
fn switches_pick_by_index_and_default() {
    for (op, wide) in
        [(Op::SwitchI32, false), (Op::SwitchF32, false), (Op::SwitchI64, true), (Op::SwitchF64, true)]
    {
        let convention = if wide { "0iIII_I" } else { "0iiii_i" };
        let reg = |n: u16| if wide { cell(2 + 2 * n) } else { cell(1 + n) };
        let mut f = FunctionBuilder::new(convention);
        let list: Vec<Reg> = vec![reg(1), reg(2)];
        f.op(op, &[cell(0).into(), reg(0).into(), list.into(), reg(0).into()]).unwrap();
        f.op(Op::Return, &[vec![reg(0)].into()]).unwrap();
        let module = common::module(f).unwrap();
        let wide_value = |v: i64| if wide { Value::I64(v * 9_000_000_000) } else { Value::I32(v as i32) };
        for (index, expected) in [(0, 8), (1, 9), (2, 7), (-1, 7)] {
            let args = [Value::I32(index), wide_value(7), wide_value(8), wide_value(9)];
            let result = common::run(&module, &args).unwrap().remove(0);
            assert_eq!(format!("{result:?}"), format!("{:?}", wide_value(expected)), "{op:?} {index}");
        }
    }
}
