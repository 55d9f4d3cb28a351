//! Layers whose tokens correct what a state has for their keys (Yang et al., Gated Delta Networks), also with a decay of each place
//! (Kimi Team, Kimi Linear).
//!
//! Tokens go in pieces, within which all are computed together: what each corrects depends on what those before it wrote, so that a
//! triangular matrix is to be inverted.

use halite_ops::{DType, expression::Function, norm::NormKind};
use halite_sizes::Size;

use super::{
    Result, decayed,
    layer::{Call, Given},
    pieces::{inverse, some_tokens},
    recurrent::DeltaNet,
};
use crate::{
    build::{Builder, Normalization},
    graph::TensorId,
};

/// Tokens that are computed together at most.
const PIECE: u64 = 64;

/// What a call's tokens do to a state, `[sequences, heads, len, …]`.
#[derive(Clone, Copy)]
struct Tokens {
    queries: TensorId,
    keys: TensorId,
    values: TensorId,
    /// Logarithms of decays: `[…, 1]`, or of each place.
    decay: TensorId,
    /// How much of a correction is written: `[…, 1]`.
    part: TensorId,
}

impl Call<'_> {
    /// A gated delta net.
    pub fn delta_net(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &DeltaNet,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let Given { layer, x, held, .. } = given;
        let inner = sizes.heads * sizes.state;
        let [own, gate] = self.delta_inputs(b, x, layer, sizes)?;
        let channels = sizes.convolved();
        let parts: &[&str] = match sizes.by_place {
            true => &["ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"],
            false => &["ssm_conv1d"],
        };
        let (own, kept) = self.activated_conv(b, own, layer, parts, [sizes.taps, channels], held.state(0))?;
        let group = sizes.groups * sizes.state;
        let queries = self.columns(b, own, 0, group)?;
        let queries = self.delta_keys(b, queries, sizes)?;
        let scale = Some(1.0 / (sizes.state as f64).sqrt());
        let queries = self.scaled(b, queries, scale)?;
        let keys = self.columns(b, own, group, group)?;
        let keys = self.delta_keys(b, keys, sizes)?;
        let values = self.columns(b, own, 2 * group, inner)?;
        let values = self.heads_first(b, values, [sizes.heads, sizes.state])?;
        let [part, steps] = self.delta_steps(b, x, layer, sizes)?;
        let part = b.unary(Function::Sigmoid, part)?;
        let part = self.heads_first(b, part, [sizes.heads, 1])?;
        let part = self.counted(b, part)?;
        let each = if sizes.by_place { sizes.state } else { 1 };
        let (_, decay) = self.decays(b, steps, layer, [sizes.heads, each])?;
        let tokens = Tokens { queries, keys, values, decay, part };
        let (made, state) = self.corrected(b, &tokens, sizes, held.state(1))?;
        let made = self.row_norm(b, made, layer, "ssm_norm", sizes.state)?;
        let made = self.heads_last(b, made, inner)?;
        let (bent, out) = match sizes.by_place {
            true => (Function::Sigmoid, "attn_output"),
            false if self.hyper.family.logistic_gates => (Function::Sigmoid, "ssm_out"),
            false => (Function::Silu, "ssm_out"),
        };
        let made = b.map(&[made, gate], DType::F32, |p, x| {
            let gate = p.call(bent, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        let made = self.linear(b, made, layer, out, [self.hyper.width, inner])?;
        Ok((made, kept.into_iter().chain(state).collect()))
    }

    /// Queries, keys and values in one, and the gate of results.
    fn delta_inputs(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        sizes: &DeltaNet,
    ) -> Result<[TensorId; 2]> {
        let (inner, width) = (sizes.heads * sizes.state, self.hyper.width);
        if sizes.by_place {
            let mut parts = [x; 3];
            for (part, name) in parts.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
                *part = self.product(b, x, layer, name, [inner, width])?;
            }
            let gate = match (self.hyper.family.whole_gates, self.has(layer, "ssm_g")) {
                (true, _) => self.product(b, x, layer, "ssm_g_a", [inner, width])?,
                (false, true) => self.product(b, x, layer, "ssm_g", [inner, width])?,
                (false, false) => self.by_narrow(b, x, layer, "ssm_g", [inner, sizes.state])?,
            };
            return Ok([b.concat(&parts, 1)?, gate]);
        }
        if self.tensors.find(&self.name(layer, "ssm_in", "weight")).is_none() {
            let own = self.linear(b, x, layer, "attn_qkv", [sizes.convolved(), width])?;
            return Ok([own, self.linear(b, x, layer, "attn_gate", [inner, width])?]);
        }
        // Group by group, as older files have it.
        let all = self.linear(b, x, layer, "ssm_in", [sizes.convolved() + inner, width])?;
        let each = inner / sizes.groups;
        let all = b.reshape_to(all, &[self.rows() * sizes.groups, Size::from(2 * sizes.state + 2 * each)])?;
        let part = |b: &mut Builder, first: u64, count: u64| {
            let part = self.columns(b, all, first, count)?;
            b.reshape_to(part, &[self.rows(), (count * sizes.groups).into()])
        };
        let parts =
            [part(b, 0, sizes.state)?, part(b, sizes.state, sizes.state)?, part(b, 2 * sizes.state, each)?];
        let gate = part(b, 2 * sizes.state + each, each)?;
        Ok([b.concat(&parts, 1)?, gate])
    }

    /// Two products with a short row between them.
    fn by_narrow(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        [rows, rank]: [u64; 2],
    ) -> Result<TensorId> {
        let low = self.product(b, x, layer, &format!("{part}_a"), [rank, self.hyper.width])?;
        self.product(b, low, layer, &format!("{part}_b"), [rows, rank])
    }

    /// How much of corrections is written and how much decays, `[rows, heads]` each, or the second for each place, before their
    /// functions.
    fn delta_steps(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        sizes: &DeltaNet,
    ) -> Result<[TensorId; 2]> {
        let (heads, width) = (sizes.heads, self.hyper.width);
        if self.tensors.find(&self.name(layer, "ssm_ba", "weight")).is_none() {
            let part = self.linear(b, x, layer, "ssm_beta", [heads, width])?;
            let inner = heads * sizes.state;
            let steps = match sizes.by_place {
                true if self.hyper.family.whole_gates => {
                    self.product(b, x, layer, "ssm_f_a", [inner, width])?
                }
                true => self.by_narrow(b, x, layer, "ssm_f", [inner, sizes.state])?,
                false => self.linear(b, x, layer, "ssm_alpha", [heads, width])?,
            };
            return Ok([part, steps]);
        }
        let both = self.linear(b, x, layer, "ssm_ba", [2 * heads, width])?;
        let each = heads / sizes.groups;
        let both = b.reshape_to(both, &[self.rows() * sizes.groups, Size::from(2 * each)])?;
        let part = |b: &mut Builder, first: u64| {
            let part = self.columns(b, both, first, each)?;
            b.reshape_to(part, &[self.rows(), heads.into()])
        };
        Ok([part(b, 0)?, part(b, each)?])
    }

    /// Keys or queries of length 1, for each head of values: `[sequences, heads, len, state]`.
    fn delta_keys(&self, b: &mut Builder, x: TensorId, sizes: &DeltaNet) -> Result<TensorId> {
        let (groups, each) = (sizes.groups, sizes.heads / sizes.groups);
        let x = b.reshape_to(x, &[self.rows(), groups.into(), sizes.state.into()])?;
        // The root of the mean of squares is that of their sum by the root of how many there are.
        let epsilon = self.hyper.epsilon.powi(2) / sizes.state as f32;
        let norm = Normalization { kind: NormKind::Rms, first: 2, end: 3, groups: 1, epsilon };
        let x = b.normalize(x, None, None, norm)?;
        let x = self.scaled(b, x, Some(1.0 / (sizes.state as f64).sqrt()))?;
        let one = Size::constant(1);
        let (rows, state) = (self.rows(), Size::from(sizes.state));
        let (from, to) = match self.hyper.family.tiled_heads {
            true => ([rows, one, groups.into(), state], [rows, each.into(), groups.into(), state]),
            false => ([rows, groups.into(), one, state], [rows, groups.into(), each.into(), state]),
        };
        let x = b.reshape_to(x, &from)?;
        let x = b.expand_to(x, &to)?;
        let x = b.reshape_to(x, &[rows, (sizes.heads * sizes.state).into()])?;
        self.heads_first(b, x, [sizes.heads, sizes.state])
    }

    /// What tokens read, `[sequences, heads, len, state]`, and the state behind them: piece by piece.
    fn corrected(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        sizes: &DeltaNet,
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let len = self.len.exact();
        let mut state = self.state(b, sizes.held(), held, &[sizes.heads, sizes.state, sizes.state])?;
        if sizes.by_place {
            let tokens = by_place(b, tokens)?;
            let (made, state) = self.decaying(b, &tokens, state)?;
            return Ok((made, self.kept(b, sizes.held(), held, state)?));
        }
        let mut read = Vec::new();
        for first in (0..len).step_by(PIECE as usize) {
            let count = PIECE.min(len - first);
            let part = |b: &mut Builder, x: TensorId| some_tokens(b, x, first, count);
            let piece = Tokens {
                queries: part(b, tokens.queries)?,
                keys: part(b, tokens.keys)?,
                values: part(b, tokens.values)?,
                decay: part(b, tokens.decay)?,
                part: part(b, tokens.part)?,
            };
            let (made, next) = self.piece(b, &piece, state, [sizes.heads, count])?;
            read.push(made);
            state = next;
        }
        Ok((b.concat(&read, 2)?, self.kept(b, sizes.held(), held, state)?))
    }

    /// The same of one piece.
    fn piece(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        state: TensorId,
        [heads, count]: [u64; 2],
    ) -> Result<(TensorId, TensorId)> {
        let decay = b.cumulative_sum(tokens.decay, 2, false, false)?;
        let pairs = |b: &mut Builder, x: TensorId, own: bool| {
            let dims = [self.sequences, heads.into(), Size::constant(1), count.into(), count.into()];
            let scores = b.product(x, tokens.keys, true)?;
            let scores = b.reshape_to(scores, &dims)?;
            let made = self.decayed(b, scores, decay, [heads, 1], own)?;
            b.reshape_to(made, &[dims[0], dims[1], dims[3], dims[4]])
        };
        // What a token would have for its key, had nothing been written since the piece began.
        let known = b.matmul(tokens.keys, state)?;
        let missing = b.map(&[tokens.values, known, decay, tokens.part], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[2]]);
            let known = p.call(Function::Mul, &[x[1], left]);
            let missing = p.call(Function::Sub, &[x[0], known]);
            p.call(Function::Mul, &[missing, x[3]])
        })?;
        let written = match count {
            1 => missing,
            _ => {
                let among = pairs(b, tokens.keys, false)?;
                let among = b.binary(Function::Mul, among, tokens.part)?;
                let solved = inverse(b, among, count)?;
                b.matmul(solved, missing)?
            }
        };
        let weights = pairs(b, tokens.queries, true)?;
        let near = b.matmul(weights, written)?;
        let far = b.matmul(tokens.queries, state)?;
        let made = b.map(&[near, far, decay], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[2]]);
            let far = p.call(Function::Mul, &[x[1], left]);
            p.call(Function::Add, &[x[0], far])
        })?;
        Ok((made, self.behind(b, tokens.keys, decay, written, state)?))
    }

    /// The state behind a piece, in which tokens wrote by their keys.
    fn behind(
        &self,
        b: &mut Builder,
        keys: TensorId,
        decay: TensorId,
        written: TensorId,
        state: TensorId,
    ) -> Result<TensorId> {
        let last = self.last_of(b, decay)?;
        let keys = b.map(&[keys, decay, last], DType::F32, |p, x| {
            let left = p.call(Function::Sub, &[x[2], x[1]]);
            let left = p.call(Function::Exp, &[left]);
            p.call(Function::Mul, &[x[0], left])
        })?;
        let keys = b.transpose(keys, &[0, 1, 3, 2])?;
        let new = b.matmul(keys, written)?;
        b.map(&[new, state, last], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[2]]);
            let past = p.call(Function::Mul, &[x[1], left]);
            p.call(Function::Add, &[x[0], past])
        })
    }
}

/// The same where each place decays for itself: what a token finds for its key is what is left of the state by then.
fn by_place(b: &mut Builder, tokens: &Tokens) -> Result<decayed::Tokens> {
    let finds = b.map(&[tokens.keys, tokens.decay], DType::F32, |p, x| {
        let left = p.call(Function::Exp, &[x[1]]);
        p.call(Function::Mul, &[x[0], left])
    })?;
    let writes = b.binary(Function::Mul, tokens.keys, tokens.part)?;
    Ok(decayed::Tokens {
        reads: tokens.queries,
        writes,
        values: tokens.values,
        decay: tokens.decay,
        corrects: Some([finds, b.unary(Function::Neg, writes)?]),
        own: None,
    })
}
