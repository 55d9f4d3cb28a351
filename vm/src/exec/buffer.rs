//! The buffer instructions.

use std::hash::Hasher;

use halite_abi::{Result, status};
use siphasher::sip::SipHasher24;

use super::{
    Env, Insn,
    registers::{get64, index, set64},
};
use crate::{Buffer, Ref, isa::Op};

/// Runs a buffer instruction; the last of the groups.
pub(super) fn step(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::BufferLoadI8U => env.set_u32(i.c, u32::from(u8::from_le_bytes(load(env, i)?))),
        Op::BufferLoadI8S => env.set_u32(i.c, i32::from(i8::from_le_bytes(load(env, i)?)) as u32),
        Op::BufferLoadI16U => env.set_u32(i.c, u32::from(u16::from_le_bytes(load(env, i)?))),
        Op::BufferLoadI16S => env.set_u32(i.c, i32::from(i16::from_le_bytes(load(env, i)?)) as u32),
        Op::BufferLoadI32 | Op::BufferLoadF32 => env.set_u32(i.c, u32::from_le_bytes(load(env, i)?)),
        Op::BufferLoadI64 | Op::BufferLoadF64 => env.set_u64(i.c, u64::from_le_bytes(load(env, i)?)),
        Op::BufferStoreI8 => store(env, i, (env.u32(i.c) as u8).to_le_bytes())?,
        Op::BufferStoreI16 => store(env, i, (env.u32(i.c) as u16).to_le_bytes())?,
        Op::BufferStoreI32 | Op::BufferStoreF32 => store(env, i, env.u32(i.c).to_le_bytes())?,
        Op::BufferStoreI64 | Op::BufferStoreF64 => store(env, i, env.u64(i.c).to_le_bytes())?,
        Op::BufferFillI8 => fill(env, i, (env.u32(i.d()) as u8).to_le_bytes())?,
        Op::BufferFillI16 => fill(env, i, (env.u32(i.d()) as u16).to_le_bytes())?,
        Op::BufferFillI32 | Op::BufferFillF32 => fill(env, i, env.u32(i.d()).to_le_bytes())?,
        Op::BufferFillI64 | Op::BufferFillF64 => fill(env, i, env.u64(i.d()).to_le_bytes())?,
        Op::BufferLength => {
            let len = buffer(env.refs, i.a)?.len();
            env.set_u64(i.b, len);
        }
        _ => return bulk(env, i),
    }
    Ok(())
}

fn bulk(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::BufferAlloc => {
            let len = env.u64(i.a);
            env.watch.charge_bytes(len)?;
            let made = Buffer::allocate(len, env.memory)?;
            env.set_reference(i.c, Ref::new(made));
        }
        Op::BufferClone => {
            let (offset, len) = (env.u64(i.b), env.u64(i.c));
            env.watch.charge_bytes(len)?;
            let made = buffer(env.refs, i.a)?.clone_range(offset, len, env.memory)?;
            env.set_reference(i.e(), Ref::new(made));
        }
        Op::BufferCopy => {
            let (offset, target_offset, len) = (env.u64(i.b), env.u64(i.d()), env.u64(i.e()));
            env.watch.charge_bytes(len)?;
            let target = buffer(env.refs, i.c)?;
            buffer(env.refs, i.a)?.copy_to(offset, target, target_offset, len)?;
        }
        Op::BufferCompare => {
            let (offset, other_offset, len) = (env.u64(i.b), env.u64(i.d()), env.u64(i.e()));
            env.watch.charge_bytes(len)?;
            let other = buffer(env.refs, i.c)?;
            let same = buffer(env.refs, i.a)?.equal(offset, other, other_offset, len)?;
            env.set_u32(i.f(), u32::from(same));
        }
        Op::BufferHash => {
            let len = env.u64(i.c);
            env.watch.charge_bytes(len)?;
            let mut hasher = hasher();
            buffer(env.refs, i.a)?.hash(get64(env.cells, i.b), len, &mut hasher)?;
            set64(env.cells, i.d(), hasher.finish());
        }
        op => {
            return Err(status!(Internal, "the interpreter has no implementation of {}", op.info().mnemonic));
        }
    }
    Ok(())
}

/// SipHash-2-4 with the key bytes 0, 1, …, 15.
fn hasher() -> SipHasher24 {
    SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)
}

fn buffer(refs: &[Ref], reg: u16) -> Result<&Buffer> {
    refs[index(reg)].expect("vm.buffer")
}

#[inline(always)]
fn load<const N: usize>(env: &Env<'_>, i: &Insn) -> Result<[u8; N]> {
    buffer(env.refs, i.a)?.load(env.u64(i.b))
}

#[inline(always)]
fn store<const N: usize>(env: &Env<'_>, i: &Insn, value: [u8; N]) -> Result<()> {
    buffer(env.refs, i.a)?.store(env.u64(i.b), value)
}

fn fill<const N: usize>(env: &mut Env<'_>, i: &Insn, value: [u8; N]) -> Result<()> {
    let (start, count) = (env.u64(i.b), env.u64(i.c));
    env.watch.charge_bytes(count)?;
    buffer(env.refs, i.a)?.fill(start, count, value)
}
