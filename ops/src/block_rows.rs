//! The look-up of rows in a table of weights in blocks. `embedding` is for codes with scales in a tensor of their own.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    blocks::BlockFormat,
    gather::i32,
    moves::{check_index_type, in_range},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, blocks::sample_blocks, moves::sample_indices};

/// `out[j, l] = table[indices[j], l]`, as `f32`, of a table whose rows stay in the bytes of their file; see [`crate::blocks`].
/// Indices below 0 count from the end; a row for an index out of range is zeros. A format's codebook is the last input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRows {
    /// Rows of the table.
    pub rows: u64,
    /// Elements of a row; whole blocks.
    pub width: u64,
    /// Number of indices.
    pub indices: Size,
    /// How rows lie in their bytes.
    pub format: BlockFormat,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

impl Op for BlockRows {
    fn check(&self) -> Result<(), String> {
        check_index_type(self.index)?;
        self.format.row_bytes(self.width).map(drop)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let (dtype, row) = self.format.row(self.width).unwrap_or((DType::U8, 0));
        let mut inputs = vec![
            TensorDesc::new("table", dtype, [self.rows, row]),
            TensorDesc::new("indices", self.index, [self.indices]),
        ];
        inputs.extend(self.format.codebook_operand());
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", DType::F32, [self.indices, self.width.into()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.index]
    }

    fn signature(&self) -> String {
        format!("{}_{}", self.format, self.index)
    }

    fn flops(&self) -> f64 {
        2.0 * self.indices.as_f64() * self.width as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (_, length) = self.format.row(self.width).unwrap_or((DType::U8, 0));
        let mut out = Vec::new();
        for j in 0..self.indices.exact() {
            let Some(row) = in_range(inputs[1].int(j as usize), self.rows) else {
                out.resize(out.len() + self.width as usize, 0.0);
                continue;
            };
            out.extend(self.format.values(&inputs[0], row * length, length));
        }
        vec![Values::Float(out)]
    }

    /// Three roundings of elements of at most 1, of which the terms may be as large.
    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance { absolute: 3.0 * DType::F32.epsilon(), relative: 0.0 }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for BlockRows {
    fn samples() -> Vec<BlockRows> {
        let shapes = [(1, 1, 1), (50, 2, 33), (7, 3, 130), (9, 1, 0)];
        let mut samples = Vec::new();
        for format in BlockFormat::ALL {
            for (n, (rows, blocks, indices)) in shapes.into_iter().enumerate() {
                let index = if n % 2 == 0 { DType::I32 } else { DType::I64 };
                let width = blocks * format.elements();
                samples.push(BlockRows { rows, width, indices: indices.into(), format, index });
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        Some(match index {
            0 if self.format.float().is_some() => return None,
            0 => Values::Int(sample_blocks(
                self.format,
                self.rows * (self.width / self.format.elements()),
                random,
            )),
            2 => return self.format.codebook_values(),
            _ => sample_indices(self.indices.exact(), self.rows, self.index, random),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_by_index() {
        let op =
            BlockRows { rows: 2, width: 32, indices: 3.into(), format: BlockFormat::Q8_0, index: DType::I32 };
        let mut table = vec![0; 68];
        (table[1], table[2]) = (0x3C, 5);
        (table[35], table[36]) = (0x40, 0xFF);
        let out = op.reference(&[Values::Int(table), Values::Int(vec![-1, 0, 2])])[0].floats();
        assert_eq!((out[0], out[32], out[64]), (-2.0, 5.0, 0.0));
    }
}
