//! States of layers at the beginning and the end of a call, and the causal convolution that such layers share.

use halite_ops::{DType, expression::Function};
use halite_sizes::Size;

use super::{
    Result,
    file::{invalid, missing},
    layer::{Call, Given},
    recurrent::{State, columns},
    steps::float,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// What a state is at the beginning of a call, `f32[sequences, …]` with these dimensions: zeros where a sequence begins.
    pub fn state(
        &self,
        b: &mut Builder,
        state: State,
        held: Option<TensorId>,
        dims: &[u64],
    ) -> Result<TensorId> {
        let all: Vec<Size> =
            std::iter::once(self.sequences).chain(dims.iter().map(|size| Size::from(*size))).collect();
        let (Some(held), Some(steps)) = (held, self.steps) else {
            let zero = b.float(DType::F32, 0.0)?;
            return b.expand_to(zero, &all);
        };
        let own = Range { start: Size::constant(0), step: 1, count: Size::from(state.elements) };
        let held = b.slice(held, &[Range::all(self.sequences), own])?;
        let held = b.map(&[held, steps.goes_on], DType::F32, |p, x| {
            let begins = p.call(Function::Eq, &[x[1], float(0.0)]);
            p.call(Function::Select, &[begins, float(0.0), x[0]])
        })?;
        b.reshape_to(held, &all)
    }

    /// What is kept of a state behind a call: its new value, unless a sequence had no token.
    pub fn kept(
        &self,
        b: &mut Builder,
        state: State,
        held: Option<TensorId>,
        new: TensorId,
    ) -> Result<Option<TensorId>> {
        let (Some(held), Some(steps)) = (held, self.steps) else { return Ok(None) };
        let new = b.reshape_to(new, &[self.sequences, state.elements.into()])?;
        let rest = (state.row() - state.elements) as i64;
        let new = b.pad(new, &[(0, 0), (0, rest)], halite_ops::pad::Border::Constant, 0.0)?;
        let kept = b.map(&[held, new, steps.has_any], DType::F32, |p, x| {
            let is_nobody = p.call(Function::Eq, &[x[2], float(0.0)]);
            p.call(Function::Select, &[is_nobody, x[0], x[1]])
        })?;
        Ok(Some(kept))
    }

    /// Columns `x`, `[rows, channels]`, each convolved with its own taps over what was before: gives the same, and what is kept.
    pub fn causal_conv(
        &self,
        b: &mut Builder,
        x: TensorId,
        names: &[String],
        [taps, channels]: [u64; 2],
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        self.dilated_conv(b, x, names, [taps, channels, 1], (columns(taps, channels), held))
    }

    /// The same where each tap sees a token so many further back, with what it keeps.
    pub fn dilated_conv(
        &self,
        b: &mut Builder,
        x: TensorId,
        names: &[String],
        [taps, channels, step]: [u64; 3],
        (state, held): (State, Option<TensorId>),
    ) -> Result<(TensorId, Option<TensorId>)> {
        let (sequences, len, reach) = (self.sequences, self.len, (taps - 1) * step);
        let past = self.state(b, state, held, &[state.elements / channels, channels])?;
        let own = b.reshape_to(x, &[sequences, len, channels.into()])?;
        let all = b.concat(&[past, own], 1)?;
        let weights = self.taps(b, names, [taps, channels])?;
        // Something is kept even where nothing needs it.
        let more = state.elements / channels - reach;
        let mut made = None;
        for (tap, weights) in (0..).zip(weights) {
            let part = Range { start: Size::from(more + tap * step), step: 1, count: len };
            let seen = b.slice(all, &[Range::all(sequences), part, Range::all(channels.into())])?;
            made = Some(match made {
                None => b.binary(Function::Mul, seen, weights)?,
                Some(sum) => b.map(&[sum, seen, weights], DType::F32, |p, x| {
                    let more = p.call(Function::Mul, &x[1..]);
                    p.call(Function::Add, &[x[0], more])
                })?,
            });
        }
        let made =
            made.ok_or_else(|| invalid(format!("the convolution '{}' has no taps", names.join("', '"))))?;
        let new = self.behind_last(b, all, reach + more)?;
        let kept = self.kept(b, state, held, new)?;
        Ok((b.reshape_to(made, &[self.rows(), channels.into()])?, kept))
    }

    /// The last so many of what a sequence had before a call and has in it, `[sequences, before + len, …]`, behind the last token that counts.
    pub fn behind_last(&self, b: &mut Builder, all: TensorId, before: u64) -> Result<TensorId> {
        match (self.len == 1, self.steps) {
            (false, Some(steps)) => {
                let places = b.count_from(0, before)?;
                let places = b.binary(Function::Add, places, steps.count)?;
                b.gather(all, places, 1)
            }
            _ => {
                let last = Range { start: self.len, step: 1, count: Size::from(before) };
                let rest = b.sizes(all)[2..].iter().copied().map(Range::all);
                let ranges: Vec<Range<Size>> =
                    [Range::all(self.sequences), last].into_iter().chain(rest).collect();
                b.slice(all, &ranges)
            }
        }
    }

    /// The weights of each tap of a convolution, `f32[channels]`; the file has those of a channel together, perhaps in several tensors
    /// with as many channels each.
    fn taps(&self, b: &mut Builder, names: &[String], [taps, channels]: [u64; 2]) -> Result<Vec<TensorId>> {
        let each = channels / names.len().max(1) as u64;
        let mut all = Vec::new();
        for name in names {
            let own = self.tensors.floats(name)?.ok_or_else(|| missing(name))?;
            if taps.checked_mul(each) != Some(own.len() as u64) {
                return Err(invalid(format!(
                    "the tensor '{name}' has {} elements, and not {each} channels of {taps} taps",
                    own.len()
                )));
            }
            all.extend(own);
        }
        let one = |tap: usize| -> Vec<u8> {
            all.iter().skip(tap).step_by(taps as usize).flat_map(|weight| weight.to_le_bytes()).collect()
        };
        (0..taps as usize)
            .map(|tap| b.constant("taps", DType::F32.into(), &[channels], one(tap).into()))
            .collect()
    }

    /// A gated convolution of a few tokens: `out (c * conv(b * x))`.
    pub fn short_conv(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        taps: u64,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let (Given { layer, x, held, .. }, width) = (given, self.hyper.width);
        let all = self.linear(b, x, layer, "shortconv.in_proj", [3 * width, width])?;
        let part = |b: &mut Builder, place: u64| self.columns(b, all, place * width, width);
        let (before, behind, own) = (part(b, 0)?, part(b, 1)?, part(b, 2)?);
        let own = b.binary(Function::Mul, before, own)?;
        let name = self.name(layer, "shortconv.conv", "weight");
        let (made, kept) = self.causal_conv(b, own, &[name], [taps, width], held.state(0))?;
        let made = b.binary(Function::Mul, behind, made)?;
        let made = self.linear(b, made, layer, "shortconv.out_proj", [width, width])?;
        Ok((made, kept.into_iter().collect()))
    }
}
