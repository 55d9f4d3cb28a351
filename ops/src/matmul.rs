//! The product of matrices: `out[b, i, j] = activation(bias[j] + residual[b, i, j] + sum over k of lhs[b, i, k] * rhs[b,
//! k, j])`.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    Activation, DType, Exact, Op, Operation, TensorDesc, Tolerance, Values,
    convolution::largest_term,
    dtype::f32,
    epilogue, fragments,
    runs::{self, Apart, Runs},
};

/// Product of matrices, or of a batch of them. Sums are `f32` for floats and `i32`, which wraps, for integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Rows of the result.
    pub m: Size,
    /// Columns of the result.
    pub n: Size,
    /// Length of the sums.
    pub k: Size,
    /// Number of matrices.
    #[serde(default = "one")]
    pub batch: Size,
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
    /// Whether the right operand is stored in blocks, in the order of [`crate::fragments`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rhs_fragments: bool,
    /// Whether the whole batch has one right operand.
    #[serde(default)]
    pub rhs_shared: bool,
    /// Whether there is a third input, of the result's type, with a value for each column.
    #[serde(default)]
    pub bias: bool,
    /// Whether there is a last input like the result, which is added to it.
    #[serde(default)]
    pub residual: bool,
    /// Whether it is added behind the activation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub residual_behind: bool,
    /// What is applied to results; nothing to integers.
    #[serde(default)]
    pub activation: Activation,
    /// What is added to the variance of rows that are a second result: each row once more, normalized. Its scale is the next input,
    /// of the result's type, with a value for each column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<Exact<f32>>,
    /// Whether rows are normalized by mean and deviation, with a bias as a last input; else by the root of the mean of squares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub centered: bool,
    /// What is added to the variance of rows of the left operand, which are normalized by mean and deviation before they are
    /// multiplied. The bias is there then, and has a second row: the sums of the right operand's columns, which kernels take for
    /// what the mean adds to results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lhs_norm: Option<Exact<f32>>,
    /// Whether kernels take mean and deviation of rows of the left operand from sums that are a last input, of 32-bit floats: for each
    /// [`MatMul::SUMMED`] columns and each row of all products, the sum of its elements there and that of their squares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lhs_sums: bool,
    /// Whether such sums of the result are a second result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub row_sums: bool,
    /// How the left operand lies in a larger tensor, which is read instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Runs>,
    /// Where the result is written in a larger tensor, of which the rest stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Runs>,
}

fn one() -> Size {
    Size::constant(1)
}

impl MatMul {
    /// A product of two matrices of one type with a result of another.
    pub fn new(
        m: impl Into<Size>,
        n: impl Into<Size>,
        k: impl Into<Size>,
        operand: DType,
        out: DType,
    ) -> Self {
        MatMul {
            m: m.into(),
            n: n.into(),
            k: k.into(),
            batch: one(),
            lhs: operand,
            rhs: operand,
            out,
            rhs_transposed: false,
            rhs_fragments: false,
            rhs_shared: false,
            bias: false,
            residual: false,
            residual_behind: false,
            activation: Activation::None,
            norm: None,
            centered: false,
            lhs_norm: None,
            lhs_sums: false,
            row_sums: false,
            read: None,
            written: None,
        }
    }

    /// Columns whose elements are summed together.
    pub const SUMMED: u64 = 16;

    /// Sums of rows of so many columns.
    fn sums(&self, name: &'static str, columns: Size) -> TensorDesc {
        let groups = if columns.is_constant() { columns / Self::SUMMED } else { columns };
        TensorDesc::new(name, DType::F32, [groups, self.batch * self.m, 2.into()])
    }

    /// Whether sums of rows are possible.
    fn check_sums(&self) -> Result<(), String> {
        let whole = |columns: Size| columns.is_constant() && columns.is_multiple_of(Self::SUMMED);
        if self.lhs_sums && !(self.lhs_norm.is_some() && whole(self.k)) {
            return Err(format!(
                "sums are given of rows that are normalized and have multiples of {} elements",
                Self::SUMMED
            ));
        }
        let is_plain = self.out == DType::F16 && self.norm.is_none() && self.written.is_none();
        if self.row_sums && !(is_plain && whole(self.n)) {
            return Err(format!(
                "sums of rows are those of results of f16 by themselves, with multiples of {} columns",
                Self::SUMMED
            ));
        }
        Ok(())
    }

    /// Whether there is one right operand.
    fn one_right(&self) -> bool {
        self.rhs_shared || self.batch == 1
    }

    /// Whether a right operand in fragments is possible.
    fn check_fragments(&self) -> Result<(), String> {
        let whole = fragments::are_whole(self.k, self.n);
        if whole
            && self.lhs == DType::F16
            && self.rhs == DType::F16
            && self.one_right()
            && !self.rhs_transposed
        {
            return Ok(());
        }
        let side = fragments::SIDE;
        Err(format!(
            "a right operand in fragments is one of f16 for all products, and has known multiples of {side} terms and columns"
        ))
    }

    /// The left operand by itself.
    fn left(&self) -> TensorDesc {
        TensorDesc::new("lhs", self.lhs, [self.batch, self.m, self.k])
    }

    /// A tensor like the result by itself.
    pub fn result(&self, name: &'static str) -> TensorDesc {
        TensorDesc::new(name, self.out, [self.batch, self.m, self.n])
    }

    /// The input that is the residual, where there is one.
    fn residual_input(&self) -> usize {
        2 + usize::from(self.bias)
    }

    /// The input that is the scale of normalized rows, where there are such; their bias is the next.
    pub fn scale_input(&self) -> usize {
        self.residual_input() + usize::from(self.residual)
    }

    /// The results of inputs that lie by themselves.
    fn results(&self, inputs: &[Values]) -> Vec<Values> {
        let [batch, m, n, k] = [self.batch, self.m, self.n, self.k].map(Size::exact_usize);
        let rhs_stride = if self.rhs_shared { 0 } else { n * k };
        let place = |b: usize, i: usize, j: usize, l: usize| {
            let right = match self.rhs_transposed {
                _ if self.rhs_fragments => fragments::place(k, l, j),
                true => j * k + l,
                false => l * n + j,
            };
            (b * m * k + i * k + l, b * rhs_stride + right)
        };
        let bias = inputs.get(2).filter(|_| self.bias);
        let residual = inputs.get(self.residual_input()).filter(|_| self.residual);
        let each = (0..batch).flat_map(|b| (0..m).flat_map(move |i| (0..n).map(move |j| (b, i, j))));
        if self.out.is_float() {
            let (left, right) = (self.left_rows(inputs), inputs[1].floats());
            let sum = |(b, i, j)| {
                let terms = (0..k).map(|l| place(b, i, j, l));
                let residual = residual.map_or(0.0, |residual| residual.float((b * m + i) * n + j));
                let (before, behind) = epilogue::sides(residual, self.residual_behind);
                let added = bias.map_or(0.0, |bias| bias.float(j)) + before;
                let sum = terms.map(|(x, y)| left[x] * right[y]).sum::<f64>() + added;
                self.out.round(self.activation.apply(sum) + behind)
            };
            let out: Vec<f64> = each.map(sum).collect();
            let normed = self.norm.map(|epsilon| self.normalized(inputs, epsilon.0, &out));
            let sums = self.row_sums.then(|| summed(&out, batch * m, n));
            return std::iter::once(out).chain(normed).chain(sums).map(Values::Float).collect();
        }
        let sum = |(b, i, j)| {
            let terms = (0..k).map(|l| place(b, i, j, l));
            let added = bias.map_or(0, |bias| bias.int(j) as i32);
            let added = added.wrapping_add(residual.map_or(0, |r| r.int((b * m + i) * n + j) as i32));
            let total = terms.fold(added, |sum, (x, y)| {
                sum.wrapping_add((inputs[0].int(x) as i32).wrapping_mul(inputs[1].int(y) as i32))
            });
            i64::from(total)
        };
        vec![Values::Int(each.map(sum).collect())]
    }

    /// The left operand, with normalized rows where these are.
    fn left_rows(&self, inputs: &[Values]) -> Vec<f64> {
        let left = inputs[0].floats();
        let Some(epsilon) = self.lhs_norm else { return left };
        let given = inputs.last().filter(|_| self.lhs_sums);
        let rows = (self.batch * self.m).exact_usize();
        let row = |(index, row): (usize, &[f64])| -> Vec<f64> {
            let of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / row.len() as f64;
            let (mean, variance) = match given {
                Some(sums) => {
                    let groups = row.len() / Self::SUMMED as usize;
                    let total =
                        |which| (0..groups).map(|g| sums.float((g * rows + index) * 2 + which)).sum::<f64>();
                    let [mean, square] = [0, 1].map(|which| total(which) / row.len() as f64);
                    (mean, (square - mean * mean).max(0.0))
                }
                None => {
                    let mean = of(&mut row.iter().copied());
                    (mean, of(&mut row.iter().map(|value| (value - mean).powi(2))))
                }
            };
            let factor = (variance + f64::from(epsilon.0)).sqrt().recip();
            row.iter().map(|value| (value - mean) * factor).collect()
        };
        left.chunks(self.k.exact_usize().max(1)).enumerate().flat_map(row).collect()
    }

    /// Rows of the result, normalized.
    fn normalized(&self, inputs: &[Values], epsilon: f32, out: &[f64]) -> Vec<f64> {
        let (scale, columns) = (self.scale_input(), self.n.exact_usize());
        let row = |row: &[f64]| -> Vec<f64> {
            let of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / columns as f64;
            let mean = if self.centered { of(&mut row.iter().copied()) } else { 0.0 };
            let variance = of(&mut row.iter().map(|value| (value - mean).powi(2)));
            let factor = (variance + f64::from(epsilon)).sqrt().recip();
            let value = |(column, value): (usize, &f64)| {
                let bias = if self.centered { inputs[scale + 1].float(column) } else { 0.0 };
                self.out.round((value - mean) * factor * inputs[scale].float(column) + bias)
            };
            row.iter().enumerate().map(value).collect()
        };
        out.chunks(columns.max(1)).flat_map(row).collect()
    }
}

/// Of each [`MatMul::SUMMED`] columns of rows: sums of elements, and of their squares.
pub(crate) fn summed(out: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let side = MatMul::SUMMED as usize;
    let places = (0..columns / side).flat_map(|group| (0..rows).map(move |row| row * columns + group * side));
    let sums = |at: usize| {
        let part = &out[at..at + side];
        [part.iter().sum(), part.iter().map(|value| value * value).sum()]
    };
    places.flat_map(sums).collect()
}

impl Op for MatMul {
    fn check(&self) -> Result<(), String> {
        if !self.out.is_float() && self.activation != Activation::None {
            return Err(format!("integers have no activation such as {:?}", self.activation));
        }
        if self.residual_behind && !(self.residual && self.out.is_float()) {
            return Err("there is no tensor of floats that is added behind the activation".into());
        }
        if self.norm.is_some() && !matches!(self.out, DType::F32 | DType::F16) {
            return Err(format!("rows of {} are not normalized", self.out));
        }
        if self.centered && self.norm.is_none() {
            return Err("rows that are not normalized are not centered".into());
        }
        if self.lhs_norm.is_some() && !(self.bias && self.lhs.is_small_float() && self.one_right()) {
            return Err("rows of the left operand are normalized where it has floats, all products have one right operand, and there \
                        is a bias"
                .into());
        }
        if self.norm.is_some() && self.written.is_some() {
            return Err("results that are normalized once more are not written into a larger tensor".into());
        }
        if self.rhs_fragments {
            self.check_fragments()?;
        }
        self.check_sums()?;
        self.read.map_or(Ok(()), |runs| runs.check(&self.left()))?;
        self.written.map_or(Ok(()), |runs| runs.check(&self.result("out")))?;
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
        let rhs_batch = if self.rhs_shared { one() } else { self.batch };
        let mut inputs = vec![
            self.read.map_or(self.left(), |runs| runs.whole(self.left())),
            TensorDesc::new("rhs", self.rhs, [rhs_batch, matrix[0], matrix[1]]),
        ];
        if self.bias {
            inputs.push(match self.lhs_norm {
                Some(_) => TensorDesc::new("bias", self.out, [Size::constant(2), self.n]),
                None => TensorDesc::new("bias", self.out, [self.n]),
            });
        }
        if self.residual {
            inputs.push(self.result("residual"));
        }
        if self.norm.is_some() {
            inputs.push(TensorDesc::new("scale", self.out, [self.n]));
        }
        if self.centered {
            inputs.push(TensorDesc::new("shift", self.out, [self.n]));
        }
        if self.lhs_sums {
            inputs.push(self.sums("lhs_sums", self.k));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let first = self.written.map_or(self.result("out"), |runs| runs.whole(self.result("out")));
        let normed = self.norm.map(|_| self.result("normed"));
        let sums = self.row_sums.then(|| self.sums("row_sums", self.n));
        std::iter::once(first).chain(normed).chain(sums).collect()
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.lhs, &mut self.rhs, &mut self.out]
    }

    fn signature(&self) -> String {
        format!("{}x{}_{}", self.lhs, self.rhs, self.out)
    }

    fn flops(&self) -> f64 {
        2.0 * (self.batch.as_f64() * self.m.as_f64() * self.n.as_f64() * self.k.as_f64())
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &runs::zeros(&self.outputs()))
    }

    fn updates(&self, output: usize) -> bool {
        output == 0 && self.written.is_some()
    }

    fn apart(&self) -> Option<Apart> {
        Apart::of(
            Operation::MatMul(MatMul { read: None, written: None, ..self.clone() }),
            self.read,
            self.written,
        )
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let results = self.results(&runs::first_taken(self.read, inputs));
        runs::first_put(self.written, results, before)
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if !self.out.is_float() {
            return Tolerance::EXACT;
        }
        let terms = self.k + u64::from(self.bias) + u64::from(self.residual);
        let mut largest = largest_term(magnitudes);
        if self.lhs_norm.is_some() {
            // Elements of a normalized row are as large as the root of their number at most, and so is the root of their squares' sum.
            let most = self.k.as_f64().sqrt() * magnitudes[1];
            let added = &magnitudes[2..magnitudes.len() - usize::from(self.lhs_sums)];
            largest = added.iter().copied().fold(most, f64::max);
        }
        let mut sum = Tolerance::of_sum(terms, largest, DType::F32, self.out);
        if self.lhs_norm.is_some() {
            sum.absolute += 4.0 * self.lhs.epsilon() * largest;
        }
        sum.absolute += epilogue::rounded_between(self.out, self.residual, self.activation, terms, largest);
        let out = self.activation.after(sum);
        if self.norm.is_none() {
            return out;
        }
        // Sums of terms as large as these deviate by the root of their number times a fraction of the term; the second result is in
        // units of that deviation, and as large as the root of the columns at most.
        let deviation = (self.k.as_f64().sqrt() * largest / 16.0).max(f64::from(f32::MIN_POSITIVE));
        let normed = out.absolute / deviation + out.relative * 8.0 + self.out.epsilon() * 2.0;
        let channel = magnitudes[self.scale_input()].max(1.0);
        Tolerance {
            absolute: out.absolute.max(normed * channel),
            relative: out.relative + 4.0 * self.out.epsilon(),
        }
    }

    fn output_tolerance(&self, output: usize, magnitudes: &[f64]) -> Tolerance {
        let own = self.tolerance(magnitudes);
        if !self.row_sums || output == 0 {
            return own;
        }
        // Sums of squares have the error of each result twice, times the result. A result of terms up to 1 with any sign is seldom as large
        // as this.
        let terms = &magnitudes[..magnitudes.len() - usize::from(self.lhs_sums)];
        let most = 1.2 * self.k.as_f64().sqrt() * largest_term(terms);
        let error = own.absolute + own.relative * most;
        Tolerance { absolute: 2.0 * Self::SUMMED as f64 * most * error, relative: own.relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_normalizes_rows_before_it_multiplies() {
        let op =
            MatMul { lhs_norm: Some(Exact(0.0)), bias: true, ..MatMul::new(1, 1, 2, DType::F32, DType::F32) };
        let inputs = [vec![1.0, 3.0], vec![2.0, 5.0], vec![0.5, 7.0]].map(Values::Float);
        assert_eq!(op.reference(&inputs), [Values::Float(vec![3.5])]);
        assert!(MatMul { bias: false, ..op }.check().is_err());
    }

    #[test]
    fn the_reference_multiplies() {
        let op = MatMul::new(2, 2, 3, DType::F32, DType::F32);
        let lhs = Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rhs = Values::Float(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(op.reference(&[lhs.clone(), rhs.clone()]), [Values::Float(vec![4.0, 5.0, 10.0, 11.0])]);
        let added = MatMul { bias: true, residual: true, activation: Activation::Relu6, ..op.clone() };
        let more = [Values::Float(vec![-1.0, 0.25]), Values::Float(vec![0.0, 0.25, -20.0, -6.0])];
        let inputs = [&[lhs.clone(), rhs.clone()][..], &more].concat();
        assert_eq!(added.reference(&inputs), [Values::Float(vec![3.0, 5.5, 0.0, 5.25])]);
        assert!(
            MatMul { activation: Activation::Relu, ..MatMul::new(1, 1, 1, DType::I8, DType::I32) }
                .check()
                .is_err()
        );
        let transposed = MatMul { rhs_transposed: true, ..op };
        let rhs = Values::Float(vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(transposed.reference(&[lhs, rhs]), [Values::Float(vec![4.0, 5.0, 10.0, 11.0])]);
    }
}
