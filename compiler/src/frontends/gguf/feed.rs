//! The feed-forward network of a layer.

use super::{Result, experts::Experts, layer::Call};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// The feed-forward network of a state that has its norm already; `before` is what the layer took.
    pub fn feed_forward(
        &self,
        b: &mut Builder,
        x: TensorId,
        before: TensorId,
        layer: u64,
    ) -> Result<TensorId> {
        let router = if self.hyper.family.routed_before { before } else { x };
        let made = match self.experts_of(layer) {
            Some(experts) => self.experts(b, [x, router], layer, &experts)?,
            None => self.dense(b, x, layer)?,
        };
        let made = self.optional_norm(b, made, layer, "post_ffw_norm")?.unwrap_or(made);
        self.scaled(b, made, self.hyper.residual_scale)
    }

    /// The experts of a layer, if it has some: not all layers of a model do.
    fn experts_of(&self, layer: u64) -> Option<Experts> {
        self.hyper
            .experts
            .filter(|_| self.tensors.find(&self.name(layer, "ffn_gate_inp", "weight")).is_some())
    }

    fn dense(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let inner = self.columns_of(layer, "ffn_down")?;
        let made = if self.tensors.find(&self.name(layer, "ffn_gate", "weight")).is_some() {
            let gate = self.linear(b, x, layer, "ffn_gate", [inner, width])?;
            let up = self.linear(b, x, layer, "ffn_up", [inner, width])?;
            self.gated(b, gate, up)?
        } else if self.rows_of(layer, "ffn_up") == Some(2 * inner) {
            let both = self.linear(b, x, layer, "ffn_up", [2 * inner, width])?;
            let (gate, up) = (self.columns(b, both, 0, inner)?, self.columns(b, both, inner, inner)?);
            self.gated(b, gate, up)?
        } else {
            let made = self.linear(b, x, layer, "ffn_up", [inner, width])?;
            self.activated(b, made, layer)?
        };
        self.linear(b, made, layer, "ffn_down", [width, inner])
    }
}
