//! A layer of a decoder: attention to the cache, and the feed-forward network.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
};
use halite_sizes::Size;

use super::{Result, file::Tensors, hyper::Hyper};
use crate::{
    build::{Builder, Normalization, Range, Scores},
    graph::TensorId,
};

/// What all layers of a call share.
pub(super) struct Call<'a> {
    pub tensors: &'a Tensors<'a>,
    pub hyper: &'a Hyper,
    /// New tokens.
    pub len: Size,
    /// Tokens that caches have room for.
    pub context: u64,
    /// Places of the new tokens, `i64[1, len]`.
    pub positions: TensorId,
    /// Place of the first of them, `i32[1]`.
    pub start: TensorId,
    /// Tokens with them, `i32[1]`.
    pub lengths: TensorId,
    /// Tables of rotary embedding for layers that attend to all keys, and to a window.
    pub tables: [Option<[TensorId; 2]>; 2],
}

/// The caches of a layer, `f16[1, kv heads, context, dim]`.
pub(super) type Caches = [TensorId; 2];

impl Call<'_> {
    fn name(&self, layer: u64, part: &str, kind: &str) -> String {
        format!("blk.{layer}.{part}.{kind}")
    }

    /// `x` divided by the root of the mean of its squares along its last dimension, times a scale.
    pub fn norm(&self, b: &mut Builder, x: TensorId, scale: TensorId) -> Result<TensorId> {
        let end = b.rank(x);
        let epsilon = self.hyper.epsilon;
        let norm = Normalization { kind: NormKind::Rms, first: end - 1, end, groups: 1, epsilon };
        b.normalize(x, Some(scale), None, norm)
    }

    /// A norm of a layer, which has to be there.
    fn layer_norm(&self, b: &mut Builder, x: TensorId, layer: u64, part: &str) -> Result<TensorId> {
        match self.optional_norm(b, x, layer, part, self.hyper.width)? {
            Some(made) => Ok(made),
            None => {
                let name = self.name(layer, part, "weight");
                Err(super::file::invalid(format!("the tensor '{name}' is missing")))
            }
        }
    }

    /// A norm that models may have.
    fn optional_norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        length: u64,
    ) -> Result<Option<TensorId>> {
        let scale = self.tensors.vector(b, &self.name(layer, part, "weight"), length)?;
        scale.map(|scale| self.norm(b, x, scale)).transpose()
    }

    /// A product with weights, and a bias if there is one.
    fn linear(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        [rows, length]: [u64; 2],
    ) -> Result<TensorId> {
        let weights = self.tensors.matrix(b, &self.name(layer, part, "weight"), [rows, length])?;
        let made = b.row_product(x, &weights)?;
        match self.tensors.vector(b, &self.name(layer, part, "bias"), rows)? {
            Some(bias) => b.binary(Function::Add, made, bias),
            None => Ok(made),
        }
    }

    /// Columns of a matrix.
    fn columns(&self, b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
        let rows = b.sizes(x)[0];
        let part = Range { start: Size::from(first), step: 1, count: Size::from(count) };
        b.slice(x, &[Range::all(rows), part])
    }

    /// Queries, keys and values, `[len, heads * dim]`.
    fn projections(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<[TensorId; 3]> {
        let h = self.hyper;
        let [q, k, v] = [h.heads * h.key_dim, h.kv_heads * h.key_dim, h.kv_heads * h.value_dim];
        if self.tensors.find(&self.name(layer, "attn_qkv", "weight")).is_some() {
            let all = self.linear(b, x, layer, "attn_qkv", [q + k + v, h.width])?;
            return Ok([
                self.columns(b, all, 0, q)?,
                self.columns(b, all, q, k)?,
                self.columns(b, all, q + k, v)?,
            ]);
        }
        Ok([
            self.linear(b, x, layer, "attn_q", [q, h.width])?,
            self.linear(b, x, layer, "attn_k", [k, h.width])?,
            self.linear(b, x, layer, "attn_v", [v, h.width])?,
        ])
    }

    /// `[len, heads * dim]` to `[1, heads, len, dim]`, with a norm of each head where there is one.
    fn heads(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        [heads, dim]: [u64; 2],
        norm: Option<&str>,
    ) -> Result<TensorId> {
        let mut x = b.reshape_to(x, &[self.len, heads.into(), dim.into()])?;
        if let Some(norm) = norm {
            x = self.optional_norm(b, x, layer, norm, dim)?.unwrap_or(x);
        }
        let x = b.transpose(x, &[1, 0, 2])?;
        b.reshape_to(x, &[1.into(), heads.into(), self.len, dim.into()])
    }

    fn turned(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let Some(rope) = self.hyper.rope_of(layer) else { return Ok(x) };
        let place = usize::from(self.hyper.window_of(layer).is_some());
        match self.tables[place] {
            Some(tables) => b.rotary(x, self.positions, tables, rope.turned, self.hyper.family.interleaved),
            None => Ok(x),
        }
    }

    /// Attention of new tokens to all so far; gives the caches with them, too.
    pub fn attention(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        [keys, values]: Caches,
    ) -> Result<(TensorId, Caches)> {
        let h = self.hyper;
        let x = self.layer_norm(b, x, layer, "attn_norm")?;
        let [q, k, v] = self.projections(b, x, layer)?;
        let q = self.heads(b, q, layer, [h.heads, h.key_dim], Some("attn_q_norm"))?;
        let k = self.heads(b, k, layer, [h.kv_heads, h.key_dim], Some("attn_k_norm"))?;
        let v = self.heads(b, v, layer, [h.kv_heads, h.value_dim], None)?;
        let (q, k) = (self.turned(b, q, layer)?, self.turned(b, k, layer)?);
        let (keys, values) = (b.append(k, keys, self.start)?, b.append(v, values, self.start)?);
        let q = b.cast(q, DType::F16)?;
        // A window as long as the context leaves nothing out.
        let window = h.window_of(layer).filter(|window| *window < self.context);
        let mask = window.map(|window| self.window(b, window)).transpose()?;
        let causal = mask.is_none();
        let scores = Scores {
            scale: Some(h.scale),
            softcap: h.score_cap,
            causal,
            lengths: causal.then_some(self.lengths),
        };
        let made = b.attention([q, keys, values], mask, scores)?;
        let made = b.as_f32(made)?;
        let made = b.transpose(made, &[0, 2, 1, 3])?;
        let inner = h.heads * h.value_dim;
        let made = b.reshape_to(made, &[self.len, inner.into()])?;
        let made = self.linear(b, made, layer, "attn_output", [h.width, inner])?;
        let made = self.optional_norm(b, made, layer, "post_attention_norm", h.width)?.unwrap_or(made);
        Ok((self.scaled(b, made, h.residual_scale)?, [keys, values]))
    }

    /// What is added to scores so that tokens attend to a window of keys: `f32[1, 1, len, context]`.
    fn window(&self, b: &mut Builder, window: u64) -> Result<TensorId> {
        let one = Size::constant(1);
        let places = b.reshape_to(self.positions, &[one, one, self.len, one])?;
        b.band_around(places, self.context, Some(window as i64 - 1), Some(0))
    }

    /// The feed-forward network.
    pub fn feed_forward(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let h = self.hyper;
        let x = self.layer_norm(b, x, layer, "ffn_norm")?;
        let (gate, up) = if self.tensors.find(&self.name(layer, "ffn_gate", "weight")).is_some() {
            let gate = self.linear(b, x, layer, "ffn_gate", [h.inner, h.width])?;
            (gate, self.linear(b, x, layer, "ffn_up", [h.inner, h.width])?)
        } else {
            let both = self.linear(b, x, layer, "ffn_up", [2 * h.inner, h.width])?;
            (self.columns(b, both, 0, h.inner)?, self.columns(b, both, h.inner, h.inner)?)
        };
        let gelu = h.family.gelu;
        let made = b.map(&[gate, up], DType::F32, |p, x| {
            let gate = if gelu {
                p.call(Function::GeluTanh, &[x[0]])
            } else {
                let part = p.call(Function::Sigmoid, &[x[0]]);
                p.call(Function::Mul, &[x[0], part])
            };
            p.call(Function::Mul, &[gate, x[1]])
        })?;
        let made = self.linear(b, made, layer, "ffn_down", [h.width, h.inner])?;
        let made = self.optional_norm(b, made, layer, "post_ffw_norm", h.width)?.unwrap_or(made);
        self.scaled(b, made, h.residual_scale)
    }

    /// `x` times a number, if there is one.
    pub fn scaled(&self, b: &mut Builder, x: TensorId, factor: Option<f64>) -> Result<TensorId> {
        let Some(factor) = factor else { return Ok(x) };
        let factor = Operand::Constant(Scalar::Float(f64::from(factor as f32)));
        b.map(&[x], DType::F32, |p, x| p.call(Function::Mul, &[x[0], factor]))
    }
}
