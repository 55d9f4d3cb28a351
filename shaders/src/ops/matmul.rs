//! Owns the product of matrices: `out[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, k, j]`.

use serde::{Deserialize, Serialize};

use super::Op;
use crate::{DType, Params, Plan, TensorDesc, Tolerance, Unfit, Values};

pub(super) mod plans;

/// Product of matrices, or of a batch of them. Sums are `f32` for floats and `i32`, which wraps, for integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Length of the sums.
    pub k: u64,
    /// Number of matrices.
    #[serde(default = "one")]
    pub batch: u64,
    /// Type of the left operand.
    #[serde(default = "f32")]
    pub lhs: DType,
    /// Type of the right operand.
    #[serde(default = "f32")]
    pub rhs: DType,
    /// Type of the result.
    #[serde(default = "f32")]
    pub out: DType,
    /// Whether the right operand is stored as n x k, as weights often are.
    #[serde(default)]
    pub rhs_transposed: bool,
    /// Whether the whole batch has one right operand.
    #[serde(default)]
    pub rhs_shared: bool,
}

fn one() -> u64 {
    1
}

fn f32() -> DType {
    DType::F32
}

impl MatMul {
    /// A product of two matrices of one type with a result of another.
    pub fn new(m: u64, n: u64, k: u64, operand: DType, out: DType) -> Self {
        let (lhs, rhs) = (operand, operand);
        MatMul { m, n, k, batch: 1, lhs, rhs, out, rhs_transposed: false, rhs_shared: false }
    }

    pub(crate) fn samples() -> Vec<MatMul> {
        let types = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::F16, DType::F32),
            (DType::BF16, DType::F32),
            (DType::I8, DType::I32),
        ];
        let shapes =
            [(1, 1, 1), (64, 64, 64), (33, 65, 17), (130, 7, 100), (1, 300, 40), (5, 3, 0), (0, 4, 4)];
        // Tiles of 128 and edges of them, in rows of whole 16-byte words; sums that are worth cutting.
        let aligned = [(128, 256, 128), (150, 80, 48), (9, 20, 1000), (2, 36, 520)];
        let mut samples = Vec::new();
        for (operand, out) in types {
            for (m, n, k) in shapes.into_iter().chain(aligned) {
                samples.push(MatMul::new(m, n, k, operand, out));
            }
            let even = MatMul::new(70, 144, 112, operand, out);
            samples.push(MatMul { rhs_transposed: true, batch: 2, ..even });
            let odd = MatMul::new(35, 66, 31, operand, out);
            samples.push(MatMul { rhs_transposed: true, ..odd.clone() });
            samples.push(MatMul { batch: 3, ..odd.clone() });
            samples.push(MatMul { batch: 2, rhs_shared: true, rhs_transposed: true, ..odd });
        }
        samples
    }
}

impl Op for MatMul {
    fn check(&self) -> Result<(), String> {
        let floats = [self.lhs, self.rhs, self.out].iter().all(|t| t.is_small_float());
        let ints = !self.lhs.is_float() && !self.rhs.is_float() && self.out == DType::I32;
        if floats || ints {
            Ok(())
        } else {
            Err("operands are floats with a float result, or integers with i32".into())
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let matrix = if self.rhs_transposed { [self.n, self.k] } else { [self.k, self.n] };
        let rhs_batch = if self.rhs_shared { 1 } else { self.batch };
        vec![
            TensorDesc::new("lhs", self.lhs, [self.batch, self.m, self.k]),
            TensorDesc::new("rhs", self.rhs, [rhs_batch, matrix[0], matrix[1]]),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.out, [self.batch, self.m, self.n])]
    }

    fn signature(&self) -> String {
        format!("{}x{}_{}", self.lhs, self.rhs, self.out)
    }

    fn flops(&self) -> f64 {
        2.0 * self.batch as f64 * self.m as f64 * self.n as f64 * self.k as f64
    }

    fn twin(&self, inputs: &[Values]) -> Vec<Values> {
        let [batch, m, n, k] = [self.batch, self.m, self.n, self.k].map(|d| d as usize);
        let rhs_stride = if self.rhs_shared { 0 } else { n * k };
        let place = |b: usize, i: usize, j: usize, l: usize| {
            let right = if self.rhs_transposed { j * k + l } else { l * n + j };
            (b * m * k + i * k + l, b * rhs_stride + right)
        };
        let each = (0..batch).flat_map(|b| (0..m).flat_map(move |i| (0..n).map(move |j| (b, i, j))));
        if self.out.is_float() {
            let (left, right) = (inputs[0].floats(), inputs[1].floats());
            let sum = |(b, i, j)| {
                let terms = (0..k).map(|l| place(b, i, j, l));
                self.out.round(terms.map(|(x, y)| left[x] * right[y]).sum())
            };
            return vec![Values::Float(each.map(sum).collect())];
        }
        let sum = |(b, i, j)| {
            let terms = (0..k).map(|l| place(b, i, j, l));
            let total = terms.fold(0i32, |sum, (x, y)| {
                sum.wrapping_add((inputs[0].int(x) as i32).wrapping_mul(inputs[1].int(y) as i32))
            });
            i64::from(total)
        };
        vec![Values::Int(each.map(sum).collect())]
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if !self.out.is_float() {
            return Tolerance::EXACT;
        }
        Tolerance::of_sum(self.k, magnitudes[0] * magnitudes[1], DType::F32, self.out)
    }

    fn plan(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "coop" => plans::coop(self, build, params),
            "pointwise" => plans::pointwise(self, build, params),
            "rows" => plans::rows(self, build, params),
            "tiled" => plans::tiled(self, build, params),
            "vector" => plans::vector(self, build, params),
            "wide" => plans::wide(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twin_multiplies() {
        let op = MatMul::new(2, 2, 3, DType::F32, DType::F32);
        let lhs = Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rhs = Values::Float(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(op.twin(&[lhs.clone(), rhs]), [Values::Float(vec![4.0, 5.0, 10.0, 11.0])]);
        let transposed = MatMul { rhs_transposed: true, ..op };
        let rhs = Values::Float(vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(transposed.twin(&[lhs, rhs]), [Values::Float(vec![4.0, 5.0, 10.0, 11.0])]);
    }
}
