//! Decoders behind an encoder: the encoder's call, whose states become keys and values of the decoder's layers, and the layers that
//! attend to them.

use halite_ops::{DType, blocks::BlockFormat, expression::Function};
use halite_sizes::Size;

use super::{
    Result,
    embed::encoded,
    file::{File, Tensors, missing},
    hyper::Hyper,
    layer::{Caches, Call, Given, Held},
};
use crate::{
    SourceLocation,
    build::{Builder, Scores},
    frontends::CacheFormats,
    graph::TensorId,
};

/// What an encoder is given.
pub(super) struct Source {
    /// The tokens of a text, filled up: `i32[len]`.
    pub tokens: TensorId,
    /// How many count, `i32[1]`.
    pub count: TensorId,
    /// How caches hold keys and values.
    pub held: CacheFormats,
}

/// Builds the encoder's call: gives what each of the decoder's layers keeps, with keys and values of the text.
pub(super) fn build(
    b: &mut Builder,
    file: &File,
    [encoder, decoder]: [&Hyper; 2],
    source: &Source,
    layers: &[Held],
) -> Result<Vec<Held>> {
    let tensors = Tensors::of(file);
    let states = encoded(b, &tensors, encoder, source.tokens, Some(source.count))?;
    tensors.all_used(encoder.family, encoder.spare.clone())?;
    let len = b.sizes(source.tokens)[0];
    let tensors = Tensors::of(file);
    let positions = b.line_of_places(DType::I64, len)?;
    let positions = b.reshape_to(positions, &[Size::constant(1), len])?;
    let text = Call::of_text(&tensors, decoder, positions, len, Some(source.count));
    let call = Call { held: source.held, ..text };
    let begin = b.computed(DType::I32, &[1], vec![Size::constant(0)])?;
    let mut made = Vec::new();
    for (layer, held) in (0..decoder.layers).zip(layers) {
        b.at(SourceLocation::new(format!("layer {layer}, keys of the text")));
        let crossed = held.crossed.map(|caches| call.kept_of_text(b, states, layer, caches, begin));
        made.push(Held { crossed: crossed.transpose()?, ..held.clone() });
    }
    Ok(made)
}

impl Call<'_> {
    /// Keys and values of an encoder's states, in these caches.
    fn kept_of_text(
        &self,
        b: &mut Builder,
        states: TensorId,
        layer: u64,
        [keys, values]: Caches,
        begin: TensorId,
    ) -> Result<Caches> {
        let (own, width) = (self.hyper.heads_of(layer), self.hyper.width);
        let mut part = |part: &str, dim: u64, cache: TensorId, format: Option<BlockFormat>| {
            let made = self.linear(b, states, layer, part, [own.kv * dim, width])?;
            let made = self.heads_first(b, made, [own.kv, dim])?;
            match format {
                None => b.append(made, cache, begin),
                Some(format) => b.append_in_blocks(made, cache, begin, format),
            }
        };
        Ok([
            part("cross_attn_k", own.key, keys, self.held.keys)?,
            part("cross_attn_v", own.value, values, self.held.values)?,
        ])
    }

    /// The state behind a layer that attends to the tokens before and to an encoder's text, and what it keeps.
    pub fn layer_behind_encoder(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, held, .. } = given;
        let normed = self.layer_norm(b, x, layer, "attn_norm")?;
        let (attended, made) = self.mixed(b, Given { x: normed, ..given })?;
        let state = b.binary(Function::Add, x, attended)?;
        let found = self.found_in_text(b, state, layer, held.crossed)?;
        let state = b.binary(Function::Add, state, found)?;
        let fed = self.fed(b, [x, normed, state], layer)?;
        let state = b.binary(Function::Add, state, fed)?;
        Ok((given.wanted_of(b, state)?, Held { crossed: held.crossed, ..made }))
    }

    /// What a layer finds in the text that the encoder read.
    fn found_in_text(
        &self,
        b: &mut Builder,
        state: TensorId,
        layer: u64,
        crossed: Option<Caches>,
    ) -> Result<TensorId> {
        b.at(SourceLocation::new(format!("layer {layer}, attention to the text")));
        let (h, own) = (self.hyper, self.hyper.heads_of(layer));
        let Some([keys, values]) = crossed else {
            return Err(missing(&self.name(layer, "cross_attn_k", "weight")));
        };
        // Distances from what is written to the text count for nothing, whatever weights there are.
        for part in ["cross_attn_k", "cross_attn_v", "cross_attn_rel_b"] {
            self.tensors.find(&self.name(layer, part, "weight"));
            self.tensors.find(&self.name(layer, part, "bias"));
        }
        let normed = self.layer_norm(b, state, layer, "cross_attn_norm")?;
        let q = self.linear(b, normed, layer, "cross_attn_q", [own.count * own.key, h.width])?;
        let q = self.heads_first(b, q, [own.count, own.key])?;
        let q = b.cast(q, DType::F16)?;
        let scores = Scores {
            scale: Some(h.scales[0]),
            softcap: None,
            causal: false,
            lengths: self.source,
            keys: self.held.keys,
            values: self.held.values,
        };
        let made = b.attention([q, keys, values], None, scores)?;
        let made = b.as_f32(made)?;
        let made = b.transpose(made, &[0, 2, 1, 3])?;
        let inner = own.count * own.value;
        let made = b.reshape_to(made, &[self.rows(), inner.into()])?;
        self.linear(b, made, layer, "cross_attn_o", [h.width, inner])
    }
}
