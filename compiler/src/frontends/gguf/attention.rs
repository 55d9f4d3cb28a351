//! Attention of a layer: queries, keys and values with their norms and rotary embedding, to caches or to one text.

use halite_ops::{
    DType,
    blocks::BlockFormat,
    expression::{Expression, Function, Operand, Scalar, Type},
    norm::NormKind,
};
use halite_sizes::Size;

use super::{
    Result,
    family::{Flow, Turn},
    heads::Heads,
    hyper::Temperature,
    indexer::Chosen,
    layer::{Caches, Call, Held},
};
use crate::{
    build::{Builder, MOST_ATTENDED, Normalization, Range, Scores},
    frontends::CacheFormats,
    graph::TensorId,
};

/// What most models that have it apply to the results of attention.
const POST_NORM: &str = "post_attention_norm";

impl Call<'_> {
    /// Queries and gates of results, `[rows, heads * dim]`, where each head's gate lies behind its query.
    fn gated_queries(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<Option<[TensorId; 2]>> {
        let (own, width) = (self.hyper.heads_of(layer), self.hyper.width);
        let (heads, dim) = (own.count, own.key);
        let [queries, rest] = [2 * heads * dim, own.kv * (own.key + own.value)];
        let both = match [self.rows_of(layer, "attn_q"), self.rows_of(layer, "attn_qkv")] {
            _ if self.hyper.latent_of(layer).is_some() => return Ok(None),
            [Some(rows), _] if rows == queries => self.linear(b, x, layer, "attn_q", [queries, width])?,
            [None, Some(rows)] if rows == queries + rest => {
                let all = self.linear(b, x, layer, "attn_qkv", [queries + rest, width])?;
                self.columns(b, all, 0, queries)?
            }
            _ => return Ok(None),
        };
        let both = b.reshape_to(both, &[self.rows() * heads, (2 * dim).into()])?;
        let part = |b: &mut Builder, first: u64| {
            let part = self.columns(b, both, first, dim)?;
            b.reshape_to(part, &[self.rows(), (heads * dim).into()])
        };
        Ok(Some([part(b, 0)?, part(b, dim)?]))
    }

    /// What attention found, times its gate, if there is one: that which came with queries, or one with weights of its own.
    fn by_gate(
        &self,
        b: &mut Builder,
        found: TensorId,
        x: TensorId,
        gate: Option<TensorId>,
        layer: u64,
    ) -> Result<TensorId> {
        let inner = b.sizes(found)[1].exact();
        let heads = self.hyper.heads_of(layer).count;
        let base = self.hyper.family.open_gates;
        if gate.is_none() && self.rows_of(layer, "attn_gate") == Some(heads) {
            // A number for each head.
            let gate = self.linear(b, x, layer, "attn_gate", [heads, self.hyper.width])?;
            let gate = b.reshape_to(gate, &[self.rows(), heads.into(), Size::constant(1)])?;
            let apart = b.reshape_to(found, &[self.rows(), heads.into(), (inner / heads).into()])?;
            let made = b.map(&[apart, gate], DType::F32, |p, x| {
                let gate = opened(p, x[1], base);
                p.call(Function::Mul, &[x[0], gate])
            })?;
            return b.reshape_to(made, &[self.rows(), inner.into()]);
        }
        let gate = match (gate, self.tensors.find(&self.name(layer, "attn_gate", "weight"))) {
            (Some(gate), _) => gate,
            (None, Some(_)) => self.linear(b, x, layer, "attn_gate", [inner, self.hyper.width])?,
            (None, None) => return Ok(found),
        };
        b.map(&[found, gate], DType::F32, |p, x| {
            let gate = opened(p, x[1], base);
            p.call(Function::Mul, &[x[0], gate])
        })
    }

    /// Queries, keys and values, `[rows, heads * dim]`; of the queries those that are there already.
    fn projections(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        gated: Option<TensorId>,
    ) -> Result<[TensorId; 3]> {
        let (h, own) = (self.hyper, self.hyper.heads_of(layer));
        let [q, k, v] = [own.count * own.key, own.kv * own.key, own.kv * own.value];
        let has = |part: &str| self.tensors.find(&self.name(layer, part, "weight")).is_some();
        let made = if has("attn_qkv") {
            // Gates lie with their queries.
            let first = if gated.is_some() { 2 * q } else { q };
            let all = self.linear(b, x, layer, "attn_qkv", [first + k + v, h.width])?;
            let queries = match gated {
                Some(queries) => queries,
                None => self.columns(b, all, 0, q)?,
            };
            let apart = [queries, self.columns(b, all, first, k)?, self.columns(b, all, first + k, v)?];
            self.adapted(b, apart, x, layer, [q, k, v])?
        } else {
            let queries = match gated {
                Some(queries) => queries,
                None => self.linear(b, x, layer, "attn_q", [q, h.width])?,
            };
            let keys = self.linear(b, x, layer, "attn_k", [k, h.width])?;
            let values = match h.family.bare_value_norm && k == v && !has("attn_v") {
                true => keys,
                false if has("attn_v_exps") => self.routed_values(b, x, layer, v)?,
                false => self.linear(b, x, layer, "attn_v", [v, h.width])?,
            };
            [queries, keys, values]
        };
        let Some(clamp) = h.clamp else { return Ok(made) };
        let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
        let mut clamped = made;
        for x in &mut clamped {
            *x = b.map(&[*x], DType::F32, |p, x| {
                let made = p.call(Function::Max, &[x[0], float(-clamp)]);
                p.call(Function::Min, &[made, float(clamp)])
            })?;
        }
        Ok(clamped)
    }

    /// `[rows, heads * dim]` to `[sequences, heads, len, dim]`, with a norm of each head, or of all together, where there is one.
    pub fn heads(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        [heads, dim]: [u64; 2],
        norm: Option<&str>,
    ) -> Result<TensorId> {
        let own = norm.map(|norm| (self.name(layer, norm, "weight"), self.name(layer, norm, "bias")));
        let dims = own.as_ref().and_then(|(name, _)| self.tensors.dims(name)).unwrap_or(&[]).to_vec();
        let mut x = x;
        if let (Some((name, bias)), [all]) = (&own, &dims[..])
            && *all == heads * dim
            && *all != dim
            && !self.hyper.family.grouped_norms
        {
            let scale = self.tensors.vector(b, name, heads * dim)?;
            let bias = self.tensors.vector(b, bias, heads * dim)?;
            x = self.norm(b, x, scale, bias)?;
        }
        x = b.reshape_to(x, &[self.rows(), heads.into(), dim.into()])?;
        match (&own, &dims[..]) {
            // Each head has weights of its own.
            (Some((name, bias)), [_, _]) => x = self.own_norms(b, x, [name, bias], [heads, dim])?,
            (Some((name, bias)), [all]) if self.hyper.family.grouped_norms && *all == heads * dim => {
                x = self.own_norms(b, x, [name, bias], [heads, dim])?;
            }
            (Some((name, bias)), [own]) if *own == dim => {
                let scale = self.tensors.vector(b, name, dim)?;
                let bias = self.tensors.vector(b, bias, dim)?;
                x = self.norm(b, x, scale, bias)?;
            }
            _ => {}
        }
        self.heads_first(b, x, [heads, dim])
    }

    /// A norm of each head, `[rows, heads, dim]`, with weights and perhaps biases of its own.
    fn own_norms(
        &self,
        b: &mut Builder,
        x: TensorId,
        [name, bias]: [&str; 2],
        [heads, dim]: [u64; 2],
    ) -> Result<TensorId> {
        let end = b.rank(x);
        let centred = self.hyper.centred || self.hyper.family.centred_heads.is_some();
        let kind = if centred { NormKind::Group } else { NormKind::Rms };
        let epsilon = self.hyper.family.centred_heads.unwrap_or(self.hyper.epsilon);
        let norm = Normalization { kind, first: end - 1, end, groups: 1, epsilon };
        let mut x = b.normalize(x, None, None, norm)?;
        let rows = |b: &mut Builder, name: &str| match self.hyper.family.grouped_norms {
            true => self.tensors.floats_as(b, name, &[heads, dim]),
            false => self.tensors.float_rows(b, name, [heads, dim]),
        };
        if let Some(scales) = rows(b, name)? {
            x = b.binary(Function::Mul, x, scales)?;
        }
        match rows(b, bias)? {
            Some(biases) => b.binary(Function::Add, x, biases),
            None => Ok(x),
        }
    }

    /// Rows with all heads to `[sequences, heads, len, dim]`.
    pub fn heads_first(&self, b: &mut Builder, x: TensorId, [heads, dim]: [u64; 2]) -> Result<TensorId> {
        let dims = [self.sequences, heads.into(), self.len, dim.into()];
        if self.len == 1 {
            return b.reshape_to(x, &dims);
        }
        let x = b.reshape_to(x, &[self.rows(), heads.into(), dim.into()])?;
        let x = b.transpose(x, &[1, 0, 2])?;
        b.reshape_to(x, &dims)
    }

    /// Queries, keys and values of each head, `[sequences, heads, len, dim]`, as they go into attention; queries alone where a layer
    /// shares the others.
    fn parts(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        gated: Option<TensorId>,
    ) -> Result<(TensorId, Option<[TensorId; 2]>)> {
        let h = self.hyper;
        if let Some(latent) = h.latent_of(layer) {
            let [q, k, v] = self.latent_parts(b, x, layer, &latent)?;
            return Ok((q, Some([k, v])));
        }
        let own = h.heads_of(layer);
        if h.shares(layer).is_some() {
            // Some files have the weights all the same.
            for part in ["attn_q", "attn_k", "attn_v", "attn_k_norm"] {
                self.tensors.find(&self.name(layer, part, "weight"));
                self.tensors.find(&self.name(layer, part, "bias"));
            }
            let q = match gated {
                Some(q) => q,
                None if self.has(layer, "attn_qkv") => self.projections(b, x, layer, None)?[0],
                // As in llama.cpp without a bias.
                None => self.product(b, x, layer, "attn_q", [own.count * own.key, h.width])?,
            };
            return Ok((self.placed(b, q, layer, own.count, "attn_q_norm")?, None));
        }
        let [q, k, v] = self.projections(b, x, layer, gated)?;
        let mut v = self.heads(b, v, layer, [own.kv, own.value], None)?;
        if h.family.bare_value_norm {
            v = self.norm(b, v, None, None)?;
        }
        let q = self.placed(b, q, layer, own.count, "attn_q_norm")?;
        Ok((q, Some([self.placed(b, k, layer, own.kv, "attn_k_norm")?, v])))
    }

    /// Queries or keys of each head, with their norm and rotary embedding.
    fn placed(&self, b: &mut Builder, x: TensorId, layer: u64, heads: u64, norm: &str) -> Result<TensorId> {
        let (h, key) = (self.hyper, self.hyper.heads_of(layer).key);
        let experts = h.experts.map(|experts| experts.count);
        let bare = h.family.bare_head_norms_but.is_some_and(|but| experts != Some(but));
        let late = h.family.norms_turned && self.tensors.find(&self.name(layer, norm, "weight")).is_some();
        let x = self.heads(b, x, layer, [heads, key], (!late && !bare).then_some(norm))?;
        let x = self.turned(b, x, layer)?;
        if bare && h.rope_of(layer).is_some() {
            let x = self.norm(b, x, None, None)?;
            // A number for each head, perhaps.
            let scales = self.tensors.floats_as(b, &self.name(layer, norm, "weight"), &[1, heads, 1, 1])?;
            return scales.map_or(Ok(x), |scales| b.binary(Function::Mul, x, scales));
        }
        if late { self.row_norm(b, x, layer, norm, key) } else { Ok(x) }
    }

    /// Keys and values that a layer attends to: its own behind those in its caches, or those of the layer that it shares them with.
    pub fn attended_to(
        &self,
        b: &mut Builder,
        own: Option<[TensorId; 2]>,
        layer: u64,
        caches: Option<Caches>,
    ) -> Result<Caches> {
        let Some([k, v]) = own else {
            let of = self.hyper.shares(layer);
            let known = self.known.borrow().iter().find(|(layer, _)| Some(*layer) == of).map(|(_, own)| *own);
            return known.ok_or_else(|| b.invalid("a layer shares keys that there are not"));
        };
        let made = match (self.place, caches) {
            (Some(place), Some([keys, values])) => {
                let append = |b: &mut Builder, new, cache, format: Option<BlockFormat>| match format {
                    None => b.append(new, cache, place.start),
                    Some(format) => b.append_in_blocks(new, cache, place.start, format),
                };
                [append(b, k, keys, self.held.keys)?, append(b, v, values, self.held.values)?]
            }
            _ => [k, v],
        };
        self.known.borrow_mut().push((layer, made));
        Ok(made)
    }

    /// Queries that count more the further on they are, where the model is so.
    fn tempered(&self, b: &mut Builder, q: TensorId, layer: u64) -> Result<TensorId> {
        let own = self.hyper.temperature.filter(|own| !own.plain || self.hyper.rope_of(layer).is_none());
        let Some(Temperature { scale, length, ahead, .. }) = own else { return Ok(q) };
        let one = Size::constant(1);
        let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
        b.map(&[q, places], DType::F32, |p, x| {
            let place = p.cast(Type::Of(DType::F32), x[1]);
            let place = p.call(Function::Add, &[place, float(ahead as f64)]);
            let times = p.call(Function::Div, &[place, float(length as f64)]);
            let times = p.call(Function::Floor, &[times]);
            let times = p.call(Function::Add, &[times, float(1.0)]);
            let grown = p.call(Function::Log, &[times]);
            let grown = p.call(Function::Mul, &[grown, float(scale)]);
            let factor = p.call(Function::Add, &[grown, float(1.0)]);
            p.call(Function::Mul, &[x[0], factor])
        })
    }

    /// Elements of heads with a rotary embedding.
    pub fn turned(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let Some(rope) = self.hyper.rope_of(layer) else { return Ok(x) };
        let interleaved = self.hyper.turn == Turn::Neighbours;
        let place = usize::from(self.hyper.window_of(layer).is_some());
        match self.tables[place] {
            Some(tables) => b.rotary(x, self.positions, tables, rope.turned, interleaved),
            None => Ok(x),
        }
    }

    /// Attention of new tokens to all so far, or of a text's tokens to each other; gives what the layer keeps of them, too. `x` has its
    /// norm already.
    pub fn attention(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        held: &Held,
    ) -> Result<(TensorId, Held)> {
        let h = self.hyper;
        if let Some(own) = &h.condensed {
            return self.condensed_attention(b, (x, layer), held, own);
        }
        let gated = self.gated_queries(b, x, layer)?;
        let (q, own) = self.parts(b, x, layer, gated.map(|[queries, _]| queries))?;
        let q = self.tempered(b, q, layer)?;
        let [keys, values] = self.attended_to(b, own, layer, held.caches)?;
        let (chosen, index) = self.chosen_keys(b, x, layer, held.index)?;
        let q = if self.place.is_some() { b.cast(q, DType::F16)? } else { q };
        let made = self.attended(b, [q, keys, values], chosen, layer)?;
        let made = b.as_f32(made)?;
        // In a window of no tokens nothing is found.
        let has_keys = h.family.encoder || h.window_of(layer) != Some(0);
        let made = self.scaled(b, made, (!has_keys).then_some(0.0))?;
        let made = b.transpose(made, &[0, 2, 1, 3])?;
        let heads = h.heads_of(layer);
        let (inner, made) = match h.latent_of(layer).filter(|latent| latent.folded) {
            Some(latent) => (heads.count * latent.value, self.latent_values(b, made, layer, &latent)?),
            None => {
                let inner = heads.count * heads.value;
                (inner, b.reshape_to(made, &[self.rows(), inner.into()])?)
            }
        };
        let made = self.by_gate(b, made, x, gated.map(|[_, gate]| gate), layer)?;
        let made = self.inner_norm(b, made, layer, "attn_sub_norm", inner)?;
        let made = self.linear(b, made, layer, "attn_output", [h.width, inner])?;
        let made = self.scaled(b, made, h.rare.value_scale)?;
        let made = match h.flow {
            Flow::BehindByOwn => self.layer_norm(b, made, layer, "attn_norm")?,
            Flow::BehindSum => made,
            _ if h.family.feed_norm == POST_NORM => made,
            _ => self.norm_behind(b, made, layer, h.family.attention_norm)?,
        };
        let caches = self.place.filter(|_| own.is_some()).map(|_| [keys, values]);
        let index = index.filter(|_| self.place.is_some());
        let kept = Held { caches, index, ..Held::default() };
        Ok((self.scaled(b, made, h.residual_scale)?, kept))
    }

    /// What queries find among the keys that are chosen.
    pub fn attended(
        &self,
        b: &mut Builder,
        [q, keys, values]: [TensorId; 3],
        chosen: Chosen,
        layer: u64,
    ) -> Result<TensorId> {
        let h = self.hyper;
        // A window as long as the context leaves nothing out.
        let window = h.window_of(layer).filter(|window| self.keys > h.keys_before(*window) + 1);
        let sinks = self.tensors.floats(&self.name(layer, "attn_sinks", "weight"))?;
        let biased = h.distance_bias.is_some() || sinks.is_some();
        let ([keys, values], own) = self.listed(b, [keys, values], chosen)?;
        let mask = match h.buckets {
            _ if own.is_some() => own,
            Some(count) => Some(self.relative_mask(b, layer, count)?),
            None if window.is_some() || biased => {
                Some(self.shared_mask(b, window, h.heads_of(layer).count)?)
            }
            None => None,
        };
        let causal = mask.is_none() && !h.vectors.sees_ahead;
        let lengths = self.place.filter(|_| causal).map(|place| place.lengths);
        let ([keys, values], held) = self.readable(b, [keys, values], layer, sinks.is_some())?;
        let (softcap, scale) = (h.score_cap, Some(h.scale_of(layer)));
        let scores = Scores { scale, softcap, causal, lengths, keys: held.keys, values: held.values };
        match sinks {
            Some(sinks) => self.attended_with_sinks(
                b,
                [q, keys, values],
                mask,
                scores,
                (&sinks, h.heads_of(layer).count),
            ),
            None => b.attention([q, keys, values], mask, scores),
        }
    }

    /// Keys and values that attention reads, and how they are held: those in blocks that no kernel reads become floats.
    fn readable(
        &self,
        b: &mut Builder,
        caches: Caches,
        layer: u64,
        has_sinks: bool,
    ) -> Result<(Caches, CacheFormats)> {
        let held = self.place.map_or_else(CacheFormats::default, |_| self.held);
        let Heads { key, value, .. } = self.hyper.heads_of(layer);
        if held == CacheFormats::default() || !has_sinks && key == value && key <= MOST_ATTENDED {
            return Ok((caches, held));
        }
        let mut floats = |x: TensorId, format: Option<BlockFormat>, elements: u64| {
            let Some(format) = format else { return Ok(x) };
            let [sequences, heads, count, words] = b.four_dims(x)?;
            let rows = b.reshape_to(x, &[sequences * heads * count, words])?;
            let made = b.from_blocks(rows, format, elements)?;
            let made = b.cast(made, DType::F16)?;
            b.reshape_to(made, &[sequences, heads, count, elements.into()])
        };
        let [keys, values] = caches;
        let made = [floats(keys, held.keys, key)?, floats(values, held.values, value)?];
        Ok((made, CacheFormats::default()))
    }

    /// Attention with a number for each head that takes part in the softmax and has no value.
    fn attended_with_sinks(
        &self,
        b: &mut Builder,
        [q, keys, values]: [TensorId; 3],
        mask: Option<TensorId>,
        scores: Scores,
        (sinks, heads): (&[f32], u64),
    ) -> Result<TensorId> {
        if sinks.len() as u64 != heads {
            return Err(super::file::invalid(format!("{} sinks for {heads} heads", sinks.len())));
        }
        let stages = b.attention_scores([q, keys], mask, scores)?;
        let bytes: Vec<u8> = sinks.iter().flat_map(|sink| sink.to_le_bytes()).collect();
        let one = Size::constant(1);
        let sinks = b.constant("sinks", DType::F32.into(), &[1, heads, 1, 1], bytes.into())?;
        let sinks = b.expand_to(sinks, &[self.sequences, heads.into(), self.len, one])?;
        let all = b.concat(&[stages.masked, sinks], 3)?;
        let weights = b.softmax(all, 3, false)?;
        let count = b.sizes(keys)[2];
        let ranges = [self.sequences, heads.into(), self.len, count].map(Range::all);
        let weights = b.slice(weights, &ranges)?;
        b.attend(weights, values)
    }
}

/// A gate: the logistic function of a number, or a softplus to a base.
fn opened(p: &mut Expression, x: Operand, base: Option<f64>) -> Operand {
    let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
    match base.map(f64::ln) {
        None => p.call(Function::Sigmoid, &[x]),
        Some(1.0) => p.call(Function::Softplus, &[x]),
        Some(log) => {
            let times = p.call(Function::Mul, &[x, float(log)]);
            let made = p.call(Function::Softplus, &[times]);
            p.call(Function::Mul, &[made, float(1.0 / log)])
        }
    }
}
