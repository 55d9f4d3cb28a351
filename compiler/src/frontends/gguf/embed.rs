//! What becomes of a text as a whole: all its tokens in, one vector out. No caches.

use halite_ops::{DType, expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Result,
    family::Flow,
    file::{File, Tensors},
    graph::{embedded, tables},
    hyper::{Hyper, Pooling},
    layer::{Call, Held},
};
use crate::{
    SourceLocation,
    build::{Builder, Range},
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
    let x = encoded(b, &tensors, hyper, tokens, None)?;
    let pooled = pooled(b, hyper, x, b.sizes(tokens)[0])?;
    let pooled = projected(b, &tensors, hyper, pooled)?;
    tensors.all_used(hyper.family, hyper.spare.clone())?;
    Ok([x, pooled])
}

/// The states of a text's tokens, `f32[len, width]`. Of a text that is filled up, `count` of them count, `i32[1]`.
pub(super) fn encoded(
    b: &mut Builder,
    tensors: &Tensors<'_>,
    hyper: &Hyper,
    tokens: TensorId,
    count: Option<TensorId>,
) -> Result<TensorId> {
    b.at(SourceLocation::new("embedding"));
    let len = b.sizes(tokens)[0];
    let positions = b.line_of_places(DType::I64, len)?;
    let (mut x, _) = embedded(b, tensors, hyper, tokens, positions)?;
    if tensors.dims("token_types.weight").is_some() {
        x = of_first_kind(b, tensors, hyper, x)?;
    }
    let tables = tables(b, tensors, hyper, hyper.longest_text())?;
    let positions = b.reshape_to(positions, &[Size::constant(1), len])?;
    let mut call = Call { tables, ..Call::of_text(tensors, hyper, positions, len, count) };
    let x = call.first_states(b, tokens, x)?;
    let held = vec![Held::default(); hyper.loops.order.len()];
    let (mut x, _) = call.behind_layers(b, x, &held, None)?;
    b.at(SourceLocation::new("output"));
    if hyper.flow != Flow::BehindSum {
        x = call.last_norm(b, x)?;
    }
    // Weights that make logits have no part in this.
    for name in ["output.weight", "output.bias", "output.scale", "output.input_scale"] {
        tensors.find(name);
    }
    Ok(x)
}

/// Matrices behind a text's vector, in their order.
const PROJECTIONS: [&str; 2] = ["dense_2.weight", "dense_3.weight"];

/// Those of a model. One of each state is one of their mean, and of one of them.
fn projections(hyper: &Hyper) -> impl DoubleEndedIterator<Item = &'static str> {
    hyper.family.projects.then_some("output.weight").into_iter().chain(PROJECTIONS)
}

/// Elements of a text's vector: those of a state, unless there are projections behind it.
pub(super) fn vector_width(file: &File, hyper: &Hyper) -> u64 {
    let last = projections(hyper).rev().find_map(|name| file.dims(name)?.first().copied());
    last.unwrap_or(hyper.width)
}

/// A text's vector behind the projections that there are.
fn projected(b: &mut Builder, tensors: &Tensors<'_>, hyper: &Hyper, x: TensorId) -> Result<TensorId> {
    let (mut x, mut length) = (x, hyper.width);
    for name in projections(hyper) {
        let Some([rows, _]) = tensors.dims(name) else { continue };
        let matrix = tensors.matrix(b, name, [*rows, length])?;
        let row = b.reshape(x, &[1, length])?;
        let made = b.row_product(row, &matrix)?;
        let made = tensors.rescaled(b, made, name.trim_end_matches(".weight"))?;
        (x, length) = (b.reshape(made, &[*rows])?, *rows);
    }
    Ok(x)
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
    match hyper.vectors.pooling {
        Pooling::Mean => b.reduce(ReduceKind::Mean, x, &[0], false),
        Pooling::First => row(b, Size::constant(0)),
        Pooling::Last => row(b, len - 1),
    }
    .and_then(|made| b.cast(made, DType::F32))
}
