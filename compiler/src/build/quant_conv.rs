//! Convolutions and products of 8-bit codes with 8-bit weights: exact sums, which are scaled to floats, or to codes again.

use halite_ops::{
    DType, Operation,
    conv2d_int8::Conv2dInt8,
    expression::{Expression, Function as F, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
};

use super::{
    Builder, Result, Sliding,
    conv::{four, four_pads, mirrored, two},
};
use crate::graph::{ElementType, TensorId};

/// The scale and the zero point of a tensor of codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantum {
    /// The difference of neighbouring codes.
    pub scale: f64,
    /// The code of 0.
    pub zero: i64,
}

/// What becomes of the sums of products: `sum * weight scale * input scale + bias`, for each filter.
#[derive(Clone, Copy, Debug)]
pub struct Requantized {
    /// What the codes of the images or rows are.
    pub input: Quantum,
    /// `f32`, a scale for each filter, whose zero point is 0.
    pub scales: TensorId,
    /// `f32`, a value for each filter.
    pub bias: Option<TensorId>,
    /// Whether results below 0 become 0.
    pub relu: bool,
    /// The `i8` codes of the results; floats where there is none.
    pub output: Option<Quantum>,
}

fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

impl Requantized {
    fn expression(&self, p: &mut Expression, x: &[Operand]) -> Operand {
        let sum = p.cast(halite_ops::expression::Type::Of(DType::F32), x[0]);
        let mut made = p.call(F::Mul, &[sum, x[1]]);
        if let Some(bias) = x.get(2) {
            made = p.call(F::Add, &[made, *bias]);
        }
        if self.relu {
            made = p.call(F::Relu, &[made]);
        }
        let Some(output) = self.output else { return made };
        let scaled = p.call(F::Mul, &[made, number(1.0 / output.scale)]);
        let whole = p.call(F::Round, &[scaled]);
        let moved = p.call(F::Add, &[whole, number(output.zero as f64)]);
        let kept = p.call(F::Clip, &[moved, number(-128.0), number(127.0)]);
        p.cast(halite_ops::expression::Type::Of(DType::I8), kept)
    }
}

impl Builder {
    /// Sums as results. Filters lie along the dimension with `behind` others behind it.
    fn requantize(&mut self, sums: TensorId, behind: usize, to: &Requantized) -> Result<TensorId> {
        let rank = self.dims(sums).len();
        let count = self.dims(sums)[rank - 1 - behind];
        let mut dims = vec![1; behind + 1];
        dims[0] = count;
        let scale = number(to.input.scale);
        let factors = self.map(&[to.scales], DType::F32, |p, x| p.call(F::Mul, &[x[0], scale]))?;
        let mut inputs = vec![sums, self.expand(factors, &[count])?];
        if let Some(bias) = to.bias {
            let bias = self.as_f32(bias)?;
            inputs.push(self.expand(bias, &[count])?);
        }
        for input in &mut inputs[1..] {
            *input = self.reshape(*input, &dims)?;
        }
        let element: ElementType = if to.output.is_some() { DType::I8 } else { DType::F32 }.into();
        self.map(&inputs, element, |p, x| to.expression(p, x))
    }

    /// Rows of `i8` codes times rows of `i8` weights: `[…, length]` and `[filters, length]` to `[…, filters]`.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn linear_of_codes(&mut self, x: TensorId, weights: TensorId, to: &Requantized) -> Result<TensorId> {
        let mut sums = self.product(x, weights, true)?;
        if to.input.zero != 0 {
            let wide = self.cast(weights, DType::I32)?;
            let rows = self.reduce(ReduceKind::Sum, wide, &[1], false)?;
            let zero = self.float(DType::I32, to.input.zero as f64)?;
            sums = self.add_product(sums, zero, rows, -1)?;
        }
        self.requantize(sums, 0, to)
    }

    /// Convolution of `i8` images with `i8` filters; what lies outside of images is 0.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_of_codes(
        &mut self,
        x: TensorId,
        filter: TensorId,
        sliding: &Sliding,
        groups: u64,
        to: &Requantized,
    ) -> Result<TensorId> {
        if let (Some(output), 4) = (to.output, self.dims(x).len()) {
            return self.conv2d_to_codes([x, filter], sliding, groups, to, output);
        }
        let zero = self.values(DType::I8, &[], &halite_ops::Values::Int(vec![to.input.zero]))?;
        let sums = self.conv_of_bytes(x, Some(zero), filter, None, sliding, groups)?;
        let behind = self.dims(sums).len() - 2;
        self.requantize(sums, behind, to)
    }

    /// One operation, which scales sums to codes.
    fn conv2d_to_codes(
        &mut self,
        [x, filter]: [TensorId; 2],
        sliding: &Sliding,
        groups: u64,
        to: &Requantized,
        output: Quantum,
    ) -> Result<TensorId> {
        self.convolved(x, filter, sliding)?;
        let count = self.dims(filter)[0];
        let each = |b: &mut Self, values: TensorId, factor: f64| {
            let scaled = b.map(&[values], DType::F32, |p, x| p.call(F::Mul, &[x[0], number(factor)]))?;
            b.expand(scaled, &[count])
        };
        let factor = each(self, to.scales, to.input.scale / output.scale)?;
        let bias = to.bias.map(|bias| each(self, bias, 1.0 / output.scale)).transpose()?;
        let code = |zero: i64| i32::try_from(zero).unwrap_or(i32::MAX);
        let zero = code(output.zero);
        let made = Operation::Conv2dInt8(Conv2dInt8 {
            strides: two(&sliding.strides),
            dilations: two(&sliding.dilations),
            pads: four_pads(sliding),
            groups,
            input_zero: code(to.input.zero),
            output_zero: zero,
            least: to.relu.then_some(zero),
            bias: bias.is_some(),
            bias_type: if bias.is_some() { DType::F32 } else { DType::I32 },
            ..Conv2dInt8::new(four(self.dims(x)), four(self.dims(filter)), DType::I8, DType::I8)
        });
        crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
        let dims = made.outputs()[0].dims.clone();
        let inputs: Vec<_> = [x, filter].into_iter().chain(bias).chain([factor]).collect();
        self.kernel1(made, &inputs, DType::I8.into(), &dims)
    }

    /// Transposed convolution of `i8` images with `i8` filters, as [`Builder::conv_transpose`] counts `sliding` and `more`,
    /// but with filters x channels of a group x ….
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_transpose_of_codes(
        &mut self,
        x: TensorId,
        filter: TensorId,
        sliding: &Sliding,
        more: &[u64],
        groups: u64,
        to: &Requantized,
    ) -> Result<TensorId> {
        let taps = self.dims(filter).to_vec();
        let rank = taps.len().saturating_sub(2);
        let fits = self.dims(x).len() == taps.len() && sliding.has_dims(rank) && more.len() == rank;
        if !fits || rank == 0 || taps[2..].contains(&0) || sliding.strides.contains(&0) {
            let what = self.describe(&[x, filter]);
            return Err(self.invalid(format!("no transposed convolution of {what} with {sliding:?}")));
        }
        let (mut spread, mut borders) = (x, vec![(0, 0); 2]);
        for d in 0..rank {
            spread = self.apart(spread, d + 2, sliding.strides[d], to.input.zero)?;
            let reach = sliding.dilations[d].saturating_mul(taps[d + 2] - 1) as i64;
            let (before, behind) = sliding.pads[d];
            let (before, behind, more) = (before as i64, behind as i64, more[d] as i64);
            borders.push((reach.saturating_sub(before), reach.saturating_sub(behind).saturating_add(more)));
        }
        let spread = self.pad(spread, &borders, Border::Constant, to.input.zero as f64)?;
        let filter = self.slice(filter, &mirrored(&taps))?;
        let plain = Sliding { dilations: sliding.dilations.clone(), ..Sliding::plain(rank) };
        self.conv_of_codes(spread, filter, &plain, groups, to)
    }

    /// `stride - 1` codes between the places of a dimension.
    fn apart(&mut self, x: TensorId, axis: usize, stride: u64, code: i64) -> Result<TensorId> {
        let dims = self.dims(x).to_vec();
        if stride == 1 || dims[axis] == 0 {
            return Ok(x);
        }
        let outer = dims[..axis].iter().product();
        let inner = dims[axis + 1..].iter().product();
        let after = stride.min(1 << 40) as i64 - 1;
        let single = self.reshape(x, &[outer, dims[axis], 1, inner])?;
        let wide = self.pad(single, &[(0, 0), (0, 0), (0, after), (0, 0)], Border::Constant, code as f64)?;
        let joined = self.reshape(wide, &[outer, dims[axis].saturating_mul(stride), inner])?;
        let cut = self.pad(joined, &[(0, 0), (0, -after), (0, 0)], Border::Constant, 0.0)?;
        let mut result = dims.clone();
        result[axis] = (dims[axis] - 1).saturating_mul(stride) + 1;
        self.reshape(cut, &result)
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::*;

    fn ints(b: &mut Builder, dims: &[u64], values: impl Iterator<Item = i64>) -> TensorId {
        b.values(DType::I8, dims, &Values::Int(values.collect())).unwrap()
    }

    fn floats(b: &mut Builder, values: &[f64]) -> TensorId {
        b.values(DType::F32, &[values.len() as u64], &Values::Float(values.to_vec())).unwrap()
    }

    /// The codes as the floats that they are, less a zero point.
    fn plain(b: &mut Builder, codes: TensorId, zero: f64) -> TensorId {
        let zero = number(zero);
        let wide = b.cast(codes, DType::F32).unwrap();
        b.map(&[wide], DType::F32, |p, x| p.call(F::Sub, &[x[0], zero])).unwrap()
    }

    #[test]
    fn sums_become_codes_as_floats_would() {
        let mut b = Builder::new();
        let x = ints(&mut b, &[2, 4], (0..8).map(|i| i * 11 % 17 - 8));
        let w = ints(&mut b, &[3, 4], (0..12).map(|i| i * 5 % 13 - 6));
        let (scales, bias) = (floats(&mut b, &[0.5, 0.25, 1.0]), floats(&mut b, &[1.0, -2.0, 0.125]));
        let input = Quantum { scale: 0.5, zero: 3 };
        let to = Requantized { input, scales, bias: Some(bias), relu: false, output: None };
        let made = b.linear_of_codes(x, w, &to).unwrap();
        let (left, right) = (plain(&mut b, x, 3.0), plain(&mut b, w, 0.0));
        let sums = b.product(left, right, true).unwrap();
        let wanted: Vec<f64> = b.floats(sums).unwrap();
        let scaled = |(i, sum): (usize, f64)| sum * [0.25, 0.125, 0.5][i % 3] + [1.0, -2.0, 0.125][i % 3];
        let wanted: Vec<f64> = wanted.into_iter().enumerate().map(scaled).collect();
        assert_eq!(b.floats(made).unwrap(), wanted);
        let to = Requantized { relu: true, output: Some(Quantum { scale: 0.25, zero: -9 }), ..to };
        let made = b.linear_of_codes(x, w, &to).unwrap();
        let code = |v: &f64| ((v.max(0.0) / 0.25).round_ties_even() - 9.0).clamp(-128.0, 127.0);
        assert_eq!(b.floats(made).unwrap(), wanted.iter().map(code).collect::<Vec<_>>());
    }

    #[test]
    fn transposed_convolutions_spread_the_zero_point() {
        for (strides, groups, more) in [(vec![2, 3], 1, [1, 0]), (vec![1, 2], 2, [0, 1])] {
            let mut b = Builder::new();
            let x = ints(&mut b, &[1, 4, 3, 2], (0..24).map(|i| i * 7 % 19 - 9));
            let own = 4 / groups;
            let w = ints(&mut b, &[4, own, 3, 2], (0..24 * own as i64).map(|i| i * 5 % 11 - 5));
            let scales = floats(&mut b, &[1.0; 4]);
            let input = Quantum { scale: 1.0, zero: -2 };
            let to = Requantized { input, scales, bias: None, relu: false, output: None };
            let sliding = Sliding { strides, dilations: vec![1, 2], pads: vec![(1, 1), (0, 0)] };
            let made = b.conv_transpose_of_codes(x, w, &sliding, &more, groups, &to).unwrap();
            let (left, right) = (plain(&mut b, x, -2.0), plain(&mut b, w, 0.0));
            // Filters to channels, in each group.
            let right = b.reshape(right, &[groups, 4 / groups, own, 6]).unwrap();
            let right = b.transpose(right, &[0, 2, 1, 3]).unwrap();
            let right = b.reshape(right, &[4, 4 / groups, 3, 2]).unwrap();
            let wanted = b.conv_transpose(left, right, None, &sliding, &more, groups).unwrap();
            assert_eq!(b.dims(made), b.dims(wanted));
            assert_eq!(b.floats(made).unwrap(), b.floats(wanted).unwrap());

            let bias = floats(&mut b, &[4.0, -8.0, 0.0, 20.0]);
            let output = Some(Quantum { scale: 4.0, zero: -20 });
            let to = Requantized { bias: Some(bias), relu: true, output, ..to };
            let made = b.conv_transpose_of_codes(x, w, &sliding, &more, groups, &to).unwrap();
            let each = b.dims(wanted)[2..].iter().product::<u64>() as usize;
            let sums = b.floats(wanted).unwrap();
            let sums = sums.iter().enumerate().map(|(i, sum)| sum + [4.0, -8.0, 0.0, 20.0][i / each]);
            let code = |v: f64| ((v.max(0.0) / 4.0).round_ties_even() - 20.0).min(127.0);
            assert_eq!(b.floats(made).unwrap(), sums.map(code).collect::<Vec<_>>());
        }
    }
}
