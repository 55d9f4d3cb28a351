//! What the layers of a model share: weights by name, norms, and the way of a state through a layer.

use std::cell::RefCell;

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
};
use halite_sizes::Size;

use super::{
    Result,
    family::Flow,
    file::{Tensors, missing},
    hyper::Hyper,
    indexer::Chosen,
    read_by::leaves_alone,
    recurrent::Recurrent,
    steps::Steps,
};
use crate::{
    build::{Builder, Normalization, Range},
    frontends::CacheFormats,
    graph::TensorId,
};

/// The caches of a layer, `f16[sequences, kv heads, context, dim]`; in blocks words, `u32[sequences, kv heads, context, words]`.
pub(super) type Caches = [TensorId; 2];

/// What a mask is for: a window, if any, and so many heads.
pub(super) type Masked = (Option<u64>, u64);

/// What a layer keeps from call to call.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub caches: Option<Caches>,
    /// The keys of its indexer, where it has one, `f16[sequences, 1, context, elements]`.
    pub index: Option<TensorId>,
    /// Rows that stand for groups of tokens, its own and those of its indexer, where it has such, `f16[sequences, 1, context, elements]`.
    pub groups: Vec<TensorId>,
    /// Keys and values of the text that an encoder read, where there is one.
    pub crossed: Option<Caches>,
    /// Rows of its other states, `f32[sequences, elements]`.
    pub states: Vec<TensorId>,
}

impl Held {
    /// One of its other states, by its place among them.
    pub fn state(&self, place: usize) -> Option<TensorId> {
        self.states.get(place).copied()
    }
}

/// What a layer is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    /// Its number.
    pub layer: u64,
    /// The states of tokens before it, `[rows, width]`; of a part of a layer what that takes.
    pub x: TensorId,
    /// What it kept in the call before.
    pub held: &'a Held,
    /// The tokens whose states are wanted behind it, where not all are, `i32[rows]`.
    pub wanted: Option<TensorId>,
}

impl Given<'_> {
    /// The rows that are wanted.
    pub fn wanted_of(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        self.wanted.map_or(Ok(x), |rows| b.gather(x, rows, 0))
    }
}

/// Where new tokens go in caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Place of the first of them in each sequence, `i32[sequences]`.
    pub start: TensorId,
    /// Tokens of each with them, `i32[sequences]`.
    pub lengths: TensorId,
}

/// What all layers of a call share.
pub(super) struct Call<'a> {
    pub tensors: &'a Tensors<'a>,
    pub hyper: &'a Hyper,
    /// Sequences, each with tokens and caches of its own: of several, each has one new token.
    pub sequences: Size,
    /// New tokens of a sequence.
    pub len: Size,
    /// Keys that there is room for.
    pub keys: Size,
    /// Places of the new tokens, `i64[sequences, len]`.
    pub positions: TensorId,
    /// Their place in caches; absent where all tokens of a text are new.
    pub place: Option<Place>,
    /// Which tokens layers with a state count, where they keep it.
    pub steps: Option<Steps>,
    /// How many tokens a text for the encoder has, `i32[sequences]`: in the encoder where others fill it up, and in what writes behind it.
    pub source: Option<TensorId>,
    /// How caches hold keys and values.
    pub held: CacheFormats,
    /// Tables of rotary embedding for layers that attend to all keys, and to a window.
    pub tables: [Option<[TensorId; 2]>; 2],
    /// Masks that there are already, with their windows and heads: layers share them.
    pub masks: RefCell<Vec<(Masked, TensorId)>>,
    /// Rows of tokens for each layer, `f32[rows, layers, length]`, where a model has such.
    pub layer_inputs: Option<TensorId>,
    /// The new tokens, `i32[rows]`, where layers need them.
    pub tokens: Option<TensorId>,
    /// The adapters that tokens are of control for, `f32[rows]`, where there are adapters, and those of all tokens, `i32[rows, 1]`.
    pub slots: Option<TensorId>,
    pub adapters: RefCell<Option<TensorId>>,
    /// Embeddings of tokens, `f32[rows, width]`, where layers add them again.
    pub embedded: Option<TensorId>,
    /// Keys and values of layers so far, which others may share.
    pub known: RefCell<Vec<(u64, Caches)>>,
    /// What distances add to scores, with the layers whose weights tell it.
    pub relative: RefCell<Vec<(u64, TensorId)>>,
    /// The values of the first layer, where others go over to them.
    pub first_values: RefCell<Option<TensorId>>,
    /// The short row that the queries of a layer are made of, with its number.
    pub query_row: RefCell<Option<(u64, TensorId)>>,
    /// Keys that the last indexer chose.
    pub chosen: RefCell<Option<Chosen>>,
}

impl<'a> Call<'a> {
    /// One that reads a text of one sequence as a whole, tokens at these places, `i64[1, len]`, and keeps nothing.
    pub fn of_text(
        tensors: &'a Tensors<'a>,
        hyper: &'a Hyper,
        positions: TensorId,
        len: Size,
        source: Option<TensorId>,
    ) -> Call<'a> {
        Call {
            tensors,
            hyper,
            sequences: Size::constant(1),
            len,
            keys: len,
            positions,
            place: None,
            steps: None,
            source,
            held: CacheFormats::default(),
            tables: [None, None],
            masks: RefCell::default(),
            known: RefCell::default(),
            relative: RefCell::default(),
            first_values: RefCell::default(),
            chosen: RefCell::default(),
            query_row: RefCell::default(),
            layer_inputs: None,
            tokens: None,
            slots: None,
            adapters: RefCell::default(),
            embedded: None,
        }
    }
}

impl Call<'_> {
    /// New tokens of all sequences.
    pub fn rows(&self) -> Size {
        self.sequences * self.len
    }

    /// The name of a layer's tensor without its kind.
    pub fn bare_name(&self, layer: u64, part: &str) -> String {
        let family = self.hyper.family;
        let part = if part == "attn_output" { family.attention_output } else { part };
        format!("{}blk.{layer}.{part}", family.prefix)
    }

    /// The name of a layer's tensor.
    pub fn name(&self, layer: u64, part: &str, kind: &str) -> String {
        format!("{}.{kind}", self.bare_name(layer, part))
    }

    /// Whether a layer has weights of this name.
    pub fn has(&self, layer: u64, part: &str) -> bool {
        self.tensors.dims(&self.name(layer, part, "weight")).is_some()
    }

    /// Elements of the rows of a layer's weights.
    pub fn columns_of(&self, layer: u64, part: &str) -> Result<u64> {
        let name = self.name(layer, part, "weight");
        match self.tensors.dims(&name) {
            Some([.., columns]) if *columns > 0 => Ok(*columns),
            _ => Err(missing(&name)),
        }
    }

    /// Rows of a layer's weights, if it has them.
    pub fn rows_of(&self, layer: u64, part: &str) -> Option<u64> {
        self.tensors.dims(&self.name(layer, part, "weight")).and_then(|dims| dims.first().copied())
    }

    /// A norm along the last dimension, with weights and bias, if any.
    pub fn norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        scale: Option<TensorId>,
        bias: Option<TensorId>,
    ) -> Result<TensorId> {
        let end = b.rank(x);
        let kind = if self.hyper.centred { NormKind::Group } else { NormKind::Rms };
        let norm = Normalization { kind, first: end - 1, end, groups: 1, epsilon: self.hyper.epsilon };
        b.normalize(x, scale, bias, norm)
    }

    /// A norm of the whole model, which has to be there.
    pub fn model_norm(&self, b: &mut Builder, x: TensorId, part: &str) -> Result<TensorId> {
        match self.hyper.family.bare_norms {
            true => self.norm(b, x, None, None),
            false if self.hyper.rare.norm_groups > 1 => self.norm_of_groups(b, x, part),
            false => self.named_norm(b, x, part, self.hyper.width),
        }
    }

    /// The same of groups of neighbours.
    fn norm_of_groups(&self, b: &mut Builder, x: TensorId, part: &str) -> Result<TensorId> {
        let (name, width, groups) = (format!("{part}.weight"), self.hyper.width, self.hyper.rare.norm_groups);
        let scale = self.tensors.vector(b, &name, width)?.ok_or_else(|| missing(&name))?;
        let rows = b.sizes(x)[0];
        let apart = b.reshape_to(x, &[rows, groups.into(), (width / groups).into()])?;
        let normed = self.norm(b, apart, None, None)?;
        let normed = b.reshape_to(normed, &[rows, width.into()])?;
        b.binary(Function::Mul, normed, scale)
    }

    /// A norm of a layer, which has to be there.
    pub fn layer_norm(&self, b: &mut Builder, x: TensorId, layer: u64, part: &str) -> Result<TensorId> {
        self.model_norm(b, x, &self.bare_name(layer, part))
    }

    /// A norm of a layer that models may have.
    pub fn optional_norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
    ) -> Result<Option<TensorId>> {
        // Some converters leave the kind out.
        let names = [self.name(layer, part, "weight"), self.bare_name(layer, part)];
        match names.iter().any(|name| self.tensors.dims(name).is_some()) {
            true => self.layer_norm(b, x, layer, part).map(Some),
            false => Ok(None),
        }
    }

    /// A norm behind a part of a layer that models may have.
    pub fn norm_behind(&self, b: &mut Builder, x: TensorId, layer: u64, part: &str) -> Result<TensorId> {
        let Some(epsilon) = self.hyper.family.post_epsilon else {
            return Ok(self.optional_norm(b, x, layer, part)?.unwrap_or(x));
        };
        let name = self.name(layer, part, "weight");
        let scale = self.tensors.vector(b, &name, self.hyper.width)?.ok_or_else(|| missing(&name))?;
        let end = b.rank(x);
        let norm = Normalization { kind: NormKind::Rms, first: end - 1, end, groups: 1, epsilon };
        b.normalize(x, Some(scale), None, norm)
    }

    /// Whether a layer takes embeddings that have a norm already, and has none before attention.
    fn starts_normed(&self, layer: u64) -> bool {
        let has = |name: &str| self.tensors.dims(name).is_some();
        let is_encoder = self.hyper.family.encoder && layer == 0;
        is_encoder && has("token_embd_norm.weight") && !has(&self.name(layer, "attn_norm", "weight"))
    }

    /// A norm of rows of `length` elements within a layer, which has to be there.
    pub fn row_norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        length: u64,
    ) -> Result<TensorId> {
        self.named_norm(b, x, &self.bare_name(layer, part), length)
    }

    /// A norm of rows of `length` elements by weights of this name, which have to be there, and a bias if there is one.
    fn named_norm(&self, b: &mut Builder, x: TensorId, part: &str, length: u64) -> Result<TensorId> {
        let mut name = format!("{part}.weight");
        if self.tensors.dims(&name).is_none() && self.tensors.dims(part).is_some() {
            // Some converters leave the kind out.
            name = part.to_owned();
        }
        let scale = self.tensors.vector(b, &name, length)?;
        let bias = self.tensors.vector(b, &format!("{part}.bias"), length)?;
        match scale {
            Some(_) => self.norm(b, x, scale, bias),
            None => Err(missing(&name)),
        }
    }

    /// A norm of rows in front of the last product of a layer's part, where there is one.
    pub fn inner_norm(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        length: u64,
    ) -> Result<TensorId> {
        match self.tensors.dims(&self.name(layer, part, "weight")) {
            Some(_) => self.row_norm(b, x, layer, part, length),
            None => Ok(x),
        }
    }

    /// A product with weights, with their factor and a bias if there are such.
    pub fn linear(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        [rows, length]: [u64; 2],
    ) -> Result<TensorId> {
        let mut made = self.product(b, x, layer, part, [rows, length])?;
        if part != "attn_qkv" {
            made = self.with_adapter(b, [made, x], layer, part, [rows, length])?;
        }
        match self.tensors.vector(b, &self.name(layer, part, "bias"), rows)? {
            Some(bias) if !leaves_alone(self.hyper.family.name, &format!("{part}.bias")) => {
                b.binary(Function::Add, made, bias)
            }
            _ => Ok(made),
        }
    }

    /// A product with weights, with their factor, if there is one, and without a bias.
    pub fn product(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        dims: [u64; 2],
    ) -> Result<TensorId> {
        let made = self.tensors.product(b, x, &self.name(layer, part, "weight"), dims)?;
        self.tensors.rescaled(b, made, &self.bare_name(layer, part))
    }

    /// Columns of a matrix.
    pub fn columns(&self, b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
        let rows = b.sizes(x)[0];
        let part = Range { start: Size::from(first), step: 1, count: Size::from(count) };
        b.slice(x, &[Range::all(rows), part])
    }

    /// `x` times a number, if there is one.
    pub fn scaled(&self, b: &mut Builder, x: TensorId, factor: Option<f64>) -> Result<TensorId> {
        let Some(factor) = factor else { return Ok(x) };
        let factor = Operand::Constant(Scalar::Float(f64::from(factor as f32)));
        b.map(&[x], DType::F32, |p, x| p.call(Function::Mul, &[x[0], factor]))
    }

    /// The state behind a layer, and what it keeps.
    pub fn layer(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        b.at(crate::SourceLocation::new(format!("layer {}, attention", given.layer)));
        let recurrent = self.hyper.mixer(given.layer).recurrent;
        match (self.hyper.family, recurrent) {
            (own, _) if own.lone_parts => self.lone_part(b, given),
            (own, _) if own.front.is_some() => self.layer_behind_encoder(b, given),
            (own, _) if own.carries_norms => self.layer_carrying_norms(b, given),
            (own, _) if own.gaps => self.layer_with_gaps(b, given),
            (_, Some(Recurrent::Rwkv(own))) if own.channels => self.layer_of_mixes(b, given),
            _ => self.usual_layer(b, given),
        }
    }

    /// The same of a layer with attention, or what is in its place, and a feed-forward network.
    fn usual_layer(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, .. } = given;
        let normed = match self.hyper.flow {
            Flow::Behind | Flow::BehindByOwn | Flow::BehindSum => x,
            // The norm of embeddings is enough for the first layer of some.
            _ if self.starts_normed(layer) => x,
            _ => self.layer_norm(b, x, layer, "attn_norm")?,
        };
        // Some models have a norm for attention alone.
        let own = self.optional_norm(b, x, layer, "attn_norm_2")?.unwrap_or(normed);
        let (attended, held) = self.mixed(b, Given { x: own, ..given })?;
        let x = given.wanted_of(b, x)?;
        let attended = given.wanted_of(b, attended)?;
        let normed = given.wanted_of(b, normed)?;
        let mut state = b.binary(Function::Add, x, attended)?;
        if self.hyper.flow == Flow::BehindSum {
            state = self.layer_norm(b, state, layer, "attn_output_norm")?;
        }
        let fed = self.fed(b, [x, normed, state], layer)?;
        state = b.binary(Function::Add, state, fed)?;
        if self.hyper.flow == Flow::BehindSum {
            state = self.layer_norm(b, state, layer, "layer_output_norm")?;
        }
        Ok((self.ended(b, Given { x: state, ..given })?, held))
    }

    /// What the feed-forward network of a layer adds, of the state before the layer, the same with its norm, and the state behind
    /// attention.
    pub fn fed(&self, b: &mut Builder, [x, normed, state]: [TensorId; 3], layer: u64) -> Result<TensorId> {
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let feed_norm = self.hyper.family.feed_norm;
        let own_norm = self.hyper.family.bare_norms || self.has(layer, feed_norm);
        let given = match self.hyper.flow {
            Flow::Behind | Flow::BehindByOwn | Flow::BehindSum => state,
            Flow::Parallel if own_norm => self.layer_norm(b, x, layer, feed_norm)?,
            Flow::Parallel => normed,
            Flow::ParallelWithoutNorm if !own_norm => normed,
            _ => self.layer_norm(b, state, layer, feed_norm)?,
        };
        self.feed_forward(b, [given, x, state], layer)
    }

    /// The same of a layer that is one part alone.
    fn lone_part(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, .. } = given;
        let normed = self.layer_norm(b, x, layer, "attn_norm")?;
        let (made, held) = match self.hyper.mixer(layer).feeds {
            true => (self.feed_forward(b, [normed, x, x], layer)?, Held::default()),
            false => self.mixed(b, Given { x: normed, ..given })?,
        };
        let state = b.binary(Function::Add, x, made)?;
        Ok((given.wanted_of(b, state)?, held))
    }

    /// What a layer's attention and other ways to look back find in all rows, and what it keeps.
    pub fn mixed(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, held, .. } = given;
        let mixer = self.hyper.mixer(layer);
        let Some(recurrent) = mixer.recurrent else {
            return self.attention(b, x, layer, held);
        };
        let (made, states) = match &recurrent {
            Recurrent::ShortConv { taps } => self.short_conv(b, given, *taps)?,
            Recurrent::StateSpace(sizes) => self.state_space(b, given, sizes)?,
            Recurrent::Selective(sizes) => self.selective(b, given, sizes)?,
            Recurrent::Rwkv(sizes) => self.time_mix(b, given, sizes)?,
            Recurrent::DeltaNet(sizes) => self.delta_net(b, given, sizes)?,
            Recurrent::Lightning(sizes) => self.lightning(b, given, sizes)?,
        };
        let made = self.scaled(b, made, self.hyper.residual_scale)?;
        if !mixer.attends {
            return Ok((made, Held { states, ..Held::default() }));
        }
        let (attended, own) = self.attention(b, x, layer, held)?;
        Ok((b.binary(Function::Add, attended, made)?, Held { states, ..own }))
    }
}
