//! The step of a decoder: new tokens in, logits of some of them out, caches of keys and values kept. Of one sequence, or of several
//! with a new token each.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar, Type},
};
use halite_sizes::Size;

use super::{
    Result,
    file::{File, Tensors},
    hyper::Hyper,
    layer::{Call, Held, Place},
    read_by::leaves_alone,
    rope::Rope,
    steps::{NOBODY, Steps},
    switched::embedded_as,
};
use crate::{
    SourceLocation,
    build::{Builder, Range, RowMatrix},
    frontends::CacheFormats,
    graph::TensorId,
};

/// The table of tokens.
const TABLE: &str = "token_embd.weight";

/// The inputs of a call.
pub(super) struct Inputs {
    /// New tokens, `i32[len]`; of several sequences one each.
    pub tokens: TensorId,
    /// Their places in the sequence, which follow each other, `i64[len]`; of several sequences the place in each, or [`NOBODY`].
    pub positions: TensorId,
    /// Whose they are, and which of them have logits.
    pub rows: Rows,
    /// What each layer keeps.
    pub layers: Vec<Held>,
    /// How they hold keys and values.
    pub held: CacheFormats,
    /// Tokens that caches have room for.
    pub context: u64,
    /// How many tokens an encoder read, `i32[sequences]`, where there is one in front.
    pub source: Option<TensorId>,
}

/// Whose the new tokens of a call are, and which of them have logits.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// Tokens of one sequence, of which these have, by number, `i32[rows]`.
    Of(TensorId),
    /// Tokens of one sequence, which all have.
    All,
    /// One of each of several sequences, which all have.
    Sequences,
}

impl Rows {
    /// The numbers of those that have logits, where not all have.
    fn numbers(self) -> Option<TensorId> {
        if let Rows::Of(rows) = self { Some(rows) } else { None }
    }
}

/// What a call gives.
pub(super) struct Results {
    /// `f32[rows, vocabulary]`.
    pub logits: TensorId,
    pub layers: Vec<Held>,
}

/// Builds the step.
pub(super) fn build(b: &mut Builder, file: &File, hyper: &Hyper, inputs: &Inputs) -> Result<Results> {
    let tensors = Tensors::of(file);
    b.at(SourceLocation::new("embedding"));
    let mut call = call(b, &tensors, hyper, inputs)?;
    let positions = b.reshape_to(call.positions, &[call.rows()])?;
    let (x, table) = embedded(b, &tensors, hyper, inputs.tokens, positions)?;
    let x = call.first_states(b, inputs.tokens, x)?;
    // Of one token, one row is all.
    let is_one = |id: TensorId| {
        let count = b.sizes(id)[0];
        count.is_constant() && count == 1
    };
    let wanted = inputs.rows.numbers().filter(|rows| ![inputs.tokens, *rows].into_iter().all(is_one));
    let (x, layers) = call.behind_layers(b, x, &inputs.layers, wanted)?;
    b.at(SourceLocation::new("output"));
    let x = call.last_norm(b, x)?;
    let mut logits = match tensors.find("output.weight") {
        Some(_) => {
            let made = tensors.product(b, x, "output.weight", [hyper.vocabulary, hyper.width])?;
            tensors.rescaled(b, made, "output")?
        }
        None => {
            let x = tensors.turned(b, x, TABLE)?;
            b.row_product(x, &table)?
        }
    };
    let bias = "output.bias";
    let is_left = leaves_alone(hyper.family.name, bias);
    if let Some(bias) = tensors.vector(b, bias, hyper.vocabulary)?.filter(|_| !is_left) {
        logits = b.binary(Function::Add, logits, bias)?;
    }
    let logits = call.scaled(b, logits, hyper.logit_scale)?;
    let logits = capped(b, logits, hyper.logit_cap)?;
    let logits = without_suppressed(b, logits, hyper)?;
    tensors.all_used(hyper.family, hyper.spare.clone())?;
    Ok(Results { logits, layers })
}

/// The embeddings of tokens, with those of their places if the model has such; and the table of tokens.
pub(super) fn embedded(
    b: &mut Builder,
    tensors: &Tensors<'_>,
    hyper: &Hyper,
    tokens: TensorId,
    positions: TensorId,
) -> Result<(TensorId, RowMatrix)> {
    let table = tensors.matrix(b, TABLE, [hyper.vocabulary, hyper.width])?;
    let tokens = embedded_as(b, hyper, tokens)?;
    let x = b.rows_by_index(&table, tokens)?;
    let mut x = tensors.turned_back(b, x, TABLE)?;
    if let Some([rows, _]) = tensors.dims("position_embd.weight") {
        let places = tensors.matrix(b, "position_embd.weight", [*rows, hyper.width])?;
        let own = b.rows_by_index(&places, positions)?;
        x = b.binary(Function::Add, x, own)?;
    }
    Ok((x, table))
}

/// What all layers share.
fn call<'a>(
    b: &mut Builder,
    tensors: &'a Tensors<'a>,
    hyper: &'a Hyper,
    inputs: &Inputs,
) -> Result<Call<'a>> {
    let count = b.sizes(inputs.tokens)[0];
    let dims = match inputs.rows {
        Rows::Of(_) | Rows::All => [Size::constant(1), count],
        Rows::Sequences => [count, Size::constant(1)],
    };
    let steps = match hyper.is_recurrent() {
        true => {
            let places = b.reshape_to(inputs.positions, &dims)?;
            Some(Steps::of(b, places)?)
        }
        false => None,
    };
    let (place, positions, [sequences, len]) = match inputs.rows {
        Rows::Of(_) | Rows::All if steps.is_some() => {
            let (place, positions) = place_of_filled(b, inputs, count)?;
            (place, b.reshape_to(positions, &dims)?, dims)
        }
        Rows::Of(_) | Rows::All => {
            (place_of_one(b, inputs, count)?, b.reshape_to(inputs.positions, &dims)?, dims)
        }
        Rows::Sequences => {
            let (place, positions) = places_of_several(b, inputs)?;
            (place, b.reshape_to(positions, &dims)?, dims)
        }
    };
    let tables = tables(b, tensors, hyper, inputs.context)?;
    let text = Call::of_text(tensors, hyper, positions, len, inputs.source);
    let (keys, place, held) = (inputs.context.into(), Some(place), inputs.held);
    Ok(Call { sequences, keys, place, steps, held, tables, ..text })
}

/// Where the tokens of one sequence go.
fn place_of_one(b: &mut Builder, inputs: &Inputs, len: Size) -> Result<Place> {
    let place = |b: &mut Builder, at: Size| {
        let range = Range { start: at, step: 1, count: Size::constant(1) };
        let place = b.slice(inputs.positions, &[range])?;
        b.cast(place, DType::I32)
    };
    let start = place(b, Size::constant(0))?;
    let last = place(b, len - 1)?;
    let one = Operand::Constant(Scalar::Int(1, DType::I32));
    let lengths = b.map(&[last], DType::I32, |p, x| p.call(Function::Add, &[x[0], one]))?;
    Ok(Place { start, lengths })
}

/// Where the tokens of one sequence go of which those at the end may be nobody's, and places that tables have.
fn place_of_filled(b: &mut Builder, inputs: &Inputs, len: Size) -> Result<(Place, TensorId)> {
    let first = Range { start: Size::constant(0), step: 1, count: Size::constant(1) };
    let start = b.slice(inputs.positions, &[first])?;
    let start = b.cast(start, DType::I32)?;
    let len = b.computed(DType::I32, &[1], vec![len])?;
    let lengths = b.binary(Function::Add, start, len)?;
    Ok((Place { start, lengths }, b.at_least(inputs.positions, 0)?))
}

/// Where the token of each of several sequences goes, and its place as a number that tables have. A token of nobody goes behind the end
/// of the cache, where nothing is written, and attends to one key, so that it costs little.
fn places_of_several(b: &mut Builder, inputs: &Inputs) -> Result<(Place, TensorId)> {
    let int = |value: i64, dtype: DType| Operand::Constant(Scalar::Int(value, dtype));
    let own = inputs.positions;
    let positions = b.map(&[own], DType::I64, |p, x| p.call(Function::Max, &[x[0], int(0, DType::I64)]))?;
    let end = int(inputs.context as i64, DType::I32);
    let start = b.map(&[own], DType::I32, |p, x| {
        let is_nobody = p.call(Function::Eq, &[x[0], int(NOBODY, DType::I64)]);
        let place = p.cast(Type::Of(DType::I32), x[0]);
        p.call(Function::Select, &[is_nobody, end, place])
    })?;
    let lengths = b.map(&[positions], DType::I32, |p, x| {
        let place = p.cast(Type::Of(DType::I32), x[0]);
        p.call(Function::Add, &[place, int(1, DType::I32)])
    })?;
    Ok((Place { start, lengths }, positions))
}

/// Tables of rotary embedding for layers that attend to all keys, and for those that attend to a window.
pub(super) fn tables(
    b: &mut Builder,
    tensors: &Tensors<'_>,
    hyper: &Hyper,
    context: u64,
) -> Result<[Option<[TensorId; 2]>; 2]> {
    let windows = (0..hyper.layers).filter(|layer| hyper.window_of(*layer).is_some()).count() as u64;
    let divisors = divisors(tensors, hyper, context)?;
    if (0..hyper.layers).all(|layer| hyper.rope_of(layer).is_none()) {
        return Ok([None, None]);
    }
    let mut tables = |rope: &Rope, divisors: Option<&[f32]>| match rope.turned {
        0 => Ok(None),
        _ => rope.tables(b, context, divisors).map(Some),
    };
    // Of factors for more pairs the first are meant.
    let pairs = (hyper.rope.turned / 2) as usize;
    let own_divisors =
        divisors.as_deref().map(|own| match hyper.family.global_factors && own.len() > pairs {
            true => &own[..pairs],
            false => own,
        });
    let all = tables(&hyper.rope, own_divisors)?;
    let local_divisors = divisors.as_deref().filter(|_| !hyper.family.global_factors);
    let is_other = hyper.local_rope != hyper.rope || local_divisors.is_some() != divisors.is_some();
    let local = match windows > 0 && is_other {
        true => tables(&hyper.local_rope, local_divisors)?,
        false => all,
    };
    Ok([all, local])
}

/// What divides the angles of rotary embedding: one list, or one for short and one for long contexts.
fn divisors(tensors: &Tensors<'_>, hyper: &Hyper, context: u64) -> Result<Option<Vec<f32>>> {
    let name = "rope_freqs.weight";
    let one = tensors.floats(name)?.filter(|_| !leaves_alone(hyper.family.name, name));
    if !hyper.family.long_factors {
        return Ok(one);
    }
    let (short, long) =
        (tensors.floats("rope_factors_short.weight")?, tensors.floats("rope_factors_long.weight")?);
    // As in llama.cpp, whose contexts are multiples of this length.
    let length = context.next_multiple_of(256);
    let is_long = hyper.rope.trained.is_some_and(|trained| length > trained);
    Ok(if is_long { long } else { short }.or(one))
}

/// Logits of which those of tokens that are never written are minus infinity, so that nobody chooses these tokens, here or on the host.
fn without_suppressed(b: &mut Builder, logits: TensorId, hyper: &Hyper) -> Result<TensorId> {
    if hyper.suppressed.is_empty() {
        return Ok(logits);
    }
    let number = |token: u64| if hyper.suppressed.contains(&token) { f32::NEG_INFINITY } else { 0.0 };
    let bytes: Vec<u8> = (0..hyper.vocabulary).flat_map(|token| number(token).to_le_bytes()).collect();
    let mask = b.constant("suppressed", DType::F32.into(), &[hyper.vocabulary], bytes.into())?;
    b.binary(Function::Add, logits, mask)
}

/// Logits between minus and plus a number, where there is one.
fn capped(b: &mut Builder, logits: TensorId, cap: Option<f64>) -> Result<TensorId> {
    let Some(cap) = cap else { return Ok(logits) };
    let cap = Operand::Constant(Scalar::Float(f64::from(cap as f32)));
    b.map(&[logits], DType::F32, |p, x| {
        let part = p.call(Function::Div, &[x[0], cap]);
        let bent = p.call(Function::Tanh, &[part]);
        p.call(Function::Mul, &[bent, cap])
    })
}
