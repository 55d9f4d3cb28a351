//! The feed-forward network of a layer.

use halite_ops::{DType, expression::Function, reduce::ReduceKind};

use super::{Result, experts::Experts, family::Flow, layer::Call, steps::float};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// The feed-forward network of a state that has its norm already; `before` is what the layer took, `state` what has no norm yet.
    pub fn feed_forward(
        &self,
        b: &mut Builder,
        [x, before, state]: [TensorId; 3],
        layer: u64,
    ) -> Result<TensorId> {
        let router = if self.hyper.family.routed_before { before } else { x };
        let is_both = self.tensors.find(&self.name(layer, "pre_ffw_norm_2", "weight")).is_some();
        let made = match self.experts_of(layer) {
            Some(experts) if is_both => self.dense_and_experts(b, [x, state], layer, &experts)?,
            Some(experts) if self.has(layer, "ffn_norm_exps") => {
                self.dense_beside_experts(b, [x, before], layer, &experts)?
            }
            Some(experts) if self.has(layer, "ffn_down") => self.dense_with_experts(b, x, layer, &experts)?,
            Some(experts) => self.experts(b, [x, router], layer, &experts)?,
            None => self.dense(b, x, layer)?,
        };
        let made = match self.hyper.flow {
            Flow::BehindByOwn => self.layer_norm(b, made, layer, self.hyper.family.feed_norm)?,
            _ => self.norm_behind(b, made, layer, "post_ffw_norm")?,
        };
        let made = match self.hyper.flow {
            Flow::Before => self.optional_norm(b, made, layer, "layer_output_norm")?.unwrap_or(made),
            _ => made,
        };
        self.scaled(b, made, self.hyper.residual_scale)
    }

    /// The experts of a layer, if it has some: not all layers of a model do.
    fn experts_of(&self, layer: u64) -> Option<Experts> {
        self.hyper
            .experts
            .filter(|_| self.tensors.find(&self.name(layer, "ffn_gate_inp", "weight")).is_some())
    }

    /// A network that all tokens have, and experts of what the layer took.
    fn dense_beside_experts(
        &self,
        b: &mut Builder,
        [x, before]: [TensorId; 2],
        layer: u64,
        experts: &Experts,
    ) -> Result<TensorId> {
        let dense = self.dense(b, x, layer)?;
        let given = self.layer_norm(b, before, layer, "ffn_norm_exps")?;
        let made = self.experts(b, [given, given], layer, experts)?;
        b.binary(Function::Add, dense, made)
    }

    /// A network that all tokens have and experts, of the same state: their sum, no larger than each.
    fn dense_with_experts(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        experts: &Experts,
    ) -> Result<TensorId> {
        let dense = self.dense(b, x, layer)?;
        let made = self.experts(b, [x, x], layer, experts)?;
        let made = b.binary(Function::Add, dense, made)?;
        self.scaled(b, made, Some(std::f64::consts::FRAC_1_SQRT_2))
    }

    /// A network that all tokens have and experts, each with norms of its own before and behind.
    fn dense_and_experts(
        &self,
        b: &mut Builder,
        [x, state]: [TensorId; 2],
        layer: u64,
        experts: &Experts,
    ) -> Result<TensorId> {
        let width = self.hyper.width;
        let dense = self.dense(b, x, layer)?;
        let dense = self.row_norm(b, dense, layer, "post_ffw_norm_1", width)?;
        let given = self.row_norm(b, state, layer, "pre_ffw_norm_2", width)?;
        let router = self.norm(b, state, None, None)?;
        let router = self.scaled(b, router, Some(1.0 / (width as f64).sqrt()))?;
        let router = match self.tensors.vector(b, &self.name(layer, "ffn_gate_inp", "scale"), width)? {
            Some(scale) => b.binary(Function::Mul, router, scale)?,
            None => router,
        };
        let made = self.experts(b, [given, router], layer, experts)?;
        let made = self.row_norm(b, made, layer, "post_ffw_norm_2", width)?;
        b.binary(Function::Add, dense, made)
    }

    /// Of a gate's numbers what they are above so many deviations over the mean of their row, else 0.
    fn sparse(&self, b: &mut Builder, gate: TensorId, deviations: f64) -> Result<TensorId> {
        let count = b.sizes(gate)[1].exact();
        let mean = b.reduce(ReduceKind::Mean, gate, &[1], true)?;
        let apart = b.binary(Function::Sub, gate, mean)?;
        let squares = b.binary(Function::Mul, apart, apart)?;
        let sum = b.reduce(ReduceKind::Sum, squares, &[1], true)?;
        let less = 1.0 / (count.max(2) - 1) as f64;
        b.map(&[apart, sum], DType::F32, |p, x| {
            let mean = p.call(Function::Mul, &[x[1], float(less)]);
            let deviation = p.call(Function::Sqrt, &[mean]);
            let least = p.call(Function::Mul, &[deviation, float(deviations)]);
            let above = p.call(Function::Sub, &[x[0], least]);
            p.call(Function::Max, &[above, float(0.0)])
        })
    }

    fn dense(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let inner = self.columns_of(layer, "ffn_down")?;
        let limit = self.hyper.activations.limits[0][layer as usize];
        let made = if self.tensors.find(&self.name(layer, "ffn_gate", "weight")).is_some() {
            let gate = self.linear(b, x, layer, "ffn_gate", [inner, width])?;
            let gate = match self.hyper.activations.sparsity[layer as usize] {
                Some(deviations) => self.sparse(b, gate, deviations)?,
                None => gate,
            };
            let up = self.linear(b, x, layer, "ffn_up", [inner, width])?;
            self.gated(b, [gate, up], limit)?
        } else if self.rows_of(layer, "ffn_up") == Some(2 * inner) {
            let both = self.linear(b, x, layer, "ffn_up", [2 * inner, width])?;
            let (gate, up) = (self.columns(b, both, 0, inner)?, self.columns(b, both, inner, inner)?);
            self.gated(b, [gate, up], limit)?
        } else {
            let made = self.linear(b, x, layer, "ffn_up", [inner, width])?;
            self.activated(b, made, layer)?
        };
        let made = self.inner_norm(b, made, layer, "ffn_sub_norm", inner)?;
        self.linear(b, made, layer, "ffn_down", [width, inner])
    }
}
