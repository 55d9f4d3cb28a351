//! State-space layers whose decay differs from place to place of a state (Gu and Dao, Mamba: Linear-Time Sequence Modeling with
//! Selective State Spaces).
//!
//! Tokens go in pieces. Within one, what tokens have written is summed over 1, 2, 4, … of those before: the decay between two tokens is
//! that of the sum of their steps.

use halite_ops::{DType, expression::Function, norm::NormKind, pad::Border, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Result,
    file::missing,
    layer::{Call, Given},
    recurrent::Selective,
};
use crate::{
    build::{Builder, Normalization, Range},
    graph::TensorId,
};

/// Tokens that are computed together at most.
const PIECE: u64 = 64;

/// What a call's tokens do to a state.
#[derive(Clone, Copy)]
struct Tokens {
    /// What they write, `[sequences, len, inner]`.
    own: TensorId,
    /// How much of it, and how much decays, the same.
    steps: TensorId,
    /// Where they write and read, `[sequences, len, state]`.
    places: [TensorId; 2],
}

impl Call<'_> {
    /// A state-space layer of this kind.
    pub fn selective(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &Selective,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let Given { layer, x, held, .. } = given;
        let (inner, width) = (sizes.inner, self.hyper.width);
        let both = self.linear(b, x, layer, "ssm_in", [2 * inner, width])?;
        let (own, gate) = (self.columns(b, both, 0, inner)?, self.columns(b, both, inner, inner)?);
        let (own, kept) =
            self.activated_conv(b, own, layer, &["ssm_conv1d"], [sizes.taps, inner], held.state(0))?;
        let all = self.linear(b, own, layer, "ssm_x", [sizes.rank + 2 * sizes.state, inner])?;
        let steps = self.columns(b, all, 0, sizes.rank)?;
        let steps = self.part_norm(b, steps, layer, "ssm_dt_norm", sizes)?;
        let steps = self.linear(b, steps, layer, "ssm_dt", [inner, sizes.rank])?;
        let steps = b.unary(Function::Softplus, steps)?;
        let place = |b: &mut Builder, first: u64, norm: &str| {
            let part = self.columns(b, all, first, sizes.state)?;
            let part = self.part_norm(b, part, layer, norm, sizes)?;
            b.reshape_to(part, &[self.sequences, self.len, sizes.state.into()])
        };
        let places = [place(b, sizes.rank, "ssm_b_norm")?, place(b, sizes.rank + sizes.state, "ssm_c_norm")?];
        let dims = [self.sequences, self.len, inner.into()];
        let apart = b.reshape_to(own, &dims)?;
        let steps = b.reshape_to(steps, &dims)?;
        let steps = self.counted_rows(b, steps)?;
        let tokens = Tokens { own: apart, steps, places };
        let (read, state) = self.read_selectively(b, &tokens, layer, sizes, held.state(1))?;
        let read = b.reshape_to(read, &[self.rows(), inner.into()])?;
        let Some(skip) = self.tensors.vector(b, &format!("blk.{layer}.ssm_d"), inner)? else {
            return Err(missing(&format!("blk.{layer}.ssm_d")));
        };
        let made = b.map(&[read, own, skip, gate], DType::F32, |p, x| {
            let own = p.call(Function::Mul, &x[1..3]);
            let made = p.call(Function::Add, &[x[0], own]);
            let gate = p.call(Function::Silu, &[x[3]]);
            p.call(Function::Mul, &[made, gate])
        })?;
        let made = self.linear(b, made, layer, "ssm_out", [width, inner])?;
        Ok((made, kept.into_iter().chain(state).collect()))
    }

    /// The norm of a part of what a token makes, where there is one: with weights, or without where the metadata say so.
    fn part_norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        sizes: &Selective,
    ) -> Result<TensorId> {
        let length = b.sizes(x)[1].exact();
        let scale = self.tensors.vector(b, &self.name(layer, part, "weight"), length)?;
        if scale.is_none() && !sizes.normed {
            return Ok(x);
        }
        let epsilon = self.hyper.epsilon;
        b.normalize(
            x,
            scale,
            None,
            Normalization { kind: NormKind::Rms, first: 1, end: 2, groups: 1, epsilon },
        )
    }

    /// Numbers of tokens, `[sequences, len, …]`, with zeros for those that do not count.
    fn counted_rows(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let Some(steps) = self.steps else { return Ok(x) };
        let real = b.reshape_to(steps.real, &[self.sequences, self.len, Size::constant(1)])?;
        b.binary(Function::Mul, x, real)
    }

    /// What tokens read, `[sequences, len, inner]`, and the state behind them.
    fn read_selectively(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        layer: u64,
        sizes: &Selective,
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let name = format!("blk.{layer}.ssm_a");
        let Some(rates) = self.tensors.float_rows(b, &name, [sizes.inner, sizes.state])? else {
            return Err(missing(&name));
        };
        let mut state = self.state(b, sizes.held(), held, &[1, sizes.inner, sizes.state])?;
        let (len, mut read) = (self.len.exact(), Vec::new());
        for first in (0..len).step_by(PIECE as usize) {
            let count = PIECE.min(len - first);
            let part = |b: &mut Builder, x: TensorId| rows_of(b, x, first, count);
            let piece = Tokens {
                own: part(b, tokens.own)?,
                steps: part(b, tokens.steps)?,
                places: [part(b, tokens.places[0])?, part(b, tokens.places[1])?],
            };
            let (made, next) =
                self.selective_piece(b, &piece, rates, state, [sizes.inner, sizes.state, count])?;
            read.push(made);
            state = next;
        }
        Ok((b.concat(&read, 1)?, self.kept(b, sizes.held(), held, state)?))
    }

    /// The same of one piece, with the state before it.
    fn selective_piece(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        rates: TensorId,
        state: TensorId,
        [inner, places, count]: [u64; 3],
    ) -> Result<(TensorId, TensorId)> {
        let one = Size::constant(1);
        let down = |b: &mut Builder, x: TensorId| {
            b.reshape_to(x, &[self.sequences, count.into(), inner.into(), one])
        };
        let across = |b: &mut Builder, x: TensorId| {
            b.reshape_to(x, &[self.sequences, count.into(), one, places.into()])
        };
        let (own, steps) = (down(b, tokens.own)?, down(b, tokens.steps)?);
        let (write, seen) = (across(b, tokens.places[0])?, across(b, tokens.places[1])?);
        let sums = b.cumulative_sum(steps, 1, false, false)?;
        let mut written = b.map(&[own, steps, write], DType::F32, |p, x| {
            let much = p.call(Function::Mul, &x[..2]);
            p.call(Function::Mul, &[much, x[2]])
        })?;
        let mut ahead = 1;
        while ahead < count {
            let (before, since) = (behind(b, written, ahead, count)?, behind(b, sums, ahead, count)?);
            written = b.map(&[written, before, sums, since, rates], DType::F32, |p, x| {
                let steps = p.call(Function::Sub, &x[2..4]);
                let decay = p.call(Function::Mul, &[steps, x[4]]);
                let left = p.call(Function::Exp, &[decay]);
                let more = p.call(Function::Mul, &[x[1], left]);
                p.call(Function::Add, &[x[0], more])
            })?;
            ahead *= 2;
        }
        let states = b.map(&[written, state, sums, rates], DType::F32, |p, x| {
            let decay = p.call(Function::Mul, &x[2..]);
            let left = p.call(Function::Exp, &[decay]);
            let past = p.call(Function::Mul, &[x[1], left]);
            p.call(Function::Add, &[x[0], past])
        })?;
        let read = b.binary(Function::Mul, states, seen)?;
        let read = b.reduce(ReduceKind::Sum, read, &[3], false)?;
        Ok((read, rows_of(b, states, count - 1, 1)?))
    }
}

/// Tokens of all, `[sequences, count, …]`.
fn rows_of(b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).to_vec().into_iter().map(Range::all).collect();
    ranges[1] = Range { start: first.into(), step: 1, count: count.into() };
    b.slice(x, &ranges)
}

/// What is so many tokens before each: zeros before the first.
fn behind(b: &mut Builder, x: TensorId, ahead: u64, count: u64) -> Result<TensorId> {
    let early = rows_of(b, x, 0, count - ahead)?;
    b.pad(early, &[(0, 0), (ahead as i64, 0), (0, 0), (0, 0)], Border::Constant, 0.0)
}
