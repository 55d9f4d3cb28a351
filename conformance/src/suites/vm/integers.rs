//! What integer operations, and moves of bits, should compute.

use halite_vm::isa::Op;

/// The bits of a result by those of the operands; nothing where the operation must fail.
pub type Rule = Box<dyn Fn(&[u64]) -> Option<u64> + Send + Sync>;

fn i(bits: u64) -> i32 {
    bits as u32 as i32
}

fn u(bits: u64) -> u32 {
    bits as u32
}

fn l(bits: u64) -> i64 {
    bits as i64
}

fn i32s(f: impl Fn(i32, i32) -> Option<i32> + Send + Sync + 'static) -> Rule {
    Box::new(move |x| f(i(x[0]), i(x[1])).map(|v| u64::from(v as u32)))
}

fn u32s(f: impl Fn(u32, u32) -> Option<u32> + Send + Sync + 'static) -> Rule {
    Box::new(move |x| f(u(x[0]), u(x[1])).map(u64::from))
}

fn i64s(f: impl Fn(i64, i64) -> Option<i64> + Send + Sync + 'static) -> Rule {
    Box::new(move |x| f(l(x[0]), l(x[1])).map(|v| v as u64))
}

fn u64s(f: impl Fn(u64, u64) -> Option<u64> + Send + Sync + 'static) -> Rule {
    Box::new(move |x| f(x[0], x[1]))
}

fn one(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Rule {
    Box::new(move |x| Some(f(x[0])))
}

fn all(f: impl Fn(&[u64]) -> u64 + Send + Sync + 'static) -> Rule {
    Box::new(move |x| Some(f(x)))
}

fn test(f: impl Fn(&[u64]) -> bool + Send + Sync + 'static) -> Rule {
    Box::new(move |x| Some(u64::from(f(x))))
}

/// The rule of an operation, if it is one of integers.
pub fn rule(op: Op) -> Option<Rule> {
    arithmetic(op).or_else(|| bits(op)).or_else(|| compare(op))
}

fn arithmetic(op: Op) -> Option<Rule> {
    Some(match op {
        Op::AddI32 => i32s(|a, b| Some(a.wrapping_add(b))),
        Op::SubI32 => i32s(|a, b| Some(a.wrapping_sub(b))),
        Op::MulI32 => i32s(|a, b| Some(a.wrapping_mul(b))),
        Op::DivI32S => i32s(|a, b| (b != 0).then(|| a.wrapping_div(b))),
        Op::DivI32U => u32s(u32::checked_div),
        Op::RemI32S => i32s(|a, b| (b != 0).then(|| a.wrapping_rem(b))),
        Op::RemI32U => u32s(u32::checked_rem),
        Op::FmaI32 => all(|x| u64::from(u(x[0]).wrapping_mul(u(x[1])).wrapping_add(u(x[2])))),
        Op::AddI64 => i64s(|a, b| Some(a.wrapping_add(b))),
        Op::SubI64 => i64s(|a, b| Some(a.wrapping_sub(b))),
        Op::MulI64 => i64s(|a, b| Some(a.wrapping_mul(b))),
        Op::DivI64S => i64s(|a, b| (b != 0).then(|| a.wrapping_div(b))),
        Op::DivI64U => u64s(u64::checked_div),
        Op::RemI64S => i64s(|a, b| (b != 0).then(|| a.wrapping_rem(b))),
        Op::RemI64U => u64s(u64::checked_rem),
        Op::FmaI64 => all(|x| x[0].wrapping_mul(x[1]).wrapping_add(x[2])),
        Op::AbsI32 => one(|a| u64::from(i(a).wrapping_abs() as u32)),
        Op::AbsI64 => one(|a| l(a).wrapping_abs() as u64),
        Op::MinI32S => i32s(|a, b| Some(a.min(b))),
        Op::MinI32U => u32s(|a, b| Some(a.min(b))),
        Op::MaxI32S => i32s(|a, b| Some(a.max(b))),
        Op::MaxI32U => u32s(|a, b| Some(a.max(b))),
        Op::MinI64S => i64s(|a, b| Some(a.min(b))),
        Op::MinI64U => u64s(|a, b| Some(a.min(b))),
        Op::MaxI64S => i64s(|a, b| Some(a.max(b))),
        Op::MaxI64U => u64s(|a, b| Some(a.max(b))),
        _ => return None,
    })
}

fn bits(op: Op) -> Option<Rule> {
    Some(match op {
        Op::ConstI32Zero | Op::ConstI64Zero => all(|_| 0),
        Op::ConstI32 => one(|a| u64::from(u(a))),
        Op::ConstI64 => one(|a| a),
        Op::NotI32 => one(|a| u64::from(!u(a))),
        Op::NotI64 => one(|a| !a),
        Op::AndI32 | Op::AndI64 => u64s(|a, b| Some(a & b)),
        Op::OrI32 | Op::OrI64 => u64s(|a, b| Some(a | b)),
        Op::XorI32 | Op::XorI64 => u64s(|a, b| Some(a ^ b)),
        // Distances count modulo the width.
        Op::ShlI32 => u32s(|a, b| Some(a << (b % 32))),
        Op::ShrI32S => i32s(|a, b| Some(a >> (b as u32 % 32))),
        Op::ShrI32U => u32s(|a, b| Some(a >> (b % 32))),
        Op::ShlI64 => u64s(|a, b| Some(a << (b % 64))),
        Op::ShrI64S => i64s(|a, b| Some(a >> (b as u64 % 64))),
        Op::ShrI64U => u64s(|a, b| Some(a >> (b % 64))),
        Op::TruncI32I8 => one(|a| a & 0xFF),
        Op::TruncI32I16 => one(|a| a & 0xFFFF),
        Op::TruncI64I32 => one(|a| a & 0xFFFF_FFFF),
        Op::ExtI8I32S => one(|a| u64::from(i32::from(a as u8 as i8) as u32)),
        Op::ExtI8I32U => one(|a| a & 0xFF),
        Op::ExtI16I32S => one(|a| u64::from(i32::from(a as u16 as i16) as u32)),
        Op::ExtI16I32U => one(|a| a & 0xFFFF),
        Op::ExtI32I64S => one(|a| i64::from(i(a)) as u64),
        Op::ExtI32I64U => one(|a| u64::from(u(a))),
        Op::CtlzI32 => one(|a| u64::from(u(a).leading_zeros())),
        Op::CtlzI64 => one(|a| u64::from(a.leading_zeros())),
        Op::BitcastF32I32 | Op::BitcastI32F32 | Op::BitcastF64I64 | Op::BitcastI64F64 => one(|a| a),
        Op::SelectI32 | Op::SelectI64 | Op::SelectF32 | Op::SelectF64 => {
            all(|x| if u(x[0]) != 0 { x[1] } else { x[2] })
        }
        _ => return None,
    })
}

fn compare(op: Op) -> Option<Rule> {
    Some(match op {
        Op::CmpEqI32 | Op::CmpEqI64 => test(|x| x[0] == x[1]),
        Op::CmpNeI32 | Op::CmpNeI64 => test(|x| x[0] != x[1]),
        Op::CmpLtI32S => test(|x| i(x[0]) < i(x[1])),
        Op::CmpLtI32U | Op::CmpLtI64U => test(|x| x[0] < x[1]),
        Op::CmpNzI32 | Op::CmpNzI64 => test(|x| x[0] != 0),
        Op::CmpLtI64S => test(|x| l(x[0]) < l(x[1])),
        _ => return None,
    })
}
