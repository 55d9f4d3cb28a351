//! State-space layers whose decay is one number for each head (Dao and Gu, Transformers are SSMs: Mamba-2).
//!
//! All tokens of a call are computed together: what they write into the state and read of each other is a product, as in attention, of
//! which the decay between two tokens is a factor.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
};
use halite_sizes::Size;

use super::{
    Result,
    file::missing,
    layer::{Call, Given},
    recurrent::StateSpace,
    steps::float,
};
use crate::{
    build::{Builder, Normalization, Range},
    graph::TensorId,
};

/// What a call's tokens do to a state, `[sequences, heads, len, …]`.
pub(super) struct Tokens {
    /// What they write, times how much of it: `[…, head]`.
    pub written: TensorId,
    /// Sums of the logarithms of decays up to each: `[…, 1]`.
    pub decay: TensorId,
    /// Where they write and read, of each group: `[sequences, groups, len, state]`.
    pub places: [TensorId; 2],
}

/// What a layer makes of its tokens before they meet the state.
struct Parts {
    /// `[rows, inner]`.
    gate: TensorId,
    /// What they write, the same.
    own: TensorId,
    /// As in [`Tokens`].
    places: [TensorId; 2],
    /// How much, before a bias and softplus: `[rows, heads]`.
    steps: TensorId,
    /// What the convolution needs in the call behind.
    kept: Option<TensorId>,
}

impl Call<'_> {
    /// A state-space layer.
    pub fn state_space(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &StateSpace,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let Given { layer, held, .. } = given;
        let (inner, heads, width) = (sizes.inner, sizes.heads, self.hyper.width);
        let Parts { gate, own: x, places, steps, kept } = match sizes.rank {
            None => self.parts_at_once(b, given, sizes)?,
            Some(rank) => self.parts_in_turn(b, given, sizes, rank)?,
        };
        let x = self.heads_first(b, x, [heads, sizes.head()])?;
        let (steps, decay) = self.decays(b, steps, layer, [heads, 1])?;
        let decay = b.cumulative_sum(decay, 2, false, false)?;
        let written = b.binary(Function::Mul, x, steps)?;
        let tokens = Tokens { written, decay, places };
        let (read, state) = self.scanned(b, &tokens, sizes, held.state(1))?;
        let skip = self.by_heads(b, layer, "ssm_d", heads)?;
        let made = b.map(&[read, x, skip], DType::F32, |p, x| {
            let own = p.call(Function::Mul, &x[1..]);
            p.call(Function::Add, &[x[0], own])
        })?;
        let made = self.heads_last(b, made, inner)?;
        let made = b.map(&[made, gate], DType::F32, |p, x| {
            let gate = p.call(Function::Silu, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        let made = self.grouped_norm(b, made, layer, sizes)?;
        let mut made = self.linear(b, made, layer, "ssm_out", [width, inner])?;
        if self.hyper.family.late_places {
            made = self.layer_norm(b, made, layer, "post_attention_norm")?;
        }
        Ok((made, kept.into_iter().chain(state).collect()))
    }

    /// Parts that come of one product, all but gates and steps behind a convolution.
    fn parts_at_once(&self, b: &mut Builder, given: Given<'_>, sizes: &StateSpace) -> Result<Parts> {
        let Given { layer, x, held, .. } = given;
        let (inner, heads, conv) = (sizes.inner, sizes.heads, sizes.convolved());
        let group = sizes.groups * sizes.state;
        let all = self.linear(b, x, layer, "ssm_in", [inner + conv + heads, self.hyper.width])?;
        let gate = self.columns(b, all, 0, inner)?;
        let own = self.columns(b, all, inner, conv)?;
        let steps = self.columns(b, all, inner + conv, heads)?;
        let (own, kept) =
            self.activated_conv(b, own, layer, &["ssm_conv1d"], [sizes.taps, conv], held.state(0))?;
        let places = |b: &mut Builder, first: u64| {
            let part = self.columns(b, own, first, group)?;
            self.heads_first(b, part, [sizes.groups, sizes.state])
        };
        let places = [places(b, inner)?, places(b, inner + group)?];
        Ok(Parts { gate, own: self.columns(b, own, 0, inner)?, places, steps, kept })
    }

    /// Parts of which places and steps come of what is behind the convolution, each with a norm. Each head has its gates beside what it
    /// writes.
    fn parts_in_turn(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &StateSpace,
        rank: u64,
    ) -> Result<Parts> {
        let Given { layer, x, held, .. } = given;
        let (inner, heads, head, state) = (sizes.inner, sizes.heads, sizes.head(), sizes.state);
        let both = self.linear(b, x, layer, "ssm_in", [2 * inner, self.hyper.width])?;
        let both = b.reshape_to(both, &[self.rows() * heads, (2 * head).into()])?;
        let half = |b: &mut Builder, first: u64| {
            let half = self.columns(b, both, first, head)?;
            b.reshape_to(half, &[self.rows(), inner.into()])
        };
        let (gate, own) = (half(b, 0)?, half(b, head)?);
        let (own, kept) =
            self.activated_conv(b, own, layer, &["ssm_conv1d"], [sizes.taps, inner], held.state(0))?;
        let all = self.linear(b, own, layer, "ssm_x", [2 * state + rank, inner])?;
        let part = |b: &mut Builder, first: u64, length: u64, norm: &str| {
            let part = self.columns(b, all, first, length)?;
            self.row_norm(b, part, layer, norm, length)
        };
        let [write, read] = [part(b, 0, state, "ssm_b_norm")?, part(b, state, state, "ssm_c_norm")?];
        let places = [self.heads_first(b, write, [1, state])?, self.heads_first(b, read, [1, state])?];
        let steps = part(b, 2 * state, rank, "ssm_dt_norm")?;
        let steps = self.product(b, steps, layer, "ssm_dt", [heads, rank])?;
        Ok(Parts { gate, own, places, steps, kept })
    }

    /// A causal convolution with its bias, if there is one, through a SiLU. Its channels are those of these tensors, one behind the other.
    pub fn activated_conv(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        parts: &[&str],
        [taps, channels]: [u64; 2],
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let names: Vec<String> = parts.iter().map(|part| self.name(layer, part, "weight")).collect();
        let (made, kept) = self.causal_conv(b, x, &names, [taps, channels], held)?;
        let bias = self.tensors.vector(b, &self.name(layer, "ssm_conv1d", "bias"), channels)?;
        let made = bias.map_or(Ok(made), |bias| b.binary(Function::Add, made, bias))?;
        Ok((b.unary(Function::Silu, made)?, kept))
    }

    /// A number for each head, `f32[1, heads, 1, 1]`, from a tensor whose name has no kind.
    pub fn by_heads(&self, b: &mut Builder, layer: u64, part: &str, heads: u64) -> Result<TensorId> {
        let name = format!("blk.{layer}.{part}");
        let all = self.tensors.floats_as(b, &name, &[1, heads, 1, 1])?;
        all.ok_or_else(|| missing(&name))
    }

    /// How much each token writes, and the logarithm of its decay, `[sequences, heads, len, each]`, of `[rows, heads * each]`. Tokens that
    /// do not count write nothing and let nothing decay.
    pub fn decays(
        &self,
        b: &mut Builder,
        steps: TensorId,
        layer: u64,
        [heads, each]: [u64; 2],
    ) -> Result<(TensorId, TensorId)> {
        let bias = self.tensors.vector(b, &self.name(layer, "ssm_dt", "bias"), heads * each)?;
        let steps = bias.map_or(Ok(steps), |bias| b.binary(Function::Add, steps, bias))?;
        let rates = self.by_heads(b, layer, "ssm_a", heads)?;
        if let Some(bound) = self.hyper.rare.decay_bound {
            let steps = self.heads_first(b, steps, [heads, each])?;
            // Most files have rates below 0.
            let is_above = self.hyper.family.whole_gates;
            let decay = b.map(&[steps, rates], DType::F32, |p, x| {
                let times = p.call(Function::Mul, x);
                let more = if is_above { times } else { p.call(Function::Neg, &[times]) };
                let part = p.call(Function::Sigmoid, &[more]);
                p.call(Function::Mul, &[part, float(bound)])
            })?;
            return Ok((steps, self.counted(b, decay)?));
        }
        let steps = b.unary(Function::Softplus, steps)?;
        let steps = self.heads_first(b, steps, [heads, each])?;
        let steps = self.counted(b, steps)?;
        let decay = b.binary(Function::Mul, steps, rates)?;
        Ok((steps, decay))
    }

    /// Numbers of tokens, `[sequences, heads, len, …]`, with zeros for those that do not count.
    pub fn counted(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let Some(steps) = self.steps else { return Ok(x) };
        let one = Size::constant(1);
        let real = b.reshape_to(steps.real, &[self.sequences, one, self.len, one])?;
        b.binary(Function::Mul, x, real)
    }

    /// `[sequences, heads, len, dim]` as rows with all heads.
    pub fn heads_last(&self, b: &mut Builder, x: TensorId, all: u64) -> Result<TensorId> {
        let x = b.transpose(x, &[0, 2, 1, 3])?;
        b.reshape_to(x, &[self.rows(), all.into()])
    }

    /// What tokens read of a state and of each other, `[sequences, heads, len, head]`, and the state behind them.
    pub fn scanned(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        sizes: &StateSpace,
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let (count, len) = (self.sequences, self.len);
        let (groups, heads, head, of) = (sizes.groups, sizes.heads, sizes.head(), sizes.state);
        let each = heads / groups;
        let past = self.state(b, sizes.held(), held, &[groups, each * head, of])?;
        let [write, read] = tokens.places;
        // What they write that others read.
        let scores = b.product(read, write, true)?;
        let one = Size::constant(1);
        let scores = b.reshape_to(scores, &[count, groups.into(), one, len, len])?;
        let weights = self.decayed(b, scores, tokens.decay, [groups, each], true)?;
        let weights = b.reshape_to(weights, &[count, heads.into(), len, len])?;
        let near = b.matmul(weights, tokens.written)?;
        // What was there before.
        let far = b.product(read, past, true)?;
        let far = b.reshape_to(far, &[count, groups.into(), len, each.into(), head.into()])?;
        let far = b.transpose(far, &[0, 1, 3, 2, 4])?;
        let far = b.reshape_to(far, &[count, heads.into(), len, head.into()])?;
        let made = b.map(&[near, far, tokens.decay], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[2]]);
            let far = p.call(Function::Mul, &[x[1], left]);
            p.call(Function::Add, &[x[0], far])
        })?;
        let last = self.last_of(b, tokens.decay)?;
        let kept = b.map(&[tokens.written, tokens.decay, last], DType::F32, |p, x| {
            let left = p.call(Function::Sub, &[x[2], x[1]]);
            let left = p.call(Function::Exp, &[left]);
            p.call(Function::Mul, &[x[0], left])
        })?;
        let kept = b.transpose(kept, &[0, 1, 3, 2])?;
        let kept = b.reshape_to(kept, &[count, groups.into(), (each * head).into(), len])?;
        let new = b.matmul(kept, write)?;
        let dims = [count, heads.into(), head.into(), of.into()];
        let (new, past) = (b.reshape_to(new, &dims)?, b.reshape_to(past, &dims)?);
        let new = b.map(&[new, past, last], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[2]]);
            let past = p.call(Function::Mul, &[x[1], left]);
            p.call(Function::Add, &[x[0], past])
        })?;
        Ok((made, self.kept(b, sizes.held(), held, new)?))
    }

    /// The sum of the logarithms of all decays, `[sequences, heads, 1, 1]`.
    pub fn last_of(&self, b: &mut Builder, decay: TensorId) -> Result<TensorId> {
        let dims = b.sizes(decay).to_vec();
        let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
        ranges[2] = Range { start: dims[2] - 1, step: 1, count: Size::constant(1) };
        b.slice(decay, &ranges)
    }

    /// Numbers for pairs of tokens, `[sequences, groups, 1 or heads of one, len, len]`, times the decay from the second to the first;
    /// 0 where the second comes later, or is the first unless `own`.
    pub fn decayed(
        &self,
        b: &mut Builder,
        scores: TensorId,
        decay: TensorId,
        [groups, each]: [u64; 2],
        own: bool,
    ) -> Result<TensorId> {
        let (one, len) = (Size::constant(1), b.sizes(decay)[2]);
        let dims = [self.sequences, groups.into(), each.into()];
        let [down, across] = [[len, one], [one, len]];
        let line = b.line_of_places(DType::I32, len)?;
        let around = |b: &mut Builder, [rows, columns]: [Size; 2]| -> Result<[TensorId; 2]> {
            let decay = b.reshape_to(decay, &[dims[0], dims[1], dims[2], rows, columns])?;
            Ok([decay, b.reshape_to(line, &[rows, columns])?])
        };
        let [decay_of, place] = around(b, down)?;
        let [decay_by, place_by] = around(b, across)?;
        b.map(&[scores, decay_of, decay_by, place, place_by], DType::F32, |p, x| {
            let left = p.call(Function::Sub, &[x[1], x[2]]);
            let left = p.call(Function::Exp, &[left]);
            let made = p.call(Function::Mul, &[x[0], left]);
            let function = if own { Function::Ge } else { Function::Gt };
            let is_before = p.call(function, &[x[3], x[4]]);
            p.call(Function::Select, &[is_before, made, Operand::Constant(Scalar::Float(0.0))])
        })
    }

    /// The norm of each group of rows, where there is one.
    fn grouped_norm(&self, b: &mut Builder, x: TensorId, layer: u64, sizes: &StateSpace) -> Result<TensorId> {
        let name = self.name(layer, "ssm_norm", "weight");
        let Some(weights) = self.tensors.floats_as(b, &name, &[sizes.inner])? else { return Ok(x) };
        let apart = [self.rows(), sizes.groups.into(), (sizes.inner / sizes.groups).into()];
        let x = b.reshape_to(x, &apart)?;
        let norm =
            Normalization { kind: NormKind::Rms, first: 2, end: 3, groups: 1, epsilon: self.hyper.epsilon };
        let x = b.normalize(x, None, None, norm)?;
        let x = b.reshape_to(x, &[self.rows(), sizes.inner.into()])?;
        b.binary(Function::Mul, x, weights)
    }
}
