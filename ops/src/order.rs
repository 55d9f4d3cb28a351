//! The order of elements, which sorting, the first k, and places of extremes go by, and the dispatches that sort.

use std::cmp::Ordering;

use halite_sizes::Size;

use crate::{DType, TensorDesc, Values, lines::Lines};

/// Types whose elements have an order here, numbered as in `include/keys.glsl`.
pub const ORDERED: [DType; 7] =
    [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8];

/// The reason when elements or places cannot have these types.
pub fn check_types(dtype: DType, indices: DType) -> Result<(), String> {
    if !ORDERED.contains(&dtype) {
        return Err(format!("elements of type {dtype} cannot be put in order"));
    }
    if !matches!(indices, DType::I32 | DType::I64) {
        return Err(format!("indices are i32 or i64, not {indices}"));
    }
    Ok(())
}

/// Default of types of indices, for serde.
pub fn i64() -> DType {
    DType::I64
}

/// The order of two elements: NaN above all, as in NumPy, and both zeros the same.
pub fn order(values: &Values, a: usize, b: usize) -> Ordering {
    match values {
        Values::Int(v) => v[a].cmp(&v[b]),
        Values::Float(v) => v[a].partial_cmp(&v[b]).unwrap_or_else(|| v[a].is_nan().cmp(&v[b].is_nan())),
    }
}

/// The first elements of sorted lines.
#[derive(Clone, Copy, Debug)]
pub struct Sorting {
    /// What is sorted.
    pub lines: Lines,
    /// How many of each line are wanted.
    pub keep: Size,
    /// Whether the largest come first.
    pub descending: bool,
    /// Type of the elements.
    pub dtype: DType,
    /// Type of their places.
    pub indices: DType,
}

impl Sorting {
    /// Tensors that it reads.
    pub fn inputs(&self) -> Vec<TensorDesc> {
        let Lines { outer, length, inner } = self.lines;
        vec![TensorDesc::new("in", self.dtype, [outer, length, inner])]
    }

    /// Tensors that it writes.
    pub fn outputs(&self) -> Vec<TensorDesc> {
        let dims = [self.lines.outer, self.keep, self.lines.inner];
        vec![TensorDesc::new("values", self.dtype, dims), TensorDesc::new("indices", self.indices, dims)]
    }

    /// Sorted elements and their places; equal ones stay in order.
    pub fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let kept = Lines { length: self.keep, ..self.lines };
        let (mut sources, mut indices) =
            (vec![0; kept.elements().exact_usize()], vec![0; kept.elements().exact_usize()]);
        for (line, targets) in self.lines.places().zip(kept.places()) {
            let mut sorted: Vec<usize> = (0..line.len()).collect();
            sorted.sort_by(|a, b| {
                let ascending = order(&inputs[0], line[*a], line[*b]);
                if self.descending { ascending.reverse() } else { ascending }
            });
            for (place, target) in sorted.into_iter().zip(targets) {
                sources[target] = line[place];
                indices[target] = place as i64;
            }
        }
        let values = match &inputs[0] {
            Values::Float(v) => Values::Float(sources.iter().map(|at| v[*at]).collect()),
            Values::Int(v) => Values::Int(sources.iter().map(|at| v[*at]).collect()),
        };
        vec![values, Values::Int(indices)]
    }
}
