//! The instructions on references, lists and ref globals, and `fail`.

use halite_abi::{Code, Result, Status, bail, status};

use super::{Env, Insn, buffer, registers::index};
use crate::{
    List, Ref, Value,
    isa::{Op, REG_MOVE},
    signature::Kind,
    types::Type,
};

/// Runs an instruction on references, or passes it on.
pub(super) fn step(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::ConstRefZero => env.set_reference(i.a, Ref::NULL),
        Op::ConstRefRodata => {
            let data = env.linked.module.rodata[i.x as usize].clone();
            env.set_reference(i.a, data);
        }
        Op::AssignRef => {
            let value = env.reference(i.a);
            env.set_reference(i.b, value);
        }
        Op::CastAnyRef => {
            ty(env, i.x).check(&env.refs[index(i.a)])?;
            let value = env.reference(i.a);
            env.set_reference(i.b, value);
        }
        Op::CmpEqRef => compare(env, i, Ref::same),
        Op::CmpNeRef => compare(env, i, |a, b| !a.same(b)),
        Op::CmpNzRef => {
            let v = u32::from(!env.refs[index(i.a)].is_null());
            env.set_u32(i.b, v);
        }
        Op::SelectRef => return select(env, i),
        Op::SwitchRef => return switch(env, i),
        Op::GlobalLoadRef => return load_global(env, i.x, i.y, i.a),
        Op::GlobalStoreRef => return store_global(env, i.x, i.y, i.a),
        Op::GlobalLoadIndirectRef => return load_global(env, env.u32(i.a), i.x, i.b),
        Op::GlobalStoreIndirectRef => return store_global(env, env.u32(i.a), i.x, i.b),
        Op::DiscardRefs => {
            for reg in env.function.lists[i.x as usize].of(&env.function.regs) {
                env.refs[index(*reg)] = Ref::NULL;
            }
        }
        Op::Trace | Op::Print => {
            let list = env.function.lists[i.y as usize].of(&env.function.regs);
            list.iter().filter(|r| *r & REG_MOVE != 0).for_each(|r| env.refs[index(*r)] = Ref::NULL);
        }
        Op::ImportResolved => {
            let v = u32::from(env.linked.imports[i.x as usize].is_some());
            env.set_u32(i.a, v);
        }
        Op::Fail => return fail(env, i),
        _ => return list(env, i),
    }
    Ok(())
}

fn list(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    match i.op {
        Op::ListAlloc => {
            let list = Ref::new(List::allocate(ty(env, i.x).clone(), env.memory)?);
            env.memory.note_list(&list);
            env.set_reference(i.b, list);
        }
        Op::ListReserve => list_at(env, i.a)?.reserve(env.u32(i.b) as usize)?,
        Op::ListSize => {
            let len = list_at(env, i.a)?.len();
            env.set_u32(i.b, len as u32);
        }
        Op::ListResize => {
            let len = env.u32(i.b);
            env.watch.charge_bytes(u64::from(len) * 8)?;
            list_at(env, i.a)?.resize(len as usize)?;
        }
        Op::ListGetI32 => get(env, i, Kind::I32)?,
        Op::ListGetI64 => get(env, i, Kind::I64)?,
        Op::ListGetF32 => get(env, i, Kind::F32)?,
        Op::ListGetF64 => get(env, i, Kind::F64)?,
        Op::ListGetRef => {
            let wanted = ty(env, i.x);
            let value = list_at(env, i.a)?.get_ref(env.u32(i.b) as usize, wanted, i.c & REG_MOVE != 0)?;
            env.set_reference(i.c, value);
        }
        Op::ListSetI32 => set(env, i, Value::I32(env.i32(i.c)))?,
        Op::ListSetI64 => set(env, i, Value::I64(env.i64(i.c)))?,
        Op::ListSetF32 => set(env, i, Value::F32(env.f32(i.c)))?,
        Op::ListSetF64 => set(env, i, Value::F64(env.f64(i.c)))?,
        Op::ListSetRef => {
            // The list may be the moved value itself: hold it while the value is taken.
            let list = env.refs[index(i.a)].clone();
            let value = Value::Ref(env.reference(i.c));
            list.expect::<List>("vm.list")?.set(env.u32(i.b) as usize, value)?;
        }
        _ => return buffer::step(env, i),
    }
    Ok(())
}

/// A type operand; it borrows from the module, not from the registers.
fn ty<'a>(env: &Env<'a>, ordinal: u32) -> &'a Type {
    &env.linked.module.types[ordinal as usize]
}

fn list_at<'a>(env: &'a Env<'_>, reg: u16) -> Result<&'a List> {
    env.refs[index(reg)].expect("vm.list")
}

fn get(env: &mut Env<'_>, i: &Insn, kind: Kind) -> Result<()> {
    match list_at(env, i.a)?.get(env.u32(i.b) as usize, kind)? {
        Value::I32(v) => env.set_u32(i.c, v as u32),
        Value::I64(v) => env.set_u64(i.c, v as u64),
        Value::F32(v) => env.set_f32(i.c, v),
        Value::F64(v) => env.set_f64(i.c, v),
        Value::Ref(_) => bail!(Internal, "a list gave a reference where a number was asked for"),
    }
    Ok(())
}

fn set(env: &Env<'_>, i: &Insn, value: Value) -> Result<()> {
    list_at(env, i.a)?.set(env.u32(i.b) as usize, value)
}

fn compare(env: &mut Env<'_>, i: &Insn, f: impl Fn(&Ref, &Ref) -> bool) {
    let v = f(&env.refs[index(i.a)], &env.refs[index(i.b)]);
    env.set_u32(i.c, u32::from(v));
}

/// Takes the chosen operand and releases every other one that is marked MOVE.
fn choose(
    env: &mut Env<'_>,
    chosen: u16,
    operands: impl Iterator<Item = u16>,
    result: u16,
    wanted: &Type,
) -> Result<()> {
    wanted.check(&env.refs[index(chosen)])?;
    let value = env.reference(chosen);
    operands.filter(|r| r & REG_MOVE != 0).for_each(|r| env.refs[index(r)] = Ref::NULL);
    env.set_reference(result, value);
    Ok(())
}

fn select(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    let chosen = if env.u32(i.a) != 0 { i.b } else { i.c };
    let wanted = ty(env, i.x);
    choose(env, chosen, [i.b, i.c].into_iter(), i.d_after_word(), wanted)
}

fn switch(env: &mut Env<'_>, i: &Insn) -> Result<()> {
    let function = env.function;
    let list = function.lists[i.y as usize].of(&function.regs);
    let chosen = list.get(env.u32(i.a) as usize).copied().unwrap_or(i.b);
    let wanted = ty(env, i.x);
    choose(env, chosen, std::iter::once(i.b).chain(list.iter().copied()), i.c, wanted)
}

#[cold]
fn no_slot(slot: u32, count: usize) -> Status {
    status!(OutOfRange, "ref global {slot} is out of range; the module has {count}")
}

fn load_global(env: &mut Env<'_>, slot: u32, wanted: u32, reg: u16) -> Result<()> {
    let wanted = ty(env, wanted);
    let count = env.globals.refs.len();
    let place = env.globals.refs.get_mut(slot as usize).ok_or_else(|| no_slot(slot, count))?;
    wanted.check(place)?;
    let value = if reg & REG_MOVE != 0 { place.take() } else { place.clone() };
    env.set_reference(reg, value);
    Ok(())
}

fn store_global(env: &mut Env<'_>, slot: u32, wanted: u32, reg: u16) -> Result<()> {
    let count = env.globals.refs.len();
    if slot as usize >= count {
        return Err(no_slot(slot, count));
    }
    ty(env, wanted).check(&env.refs[index(reg)])?;
    let value = env.reference(reg);
    env.globals.refs[slot as usize] = value;
    Ok(())
}

fn fail(env: &Env<'_>, i: &Insn) -> Result<()> {
    let status = env.u32(i.a);
    if status == 0 {
        return Ok(());
    }
    let message = &env.function.strings[i.x as usize];
    Err(Status::new(Code::from_u32(status).unwrap_or(Code::Unknown), String::from(&**message)))
}
