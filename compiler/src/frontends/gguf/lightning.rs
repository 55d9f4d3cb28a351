//! Layers whose heads keep a sum of products of keys and values that fades by a factor of each head (Qin et al., Lightning Attention-2), in
//! models whose norms make what goes on: layers add to what their norms give, and not to the state before.

use halite_ops::{DType, expression::Function};

use super::{
    Result,
    layer::{Call, Given, Held},
    recurrent::Lightning,
    state_space::Tokens,
};
use crate::{build::Builder, graph::TensorId};

/// What is added to the factor of a layer's rates.
const MORE: f32 = 1e-5;

impl Call<'_> {
    /// The state behind a layer whose parts are added to what their norms make, and what it keeps.
    pub fn layer_carrying_norms(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, .. } = given;
        let normed = self.layer_norm(b, x, layer, "attn_norm")?;
        let (made, held) = self.mixed(b, Given { x: normed, ..given })?;
        let (made, normed) = (given.wanted_of(b, made)?, given.wanted_of(b, normed)?);
        let state = self.added_to_norm(b, made, normed)?;
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let normed = self.layer_norm(b, state, layer, self.hyper.family.feed_norm)?;
        let made = self.feed_forward(b, [normed, state, state], layer)?;
        Ok((self.added_to_norm(b, made, normed)?, held))
    }

    /// What a part makes, and what its norm gave times a factor of the metadata.
    fn added_to_norm(&self, b: &mut Builder, made: TensorId, normed: TensorId) -> Result<TensorId> {
        let kept = self.scaled(b, normed, self.hyper.rare.carried)?;
        b.binary(Function::Add, made, kept)
    }

    /// A fading sum of products, of which queries read.
    pub fn lightning(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &Lightning,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let Given { layer, x, held, .. } = given;
        let (heads, size, width) = (sizes.heads, sizes.size, self.hyper.width);
        let inner = heads * size;
        let all = self.linear(b, x, layer, "attn_qkv", [3 * inner, width])?;
        let all = b.unary(Function::Silu, all)?;
        // Each head has its query, its key and its value together.
        let all = b.reshape_to(all, &[self.rows() * heads, (3 * size).into()])?;
        let part = |b: &mut Builder, place: u64| {
            let part = self.columns(b, all, place * size, size)?;
            let part = b.reshape_to(part, &[self.rows(), inner.into()])?;
            self.heads_first(b, part, [heads, size])
        };
        let (queries, keys, values) = (part(b, 0)?, part(b, 1)?, part(b, 2)?);
        let written = self.counted(b, values)?;
        let decay = self.rates(b, layer, heads)?;
        let tokens = Tokens { written, decay, places: [keys, queries] };
        let (made, state) = self.scanned(b, &tokens, &sizes.space(), held.state(0))?;
        let made = self.heads_last(b, made, inner)?;
        let made = self.row_norm(b, made, layer, "attn_norm_2", inner)?;
        let gate = self.linear(b, x, layer, "attn_gate", [inner, width])?;
        let made = b.map(&[made, gate], DType::F32, |p, x| {
            let gate = p.call(Function::Sigmoid, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        let made = self.linear(b, made, layer, "attn_output", [width, inner])?;
        Ok((made, state.into_iter().collect()))
    }

    /// Sums of the logarithms of decays up to each token, `[sequences, heads, len, 1]`: powers of a number of all heads, times a factor
    /// that falls from the first layer to the last.
    fn rates(&self, b: &mut Builder, layer: u64, heads: u64) -> Result<TensorId> {
        let depth = (self.hyper.layers - 1) as f32;
        let factor = 1.0 - layer as f32 / depth + MORE;
        let first = (-(-((heads as f32).log2() - 3.0)).exp2()).exp2();
        let rates = (1..=heads).map(|head| -factor * first.powi(head as i32));
        let bytes: Vec<u8> = rates.flat_map(f32::to_le_bytes).collect();
        let rates = b.constant("rates", DType::F32.into(), &[1, heads, 1, 1], bytes.into())?;
        let rates = b.expand_to(rates, &[self.sequences, heads.into(), self.len, 1.into()])?;
        let rates = self.counted(b, rates)?;
        b.cumulative_sum(rates, 2, false, false)
    }
}
