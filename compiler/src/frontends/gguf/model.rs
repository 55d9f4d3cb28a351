//! The front end for GGUF files: what the model takes and gives, and the way to a graph.

use halite_formats::gguf;
use halite_ops::{DType, blocks::BlockFormat, cached};
use halite_sizes::Size;

use super::{
    Result, crossed, embed,
    file::{File, unsupported},
    graph::{self, Inputs, Rows},
    hyper::Hyper,
    layer::Held,
};
use crate::{
    CHOSEN, CompileError, Control, SAMPLING, Stage,
    build::Builder,
    choice,
    frontends::{CacheFormats, FrontEnd, Recognition, Source, SourceModel},
    graph::{ElementType, Graph, OpenSizes, TensorId},
    signature::{Arity, Bindings, Dim, Signature},
};

/// The front end for GGUF files.
#[derive(Debug)]
pub struct Gguf;

/// The function that writes: a step of a decoder.
const MAIN: &str = "main";
/// The function that writes several texts at once: a step of each, a token each.
pub const BATCH: &str = "batch";
/// The same, which draws the next tokens and gives no logits.
pub const BATCH_SAMPLE: &str = "batch_sample";
/// The function that tells what comes behind each token of a text that somebody else wrote on: a step of one sequence.
pub const VERIFY: &str = "verify";
/// The function of models with an encoder in front that reads a text, to which what is written attends.
pub const ENCODE: &str = "encode";
/// How many tokens such a text has, with those that fill it up.
const SOURCE: &str = "source";
/// The function that makes a vector of a text.
const EMBED: &str = "embed";
/// How many new tokens a call has.
const TOKENS: &str = "tokens";
/// How many of them have logits.
const ROWS: &str = "rows";
/// How many sequences have a new token.
const SEQUENCES: &str = "batch";
/// How many tokens a call looks at that somebody else wrote.
const DRAFTED: &str = "verify";
/// How many tokens caches have room for.
const CONTEXT: &str = "context";

impl FrontEnd for Gguf {
    fn id(&self) -> &'static str {
        "gguf"
    }

    fn name(&self) -> &'static str {
        "GGUF"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gguf"]
    }

    fn recognizes(&self, start: &[u8]) -> Recognition {
        match gguf::is_gguf(start) {
            true => Recognition::Certain,
            false => Recognition::No,
        }
    }

    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>> {
        control.check(Stage::Reading)?;
        let file = File::read(&source, control)?;
        let hyper = Hyper::read(&file)?;
        let encoder = hyper.front(&file)?;
        if encoder.is_some() && hyper.vectors.sees_ahead {
            let key = format!("{}.attention.causal", hyper.family.name);
            return Err(unsupported(format!(
                "a decoder whose tokens see those behind them ('{key}' is false)"
            )));
        }
        let name = match file.value("general.name") {
            Some(gguf::Value::Text(name)) => name.clone(),
            _ => String::new(),
        };
        Ok(Box::new(Model { file, hyper, encoder, name, held: CacheFormats::default(), further: Vec::new() }))
    }
}

/// A GGUF model.
#[derive(Debug)]
struct Model {
    file: File,
    hyper: Hyper,
    /// The numbers of the encoder in front, if there is one.
    encoder: Option<Hyper>,
    name: String,
    /// How caches hold keys and values.
    held: CacheFormats,
    /// Its functions that are there only where they are asked for.
    further: Vec<&'static str>,
}

/// What a function does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// A step of one sequence.
    Step,
    /// A step of each of several sequences, which draws their next tokens or finds the most likely ones.
    Batch { draws: bool },
    /// A step of one sequence with the logits and the most likely token behind each token.
    Verify,
    /// The text that an encoder reads for a sequence.
    Encode,
    /// A text's vector.
    Embed,
}

impl Does {
    /// The dimension of new tokens.
    fn count(self) -> &'static str {
        match self {
            Does::Step | Does::Embed => TOKENS,
            Does::Encode => SOURCE,
            Does::Batch { .. } => SEQUENCES,
            Does::Verify => DRAFTED,
        }
    }

    /// Whether it gives logits, and the tokens that it chose.
    fn gives(self) -> [bool; 2] {
        [
            ![Does::Batch { draws: true }, Does::Encode].contains(&self),
            matches!(self, Does::Batch { .. } | Does::Verify),
        ]
    }
}

fn port(name: String, element: DType, dims: Vec<Dim>) -> Signature {
    let element = Some(element.into());
    Signature { name, arity: Arity::Tensor, is_optional: false, element, dims: Some(dims) }
}

impl Model {
    /// What layers keep of so many sequences, before or after a call: the caches of those that attend, and other states.
    fn caches(&self, when: &str, sequences: Dim) -> impl Iterator<Item = Signature> {
        let h = &self.hyper;
        let row = |format: Option<BlockFormat>, dim: u64| match format {
            None => (DType::F16, dim),
            // That there are such rows was checked when the format was chosen.
            Some(format) => (DType::U32, cached::row_words(format, dim).unwrap_or(0)),
        };
        let when = when.to_owned();
        let source = self.encoder.as_ref();
        let source = source.map(|_| port(format!("{when}.source"), DType::I32, vec![sequences.clone()]));
        let layers = h.loops.order.iter().enumerate().flat_map(move |(place, layer)| {
            let layer = *layer;
            let own = h.heads_of(layer);
            let (heads, keys, values) =
                (own.kv, row(self.held.keys, own.key), row(self.held.values, own.value));
            let cache = |(what, (element, dim)): (&str, (DType, u64))| {
                let dims =
                    [sequences.clone(), Dim::Known(heads), Dim::Symbol(CONTEXT.into()), Dim::Known(dim)];
                port(format!("{when}.{place}.{what}"), element, dims.into())
            };
            let mut own: Vec<Signature> = Vec::new();
            let sizes = [("key", keys), ("value", values)];
            own.extend(sizes.into_iter().filter(|_| h.keeps_keys(layer)).map(cache));
            let index = h.indexer_of(layer).map(|indexer| {
                let dims = [Dim::Known(1), Dim::Symbol(CONTEXT.into()), Dim::Known(indexer.held())];
                let dims = [vec![sequences.clone()], dims.to_vec()].concat();
                port(format!("{when}.{place}.index"), DType::F16, dims)
            });
            own.extend(index);
            own.extend(h.groups_of(layer).into_iter().map(|(name, elements)| {
                let dims = [Dim::Known(1), Dim::Symbol(CONTEXT.into()), Dim::Known(elements)];
                let dims = [vec![sequences.clone()], dims.to_vec()].concat();
                port(format!("{when}.{place}.{name}"), DType::F16, dims)
            }));
            let crossed = [("cross_key", keys), ("cross_value", values)];
            own.extend(crossed.into_iter().filter(|_| self.encoder.is_some()).map(cache));
            own.extend(h.states_of(layer).into_iter().map(|state| {
                let dims = vec![sequences.clone(), Dim::Known(state.row())];
                port(format!("{when}.{place}.{}", state.name), DType::F32, dims)
            }));
            own
        });
        layers.chain(source)
    }

    /// Inputs or outputs of what layers keep, layer by layer.
    fn by_layer(&self, all: &[TensorId]) -> Vec<Held> {
        let mut all = all.iter().copied();
        let mut one = |layer: u64| {
            let pair = |all: &mut dyn Iterator<Item = TensorId>, is_there: bool| match is_there {
                true => all.next().zip(all.next()).map(|(keys, values)| [keys, values]),
                false => None,
            };
            let caches = pair(&mut all, self.hyper.keeps_keys(layer));
            let index = self.hyper.indexer_of(layer).and_then(|_| all.next());
            let groups = all.by_ref().take(self.hyper.groups_of(layer).len()).collect();
            let crossed = pair(&mut all, self.encoder.is_some());
            let states = all.by_ref().take(self.hyper.states_of(layer).len()).collect();
            Held { caches, index, groups, crossed, states }
        };
        self.hyper.loops.order.iter().map(|layer| one(*layer)).collect()
    }

    /// What a function does. Encoders have only that which makes vectors, and decoders have it that are said to be for that.
    fn does(&self, function: &str) -> Result<Does> {
        let all = self.functions();
        match all.iter().find(|own| *own == function).map(String::as_str) {
            Some(EMBED) => Ok(Does::Embed),
            Some(BATCH) => Ok(Does::Batch { draws: false }),
            Some(BATCH_SAMPLE) => Ok(Does::Batch { draws: true }),
            Some(VERIFY) => Ok(Does::Verify),
            Some(ENCODE) => Ok(Does::Encode),
            Some(_) => Ok(Does::Step),
            None => {
                let reason = format!("there is no function '{function}'; there are: {}", all.join(", "));
                Err(CompileError::Request(reason))
            }
        }
    }

    fn signatures(&self, does: Does) -> Vec<Signature> {
        let symbol = |name: &str| vec![Dim::Symbol(name.to_owned())];
        let count = does.count();
        let tokens = port("tokens".into(), DType::I32, symbol(count));
        let positions = || port("positions".into(), DType::I64, symbol(count));
        let caches = |sequences| self.caches("past", sequences);
        match does {
            Does::Embed => vec![tokens],
            Does::Verify => [tokens, positions()].into_iter().chain(caches(Dim::Known(1))).collect(),
            Does::Batch { draws } => {
                let sampling = || port(SAMPLING.into(), DType::F32, vec![several(), Dim::Known(5)]);
                let sampling = draws.then(sampling);
                [tokens, positions()].into_iter().chain(sampling).chain(caches(several())).collect()
            }
            Does::Encode => {
                let count = port("count".into(), DType::I32, vec![Dim::Known(1)]);
                [tokens, count].into_iter().chain(caches(Dim::Known(1))).collect()
            }
            Does::Step => {
                let rows = port("rows".into(), DType::I32, symbol(ROWS));
                [tokens, positions(), rows].into_iter().chain(caches(Dim::Known(1))).collect()
            }
        }
    }

    /// The graph of a text's vector.
    fn vector(&self, b: &mut Builder, tokens: TensorId) -> Result<()> {
        let (len, longest) = (b.sizes(tokens)[0], self.hyper.longest_text());
        if len == 0 || len > longest {
            let reason = format!("a text of {len} tokens; the model takes 1 to {longest}");
            return Err(CompileError::Request(reason));
        }
        let [states, vector] = embed::build(b, &self.file, &self.hyper, tokens)?;
        b.output("embedding", vector);
        b.output("states", states);
        Ok(())
    }

    /// The graph for inputs of these sizes, of which some may be open.
    fn build(
        &self,
        b: &mut Builder,
        does: Does,
        inputs: &[Signature],
        shapes: &[Vec<Size>],
        bound: &Bindings,
    ) -> Result<()> {
        let mut ids: Vec<TensorId> = Vec::new();
        for (signature, dims) in inputs.iter().zip(shapes) {
            ids.push(input(b, signature, dims, bound)?);
        }
        if does == Does::Embed {
            return self.vector(b, ids[0]);
        }
        let (further, rows) = match does {
            Does::Step => (Some(ids[2]), Rows::Of(ids[2])),
            Does::Batch { draws } => (draws.then(|| ids[2]), Rows::Sequences),
            Does::Verify | Does::Embed | Does::Encode => (None, Rows::All),
        };
        let layers = self.by_layer(&ids[2 + usize::from(further.is_some())..]);
        let keys = layers.iter().find_map(|held| held.caches).map(|[keys, _]| keys);
        // Without attention there is nothing that a context would bound.
        let context = keys.map_or(1, |keys| b.dims(keys)[2]);
        if context == 0 || b.sizes(ids[0])[0] == 0 {
            return Err(CompileError::Request("the context and the tokens of a call are at least 1".into()));
        }
        if does == Does::Encode {
            return self.read_text(b, [ids[0], ids[1]], &layers);
        }
        let source = self.encoder.as_ref().and(ids.last().copied());
        let given =
            Inputs { tokens: ids[0], positions: ids[1], rows, layers, held: self.held, context, source };
        let made = graph::build(b, &self.file, &self.hyper, &given)?;
        let [has_logits, chooses] = does.gives();
        let chosen = match (does, further) {
            (Does::Batch { draws: true }, Some(sampling)) => Some(choice::drawn(b, made.logits, sampling)?),
            _ if chooses => Some(choice::most_likely(b, made.logits)?),
            _ => None,
        };
        if has_logits {
            b.output("logits", made.logits);
        }
        if let Some(chosen) = chosen {
            b.output(CHOSEN, chosen);
        }
        self.keep(b, made.layers, source);
        Ok(())
    }

    /// The graph of an encoder that reads a text for a sequence.
    fn read_text(&self, b: &mut Builder, [tokens, count]: [TensorId; 2], layers: &[Held]) -> Result<()> {
        let Some(encoder) = &self.encoder else { return Err(b.invalid("there is no encoder")) };
        let source = crossed::Source { tokens, count, held: self.held };
        let made = crossed::build(b, &self.file, [encoder, &self.hyper], &source, layers)?;
        self.keep(b, made, Some(count));
        Ok(())
    }

    /// Gives what layers keep.
    fn keep(&self, b: &mut Builder, layers: Vec<Held>, source: Option<TensorId>) {
        let of = |held: Held| {
            let caches = held.caches.into_iter().flatten().chain(held.index).chain(held.groups);
            caches.chain(held.crossed.into_iter().flatten()).chain(held.states).collect::<Vec<_>>()
        };
        let kept = layers.into_iter().flat_map(of).chain(source);
        for (port, id) in self.caches("present", Dim::Known(1)).zip(kept) {
            b.output(&port.name, id);
        }
    }
}

/// So many sequences as there are.
fn several() -> Dim {
    Dim::Symbol(SEQUENCES.into())
}

/// An input, whose elements may have been promised.
fn input(b: &mut Builder, signature: &Signature, dims: &[Size], bound: &Bindings) -> Result<TensorId> {
    let element: ElementType = signature.element.expect("the signature was made with a type");
    match bound.values.get(&signature.name) {
        Some(value) if value.element != element => {
            Err(CompileError::Request(format!("a value of type {} is given for {signature}", value.element)))
        }
        Some(value) => {
            let dims: Vec<u64> = dims.iter().map(|size| size.exact()).collect();
            b.bound_input(&signature.name, element, &dims, value.bytes.clone())
        }
        None => b.input_of(&signature.name, element, dims),
    }
}

impl SourceModel for Model {
    fn name(&self) -> &str {
        &self.name
    }

    fn functions(&self) -> Vec<String> {
        let main = (!self.hyper.vectors.sees_ahead).then_some(MAIN);
        let further = main.into_iter().flat_map(|_| self.further.iter().copied());
        let encode = self.encoder.as_ref().map(|_| ENCODE);
        let is_named = self.hyper.vectors.is_named && encode.is_none();
        let embed = (self.hyper.vectors.sees_ahead || is_named).then_some(EMBED);
        main.into_iter().chain(encode).chain(embed).chain(further).map(str::to_owned).collect()
    }

    fn inputs(&self, function: &str) -> Result<Vec<Signature>> {
        Ok(self.signatures(self.does(function)?))
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        let width = Dim::Known(self.hyper.width);
        let does = self.does(function)?;
        if does == Does::Embed {
            let states = vec![Dim::Symbol(TOKENS.into()), width.clone()];
            let vector = Dim::Known(embed::vector_width(&self.file, &self.hyper));
            return Ok(vec![
                port("embedding".into(), DType::F32, vec![vector]),
                port("states".into(), DType::F32, states),
            ]);
        }
        let logits = |rows| port("logits".into(), DType::F32, vec![rows, Dim::Known(self.hyper.vocabulary)]);
        let rows = || Dim::Symbol(if does == Does::Step { ROWS } else { does.count() }.to_owned());
        let [has_logits, chooses] = does.gives();
        let chosen = chooses.then(|| port(CHOSEN.into(), DType::I32, vec![rows()]));
        let own = has_logits.then(|| logits(rows())).into_iter().chain(chosen);
        let sequences = if matches!(does, Does::Batch { .. }) { several() } else { Dim::Known(1) };
        Ok(own.chain(self.caches("present", sequences)).collect())
    }

    fn hold_caches(&mut self, formats: CacheFormats) -> Result<()> {
        let h = &self.hyper;
        let all = (0..h.layers).filter(|layer| h.keeps_keys(*layer)).map(|layer| h.heads_of(layer));
        for (what, format, dim) in
            all.flat_map(|heads| [("keys", formats.keys, heads.key), ("values", formats.values, heads.value)])
        {
            if let Some(Err(reason)) = format.map(|format| cached::row_words(format, dim)) {
                return Err(unsupported(format!("a cache of {what} of another type than f16: {reason}")));
            }
        }
        self.held = formats;
        Ok(())
    }

    fn decode_batches(&mut self, draw: bool) -> Result<()> {
        if self.encoder.is_some() {
            let reason = "steps of several sequences at once, in a model with an encoder in front";
            return Err(unsupported(format!("{reason} ('{}')", self.hyper.family.name)));
        }
        self.further.push(BATCH);
        self.further.extend(draw.then_some(BATCH_SAMPLE));
        Ok(())
    }

    fn verify_drafts(&mut self) -> Result<()> {
        if self.hyper.is_recurrent() {
            let reason = "tokens that another model drafted, in a model with states that cannot be cut back";
            return Err(unsupported(format!("{reason} ('{}')", self.hyper.family.name)));
        }
        if self.encoder.is_some() {
            let reason = "tokens that another model drafted, in a model with an encoder in front";
            return Err(unsupported(format!("{reason} ('{}')", self.hyper.family.name)));
        }
        self.further.push(VERIFY);
        Ok(())
    }

    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        let does = self.does(function)?;
        let inputs = self.signatures(does);
        let shapes = bindings.resolve(&inputs)?;
        let open = bindings.open_shapes(&inputs, &shapes);
        let known =
            || shapes.iter().map(|dims| dims.iter().map(|size| Size::from(*size)).collect()).collect();
        let dims: Vec<Vec<Size>> = open.as_ref().map_or_else(known, |open| open.shapes.clone());
        let _entered = open.as_ref().map(|open| open.trace.enter());
        let mut b = Builder::controlled(control);
        b.bind_at_most(bindings.largest_binding);
        self.build(&mut b, does, &inputs, &dims, bindings)?;
        let mut graph = b.finish()?;
        graph.open =
            open.map(|open| OpenSizes { trace: open.trace, symbols: open.symbols, data: Vec::new() });
        Ok(graph)
    }
}
