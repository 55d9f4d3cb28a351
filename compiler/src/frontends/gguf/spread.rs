//! Several states of a token that go into each other: what a part of a layer makes is added to each by a weight, and each state goes on as
//! a sum of all, by weights that are made to be about 1 in sum for all that come from a state and all that go into one (Sinkhorn and
//! Knopp; DeepSeek-AI, Manifold-Constrained Hyper-Connections).

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Result, layer::Call, steps::float};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// How much of each state goes into each, `[rows, from, into]`, of numbers with a scale and a base for each.
    pub fn spread(
        &self,
        b: &mut Builder,
        mixes: TensorId,
        (scale, base): (f32, &[f32]),
        (count, epsilon, rounds): (u64, f64, u64),
    ) -> Result<TensorId> {
        let bytes: Vec<u8> = base.iter().flat_map(|number| number.to_le_bytes()).collect();
        let base = b.constant("base", DType::F32.into(), &[1, count * count], bytes.into())?;
        let scale = Operand::Constant(Scalar::Float(f64::from(scale)));
        let made = b.map(&[mixes, base], DType::F32, |p, x| {
            let made = p.call(Function::Mul, &[x[0], scale]);
            p.call(Function::Add, &[made, x[1]])
        })?;
        let rows = b.sizes(mixes)[0];
        let made = b.reshape_to(made, &[rows, count.into(), count.into()])?;
        let made = b.softmax(made, 2, false)?;
        let mut made = b.map(&[made], DType::F32, |p, x| p.call(Function::Add, &[x[0], float(epsilon)]))?;
        for round in 0..2 * rounds.max(1) - 1 {
            let axis = if round % 2 == 0 { 1 } else { 2 };
            let sum = b.reduce(ReduceKind::Sum, made, &[axis], true)?;
            made = b.map(&[made, sum], DType::F32, |p, x| {
                let sum = p.call(Function::Add, &[x[1], float(epsilon)]);
                p.call(Function::Div, &[x[0], sum])
            })?;
        }
        Ok(made)
    }

    /// Sums of states, `[rows, count, width]`, by how much of each goes into each.
    pub fn spread_states(&self, b: &mut Builder, x: TensorId, weights: TensorId) -> Result<TensorId> {
        let [rows, count, width] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let one = Size::constant(1);
        let mut sum = None;
        for from in 0..count.exact() {
            let from = Range { start: Size::from(from), step: 1, count: one };
            let state = b.slice(x, &[Range::all(rows), from, Range::all(width)])?;
            let part = b.slice(weights, &[Range::all(rows), from, Range::all(count)])?;
            let part = b.reshape_to(part, &[rows, count, one])?;
            sum = Some(match sum {
                None => b.binary(Function::Mul, state, part)?,
                Some(sum) => b.map(&[sum, state, part], DType::F32, |p, x| {
                    let more = p.call(Function::Mul, &x[1..]);
                    p.call(Function::Add, &[x[0], more])
                })?,
            });
        }
        sum.ok_or_else(|| b.invalid("no states of tokens"))
    }
}
