//! Matrices of weights whose rows stay in the bytes of their file: products with them, and rows by index.

use bytes::Bytes;
use halite_ops::{
    DType, Operation, block_matmul::BlockMatMul, block_rows::BlockRows, blocks::BlockFormat,
    expression::Function, matmul::MatMul,
};
use halite_sizes::Size;

use super::{Builder, Result, types::FLOATS};
use crate::graph::TensorId;

/// How a row lies in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Blocks with scales of their own.
    Blocks(BlockFormat),
    /// Floats: `f32`, `f16` or `bf16`.
    Floats(DType),
}

impl RowFormat {
    /// Bytes of a row of so many elements; the reason when they are no whole blocks.
    fn row_bytes(self, elements: u64) -> Result<u64, String> {
        match self {
            RowFormat::Blocks(format) => format.row_bytes(elements),
            RowFormat::Floats(dtype) if FLOATS.contains(&dtype) => elements
                .checked_mul(dtype.size())
                .ok_or_else(|| format!("a row of {elements} elements is too large")),
            RowFormat::Floats(other) => {
                Err(format!("weights of {other}; there are f32, f16, bf16 and blocks"))
            }
        }
    }
}

impl RowFormat {
    /// The blocks that rows of so many elements can be read as: also 16-bit floats.
    fn blocks(self, length: u64) -> Option<BlockFormat> {
        match self {
            RowFormat::Blocks(format) => Some(format),
            RowFormat::Floats(dtype) => {
                BlockFormat::of_floats(dtype).filter(|format| format.row_bytes(length).is_ok())
            }
        }
    }
}

/// A matrix of weights, a row for each column of a product, in parts that devices can bind.
#[derive(Clone, Debug)]
pub struct RowMatrix {
    format: RowFormat,
    /// Parts with the rows of each.
    parts: Vec<(TensorId, u64)>,
    /// The codebook of the format, if it has one.
    codebook: Option<TensorId>,
    /// Rows of all parts.
    pub rows: u64,
    /// Elements of a row.
    pub length: u64,
}

impl RowMatrix {
    /// The format of blocks that a product with so many rows reads: that of 16-bit floats for few rows only, as matrix units take
    /// more.
    fn blocks(&self, m: Size) -> Option<BlockFormat> {
        let few = m.is_constant() && m.exact() <= BlockMatMul::FEW_ROWS;
        let blocks = self.format.blocks(self.length);
        blocks.filter(|_| few || matches!(self.format, RowFormat::Blocks(_)))
    }
}

impl Builder {
    /// Weights may be bound in parts of so many bytes, if more than every device binds.
    pub(crate) fn bind_at_most(&mut self, bytes: Option<u64>) {
        self.graph.largest_binding = bytes;
    }

    /// A matrix of weights from its bytes, which stay where they are.
    ///
    /// # Errors
    /// The bytes are not as many as the sizes say, or no rows of the format.
    pub fn row_matrix(
        &mut self,
        name: &str,
        format: RowFormat,
        [rows, length]: [u64; 2],
        bytes: &Bytes,
    ) -> Result<RowMatrix> {
        let wrong = |b: &Self, reason: String| b.invalid(format!("the weights '{name}': {reason}"));
        let row = format.row_bytes(length).map_err(|reason| wrong(self, reason))?;
        if row == 0 || rows == 0 {
            return Err(wrong(self, "they are none".to_owned()));
        }
        if rows.checked_mul(row) != Some(bytes.len() as u64) {
            let reason = format!("{} bytes are not {rows} rows of {row}", bytes.len());
            return Err(wrong(self, reason));
        }
        let most = (self.graph.most_bound() / row.max(1)).max(1);
        let mut parts = Vec::new();
        for first in (0..rows).step_by(most as usize) {
            let count = most.min(rows - first);
            let range = (first * row) as usize..((first + count) * row) as usize;
            let (element, width) = match format {
                RowFormat::Blocks(_) => (DType::U8, row),
                RowFormat::Floats(dtype) => (dtype, length),
            };
            parts.push((self.constant(name, element.into(), &[count, width], bytes.slice(range))?, count));
        }
        let codebook = match format {
            RowFormat::Blocks(format) => self.codebook(format)?,
            RowFormat::Floats(_) => None,
        };
        Ok(RowMatrix { format, parts, codebook, rows, length })
    }

    /// The codebook of a format as a constant, if it has one. All have the same bytes, and lie in one place on devices.
    pub(super) fn codebook(&mut self, format: BlockFormat) -> Result<Option<TensorId>> {
        let Some(book) = format.codebook() else { return Ok(None) };
        let entries = book.len() as u64 / DType::U16.size();
        self.constant("codebook", DType::U16.into(), &[entries], Bytes::from_static(book)).map(Some)
    }

    /// `x`, `f32[m, length]`, times the matrix, each row of which is a column: `f32[m, rows]`. Beside 16-bit floats many rows of
    /// `x` are rounded to their type, for matrix units; sums are `f32`.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn row_product(&mut self, x: TensorId, matrix: &RowMatrix) -> Result<TensorId> {
        let dims = self.sizes(x).to_vec();
        let [m, k] = dims[..] else { return Err(self.not_rows(x, matrix)) };
        if k != matrix.length {
            return Err(self.not_rows(x, matrix));
        }
        let blocks = matrix.blocks(m);
        let lhs = match (blocks, matrix.format) {
            (None, RowFormat::Floats(dtype)) => self.cast(x, dtype)?,
            _ => self.as_f32(x)?,
        };
        let mut made = Vec::new();
        for (part, rows) in &matrix.parts {
            let operation = match (blocks, matrix.format) {
                (Some(format), _) | (_, RowFormat::Blocks(format)) => {
                    Operation::BlockMatMul(BlockMatMul::new(m, *rows, matrix.length, format))
                }
                (None, RowFormat::Floats(dtype)) => Operation::MatMul(MatMul {
                    rhs_transposed: true,
                    ..MatMul::new(m, *rows, matrix.length, dtype, DType::F32)
                }),
            };
            let dims = [m, Size::from(*rows)];
            let inputs: Vec<TensorId> = [lhs, *part].into_iter().chain(matrix.codebook).collect();
            made.push(self.kernel1(operation, &inputs, DType::F32.into(), &dims)?);
        }
        match made[..] {
            [only] => Ok(only),
            _ => self.concat(&made, 1),
        }
    }

    /// Rows of the matrix by `indices`, integers `[n]`: `f32[n, length]`. A row for an index out of range is zeros.
    ///
    /// # Errors
    /// The indices are no list.
    pub fn rows_by_index(&mut self, matrix: &RowMatrix, indices: TensorId) -> Result<TensorId> {
        let [count] = self.sizes(indices).to_vec()[..] else { return Err(self.not_rows(indices, matrix)) };
        let indices = self.cast(indices, DType::I32)?;
        let (mut sum, mut first) = (None, 0u64);
        for (part, rows) in &matrix.parts {
            // Where the table has parts, indices of others are out of range: also those before, which may not count from the end.
            let own = match matrix.parts.len() {
                1 => indices,
                _ => self.indices_of_part(indices, first)?,
            };
            let made = match matrix.format.blocks(matrix.length) {
                Some(format) => {
                    let (rows, width) = (*rows, matrix.length);
                    let op = BlockRows { rows, width, indices: count, format, index: DType::I32 };
                    let dims = [count, Size::from(width)];
                    let inputs: Vec<TensorId> = [*part, own].into_iter().chain(matrix.codebook).collect();
                    self.kernel1(Operation::BlockRows(op), &inputs, DType::F32.into(), &dims)?
                }
                None => {
                    let made = self.gather(*part, own, 0)?;
                    self.as_f32(made)?
                }
            };
            sum = Some(match sum {
                None => made,
                Some(sum) => self.binary(Function::Add, sum, made)?,
            });
            first += rows;
        }
        sum.ok_or_else(|| self.not_rows(indices, matrix))
    }

    /// Indices less the first of a part; the largest number for those before it.
    fn indices_of_part(&mut self, indices: TensorId, first: u64) -> Result<TensorId> {
        use halite_ops::expression::{Operand, Scalar};

        let first = i64::try_from(first).ok().filter(|first| *first < 1 << 31);
        let first = first.ok_or_else(|| self.unsupported("a table of 2^31 rows"))?;
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I32));
        self.map(&[indices], DType::I32, |p, x| {
            let own = p.call(Function::Sub, &[x[0], int(first)]);
            let before = p.call(Function::Lt, &[x[0], int(first)]);
            p.call(Function::Select, &[before, int(i64::from(i32::MAX)), own])
        })
    }

    fn not_rows(&self, x: TensorId, matrix: &RowMatrix) -> crate::CompileError {
        let (rows, length) = (matrix.rows, matrix.length);
        self.invalid(format!("{} does not go with weights {rows} x {length}", self.describe(&[x])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_parts_as_devices_need() {
        let (rows, length) = (66_000, 1024);
        let bytes = Bytes::from(vec![0; (rows * length * 2) as usize]);
        let parts = |most| {
            let mut b = Builder::new();
            b.bind_at_most(most);
            let format = RowFormat::Floats(DType::F16);
            let matrix = b.row_matrix("table", format, [rows, length], &bytes).unwrap();
            matrix.parts.iter().map(|(_, rows)| *rows).collect::<Vec<_>>()
        };
        assert_eq!(parts(None), [65_536, 464]);
        assert_eq!(parts(Some(1 << 28)), [66_000]);
    }

    #[test]
    fn rows_of_codebooks_are_whole_blocks() {
        let mut b = Builder::new();
        let format = RowFormat::Blocks(BlockFormat::Iq2Xxs);
        let refused = b.row_matrix("blk.0.ffn_up.weight", format, [3, 128], &Bytes::from(vec![0; 99]));
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("blk.0.ffn_up.weight") && text.contains("multiples of 256, not 128"), "{text}");
    }
}
