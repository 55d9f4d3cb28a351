//! The integer instructions: arithmetic, comparison, conversion, constants, scalar globals and selection.

use std::cmp;

use halite_abi::{Result, Status, status};

use super::{Env, Insn, float};
use crate::isa::Op;

/// Runs an integer instruction, or passes it on.
#[inline(always)]
pub(super) fn step(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::ConstI32Zero => env.set_u32(i.a, 0),
        Op::ConstI32 => env.set_u32(i.a, i.x),
        Op::ConstI64Zero => env.set_u64(i.a, 0),
        Op::ConstI64 => env.set_u64(i.a, i.imm64()),
        Op::AddI32 => env.binary32(i, u32::wrapping_add),
        Op::SubI32 => env.binary32(i, u32::wrapping_sub),
        Op::MulI32 => env.binary32(i, u32::wrapping_mul),
        Op::FmaI32 => {
            let v = env.u32(i.a).wrapping_mul(env.u32(i.b)).wrapping_add(env.u32(i.c));
            env.set_u32(i.d(), v);
        }
        Op::DivI32S | Op::DivI32U | Op::RemI32S | Op::RemI32U => return divide32(env, i),
        Op::AddI64 => env.binary64(i, u64::wrapping_add),
        Op::SubI64 => env.binary64(i, u64::wrapping_sub),
        Op::MulI64 => env.binary64(i, u64::wrapping_mul),
        Op::FmaI64 => {
            let v = env.u64(i.a).wrapping_mul(env.u64(i.b)).wrapping_add(env.u64(i.c));
            env.set_u64(i.d(), v);
        }
        Op::DivI64S | Op::DivI64U | Op::RemI64S | Op::RemI64U => return divide64(env, i),
        Op::NotI32 => env.unary32(i, |a| !a),
        Op::AndI32 => env.binary32(i, |a, b| a & b),
        Op::OrI32 => env.binary32(i, |a, b| a | b),
        Op::XorI32 => env.binary32(i, |a, b| a ^ b),
        Op::NotI64 => env.unary64(i, |a| !a),
        Op::AndI64 => env.binary64(i, |a, b| a & b),
        Op::OrI64 => env.binary64(i, |a, b| a | b),
        Op::XorI64 => env.binary64(i, |a, b| a ^ b),
        Op::ShlI32 => env.binary32(i, u32::wrapping_shl),
        Op::ShrI32S => env.binary32(i, |a, n| (a as i32).wrapping_shr(n) as u32),
        Op::ShrI32U => env.binary32(i, u32::wrapping_shr),
        Op::ShlI64 => shift64(env, i, u64::wrapping_shl),
        Op::ShrI64S => shift64(env, i, |a, n| (a as i64).wrapping_shr(n) as u64),
        Op::ShrI64U => shift64(env, i, u64::wrapping_shr),
        Op::TruncI32I8 | Op::ExtI8I32U => env.unary32(i, |a| a & 0xFF),
        Op::TruncI32I16 | Op::ExtI16I32U => env.unary32(i, |a| a & 0xFFFF),
        Op::TruncI64I32 => {
            let v = env.u64(i.a) as u32;
            env.set_u32(i.b, v);
        }
        Op::ExtI8I32S => env.unary32(i, |a| a as i8 as u32),
        Op::ExtI16I32S => env.unary32(i, |a| a as i16 as u32),
        Op::ExtI32I64S => {
            let v = i64::from(env.i32(i.a)) as u64;
            env.set_u64(i.b, v);
        }
        Op::ExtI32I64U => {
            let v = u64::from(env.u32(i.a));
            env.set_u64(i.b, v);
        }
        Op::CtlzI32 => env.unary32(i, u32::leading_zeros),
        Op::CtlzI64 => env.unary64(i, |a| u64::from(a.leading_zeros())),
        Op::AbsI32 => env.unary32(i, |a| (a as i32).wrapping_abs() as u32),
        Op::AbsI64 => env.unary64(i, |a| (a as i64).wrapping_abs() as u64),
        Op::MinI32S => env.signed32(i, cmp::min),
        Op::MinI32U => env.binary32(i, cmp::min),
        Op::MaxI32S => env.signed32(i, cmp::max),
        Op::MaxI32U => env.binary32(i, cmp::max),
        Op::MinI64S => env.signed64(i, cmp::min),
        Op::MinI64U => env.binary64(i, cmp::min),
        Op::MaxI64S => env.signed64(i, cmp::max),
        Op::MaxI64U => env.binary64(i, cmp::max),
        _ => return compare(env, i),
    }
    Ok(())
}

/// Comparisons and selections of 32- and 64-bit cells (floats select like integers).
#[inline(always)]
fn compare(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::CmpEqI32 => env.binary32(i, |a, b| u32::from(a == b)),
        Op::CmpNeI32 => env.binary32(i, |a, b| u32::from(a != b)),
        Op::CmpLtI32S => env.binary32(i, |a, b| u32::from((a as i32) < (b as i32))),
        Op::CmpLtI32U => env.binary32(i, |a, b| u32::from(a < b)),
        Op::CmpNzI32 => env.unary32(i, |a| u32::from(a != 0)),
        Op::CmpEqI64 => env.compare64(i, |a, b| a == b),
        Op::CmpNeI64 => env.compare64(i, |a, b| a != b),
        Op::CmpLtI64S => env.compare64(i, |a, b| (a as i64) < (b as i64)),
        Op::CmpLtI64U => env.compare64(i, |a, b| a < b),
        Op::CmpNzI64 => {
            let v = u32::from(env.u64(i.a) != 0);
            env.set_u32(i.b, v);
        }
        Op::SelectI32 | Op::SelectF32 => {
            let v = if env.u32(i.a) != 0 { env.u32(i.b) } else { env.u32(i.c) };
            env.set_u32(i.d(), v);
        }
        Op::SelectI64 | Op::SelectF64 => {
            let v = if env.u32(i.a) != 0 { env.u64(i.b) } else { env.u64(i.c) };
            env.set_u64(i.d(), v);
        }
        Op::SwitchI32 | Op::SwitchF32 => {
            let v = env.u32(chosen(env, i));
            env.set_u32(i.c, v);
        }
        Op::SwitchI64 | Op::SwitchF64 => {
            let v = env.u64(chosen(env, i));
            env.set_u64(i.c, v);
        }
        _ => return global(env, i),
    }
    Ok(())
}

/// Register that a switch picks.
#[inline(always)]
fn chosen(env: &Env<'_>, i: &Insn) -> u16 {
    let list = env.function.lists[i.x as usize].of(&env.function.regs);
    list.get(env.u32(i.a) as usize).copied().unwrap_or(i.b)
}

/// Scalar globals.
#[inline(always)]
fn global(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::GlobalLoadI32 | Op::GlobalLoadF32 => load::<4>(env, i.x, i.a),
        Op::GlobalStoreI32 | Op::GlobalStoreF32 => store::<4>(env, i.x, i.a),
        Op::GlobalLoadI64 | Op::GlobalLoadF64 => load::<8>(env, i.x, i.a),
        Op::GlobalStoreI64 | Op::GlobalStoreF64 => store::<8>(env, i.x, i.a),
        Op::GlobalLoadIndirectI32 | Op::GlobalLoadIndirectF32 => load::<4>(env, env.u32(i.a), i.b),
        Op::GlobalStoreIndirectI32 | Op::GlobalStoreIndirectF32 => store::<4>(env, env.u32(i.a), i.b),
        Op::GlobalLoadIndirectI64 | Op::GlobalLoadIndirectF64 => load::<8>(env, env.u32(i.a), i.b),
        Op::GlobalStoreIndirectI64 | Op::GlobalStoreIndirectF64 => store::<8>(env, env.u32(i.a), i.b),
        _ => float::step(env, i),
    }
}

fn load<const N: usize>(env: &mut Env<'_>, offset: u32, reg: u16) -> Result<()> {
    let bytes = &env.globals.bytes;
    let found = bytes.get(offset as usize..).and_then(|b| b.first_chunk::<N>());
    let Some(found) = found else { return Err(no_global(offset, N, bytes.len())) };
    let words = found.chunks_exact(4).zip(&mut env.cells[usize::from(reg)..]);
    words.for_each(|(w, cell)| *cell = u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    Ok(())
}

fn store<const N: usize>(env: &mut Env<'_>, offset: u32, reg: u16) -> Result<()> {
    let capacity = env.globals.bytes.len();
    let place = env.globals.bytes.get_mut(offset as usize..).and_then(|b| b.first_chunk_mut::<N>());
    let Some(place) = place else { return Err(no_global(offset, N, capacity)) };
    let words = place.chunks_exact_mut(4).zip(&env.cells[usize::from(reg)..]);
    words.for_each(|(w, cell)| w.copy_from_slice(&cell.to_le_bytes()));
    Ok(())
}

#[cold]
fn no_global(offset: u32, size: usize, capacity: usize) -> Status {
    status!(OutOfRange, "global of {size} bytes at {offset} is out of range; the module has {capacity} bytes")
}

#[inline(always)]
fn shift64(env: &mut Env<'_>, i: &Insn, f: impl Fn(u64, u32) -> u64) {
    let v = f(env.u64(i.a), env.u32(i.b));
    env.set_u64(i.c, v);
}

fn divide32(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    let (a, b) = (env.u32(i.a), env.u32(i.b));
    if b == 0 {
        return Err(by_zero(i.op));
    }
    let v = match i.op {
        Op::DivI32S => (a as i32).wrapping_div(b as i32) as u32,
        Op::DivI32U => a / b,
        Op::RemI32S => (a as i32).wrapping_rem(b as i32) as u32,
        _ => a % b,
    };
    env.set_u32(i.c, v);
    Ok(())
}

fn divide64(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    let (a, b) = (env.u64(i.a), env.u64(i.b));
    if b == 0 {
        return Err(by_zero(i.op));
    }
    let v = match i.op {
        Op::DivI64S => (a as i64).wrapping_div(b as i64) as u64,
        Op::DivI64U => a / b,
        Op::RemI64S => (a as i64).wrapping_rem(b as i64) as u64,
        _ => a % b,
    };
    env.set_u64(i.c, v);
    Ok(())
}

#[cold]
fn by_zero(op: Op) -> Status {
    status!(InvalidArgument, "integer division by zero in {}", op.info().mnemonic)
}
