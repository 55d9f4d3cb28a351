//! Several states of a token whose elements are weighed by gates: parts of layers take the mean of what gates leave of each, and what they
//! make is added to each by a weight that the states tell (Qwen4).

use halite_ops::{DType, expression::Function, norm::NormKind, reduce::ReduceKind};
use halite_sizes::Size;

use super::{Result, file::missing, layer::Call, steps::float};
use crate::{
    build::{Builder, Normalization},
    graph::TensorId,
};

impl Call<'_> {
    /// States `[rows, count, width]`, each with a norm of its own and weights for all, `[rows, count, width]`.
    pub fn norm_of_each(&self, b: &mut Builder, x: TensorId, name: &str) -> Result<TensorId> {
        let [_, count, width] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let norm =
            Normalization { kind: NormKind::Rms, first: 2, end: 3, groups: 1, epsilon: self.hyper.epsilon };
        let normed = b.normalize(x, None, None, norm)?;
        let name = format!("{name}.weight");
        let scale = self.tensors.floats_as(b, &name, &[1, count.exact(), width.exact()])?;
        b.binary(Function::Mul, normed, scale.ok_or_else(|| missing(&name))?)
    }

    /// What a part takes of states, `[rows, width]`, and these with their norms as one row.
    fn gated_states(&self, b: &mut Builder, x: TensorId, name: &str, rank: u64) -> Result<[TensorId; 2]> {
        let [rows, count, width] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let (states, all) = (count.exact(), count.exact() * width.exact());
        let normed = self.norm_of_each(b, x, &format!("{name}_norm"))?;
        let flat = b.reshape_to(normed, &[rows, all.into()])?;
        let product = |b: &mut Builder, x: TensorId, end: &str, dims: [u64; 2]| {
            let part = format!("{name}_{end}");
            let weights = self.tensors.matrix(b, &format!("{part}.weight"), dims)?;
            let made = b.row_product(x, &weights)?;
            self.tensors.rescaled(b, made, &part)
        };
        let low = product(b, flat, "down", [rank, all])?;
        let low = b.map(&[low], DType::F32, |p, x| {
            let part = p.call(Function::Mul, &[x[0], float(1.0 / states as f64)]);
            p.call(Function::Silu, &[part])
        })?;
        let gates = product(b, low, "up", [all, rank])?;
        let gates = b.reshape_to(gates, &[rows, count, width])?;
        let left = b.map(&[normed, gates], DType::F32, |p, x| {
            let gate = p.call(Function::Sigmoid, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        Ok([b.reduce(ReduceKind::Mean, left, &[1], false)?, flat])
    }

    /// What a part takes, `[rows, width]`, and the weights of what it makes, `[rows, count, 1]`.
    pub fn entered_by_gates(
        &self,
        b: &mut Builder,
        x: TensorId,
        name: &str,
        rank: u64,
    ) -> Result<[TensorId; 2]> {
        let [rows, count, _] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let (states, all) = (count.exact(), b.sizes(x)[2].exact() * count.exact());
        let [taken, flat] = self.gated_states(b, x, name, rank)?;
        let weights = self.tensors.matrix(b, &format!("{name}_inject.weight"), [states, all])?;
        let weights = b.row_product(flat, &weights)?;
        let weights = b.map(&[weights], DType::F32, |p, x| {
            let part = p.call(Function::Mul, &[x[0], float(1.0 / states as f64)]);
            let part = p.call(Function::Sigmoid, &[part]);
            p.call(Function::Mul, &[part, float(2.0)])
        })?;
        Ok([taken, b.reshape_to(weights, &[rows, count, Size::constant(1)])?])
    }

    /// One state of tokens, `[rows, width]`, of all in front of the output: it has its norm already.
    pub fn left_by_gates(&self, b: &mut Builder, x: TensorId, rank: u64) -> Result<TensorId> {
        self.gated_states(b, x, "output_hc", rank).map(|[state, _]| state)
    }
}
