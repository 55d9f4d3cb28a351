//! The float instructions of both widths.
//!
//! Math follows the C library of the platform; conversions to integers round half away from zero.

use std::ops::{Div, Mul};

use halite_abi::Result;

use super::{Env, Insn, object};
use crate::isa::Op;

/// Runs a float instruction, or passes it on.
#[inline(always)]
pub(super) fn step(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::ConstF32Zero => env.set_u32(i.a, 0),
        Op::ConstF32 => env.set_u32(i.a, i.x),
        Op::ConstF64Zero => env.set_u64(i.a, 0),
        Op::ConstF64 => env.set_u64(i.a, i.imm64()),
        Op::AddF32 => binary32(env, i, |a, b| a + b),
        Op::SubF32 => binary32(env, i, |a, b| a - b),
        Op::MulF32 => binary32(env, i, |a, b| a * b),
        Op::DivF32 => binary32(env, i, |a, b| a / b),
        Op::RemF32 => binary32(env, i, libm::remainderf),
        Op::FmaF32 => {
            let v = env.f32(i.a) * env.f32(i.b) + env.f32(i.c);
            env.set_f32(i.d(), v);
        }
        Op::AddF64 => binary64(env, i, |a, b| a + b),
        Op::SubF64 => binary64(env, i, |a, b| a - b),
        Op::MulF64 => binary64(env, i, |a, b| a * b),
        Op::DivF64 => binary64(env, i, |a, b| a / b),
        Op::RemF64 => binary64(env, i, libm::remainder),
        Op::FmaF64 => {
            let v = env.f64(i.a) * env.f64(i.b) + env.f64(i.c);
            env.set_f64(i.d(), v);
        }
        // Written so that NaN behaves as in the official runtime: the first operand wins when unordered.
        Op::MinF32 => binary32(env, i, |a, b| if b < a { b } else { a }),
        Op::MaxF32 => binary32(env, i, |a, b| if a < b { b } else { a }),
        Op::MinF64 => binary64(env, i, |a, b| if b < a { b } else { a }),
        Op::MaxF64 => binary64(env, i, |a, b| if a < b { b } else { a }),
        Op::AbsF32 => unary32(env, i, f32::abs),
        Op::NegF32 => unary32(env, i, |a| -a),
        Op::AbsF64 => unary64(env, i, f64::abs),
        Op::NegF64 => unary64(env, i, |a| -a),
        _ => return compare(env, i),
    }
    Ok(())
}

#[inline(always)]
fn compare(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::CmpEqF32O => compare32(env, i, |a, b| a == b),
        Op::CmpEqF32U => compare32(env, i, |a, b| a == b || unordered32(a, b)),
        // The ordered form is true for NaN as well: compilers rely on what the official runtime does.
        Op::CmpNeF32O | Op::CmpNeF32U => compare32(env, i, |a, b| a != b),
        Op::CmpLtF32O => compare32(env, i, |a, b| a < b),
        Op::CmpLtF32U => compare32(env, i, |a, b| a < b || unordered32(a, b)),
        Op::CmpLteF32O => compare32(env, i, |a, b| a <= b),
        Op::CmpLteF32U => compare32(env, i, |a, b| a <= b || unordered32(a, b)),
        Op::CmpNanF32 => {
            let v = u32::from(env.f32(i.a).is_nan());
            env.set_u32(i.b, v);
        }
        Op::CmpEqF64O => compare64(env, i, |a, b| a == b),
        Op::CmpEqF64U => compare64(env, i, |a, b| a == b || unordered64(a, b)),
        Op::CmpNeF64O | Op::CmpNeF64U => compare64(env, i, |a, b| a != b),
        Op::CmpLtF64O => compare64(env, i, |a, b| a < b),
        Op::CmpLtF64U => compare64(env, i, |a, b| a < b || unordered64(a, b)),
        Op::CmpLteF64O => compare64(env, i, |a, b| a <= b),
        Op::CmpLteF64U => compare64(env, i, |a, b| a <= b || unordered64(a, b)),
        Op::CmpNanF64 => {
            let v = u32::from(env.f64(i.a).is_nan());
            env.set_u32(i.b, v);
        }
        _ => return convert(env, i),
    }
    Ok(())
}

#[inline(always)]
fn convert(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::CastSi32F32 => env.set_f32(i.b, env.i32(i.a) as f32),
        Op::CastUi32F32 => env.set_f32(i.b, env.u32(i.a) as f32),
        Op::CastSi64F32 => env.set_f32(i.b, env.i64(i.a) as f32),
        Op::CastUi64F32 => env.set_f32(i.b, env.u64(i.a) as f32),
        Op::CastF32Si32 | Op::CastF32Ui32 => env.set_u32(i.b, signed(f64::from(env.f32(i.a))) as u32),
        Op::CastF32Si64 => env.set_u64(i.b, signed(f64::from(env.f32(i.a))) as u64),
        Op::CastF32Ui64 => env.set_u64(i.b, unsigned(f64::from(env.f32(i.a)))),
        Op::BitcastI32F32 | Op::BitcastF32I32 => env.set_u32(i.b, env.u32(i.a)),
        Op::TruncF64F32 => env.set_f32(i.b, env.f64(i.a) as f32),
        Op::ExtF32F64 => env.set_f64(i.b, f64::from(env.f32(i.a))),
        Op::CastSi32F64 => env.set_f64(i.b, f64::from(env.i32(i.a))),
        Op::CastUi32F64 => env.set_f64(i.b, f64::from(env.u32(i.a))),
        Op::CastSi64F64 => env.set_f64(i.b, env.i64(i.a) as f64),
        Op::CastUi64F64 => env.set_f64(i.b, env.u64(i.a) as f64),
        Op::CastF64Si32 | Op::CastF64Ui32 => env.set_u32(i.b, signed(env.f64(i.a)) as u32),
        Op::CastF64Si64 => env.set_u64(i.b, signed(env.f64(i.a)) as u64),
        Op::CastF64Ui64 => env.set_u64(i.b, unsigned(env.f64(i.a))),
        Op::BitcastI64F64 | Op::BitcastF64I64 => env.set_u64(i.b, env.u64(i.a)),
        _ => return math(env, i),
    }
    Ok(())
}

/// Functions that cost far more than finding them: kept out of the loop.
#[inline(never)]
fn math(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::CeilF32 => unary32(env, i, f32::ceil),
        Op::FloorF32 => unary32(env, i, f32::floor),
        Op::RoundF32 => unary32(env, i, f32::round),
        Op::RoundF32Even => unary32(env, i, f32::round_ties_even),
        Op::AtanF32 => unary32(env, i, f32::atan),
        Op::Atan2F32 => binary32(env, i, f32::atan2),
        Op::CosF32 => unary32(env, i, f32::cos),
        Op::SinF32 => unary32(env, i, f32::sin),
        Op::ExpF32 => unary32(env, i, f32::exp),
        Op::Exp2F32 => unary32(env, i, f32::exp2),
        Op::Expm1F32 => unary32(env, i, f32::exp_m1),
        Op::LogF32 => unary32(env, i, f32::ln),
        Op::Log10F32 => unary32(env, i, f32::log10),
        Op::Log1pF32 => unary32(env, i, f32::ln_1p),
        Op::Log2F32 => unary32(env, i, f32::log2),
        Op::PowF32 => binary32(env, i, f32::powf),
        Op::FpowiF32 => env.set_f32(i.c, powi(1.0, env.f32(i.a), env.i64(i.b))),
        Op::FpowiF64 => env.set_f64(i.c, powi(1.0, env.f64(i.a), env.i64(i.b))),
        Op::RsqrtF32 => unary32(env, i, |a| 1.0 / a.sqrt()),
        Op::SqrtF32 => unary32(env, i, f32::sqrt),
        Op::TanhF32 => unary32(env, i, f32::tanh),
        Op::ErfF32 => unary32(env, i, libm::erff),
        Op::CeilF64 => unary64(env, i, f64::ceil),
        Op::FloorF64 => unary64(env, i, f64::floor),
        Op::RoundF64 => unary64(env, i, f64::round),
        Op::RoundF64Even => unary64(env, i, f64::round_ties_even),
        Op::AtanF64 => unary64(env, i, f64::atan),
        Op::Atan2F64 => binary64(env, i, f64::atan2),
        Op::CosF64 => unary64(env, i, f64::cos),
        Op::SinF64 => unary64(env, i, f64::sin),
        Op::ExpF64 => unary64(env, i, f64::exp),
        Op::Exp2F64 => unary64(env, i, f64::exp2),
        Op::Expm1F64 => unary64(env, i, f64::exp_m1),
        Op::LogF64 => unary64(env, i, |a| real_log(a, f64::ln)),
        Op::Log10F64 => unary64(env, i, f64::log10),
        Op::Log1pF64 => unary64(env, i, f64::ln_1p),
        Op::Log2F64 => unary64(env, i, |a| real_log(a, f64::log2)),
        Op::PowF64 => binary64(env, i, f64::powf),
        Op::RsqrtF64 => unary64(env, i, |a| 1.0 / a.sqrt()),
        Op::SqrtF64 => unary64(env, i, f64::sqrt),
        Op::TanhF64 => unary64(env, i, f64::tanh),
        Op::ErfF64 => unary64(env, i, libm::erf),
        _ => return object::step(env, i),
    }
    Ok(())
}

/// To a signed integer, half away from zero. What does not fit is the smallest integer, as x86 converts it; narrower
/// results wrap.
fn signed(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let rounded = value.round();
    if (-LIMIT..LIMIT).contains(&rounded) { rounded as i64 } else { i64::MIN }
}

/// To an unsigned integer, half away from zero; negative values wrap.
fn unsigned(value: f64) -> u64 {
    let rounded = value.round();
    if rounded >= 0.0 { rounded as u64 } else { signed(value) as u64 }
}

fn unordered32(a: f32, b: f32) -> bool {
    a.is_nan() || b.is_nan()
}

fn unordered64(a: f64, b: f64) -> bool {
    a.is_nan() || b.is_nan()
}

/// A power by squaring. The exponent counts modulo 2^32, and a negative one means the reciprocal of the power (which may
/// overflow where the power of the reciprocal would not): so does the official runtime.
fn powi<T: Copy + Mul<Output = T> + Div<Output = T>>(one: T, mut base: T, exponent: i64) -> T {
    let exponent = exponent as i32;
    let (mut power, mut left) = (one, exponent.unsigned_abs());
    loop {
        if left & 1 == 1 {
            power = power * base;
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        base = base * base;
    }
    if exponent < 0 { one / power } else { power }
}

#[inline(always)]
fn unary32(env: &mut Env<'_>, i: &Insn, f: impl Fn(f32) -> f32) {
    let v = f(env.f32(i.a));
    env.set_f32(i.b, v);
}

#[inline(always)]
fn binary32(env: &mut Env<'_>, i: &Insn, f: impl Fn(f32, f32) -> f32) {
    let v = f(env.f32(i.a), env.f32(i.b));
    env.set_f32(i.c, v);
}

#[inline(always)]
fn compare32(env: &mut Env<'_>, i: &Insn, f: impl Fn(f32, f32) -> bool) {
    let v = u32::from(f(env.f32(i.a), env.f32(i.b)));
    env.set_u32(i.c, v);
}

#[inline(always)]
fn unary64(env: &mut Env<'_>, i: &Insn, f: impl Fn(f64) -> f64) {
    let v = f(env.f64(i.a));
    env.set_f64(i.b, v);
}

#[inline(always)]
fn binary64(env: &mut Env<'_>, i: &Insn, f: impl Fn(f64, f64) -> f64) {
    let v = f(env.f64(i.a), env.f64(i.b));
    env.set_f64(i.c, v);
}

#[inline(always)]
fn compare64(env: &mut Env<'_>, i: &Insn, f: impl Fn(f64, f64) -> bool) {
    let v = u32::from(f(env.f64(i.a), env.f64(i.b)));
    env.set_u32(i.c, v);
}

/// A logarithm whose NaN for negative numbers has no sign, whatever the platform's C library returns: the sign is
/// printed, and recorded results of the original have none.
fn real_log(value: f64, log: impl Fn(f64) -> f64) -> f64 {
    if value < 0.0 { f64::NAN } else { log(value) }
}
