//! Constant folding of the 32-bit integer and boolean instructions that addresses and guards are made of.

use spirv::{GlslStd450Op, Op};

use crate::program::ParsedModule;

/// The result of a core instruction on known operands; `None` if it has none or is not known here.
pub(super) fn core(op: Op, operands: &[u32]) -> Option<u32> {
    match operands {
        [a] => unary(op, *a),
        [a, b] => binary(op, *a, *b),
        _ => None,
    }
}

fn unary(op: Op, a: u32) -> Option<u32> {
    Some(match op {
        Op::CopyObject | Op::Bitcast => a,
        Op::Not => !a,
        Op::LogicalNot => u32::from(a == 0),
        Op::SNegate => a.wrapping_neg(),
        Op::BitCount => a.count_ones(),
        _ => return None,
    })
}

fn binary(op: Op, a: u32, b: u32) -> Option<u32> {
    let (sa, sb) = (a as i32, b as i32);
    Some(match op {
        Op::IAdd => a.wrapping_add(b),
        Op::ISub => a.wrapping_sub(b),
        Op::IMul => a.wrapping_mul(b),
        Op::UDiv => a.checked_div(b)?,
        Op::UMod => a.checked_rem(b)?,
        Op::SDiv => sa.checked_div(sb)? as u32,
        Op::SRem => sa.checked_rem(sb)? as u32,
        // The result takes the sign of the divisor.
        Op::SMod => {
            let rest = sa.checked_rem(sb)?;
            (if rest != 0 && (rest < 0) != (sb < 0) { rest + sb } else { rest }) as u32
        }
        Op::ShiftLeftLogical => a.checked_shl(b)?,
        Op::ShiftRightLogical => a.checked_shr(b)?,
        Op::ShiftRightArithmetic => sa.checked_shr(b)? as u32,
        Op::BitwiseAnd | Op::LogicalAnd => a & b,
        Op::BitwiseOr | Op::LogicalOr => a | b,
        Op::BitwiseXor => a ^ b,
        Op::IEqual | Op::LogicalEqual => u32::from(a == b),
        Op::INotEqual | Op::LogicalNotEqual => u32::from(a != b),
        Op::ULessThan => u32::from(a < b),
        Op::ULessThanEqual => u32::from(a <= b),
        Op::UGreaterThan => u32::from(a > b),
        Op::UGreaterThanEqual => u32::from(a >= b),
        Op::SLessThan => u32::from(sa < sb),
        Op::SLessThanEqual => u32::from(sa <= sb),
        Op::SGreaterThan => u32::from(sa > sb),
        Op::SGreaterThanEqual => u32::from(sa >= sb),
        _ => return None,
    })
}

/// The result of an instruction of the GLSL set on known operands.
pub(super) fn extended(program: &ParsedModule<'_>, set: u32, number: u32, operands: &[u32]) -> Option<u32> {
    let op = program.module.glsl_op(set, number)?;
    match (op, operands) {
        (GlslStd450Op::UMin, [a, b]) => Some(*a.min(b)),
        (GlslStd450Op::UMax, [a, b]) => Some(*a.max(b)),
        (GlslStd450Op::SMin, [a, b]) => Some((*a as i32).min(*b as i32) as u32),
        (GlslStd450Op::SMax, [a, b]) => Some((*a as i32).max(*b as i32) as u32),
        (GlslStd450Op::UClamp, [a, low, high]) if low <= high => Some(*a.clamp(low, high)),
        (GlslStd450Op::SClamp, [a, low, high]) if *low as i32 <= *high as i32 => {
            Some((*a as i32).clamp(*low as i32, *high as i32) as u32)
        }
        _ => None,
    }
}
