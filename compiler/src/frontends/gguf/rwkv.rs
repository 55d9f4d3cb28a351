//! Layers that mix each token with the one before it and keep a decaying state of heads (Peng et al., Eagle and Finch; RWKV-7 "Goose").

use halite_ops::{DType, expression::Function, norm::NormKind, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Result,
    decayed::Tokens,
    file::{invalid, missing},
    layer::{Call, Given, Held},
    recurrent::{Rwkv, State},
    steps::float,
};
use crate::{
    build::{Builder, Normalization, Range},
    graph::TensorId,
};

/// What norms of heads add to variances.
const HEAD_EPSILON: f32 = 64e-5;

impl Call<'_> {
    /// The state behind a layer whose feed-forward network mixes tokens, too.
    pub fn layer_of_mixes(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, held, .. } = given;
        let normed = self.layer_norm(b, x, layer, "attn_norm")?;
        let (made, mut own) = self.mixed(b, Given { x: normed, ..given })?;
        let state = b.binary(Function::Add, x, made)?;
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let normed = self.layer_norm(b, state, layer, "attn_norm_2")?;
        let (before, shift) = self.token_before(b, normed, "channel", held.state(2))?;
        let state = given.wanted_of(b, state)?;
        let normed = given.wanted_of(b, normed)?;
        let before = given.wanted_of(b, before)?;
        let made = self.channel_mix(b, [normed, before], layer)?;
        let state = b.binary(Function::Add, state, made)?;
        let halved = self.hyper.halved_every.filter(|every| (layer + 1).is_multiple_of(*every));
        own.states.extend(shift);
        Ok((self.scaled(b, state, halved.map(|_| 0.5))?, own))
    }

    /// The token before each, `[rows, width]`, and what is kept: the last.
    fn token_before(
        &self,
        b: &mut Builder,
        x: TensorId,
        name: &'static str,
        held: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let (width, len) = (self.hyper.width, self.len);
        let state = State { name, elements: width };
        let past = self.state(b, state, held, &[1, width])?;
        let own = b.reshape_to(x, &[self.sequences, len, width.into()])?;
        let all = b.concat(&[past, own], 1)?;
        let part = |b: &mut Builder, start: Size, count: Size| {
            let part = Range { start, step: 1, count };
            b.slice(all, &[Range::all(self.sequences), part, Range::all(width.into())])
        };
        let before = part(b, Size::constant(0), len)?;
        let last = match self.steps {
            Some(steps) if len != 1 => b.gather(all, steps.count, 1)?,
            _ => part(b, len, Size::constant(1))?,
        };
        let kept = self.kept(b, state, held, last)?;
        Ok((b.reshape_to(before, &[self.rows(), width.into()])?, kept))
    }

    /// Rows that go over to those before them, by a number for each element.
    fn between_tokens(
        &self,
        b: &mut Builder,
        [x, before]: [TensorId; 2],
        part: TensorId,
    ) -> Result<TensorId> {
        b.map(&[x, before, part], DType::F32, |p, x| {
            let apart = p.call(Function::Sub, &[x[1], x[0]]);
            let more = p.call(Function::Mul, &[apart, x[2]]);
            p.call(Function::Add, &[x[0], more])
        })
    }

    /// Numbers of a layer with these dimensions, if it has them.
    fn weights_as(&self, b: &mut Builder, layer: u64, part: &str, dims: &[u64]) -> Result<Option<TensorId>> {
        self.tensors.floats_as(b, &self.name(layer, part, "weight"), dims)
    }

    /// The same, which have to be there.
    fn needed(&self, b: &mut Builder, layer: u64, part: &str, dims: &[u64]) -> Result<TensorId> {
        let made = self.weights_as(b, layer, part, dims)?;
        made.ok_or_else(|| missing(&self.name(layer, part, "weight")))
    }

    /// The network behind time mixing.
    fn channel_mix(&self, b: &mut Builder, rows: [TensorId; 2], layer: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let inner = self.columns_of(layer, "channel_mix_value")?;
        let part = self.needed(b, layer, "channel_mix_lerp_k", &[width])?;
        let own = self.between_tokens(b, rows, part)?;
        let key = self.linear(b, own, layer, "channel_mix_key", [inner, width])?;
        let key = b.map(&[key], DType::F32, |p, x| {
            let above = p.call(Function::Max, &[x[0], float(0.0)]);
            p.call(Function::Mul, &[above, above])
        })?;
        let made = self.linear(b, key, layer, "channel_mix_value", [width, inner])?;
        let Some(part) = self.weights_as(b, layer, "channel_mix_lerp_r", &[width])? else { return Ok(made) };
        let own = self.between_tokens(b, rows, part)?;
        let gate = self.linear(b, own, layer, "channel_mix_receptance", [width, width])?;
        b.map(&[made, gate], DType::F32, |p, x| {
            let gate = p.call(Function::Sigmoid, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })
    }

    /// Time mixing of any kind.
    pub fn time_mix(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        sizes: &Rwkv,
    ) -> Result<(TensorId, Vec<TensorId>)> {
        let Given { layer, x, held, .. } = given;
        let (before, shift) = self.token_before(b, x, "shift", held.state(0))?;
        let state = self.state(b, sizes.held(), held.state(1), &[sizes.heads, sizes.size, sizes.size])?;
        let (made, state) = match sizes.corrects {
            true => self.correcting_mix(b, [x, before], layer, sizes, state)?,
            false => self.plain_mix(b, [x, before], layer, sizes, state)?,
        };
        let state = self.kept(b, sizes.held(), held.state(1), state)?;
        let width = self.hyper.width;
        let made = self.linear(b, made, layer, "time_mix_output", [width, width])?;
        Ok((made, shift.into_iter().chain(state).collect()))
    }

    /// Rows with all heads, as `[sequences, heads, len, size]`.
    fn heads_of_mix(&self, b: &mut Builder, x: TensorId, sizes: &Rwkv) -> Result<TensorId> {
        self.heads_first(b, x, [sizes.heads, sizes.size])
    }

    /// What tokens read and the state behind them; what tokens that do not count would do is left out.
    fn read_of_mix(
        &self,
        b: &mut Builder,
        mut tokens: Tokens,
        state: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        tokens.writes = self.counted(b, tokens.writes)?;
        tokens.decay = self.counted(b, tokens.decay)?;
        if let Some([_, adds]) = &mut tokens.corrects {
            *adds = self.counted(b, *adds)?;
        }
        let (made, state) = self.decaying(b, &tokens, state)?;
        Ok((self.heads_last(b, made, self.hyper.width)?, state))
    }

    /// Rows whose heads have a norm of their own, where there is one.
    fn norm_of_heads(&self, b: &mut Builder, x: TensorId, layer: u64, sizes: &Rwkv) -> Result<TensorId> {
        let width = self.hyper.width;
        let Some(scale) = self.weights_as(b, layer, "time_mix_ln", &[width])? else { return Ok(x) };
        let apart = b.reshape_to(x, &[self.rows(), sizes.heads.into(), sizes.size.into()])?;
        let norm =
            Normalization { kind: NormKind::Group, first: 2, end: 3, groups: 1, epsilon: HEAD_EPSILON };
        let made = b.normalize(apart, None, None, norm)?;
        let made = b.reshape_to(made, &[self.rows(), width.into()])?;
        let made = b.binary(Function::Mul, made, scale)?;
        match self.tensors.vector(b, &self.name(layer, "time_mix_ln", "bias"), width)? {
            Some(bias) => b.binary(Function::Add, made, bias),
            None => Ok(made),
        }
    }

    /// The rows that a token's five or six numbers are made of, which go over to the token before by factors that depend on both.
    fn lerped(&self, b: &mut Builder, [x, before]: [TensorId; 2], layer: u64) -> Result<[TensorId; 5]> {
        let (width, rows) = (self.hyper.width, self.rows());
        let part = self.needed(b, layer, "time_mix_lerp_x", &[width])?;
        let first = self.between_tokens(b, [x, before], part)?;
        let all =
            self.rows_of(layer, "time_mix_w1").filter(|all| all.is_multiple_of(5)).ok_or_else(|| {
                invalid(format!("'{}' is no five parts", self.name(layer, "time_mix_w1", "weight")))
            })?;
        let low = self.linear(b, first, layer, "time_mix_w1", [all, width])?;
        let low = b.unary(Function::Tanh, low)?;
        let low = b.reshape_to(low, &[rows * 5, (all / 5).into()])?;
        let made = self.by_place(b, low, layer, "time_mix_w2", [5, width, all / 5])?;
        let made = b.reshape_to(made, &[rows, (5 * width).into()])?;
        let fixed = match self.weights_as(b, layer, "time_mix_lerp_fused", &[5, width])? {
            Some(all) => b.reshape(all, &[1, 5 * width])?,
            None => {
                let mut all = Vec::new();
                for name in ["w", "k", "v", "r", "g"] {
                    all.push(self.needed(b, layer, &format!("time_mix_lerp_{name}"), &[1, width])?);
                }
                b.concat(&all, 1)?
            }
        };
        let parts = b.binary(Function::Add, made, fixed)?;
        let mut rows = [x; 5];
        for (row, place) in rows.iter_mut().zip(0..) {
            let part = self.columns(b, parts, place * width, width)?;
            *row = self.between_tokens(b, [x, before], part)?;
        }
        Ok(rows)
    }

    /// Time mixing whose state only decays and is added to.
    fn plain_mix(
        &self,
        b: &mut Builder,
        rows: [TensorId; 2],
        layer: u64,
        sizes: &Rwkv,
        state: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        let width = self.hyper.width;
        let [own_w, own_k, own_v, own_r, own_g] = self.lerped(b, rows, layer)?;
        let reads = self.linear(b, own_r, layer, "time_mix_receptance", [width, width])?;
        let narrow = sizes.kv * sizes.size;
        let keys = self.linear(b, own_k, layer, "time_mix_key", [narrow, width])?;
        let values = self.linear(b, own_v, layer, "time_mix_value", [narrow, width])?;
        let gate = self.linear(b, own_g, layer, "time_mix_gate", [width, width])?;
        let decay = self.plain_decay(b, own_w, layer)?;
        let first = self.weights_as(b, layer, "time_mix_first", &[1, sizes.heads, 1, sizes.size])?;
        let mut keys = self.repeated(b, keys, sizes)?;
        let values = self.repeated(b, values, sizes)?;
        if first.is_none() {
            keys = b.map(&[keys, decay], DType::F32, |p, x| {
                let left = p.call(Function::Exp, &[x[1]]);
                let missing = p.call(Function::Sub, &[float(1.0), left]);
                p.call(Function::Mul, &[x[0], missing])
            })?;
        }
        let tokens = Tokens {
            reads: self.heads_of_mix(b, reads, sizes)?,
            writes: self.heads_of_mix(b, keys, sizes)?,
            values: self.heads_of_mix(b, values, sizes)?,
            decay: self.heads_of_mix(b, decay, sizes)?,
            corrects: None,
            own: first,
        };
        let (made, state) = self.read_of_mix(b, tokens, state)?;
        let (made, function) = match first {
            Some(_) => (self.norm_of_heads(b, made, layer, sizes)?, Function::Silu),
            None => (self.scaled(b, made, Some(1.0 / (sizes.size as f64).sqrt()))?, Function::Sigmoid),
        };
        let made = b.map(&[made, gate], DType::F32, |p, x| {
            let gate = p.call(function, &[x[1]]);
            p.call(Function::Mul, &[x[0], gate])
        })?;
        Ok((made, state))
    }

    /// Logarithms of what is left of states that only decay and are added to.
    fn plain_decay(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let rank = self.rows_of(layer, "time_mix_decay_w1").unwrap_or(0);
        let low = self.linear(b, x, layer, "time_mix_decay_w1", [rank, width])?;
        let low = b.unary(Function::Tanh, low)?;
        let made = self.linear(b, low, layer, "time_mix_decay_w2", [width, rank])?;
        let fixed = self.needed(b, layer, "time_mix_decay", &[width])?;
        b.map(&[made, fixed], DType::F32, |p, x| {
            let sum = p.call(Function::Add, x);
            let rate = p.call(Function::Exp, &[sum]);
            p.call(Function::Neg, &[rate])
        })
    }

    /// Rows of heads of keys, of which several heads share each, as rows of all heads.
    fn repeated(&self, b: &mut Builder, x: TensorId, sizes: &Rwkv) -> Result<TensorId> {
        if sizes.kv == sizes.heads {
            return Ok(x);
        }
        let (rows, one, kv, size) =
            (self.rows(), Size::constant(1), Size::from(sizes.kv), Size::from(sizes.size));
        let apart = b.reshape_to(x, &[rows, kv, one, size])?;
        let all = b.expand_to(apart, &[rows, kv, Size::from(sizes.heads / sizes.kv), size])?;
        b.reshape_to(all, &[rows, self.hyper.width.into()])
    }

    /// What two products with a short row between them make, and a number for each element: the sum.
    fn by_short_row(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        bent: Option<Function>,
    ) -> Result<TensorId> {
        let (width, down) = (self.hyper.width, format!("time_mix_{part}1"));
        let rank = self.rows_of(layer, &down).unwrap_or(0);
        let low = self.linear(b, x, layer, &down, [rank, width])?;
        let low = bent.map_or(Ok(low), |bent| b.unary(bent, low))?;
        let made = self.linear(b, low, layer, &format!("time_mix_{part}2"), [width, rank])?;
        match self.weights_as(b, layer, &format!("time_mix_{part}0"), &[width])? {
            Some(fixed) => b.binary(Function::Add, made, fixed),
            None => Ok(made),
        }
    }

    /// Values that go over to those of the first layer.
    fn values_of_mix(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let values = self.linear(b, x, layer, "time_mix_value", [width, width])?;
        let first = *self.first_values.borrow();
        let Some(first) = first else {
            *self.first_values.borrow_mut() = Some(values);
            // The first layer may have these weights, which it does not need.
            for name in ["time_mix_v0", "time_mix_v1", "time_mix_v2"] {
                self.tensors.find(&self.name(layer, name, "weight"));
            }
            return Ok(values);
        };
        let part = self.by_short_row(b, x, layer, "v", None)?;
        let part = b.unary(Function::Sigmoid, part)?;
        self.between_tokens(b, [values, first], part)
    }

    /// Keys of length 1 in each head.
    fn unit_keys(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let squares = b.binary(Function::Mul, x, x)?;
        let sum = b.reduce(ReduceKind::Sum, squares, &[3], true)?;
        b.map(&[x, sum], DType::F32, |p, x| {
            let length = p.call(Function::Sqrt, &[x[1]]);
            let length = p.call(Function::Max, &[length, float(1e-12)]);
            p.call(Function::Div, &[x[0], length])
        })
    }

    /// Logarithms of what is left of states that tokens correct.
    fn correcting_decay(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let decay = self.by_short_row(b, x, layer, "w", Some(Function::Tanh))?;
        b.map(&[decay], DType::F32, |p, x| {
            let part = p.call(Function::Sigmoid, &[x[0]]);
            p.call(Function::Mul, &[part, float(-f64::from(0.606_531_f32))])
        })
    }

    /// Where each head corrects, `[sequences, heads, len, size]`, and rows of where tokens write, of keys and how much they correct.
    fn places_and_keys(
        &self,
        b: &mut Builder,
        [keys, rate]: [TensorId; 2],
        layer: u64,
        sizes: &Rwkv,
    ) -> Result<[TensorId; 2]> {
        let width = self.hyper.width;
        let [by, less] = [
            self.needed(b, layer, "time_mix_k_k", &[width])?,
            self.needed(b, layer, "time_mix_k_a", &[width])?,
        ];
        let places = b.binary(Function::Mul, keys, by)?;
        let keys = b.map(&[keys, rate, less], DType::F32, |p, x| {
            let own = p.call(Function::Mul, &[x[0], x[2]]);
            let rest = p.call(Function::Sub, &[x[1], float(1.0)]);
            let more = p.call(Function::Mul, &[own, rest]);
            p.call(Function::Add, &[x[0], more])
        })?;
        let places = self.heads_of_mix(b, places, sizes)?;
        Ok([self.unit_keys(b, places)?, keys])
    }

    /// Time mixing whose tokens correct what the state has for their keys.
    fn correcting_mix(
        &self,
        b: &mut Builder,
        [x, before]: [TensorId; 2],
        layer: u64,
        sizes: &Rwkv,
        state: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        let width = self.hyper.width;
        let gated = self.has(layer, "time_mix_g1");
        let count = self.tensors.dims(&self.name(layer, "time_mix_lerp_fused", "weight"));
        let count = count.map_or(0, |dims| dims.iter().product::<u64>() / width);
        let parts = self.needed(b, layer, "time_mix_lerp_fused", &[1, count * width])?;
        let lerp = |b: &mut Builder, place: u64| {
            let part = self.columns(b, parts, place * width, width)?;
            self.between_tokens(b, [x, before], part)
        };
        let own = lerp(b, 0)?;
        let reads = self.linear(b, own, layer, "time_mix_receptance", [width, width])?;
        let own = lerp(b, 1)?;
        let decay = self.correcting_decay(b, own, layer)?;
        let own = lerp(b, 2)?;
        let keys = self.linear(b, own, layer, "time_mix_key", [width, width])?;
        let own = lerp(b, 3)?;
        let values = self.values_of_mix(b, own, layer)?;
        let own = lerp(b, 4)?;
        let rate = self.by_short_row(b, own, layer, "a", None)?;
        let rate = b.unary(Function::Sigmoid, rate)?;
        let [places, keys] = self.places_and_keys(b, [keys, rate], layer, sizes)?;
        let rate = self.heads_of_mix(b, rate, sizes)?;
        let tokens = Tokens {
            reads: self.heads_of_mix(b, reads, sizes)?,
            writes: self.heads_of_mix(b, keys, sizes)?,
            values: self.heads_of_mix(b, values, sizes)?,
            decay: self.heads_of_mix(b, decay, sizes)?,
            corrects: Some([b.unary(Function::Neg, places)?, b.binary(Function::Mul, places, rate)?]),
            own: None,
        };
        let (made, state) = self.read_of_mix(b, tokens, state)?;
        let made = self.norm_of_heads(b, made, layer, sizes)?;
        let bonus = self.bonus(b, &tokens, layer, sizes)?;
        let made = b.binary(Function::Add, made, bonus)?;
        if !gated {
            return Ok((made, state));
        }
        let own = lerp(b, 5)?;
        let gate = self.by_short_row(b, own, layer, "g", Some(Function::Sigmoid))?;
        Ok((b.binary(Function::Mul, made, gate)?, state))
    }

    /// What each token gets of its own values.
    fn bonus(&self, b: &mut Builder, tokens: &Tokens, layer: u64, sizes: &Rwkv) -> Result<TensorId> {
        let factors = self.needed(b, layer, "time_mix_r_k", &[1, sizes.heads, 1, sizes.size])?;
        let weight = b.map(&[tokens.reads, tokens.writes, factors], DType::F32, |p, x| {
            let both = p.call(Function::Mul, &x[..2]);
            p.call(Function::Mul, &[both, x[2]])
        })?;
        let weight = b.reduce(ReduceKind::Sum, weight, &[3], true)?;
        let made = b.binary(Function::Mul, weight, tokens.values)?;
        self.heads_last(b, made, self.hyper.width)
    }
}
