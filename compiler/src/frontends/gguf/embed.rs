//! What becomes of a text as a whole: all its tokens in, one vector out. No caches.

use std::cell::RefCell;

use halite_ops::{DType, expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Result,
    file::{File, Tensors},
    graph::{embedded, tables},
    hyper::{Hyper, Pooling},
    layer::Call,
};
use crate::{
    SourceLocation,
    build::{Builder, Range},
    frontends::CacheFormats,
    graph::TensorId,
};

/// Most tokens of a text, where the model was trained for as many.
const MOST_TOKENS: u64 = 1 << 15;

impl Hyper {
    /// Tokens of the longest text that a vector can be made of.
    pub fn longest_text(&self) -> u64 {
        self.trained.map_or(MOST_TOKENS, |trained| trained.min(MOST_TOKENS))
    }
}

/// Builds it: the states of a text's tokens, `f32[len, width]`, and the text's, `f32[width]`.
pub(super) fn build(b: &mut Builder, file: &File, hyper: &Hyper, tokens: TensorId) -> Result<[TensorId; 2]> {
    let tensors = Tensors::of(file);
    b.at(SourceLocation::new("embedding"));
    let len = b.sizes(tokens)[0];
    let positions = b.line_of_places(DType::I64, len)?;
    let (mut x, _) = embedded(b, &tensors, hyper, tokens, positions)?;
    if tensors.dims("token_types.weight").is_some() {
        x = of_first_kind(b, &tensors, hyper, x)?;
    }
    let tables = tables(b, &tensors, hyper, hyper.longest_text())?;
    let positions = b.reshape_to(positions, &[Size::constant(1), len])?;
    let call = Call {
        tensors: &tensors,
        hyper,
        sequences: Size::constant(1),
        len,
        keys: len,
        positions,
        place: None,
        held: CacheFormats::default(),
        tables,
        masks: RefCell::default(),
    };
    if tensors.find("token_embd_norm.weight").is_some() {
        x = call.model_norm(b, x, "token_embd_norm")?;
    }
    x = call.scaled(b, x, hyper.embedding_scale)?;
    for layer in 0..hyper.layers {
        (x, _) = call.layer(b, x, layer, None, None)?;
    }
    b.at(SourceLocation::new("output"));
    if !hyper.family.encoder {
        x = call.model_norm(b, x, "output_norm")?;
    }
    // Weights that make logits have no part in this.
    for name in ["output.weight", "output.bias"] {
        tensors.find(name);
    }
    tensors.all_used(hyper.family.name, hyper.spare.clone())?;
    let pooled = pooled(b, hyper, x, len)?;
    Ok([x, pooled])
}

/// `x` with what says that all tokens are of the first kind.
fn of_first_kind(b: &mut Builder, tensors: &Tensors<'_>, hyper: &Hyper, x: TensorId) -> Result<TensorId> {
    let kinds = match tensors.dims("token_types.weight") {
        Some([kinds, _]) => *kinds,
        // A single one is kept as a vector.
        _ => {
            let kind = tensors.vector(b, "token_types.weight", hyper.width)?;
            return kind.map_or(Ok(x), |kind| b.binary(Function::Add, x, kind));
        }
    };
    let table = tensors.matrix(b, "token_types.weight", [kinds, hyper.width])?;
    let first = b.ints_constant(&[0])?;
    let kind = b.rows_by_index(&table, first)?;
    b.binary(Function::Add, x, kind)
}

fn pooled(b: &mut Builder, hyper: &Hyper, x: TensorId, len: Size) -> Result<TensorId> {
    let row = |b: &mut Builder, at: Size| {
        let row = Range { start: at, step: 1, count: Size::constant(1) };
        let row = b.slice(x, &[row, Range::all(hyper.width.into())])?;
        b.reshape(row, &[hyper.width])
    };
    match hyper.pooling {
        Pooling::Mean => b.reduce(ReduceKind::Mean, x, &[0], false),
        Pooling::First => row(b, Size::constant(0)),
        Pooling::Last => row(b, len - 1),
    }
    .and_then(|made| b.cast(made, DType::F32))
}
