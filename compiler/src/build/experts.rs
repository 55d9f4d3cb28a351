//! Weights of experts, of which each token has a few: products with those that a router chose.

use bytes::Bytes;
use halite_ops::{
    DType, Operation,
    blocks::BlockFormat,
    expert_matmul::{ExpertMatMul, RowLayout},
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{ElementType, TensorId};

/// A matrix of weights for each expert, in parts that devices can bind. Parts are whole experts.
#[derive(Clone, Debug)]
pub struct ExpertMatrices {
    layout: RowLayout,
    /// Parts with the first expert of each, and how many there are.
    parts: Vec<(TensorId, u64, u64)>,
    /// The codebook of the layout, if it has one.
    codebook: Option<TensorId>,
    /// Rows of an expert's matrix.
    pub rows: u64,
    /// Elements of a row.
    pub length: u64,
}

impl Builder {
    /// The matrices of experts from their bytes, which stay where they are: `experts` times `rows` rows of `length` elements.
    ///
    /// # Errors
    /// The bytes are not as many as the sizes say, or no rows of the format.
    pub fn expert_matrices(
        &mut self,
        name: &str,
        layout: RowLayout,
        [experts, rows, length]: [u64; 3],
        bytes: &Bytes,
    ) -> Result<ExpertMatrices> {
        let wrong = |b: &Self, reason: String| b.invalid(format!("the weights '{name}': {reason}"));
        let row = layout.row_bytes(length).map_err(|reason| wrong(self, reason))?;
        let own = row
            .checked_mul(rows)
            .filter(|own| *own > 0)
            .ok_or_else(|| wrong(self, "they are none".into()))?;
        if experts == 0 || experts.checked_mul(own) != Some(bytes.len() as u64) {
            let reason = format!("{} bytes are not those of {experts} experts of {own}", bytes.len());
            return Err(wrong(self, reason));
        }
        let most = (self.graph.most_bound() / own).max(1);
        let mut parts = Vec::new();
        for first in (0..experts).step_by(most as usize) {
            let count = most.min(experts - first);
            let range = (first * own) as usize..((first + count) * own) as usize;
            let part = self.constant(name, DType::U8.into(), &[count * rows, row], bytes.slice(range))?;
            parts.push((part, first, count));
        }
        let codebook = match layout {
            RowLayout::Blocks(format) => self.codebook(format)?,
            RowLayout::Floats(_) => None,
        };
        Ok(ExpertMatrices { layout, parts, codebook, rows, length })
    }

    /// Products of rows of activations and the weights of `chosen`, integers `[tokens, used]`: `f32[tokens * used, rows]`. `x` is
    /// `[tokens, length]`, a row for all experts of a token, or `[tokens * used, length]`, a row for each.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn expert_product(
        &mut self,
        x: TensorId,
        chosen: TensorId,
        matrices: &ExpertMatrices,
    ) -> Result<TensorId> {
        let wrong = |b: &Self| {
            let (rows, length) = (matrices.rows, matrices.length);
            b.invalid(format!("{} do not go with experts of {rows} x {length}", b.describe(&[x, chosen])))
        };
        let ([left, k], [tokens, used]) = (&self.sizes(x).to_vec()[..], &self.sizes(chosen).to_vec()[..])
        else {
            return Err(wrong(self));
        };
        let (left, tokens, used) = (*left, *tokens, used.exact());
        let shared = used != 1 && left == tokens;
        if *k != matrices.length || used == 0 || !(shared || left == tokens * used) {
            return Err(wrong(self));
        }
        let x = self.as_f32(x)?;
        let rows = tokens * used;
        let chosen = self.cast(chosen, DType::I32)?;
        let chosen = self.reshape_to(chosen, &[rows])?;
        let (n, k, format) = (matrices.rows, matrices.length, matrices.layout);
        let mut sum = None;
        for (part, first, experts) in matrices.parts.clone() {
            let own = ExpertMatMul { tokens, used, shared, n, k, experts, first, format };
            let dims = [rows, Size::from(n)];
            let inputs: Vec<TensorId> = [x, part, chosen].into_iter().chain(matrices.codebook).collect();
            let made = self.kernel1(Operation::ExpertMatMul(own), &inputs, DType::F32.into(), &dims)?;
            sum = Some(match sum {
                None => made,
                // Rows are zeros where their expert is in another part.
                Some(sum) => self.binary(Function::Add, sum, made)?,
            });
        }
        sum.ok_or_else(|| wrong(self))
    }

    /// Remembers that matrices are those of known ones, `[count, rows, columns]`, at places of a vector, as exporters write experts
    /// that rows choose. Products with them need not move them. Does nothing where they are no such matrices.
    pub fn remember_picked(&mut self, made: TensorId, matrices: TensorId, places: TensorId) {
        let known = self.tensor(matrices).constant.is_some();
        let floats = matches!(self.element(matrices), ElementType::Of(DType::F32 | DType::F16));
        if known && floats && self.rank(matrices) == 3 && self.rank(places) == 1 {
            self.picked.insert(made, (matrices, places));
        }
    }

    /// The product of matrices that were taken by index and a column for each, `[places, rows, 1]`, or of a row for each and the
    /// matrices, `[places, 1, columns]`. None where they are no such matrices, or their rows none that kernels take.
    ///
    /// # Errors
    /// The graph cannot grow so far.
    pub fn product_of_picked(&mut self, a: TensorId, b: TensorId) -> Result<Option<TensorId>> {
        let one = Size::constant(1);
        let (x, picked, before) = match (self.picked.get(&a), self.picked.get(&b)) {
            (Some(picked), None) => (b, *picked, true),
            (None, Some(picked)) => (a, *picked, false),
            _ => return Ok(None),
        };
        let (matrices, places) = picked;
        let ([count, rows, columns], [tokens]) = (self.dims(matrices), self.sizes(places)) else {
            return Ok(None);
        };
        let (count, rows, columns, tokens) = (*count, *rows, *columns, *tokens);
        if count == 0 || tokens.is_data() {
            return Ok(None);
        }
        let (length, made) = if before { (columns, rows) } else { (rows, columns) };
        let line =
            [tokens, if before { length.into() } else { one }, if before { one } else { length.into() }];
        let element = self.element(matrices);
        if self.sizes(x) != line || self.element(x) != element || !length.is_multiple_of(CHUNK) || made == 0 {
            return Ok(None);
        }
        let dtype = element.storage();
        let bytes = self.tensor(matrices).constant.clone().unwrap_or_default();
        let bytes = if before { bytes } else { turned(&bytes, [rows, columns], dtype.size()) };
        let layout = BlockFormat::of_floats(dtype).map_or(RowLayout::Floats(dtype), RowLayout::Blocks);
        let name = self.tensor(matrices).name.clone();
        let weights = self.expert_matrices(&name, layout, [count, made, length], &bytes)?;
        let x = self.reshape_to(x, &[tokens, length.into()])?;
        let chosen = self.places_at_front(places, count)?;
        let chosen = self.reshape_to(chosen, &[tokens, one])?;
        let product = self.expert_product(x, chosen, &weights)?;
        let product = self.cast(product, element)?;
        let dims = if before { [tokens, made.into(), one] } else { [tokens, one, made.into()] };
        self.reshape_to(product, &dims).map(Some)
    }

    /// Places of `count`, of which negative ones count from the end.
    fn places_at_front(&mut self, places: TensorId, count: u64) -> Result<TensorId> {
        let places = self.cast(places, DType::I32)?;
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I32));
        self.map(&[places], DType::I32, |p, x| {
            let negative = p.call(Function::Lt, &[x[0], int(0)]);
            let turned = p.call(Function::Add, &[x[0], int(count as i64)]);
            p.call(Function::Select, &[negative, turned, x[0]])
        })
    }
}

/// Elements of which rows that kernels take have a multiple.
const CHUNK: u64 = 32;

/// Matrices with their rows as columns.
fn turned(bytes: &Bytes, [rows, columns]: [u64; 2], size: u64) -> Bytes {
    let [rows, columns, size] = [rows, columns, size].map(|number| number as usize);
    let mut made = Vec::with_capacity(bytes.len());
    for matrix in bytes.chunks_exact((rows * columns * size).max(1)) {
        for column in 0..columns {
            for row in 0..rows {
                made.extend_from_slice(&matrix[(row * columns + column) * size..][..size]);
            }
        }
    }
    made.into()
}
