//! The numbers of a GGUF model, from its metadata.

use std::{collections::BTreeSet, ops::Range};

use halite_formats::gguf::Value;

use super::{
    Result, adapters,
    condensed::Condensed,
    experts::Experts,
    factors::{cap, factors},
    families::FAMILIES,
    family::{Family, Flow, Turn, Unwindowed},
    file::{File, invalid, unsupported},
    groups::{Additions, Ngrams},
    heads::{Attends, Heads, buckets, window},
    indexer::Indexer,
    keys::Keys,
    latent::Latent,
    limits::Activations,
    loops::Loops,
    paths::Paths,
    recurrent::{Mixer, State},
    rope::Rope,
    ropes::turn,
    scores::placing,
    stacks::{MOST_LAYERS, Stacks},
    tokens::{suppressed, vocabulary},
    unknown,
};

/// The numbers of a decoder.
#[derive(Clone, Debug)]
pub(super) struct Hyper {
    pub family: &'static Family,
    pub layers: u64,
    pub loops: Loops,
    /// Layers behind them that no text needs: they guess tokens further on.
    pub spare: Range<u64>,
    /// Elements of a token's state.
    pub width: u64,
    /// Tokens that there are.
    pub vocabulary: u64,
    /// Behind every so many layers states are halved.
    pub halved_every: Option<u64>,
    /// How each layer attends.
    pub attends: Vec<Attends>,
    pub epsilon: f32,
    /// Whether norms take the mean away.
    pub centred: bool,
    /// Whether attention and feed-forward network take the same state.
    pub flow: Flow,
    /// The parts of each layer.
    pub mixers: Vec<Mixer>,
    /// How states go through layers.
    pub paths: Paths,
    /// What few models add to the states of tokens.
    pub more: Additions,
    /// The numbers of feed-forward networks' activations.
    pub activations: Activations,
    /// What few architectures have.
    pub rare: Rare,
    /// The experts of layers that have some.
    pub experts: Option<Experts>,
    pub rope: Rope,
    /// What rotary embedding turns.
    pub turn: Turn,
    /// Which layers have rotary embedding.
    pub turned: Vec<bool>,
    /// Layers that attend to a window have another, perhaps.
    pub local_rope: Rope,
    /// Keys that those layers attend to.
    pub window: Option<u64>,
    /// The sizes of latent attention, if it is that, of layers that attend to all keys and of those that attend to a window.
    pub latents: [Option<Latent>; 2],
    /// The numbers of attention to rows that stand for groups of neighbours, if it is that.
    pub condensed: Option<Condensed>,
    /// What chooses the keys that layers attend to, if something does.
    pub indexer: Option<Indexer>,
    /// How much more queries count that are further on.
    pub temperature: Option<Temperature>,
    /// Factors of scores, of the same.
    pub scales: [f64; 2],
    pub score_cap: Option<f64>,
    /// What no element of queries, keys and values is beyond.
    pub clamp: Option<f64>,
    /// Kinds of distances, where each adds to scores by weights.
    pub buckets: Option<u64>,
    /// How much the distance of keys counts, most of all heads, as a power of two.
    pub distance_bias: Option<f64>,
    /// Tokens that the model was trained for.
    pub trained: Option<u64>,
    pub logit_cap: Option<f64>,
    pub embedding_scale: Option<f64>,
    pub residual_scale: Option<f64>,
    /// Factor of logits.
    pub logit_scale: Option<f64>,
    /// Tokens that are never written.
    pub suppressed: BTreeSet<u64>,
    pub vectors: Vectors,
}

/// Numbers of few architectures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rare {
    /// What logarithms of decays are bent to be above, where they are.
    pub decay_bound: Option<f64>,
    /// Experts that make values, in layers that have such.
    pub value_experts: Option<Experts>,
    /// Groups of neighbours that norms of states are of.
    pub norm_groups: u64,
    /// Factor of what norms make, where layers add to that.
    pub carried: Option<f64>,
    /// Factor of what attention finds.
    pub value_scale: Option<f64>,
}

impl Rare {
    fn read(keys: &Keys<'_>, width: u64) -> Result<Rare> {
        Ok(Rare {
            decay_bound: decay_bound(keys)?,
            value_experts: Experts::of_values(keys, Experts::read(keys)?)?,
            norm_groups: norm_groups(keys, width)?,
            carried: carried(keys)?,
            value_scale: keys.factor("attention.value_scale")?.filter(|scale| *scale != 1.0),
        })
    }
}

/// Whether a model makes vectors of texts, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    /// What becomes of the states of a text.
    pub pooling: Pooling,
    /// Whether the metadata say that: the model is for vectors of texts.
    pub is_named: bool,
    /// Whether tokens attend to those behind them.
    pub sees_ahead: bool,
}

impl Vectors {
    fn read(keys: &Keys<'_>) -> Result<Vectors> {
        Ok(Vectors {
            pooling: pooling(keys)?,
            is_named: keys.value("pooling_type").is_some(),
            sees_ahead: sees_ahead(keys)?,
        })
    }
}

/// How queries grow with their places: by a multiple of the logarithm of how often a length is before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Temperature {
    pub scale: f64,
    pub length: u64,
    /// What is added to places before.
    pub ahead: u64,
    /// Whether it is that of layers without rotary embedding alone.
    pub plain: bool,
}

impl Temperature {
    /// Reads what the metadata say of it, if they do.
    fn read(keys: &Keys<'_>, window: Option<u64>) -> Result<Option<Temperature>> {
        if let Some((scale, length)) = keys.family.plain_temperature {
            let own = Temperature { scale, length, ahead: 1, plain: true };
            return Ok(window.map(|_| own));
        }
        let Some(scale) = keys.factor("attention.temperature_scale")? else { return Ok(None) };
        let own = keys.optional("attention.temperature_length")?.filter(|length| *length > 0);
        let trained = keys.optional("rope.scaling.original_context_length")?.filter(|length| *length > 0);
        let length = match own.or(trained) {
            Some(length) => length,
            None => keys.count("context_length")?,
        };
        Ok(Some(Temperature { scale, length, ahead: 0, plain: false }))
    }
}

/// What becomes of the states of a text's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The first.
    First,
    /// The last.
    Last,
}

/// Layers, and those behind them that no text needs.
fn layers(keys: &Keys<'_>) -> Result<(u64, Range<u64>)> {
    if let Some(stacks) = Stacks::read(keys)? {
        let layers = 2 * stacks.layers;
        return Ok((layers, layers..layers));
    }
    let own = match keys.family.front {
        Some(_) => keys.optional("decoder_block_count")?,
        None => None,
    };
    let blocks = own.map_or_else(|| keys.count("block_count"), Ok)?;
    let guessing = keys.optional("nextn_predict_layers")?.unwrap_or(0);
    let layers = blocks.checked_sub(guessing).filter(|layers| (1..=MOST_LAYERS).contains(layers));
    let layers = layers.ok_or_else(|| {
        let key = match (guessing, own) {
            (0, None) => "block_count",
            (0, Some(_)) => "decoder_block_count",
            _ => "nextn_predict_layers",
        };
        let of = if guessing == 0 { String::new() } else { format!("{guessing} of ") };
        invalid(format!("'{}' is {of}{blocks}; there are 1 to {MOST_LAYERS} layers", keys.key(key)))
    })?;
    Ok((layers, layers..blocks))
}

impl Hyper {
    /// Reads them.
    pub fn read(file: &File) -> Result<Hyper> {
        let mut hyper = Hyper::read_as(file, family(file)?)?;
        hyper.add_switch();
        Ok(hyper)
    }

    /// Those of the encoder in front of it, if it has one.
    pub fn front(&self, file: &File) -> Result<Option<Hyper>> {
        self.family.front.map(|front| Hyper::read_as(file, front)).transpose()
    }

    fn read_as(file: &File, family: &'static Family) -> Result<Hyper> {
        let keys = Keys { file, family };
        let ((layers, spare), width) = (layers(&keys)?, keys.count("embedding_length")?);
        let window = window(&keys, layers)?;
        let (attends, condensed) = Condensed::of(&keys, Attends::of_layers(&keys, width, layers)?)?;
        let mixers = Mixer::of_layers(&keys, file, layers)?;
        let ([rope, local_rope], latents, scales) = placing(&keys, [layers, width], &attends, lead(&mixers))?;
        let (epsilon, centred) = epsilon(&keys)?;
        let [embedding_scale, residual_scale, logit_scale, score_cap] = factors(&keys, width, layers)?;
        Ok(Hyper {
            family: keys.family,
            layers,
            loops: Loops::read(&keys, layers, Stacks::read(&keys)?)?,
            spare,
            width,
            vocabulary: vocabulary(file)?,
            halved_every: keys.optional("rescale_every_n_layers")?.filter(|every| *every > 0),
            epsilon,
            centred,
            flow: flow(&keys)?,
            mixers,
            rare: Rare::read(&keys, width)?,
            experts: Experts::read(&keys)?,
            paths: Paths::read(&keys)?,
            more: Additions::read(&keys, layers, width)?,
            activations: Activations::read(&keys, layers)?,
            turn: turn(&keys)?,
            turned: turned(&keys, &attends, window)?,
            local_rope,
            window,
            latents,
            condensed,
            indexer: Indexer::read(&keys, &attends, rope.turned, epsilon)?,
            temperature: Temperature::read(&keys, window)?,
            scales,
            attends,
            rope,
            clamp: keys.factor("attention.clamp_kqv")?.map(f64::abs),
            buckets: buckets(&keys)?,
            distance_bias: distance_bias(&keys, layers)?,
            trained: keys.optional("context_length")?.filter(|tokens| *tokens > 0),
            score_cap,
            logit_cap: cap(&keys, "final_logit_softcapping", keys.family.logit_cap)?,
            embedding_scale,
            residual_scale,
            logit_scale,
            suppressed: suppressed(&keys)?,
            vectors: Vectors::read(&keys)?,
        })
    }

    /// Adds the head that tells adapters behind the layers, where there are adapters.
    fn add_switch(&mut self) {
        let more = self.more.adapters.as_ref().and_then(|_| adapters::one_more(&self.attends));
        if let Some((attends, mixer)) = more {
            self.loops.order.push(self.layers);
            self.attends.push(attends);
            self.mixers.push(mixer);
            self.turned.push(false);
        }
    }

    /// The parts of a layer.
    pub fn mixer(&self, layer: u64) -> Mixer {
        self.mixers[layer as usize]
    }

    /// What a layer keeps beside keys and values.
    pub fn states_of(&self, layer: u64) -> Vec<State> {
        let own = self.mixer(layer).recurrent.map_or_else(Vec::new, |own| own.states(self.width));
        let more = self.more.ngrams.iter().filter(|ngrams| ngrams.layer == layer).flat_map(Ngrams::states);
        own.into_iter().chain(more).collect()
    }

    /// Whether some layers keep a state of one size, which cannot be cut back.
    pub fn is_recurrent(&self) -> bool {
        self.mixers.iter().any(|mixer| mixer.recurrent.is_some())
    }

    /// The heads of a layer.
    pub fn heads_of(&self, layer: u64) -> Heads {
        self.attends[layer as usize].heads
    }

    /// The layer whose keys and values a layer attends to, where they are not its own.
    pub fn shares(&self, layer: u64) -> Option<u64> {
        self.attends[layer as usize].shares
    }

    /// Whether a layer has caches.
    pub fn keeps_keys(&self, layer: u64) -> bool {
        self.mixer(layer).attends && self.shares(layer).is_none()
    }

    /// What caches hold of groups of tokens of a layer.
    pub fn groups_of(&self, layer: u64) -> Vec<(&'static str, u64)> {
        let index = self.indexer_of(layer).map(|indexer| indexer.key);
        let of = |own: &Condensed| own.held(layer, self.heads_of(layer).key, index);
        self.condensed.as_ref().map(of).unwrap_or_default()
    }

    /// The indexer of a layer, if it has one.
    pub fn indexer_of(&self, layer: u64) -> Option<&Indexer> {
        self.indexer.as_ref().filter(|indexer| indexer.own[layer as usize] && self.mixer(layer).attends)
    }

    /// The window of a layer, if it has one.
    pub fn window_of(&self, layer: u64) -> Option<u64> {
        self.window.filter(|_| self.attends[layer as usize].windowed)
    }

    /// How many keys before its own a token attends to in such a window. Those of encoders lie around the token.
    pub fn keys_before(&self, window: u64) -> u64 {
        if self.family.encoder { window / 2 } else { window.saturating_sub(1) }
    }

    /// The sizes of a layer's latent attention, if it is that.
    pub fn latent_of(&self, layer: u64) -> Option<Latent> {
        self.latents[usize::from(self.window_of(layer).is_some())]
    }

    /// The factor of a layer's scores. The head that tells adapters has none.
    pub fn scale_of(&self, layer: u64) -> f64 {
        match layer < self.layers {
            true => self.scales[usize::from(self.window_of(layer).is_some())],
            false => 1.0,
        }
    }

    /// The rotary embedding of a layer, if it has one.
    pub fn rope_of(&self, layer: u64) -> Option<&Rope> {
        let own = if self.window_of(layer).is_some() { &self.local_rope } else { &self.rope };
        self.turned[layer as usize].then_some(own)
    }
}

fn family(file: &File) -> Result<&'static Family> {
    match file.value("general.architecture") {
        Some(Value::Text(name)) => {
            FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| unknown::refused(name, file))
        }
        _ => Err(invalid("the metadata key 'general.architecture' is missing, or is no text")),
    }
}

/// The first layer that attends.
fn lead(mixers: &[Mixer]) -> usize {
    mixers.iter().position(|mixer| mixer.attends).unwrap_or(0)
}

/// What norms add to squares, and whether they take the mean away.
fn epsilon(keys: &Keys<'_>) -> Result<(f32, bool)> {
    let squares = "attention.layer_norm_rms_epsilon";
    let is_other = keys.family.squares_by_key && keys.factor(squares)?.is_some();
    let centred = keys.family.centred && !is_other;
    let name = if centred { "attention.layer_norm_epsilon" } else { squares };
    Ok((keys.float(name)?.ok_or_else(|| keys.missing(name))? as f32, centred))
}

/// What logarithms of decays are bent to be above.
fn decay_bound(keys: &Keys<'_>) -> Result<Option<f64>> {
    let name = "kda.gate_lower_bound";
    let bound = keys.float(name)?;
    if !keys.family.whole_gates {
        return Ok(bound);
    }
    match (keys.flag("kda.safe_gate")?, bound) {
        (Some(false), _) => {
            Err(unsupported(format!("decays without a bound ('{}')", keys.key("kda.safe_gate"))))
        }
        (_, Some(bound)) if bound < 0.0 => Ok(Some(bound)),
        (_, Some(bound)) => Err(invalid(format!("'{}' is {bound}", keys.key(name)))),
        (_, None) => Err(keys.missing(name)),
    }
}

/// Which layers have rotary embedding.
fn turned(keys: &Keys<'_>, attends: &[Attends], window: Option<u64>) -> Result<Vec<bool>> {
    let (family, layers) = (keys.family, attends.len() as u64);
    let by_key = !family.turns_by_key || keys.flag("rope.scaling.finetuned")?.unwrap_or(true);
    if !by_key || family.turn == Turn::Nothing || ![0, layers].contains(&family.turned_at) {
        return Ok(vec![false; attends.len()]);
    }
    if let Some(pattern) = keys.each("attention.rope_pattern", layers)? {
        return Ok(pattern.iter().map(|own| *own > 0).collect());
    }
    let plain = match family.unwindowed {
        Unwindowed::Nowhere if window.is_none() => 0,
        Unwindowed::Last if window.is_none() => layers,
        _ => family.plain_of,
    };
    let leading = match family.turned_leading {
        true => keys.optional("leading_dense_block_count")?.unwrap_or(0),
        false => 0,
    };
    let of = |(layer, attends): (u64, &Attends)| {
        let place = if family.first_is_global { layer } else { layer + 1 };
        let by_window = !family.turned_windows || window.is_none() || attends.windowed || layer < leading;
        by_window && (plain == 0 || !place.is_multiple_of(plain))
    };
    Ok((0..layers).zip(attends).map(of).collect())
}

/// How much distances count, if they do.
fn distance_bias(keys: &Keys<'_>, layers: u64) -> Result<Option<f64>> {
    let own = (keys.family.biased_at == layers).then_some(8.0);
    Ok(keys.factor("attention.max_alibi_bias")?.or(keys.family.distance_bias).or(own))
}

/// Groups of neighbours that norms of states are of.
fn norm_groups(keys: &Keys<'_>, width: u64) -> Result<u64> {
    let name = "attention.group_norm_groups";
    if !keys.family.grouped_norms {
        return Ok(1);
    }
    match keys.optional(name)?.unwrap_or(1).max(1) {
        groups if width.is_multiple_of(groups) => Ok(groups),
        groups => Err(invalid(format!("'{}' is {groups}, of {width} elements", keys.key(name)))),
    }
}

/// The factor of what norms make, where layers add to that.
fn carried(keys: &Keys<'_>) -> Result<Option<f64>> {
    let name = "residual_scale";
    match keys.family.carries_norms {
        true => keys.float(name)?.ok_or_else(|| keys.missing(name)).map(Some),
        false => Ok(None),
    }
}

fn flow(keys: &Keys<'_>) -> Result<Flow> {
    Ok(match keys.family.flow {
        _ if keys.flag("swin_norm")? == Some(true) => Flow::BehindByOwn,
        Flow::ParallelByKey => match keys.flag("use_parallel_residual")?.unwrap_or(true) {
            true => Flow::Parallel,
            false => Flow::Before,
        },
        flow => flow,
    })
}

/// What becomes of states: what the metadata say, else the mean where tokens see those behind them, and else the last token.
fn pooling(keys: &Keys<'_>) -> Result<Pooling> {
    match keys.optional("pooling_type")? {
        Some(1) => Ok(Pooling::Mean),
        Some(2) => Ok(Pooling::First),
        Some(3) => Ok(Pooling::Last),
        None | Some(0) if sees_ahead(keys)? => Ok(Pooling::Mean),
        None | Some(0) => Ok(Pooling::Last),
        Some(4) => Err(unsupported(format!(
            "a model that ranks texts ('{}' is 4); there are 0 (none), 1 (mean), 2 (first) and 3 (last)",
            keys.key("pooling_type")
        ))),
        Some(other) => Err(invalid(format!("'{}' is {other}", keys.key("pooling_type")))),
    }
}

/// Whether tokens attend to those behind them: in most encoders, and in others whose metadata say so.
fn sees_ahead(keys: &Keys<'_>) -> Result<bool> {
    let always = keys.family.encoder && !keys.family.ahead_by_key;
    Ok(always || keys.flag("attention.causal")? == Some(false))
}
