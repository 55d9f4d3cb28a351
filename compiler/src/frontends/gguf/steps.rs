//! What layers with a state need to know of a call's tokens.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::Result;
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// The place of a token that is in no sequence: nothing of it goes into a cache, and its logits mean nothing.
pub(super) const NOBODY: i64 = -1;

/// Which tokens of a call count, and whether sequences begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// 1 for a token of the sequence, 0 for one that fills a call up, `f32[sequences, len]`.
    pub real: TensorId,
    /// How many of them count, of one sequence: `i64[1]`.
    pub count: TensorId,
    /// 1 where a sequence has tokens from before, 0 where it begins: `f32[sequences, 1]`.
    pub goes_on: TensorId,
    /// 1 where a sequence has a token in this call, `f32[sequences, 1]`.
    pub has_any: TensorId,
}

fn int(value: i64) -> Operand {
    Operand::Constant(Scalar::Int(value, DType::I64))
}

/// A number in an expression.
pub(super) fn float(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

impl Steps {
    /// Of places `i64[sequences, len]`, in which [`NOBODY`] is that of a token that does not count: those of one sequence at the end.
    pub fn of(b: &mut Builder, positions: TensorId) -> Result<Steps> {
        let [sequences, _] = b.sizes(positions)[..] else { return Err(b.invalid("places of no sequence")) };
        let real = b.map(&[positions], DType::F32, |p, x| {
            let is_nobody = p.call(Function::Eq, &[x[0], int(NOBODY)]);
            p.call(Function::Select, &[is_nobody, float(0.0), float(1.0)])
        })?;
        let one = Size::constant(1);
        let count = b.reduce(ReduceKind::Sum, real, &[0, 1], false)?;
        let count = b.reshape_to(count, &[one])?;
        let count = b.cast(count, DType::I64)?;
        let first = |b: &mut Builder, x: TensorId| {
            b.slice(x, &[Range::all(sequences), Range { start: Size::constant(0), step: 1, count: one }])
        };
        let place = first(b, positions)?;
        let goes_on = b.map(&[place], DType::F32, |p, x| {
            let begins = p.call(Function::Eq, &[x[0], int(0)]);
            p.call(Function::Select, &[begins, float(0.0), float(1.0)])
        })?;
        Ok(Steps { real, count, goes_on, has_any: first(b, real)? })
    }
}
