//! Embeddings of a token with those before it, which a layer adds to the states of tokens (Qwen4): products of tokens and numbers of the
//! metadata, as bits, tell rows of a table.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar, Type},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Result,
    groups::{Ngrams, TABLE},
    layer::{Call, Held},
    steps::float,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// A number without a sign in an expression, by its bits.
fn bits(value: u64) -> Operand {
    Operand::Constant(Scalar::Int(value.cast_signed(), DType::U64))
}

impl Call<'_> {
    /// States with what groups of tokens add, and what is kept of these, given what was kept behind others.
    pub fn with_ngrams(
        &self,
        b: &mut Builder,
        x: TensorId,
        ngrams: &Ngrams,
        held: &Held,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let [rows, count, width] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let (layer, one) = (ngrams.layer, Size::constant(1));
        let place = held.states.len().saturating_sub(2);
        let (found, tokens) = self.rows_of_groups(b, ngrams, held.state(place + 1))?;
        let all = ngrams.ranges.len() as u64 * ngrams.length;
        let key = self.linear(b, found, layer, "ple_key", [ngrams.all, all])?;
        let value = self.linear(b, found, layer, "ple_value", [width.exact(), all])?;
        let key = b.reshape_to(key, &[rows, count, width])?;
        let key = self.norm_of_each(b, key, &self.bare_name(layer, "ple_norm_key"))?;
        let query = self.norm_of_each(b, x, &self.bare_name(layer, "ple_norm_query"))?;
        let products = b.binary(Function::Mul, key, query)?;
        let sum = b.reduce(ReduceKind::Sum, products, &[2], true)?;
        let value = b.reshape_to(value, &[rows, one, width])?;
        let scale = 1.0 / (width.exact() as f64).sqrt();
        let gated = b.map(&[value, sum], DType::F32, |p, x| {
            let score = p.call(Function::Mul, &[x[1], float(scale)]);
            let gate = root(p, score);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        let normed = self.norm_of_each(b, gated, &self.bare_name(layer, "ple_norm_conv"))?;
        let flat = b.reshape_to(normed, &[rows, ngrams.all.into()])?;
        let name = self.name(layer, "ple_conv1d", "weight");
        let sizes = [ngrams.taps, ngrams.all, ngrams.size];
        let state = (ngrams.states()[0], held.state(place));
        let (made, kept) = self.dilated_conv(b, flat, &[name], sizes, state)?;
        let made = b.unary(Function::Silu, made)?;
        let made = b.reshape_to(made, &[rows, count, width])?;
        let more = b.binary(Function::Add, gated, made)?;
        let x = b.binary(Function::Add, x, more)?;
        Ok((x, kept.into_iter().chain(tokens).collect()))
    }

    /// Rows of the table for each token, `[rows, all elements]`, and the last tokens that are kept.
    fn rows_of_groups(
        &self,
        b: &mut Builder,
        ngrams: &Ngrams,
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let (before, one, len) = (ngrams.size - 1, Size::constant(1), self.len);
        let own = self.tokens.ok_or_else(|| b.invalid("no tokens"))?;
        // One more than each, so that 0 is no token.
        let own = b.map(&[own], DType::F32, |p, x| {
            let token = p.cast(Type::Of(DType::F32), x[0]);
            p.call(Function::Add, &[token, float(1.0)])
        })?;
        let own = b.reshape_to(own, &[self.sequences, len])?;
        let state = ngrams.states()[1];
        let past = self.state(b, state, held, &[before])?;
        let all = b.concat(&[past, own], 1)?;
        let mut last = Vec::new();
        for back in 0..ngrams.size {
            let part = Range { start: Size::from(before - back), step: 1, count: len };
            let tokens = b.slice(all, &[Range::all(self.sequences), part])?;
            last.push(b.reshape_to(tokens, &[self.rows(), one])?);
        }
        let mut places = Vec::new();
        for size in 2..=ngrams.size {
            places.push(self.places_of_groups(b, ngrams, &last[..size as usize])?);
        }
        let places = b.concat(&places, 1)?;
        let heads = ngrams.ranges.len() as u64;
        let places = b.reshape_to(places, &[self.rows() * heads])?;
        let rows = self.tensors.dims(TABLE).and_then(|dims| dims.first().copied()).unwrap_or(0);
        let table = self.tensors.matrix(b, TABLE, [rows, ngrams.length])?;
        let found = b.rows_by_index(&table, places)?;
        let found = b.reshape_to(found, &[self.rows(), (heads * ngrams.length).into()])?;
        let new = self.behind_last(b, all, before)?;
        Ok((found, self.kept(b, state, held, new)?))
    }

    /// Places in the table of groups of so many tokens, the last first, `[rows, each]`.
    fn places_of_groups(&self, b: &mut Builder, ngrams: &Ngrams, last: &[TensorId]) -> Result<TensorId> {
        let first = (last.len() - 2) * ngrams.each as usize;
        let ranges = &ngrams.ranges[first..first + ngrams.each as usize];
        let constant = |b: &mut Builder, place: usize| {
            let bytes: Vec<u8> = ranges.iter().flat_map(|range| range[place].to_le_bytes()).collect();
            b.constant("ranges", DType::U64.into(), &[1, ngrams.each], bytes.into())
        };
        let inputs: Vec<TensorId> =
            [constant(b, 0)?, constant(b, 1)?].into_iter().chain(last.iter().copied()).collect();
        b.map(&inputs, DType::I64, |p, x| {
            let own = p.call(Function::Sub, &[x[2], float(1.0)]);
            let own = p.cast(Type::Of(DType::U64), own);
            let mut mixed = p.call(Function::Mul, &[own, bits(ngrams.factors[0])]);
            let mut is_within = None;
            for (token, factor) in x[3..].iter().zip(&ngrams.factors[1..]) {
                let end = float((ngrams.end + 1) as f64);
                let is_some = p.call(Function::Gt, &[*token, float(0.0)]);
                let is_other = p.call(Function::Ne, &[*token, end]);
                let is_own = p.call(Function::And, &[is_some, is_other]);
                let within = is_within.map_or(is_own, |before| p.call(Function::And, &[before, is_own]));
                is_within = Some(within);
                let token = p.call(Function::Select, &[within, *token, end]);
                let token = p.call(Function::Sub, &[token, float(1.0)]);
                let token = p.cast(Type::Of(DType::U64), token);
                let product = p.call(Function::Mul, &[token, bits(*factor)]);
                mixed = p.call(Function::Xor, &[mixed, product]);
            }
            let place = p.call(Function::Mod, &[mixed, x[1]]);
            let place = p.call(Function::Add, &[place, x[0]]);
            p.cast(Type::Of(DType::I64), place)
        })
    }
}

/// A gate of a score: the logistic function of the root of its size, with its sign.
fn root(p: &mut Expression, score: Operand) -> Operand {
    let size = p.call(Function::Abs, &[score]);
    let size = p.call(Function::Max, &[size, float(f64::from(1e-6_f32))]);
    let size = p.call(Function::Sqrt, &[size]);
    let sign = p.call(Function::Sign, &[score]);
    let bent = p.call(Function::Mul, &[sign, size]);
    p.call(Function::Sigmoid, &[bent])
}
