//! Quantization by PyTorch's rules: codes of floats and back, with a scale and a zero point for a tensor or for each of its
//! blocks, and scales that ranges of values give. The rules are those of `torch.ops.quantized_decomposed` and of
//! `torchao.quantization.quant_primitives`; ONNX's, which divide by the scale, are in `quantize.rs`.

use halite_ops::{
    DType,
    expression::{Expression, Function as F, Operand, Scalar, Type},
    line_codes::{CodeRule, LineCodes},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Builder, Result, line_codes::Quantization};
use crate::graph::{ElementType, TensorId};

/// What codes are made of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    /// The least and the largest code.
    pub range: (i64, i64),
    /// Their type.
    pub element: ElementType,
    /// Whether the zero point is added before rounding. It decides how ties are rounded.
    pub zero_first: bool,
}

/// How the scale and the zero point of a range of values are chosen. The range always has 0 in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// The whole range; the zero point is `least - round(min / scale)`. Scales are at least this.
    Whole(f64),
    /// The same, with the zero point of the end of the range that is rounded less (XNNPACK's rule).
    Nearer(f64),
    /// The larger of both sides for both; zero is the middle of the codes.
    Symmetric(f64),
    /// The same, where each side has as many codes as there are.
    SymmetricUnclipped(f64),
}

fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

fn as_float(p: &mut Expression, x: Operand) -> Operand {
    p.cast(Type::Of(DType::F32), x)
}

/// A dimension in blocks: their number and their size.
type Split = (Size, Size);

impl Builder {
    /// `round(x * (1 / scale)) + zero`, ties to even, within a range. Scale and zero point are broadcast.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn quantize_affine(
        &mut self,
        x: TensorId,
        scale: TensorId,
        zero: Option<TensorId>,
        codes: Codes,
    ) -> Result<TensorId> {
        if let Some(zero) = zero
            && let Some(made) = self.codes_where_chosen(x, Quantization { scale, zero }, codes, false)?
        {
            return Ok(made);
        }
        let scale = self.as_f32(scale)?;
        let inverse = self.unary(F::Reciprocal, scale)?;
        self.quantize_by_inverse(x, inverse, zero, codes)
    }

    /// The same with a scale that is a number, whose inverse is rounded once.
    ///
    /// # Errors
    /// As before.
    pub fn quantize_by_number(
        &mut self,
        x: TensorId,
        scale: f64,
        zero: i64,
        codes: Codes,
    ) -> Result<TensorId> {
        let (inverse, zero) = (self.float(DType::F32, 1.0 / scale)?, self.float(DType::I32, zero as f64)?);
        self.quantize_by_inverse(x, inverse, Some(zero), codes)
    }

    fn quantize_by_inverse(
        &mut self,
        x: TensorId,
        inverse: TensorId,
        zero: Option<TensorId>,
        codes: Codes,
    ) -> Result<TensorId> {
        let x = self.as_f32(x)?;
        let inputs: Vec<TensorId> = [x, inverse].into_iter().chain(zero).collect();
        let (least, most) = codes.range;
        self.map(&inputs, codes.element, |p, x| {
            let mut made = p.call(F::Mul, &x[..2]);
            let zero = x.get(2).map(|zero| as_float(p, *zero));
            if let (Some(zero), true) = (zero, codes.zero_first) {
                made = p.call(F::Add, &[made, zero]);
            }
            made = p.call(F::Round, &[made]);
            if let (Some(zero), false) = (zero, codes.zero_first) {
                made = p.call(F::Add, &[made, zero]);
            }
            let kept = p.call(F::Clip, &[made, number(least as f64), number(most as f64)]);
            p.cast(codes.element.value(), kept)
        })
    }

    /// `(code - zero) * scale` as `to`, a float type. Scale and zero point are broadcast; differences are exact for codes of
    /// up to 32 bits.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn dequantize_affine(
        &mut self,
        codes: TensorId,
        scale: TensorId,
        zero: Option<TensorId>,
        to: ElementType,
    ) -> Result<TensorId> {
        let scale = self.as_f32(scale)?;
        // Zero points may be floats, which are whole in codes that are none.
        let wide = zero.is_none_or(|zero| !self.element(zero).is_float())
            && self.element(codes).storage().size() > 2
            && !self.element(codes).is_float();
        let inputs: Vec<TensorId> = [codes, scale].into_iter().chain(zero).collect();
        self.map(&inputs, to, |p, x| {
            let own = if wide { Type::Of(DType::I32) } else { Type::Of(DType::F32) };
            let mut made = p.cast(own, x[0]);
            if let Some(zero) = x.get(2) {
                let zero = p.cast(own, *zero);
                made = p.call(F::Sub, &[made, zero]);
            }
            let made = as_float(p, made);
            p.call(F::Mul, &[made, x[1]])
        })
    }

    /// A tensor seen as blocks, and the dimensions of values that are one for each block, in a form that is broadcast to it.
    /// A size of -1 is the whole dimension.
    ///
    /// # Errors
    /// The blocks do not cover the tensor evenly.
    pub fn in_blocks(&mut self, x: TensorId, blocks: &[i64]) -> Result<(TensorId, Vec<Size>)> {
        let dims = self.sizes(x).to_vec();
        let Some(splits) = splits(&dims, blocks) else {
            let what = self.describe(&[x]);
            return Err(self.invalid(format!("{what} has no blocks of {blocks:?}")));
        };
        let (mut apart, mut each) = (Vec::new(), Vec::new());
        for (count, size) in splits {
            if size == 1 {
                apart.push(count);
                each.push(count);
            } else if count == 1 {
                apart.push(size);
                each.push(1.into());
            } else {
                apart.extend([count, size]);
                each.extend([count, 1.into()]);
            }
        }
        Ok((self.reshape_to(x, &apart)?, each))
    }

    /// A scale, `f32`, and a zero point, of the type of the codes, for what lies along each of the axes, which stay with one
    /// element.
    ///
    /// # Errors
    /// An axis is none of the tensor's.
    pub fn choose_affine(
        &mut self,
        x: TensorId,
        axes: &[usize],
        choice: Choice,
        codes: Codes,
    ) -> Result<[TensorId; 2]> {
        if let Some(operation) = chosen_by(choice, codes)
            && let Some(made) = self.codes_of_lines(x, axes, operation)?
            && let [scale, zero] = made[..]
        {
            return Ok([scale, self.cast(zero, codes.element)?]);
        }
        let x = self.as_f32(x)?;
        let least = self.reduce(ReduceKind::Min, x, axes, true)?;
        let most = self.reduce(ReduceKind::Max, x, axes, true)?;
        let range = (codes.range.0 as f64, codes.range.1 as f64);
        let scale = self.map(&[least, most], DType::F32, |p, x| scale_of(p, [x[0], x[1]], choice, range))?;
        let zero = self.map(&[least, most, scale], codes.element, |p, x| {
            let zero = zero_of(p, [x[0], x[1]], x[2], choice, range);
            let kept = p.call(F::Clip, &[zero, number(range.0), number(range.1)]);
            p.cast(codes.element.value(), kept)
        })?;
        Ok([scale, zero])
    }
}

/// The operation that chooses so, of lines that are not known yet; none where codes have more bits than it takes.
fn chosen_by(choice: Choice, codes: Codes) -> Option<LineCodes> {
    let (rule, smallest) = match choice {
        Choice::Whole(smallest) => (CodeRule::Whole, smallest),
        Choice::Nearer(smallest) => (CodeRule::Nearer, smallest),
        Choice::Symmetric(smallest) => (CodeRule::Symmetric, smallest),
        Choice::SymmetricUnclipped(smallest) => (CodeRule::Unclipped, smallest),
    };
    let [least, most] = [codes.range.0, codes.range.1].map(i32::try_from);
    let operation =
        LineCodes { smallest: (smallest as f32).into(), ..LineCodes::new(rule, least.ok()?, most.ok()?) };
    crate::backend::check(&halite_ops::Operation::LineCodes(operation.clone())).is_ok().then_some(operation)
}

/// How each dimension is divided, if it is evenly.
fn splits(dims: &[Size], blocks: &[i64]) -> Option<Vec<Split>> {
    let split = |(size, block): (&Size, &i64)| match *block {
        -1 => Some((1.into(), *size)),
        1 => Some((*size, 1.into())),
        block if block < 1 => None,
        block => size.is_multiple_of(block).then(|| (*size / Size::from(block), Size::from(block))),
    };
    (dims.len() == blocks.len()).then(|| dims.iter().zip(blocks).map(split).collect())?
}

/// The range with 0 in it.
fn with_zero(p: &mut Expression, [least, most]: [Operand; 2]) -> [Operand; 2] {
    [p.call(F::Min, &[least, number(0.0)]), p.call(F::Max, &[most, number(0.0)])]
}

fn scale_of(p: &mut Expression, ends: [Operand; 2], choice: Choice, (low, high): (f64, f64)) -> Operand {
    let [least, most] = with_zero(p, ends);
    let (scale, smallest) = match choice {
        Choice::Whole(smallest) | Choice::Nearer(smallest) => {
            let size = p.call(F::Sub, &[most, least]);
            (p.call(F::Div, &[size, number(high - low)]), smallest)
        }
        Choice::Symmetric(smallest) => {
            let negative = p.call(F::Neg, &[least]);
            let larger = p.call(F::Max, &[negative, most]);
            (p.call(F::Div, &[larger, number((high - low) / 2.0)]), smallest)
        }
        Choice::SymmetricUnclipped(smallest) => {
            let below = p.call(F::Div, &[least, number(low)]);
            let above = p.call(F::Div, &[most, number(high)]);
            (p.call(F::Max, &[below, above]), smallest)
        }
    };
    p.call(F::Max, &[scale, number(smallest)])
}

fn zero_of(
    p: &mut Expression,
    ends: [Operand; 2],
    scale: Operand,
    choice: Choice,
    (low, high): (f64, f64),
) -> Operand {
    let [least, most] = with_zero(p, ends);
    let parts = |p: &mut Expression, x| p.call(F::Div, &[x, scale]);
    match choice {
        Choice::Whole(_) => {
            let part = parts(p, least);
            let whole = p.call(F::Round, &[part]);
            p.call(F::Sub, &[number(low), whole])
        }
        Choice::Nearer(_) => {
            let (below, above) = (parts(p, least), parts(p, most));
            let sum = p.call(F::Add, &[below, above]);
            let lower = p.call(F::Gt, &[sum, number(-(low + high))]);
            let from_low = p.call(F::Sub, &[number(low), below]);
            let from_high = p.call(F::Sub, &[number(high), above]);
            let zero = p.call(F::Select, &[lower, from_low, from_high]);
            let kept = p.call(F::Clip, &[zero, number(low), number(high)]);
            p.call(F::Round, &[kept])
        }
        Choice::Symmetric(_) | Choice::SymmetricUnclipped(_) => {
            // Not a constant for the expression, whose result has the dimensions of its inputs.
            let nothing = p.call(F::Mul, &[scale, number(0.0)]);
            p.call(F::Add, &[nothing, number(((low + high + 1.0) / 2.0).trunc())])
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::*;

    const BYTES: Codes = Codes { range: (-128, 127), element: ElementType::Of(DType::I8), zero_first: false };

    fn floats(b: &mut Builder, dims: &[u64], values: &[f64]) -> TensorId {
        b.values(DType::F32, dims, &Values::Float(values.to_vec())).unwrap()
    }

    fn read(b: &Builder, id: TensorId) -> Vec<f64> {
        b.floats(id).unwrap()
    }

    #[test]
    fn ties_go_to_even_codes_of_what_is_rounded() {
        let mut b = Builder::new();
        let x = floats(&mut b, &[5], &[0.25, 0.75, -0.25, 1e9, f64::NAN]);
        let made = b.quantize_by_number(x, 0.5, 1, BYTES).unwrap();
        assert_eq!(read(&b, made), [1.0, 3.0, 1.0, 127.0, 0.0]);
        let made = b.quantize_by_number(x, 0.5, 1, Codes { zero_first: true, ..BYTES }).unwrap();
        assert_eq!(read(&b, made), [2.0, 2.0, 0.0, 127.0, 0.0]);
    }

    #[test]
    fn blocks_have_scales_of_their_own() {
        let mut b = Builder::new();
        let codes = b.values(DType::I8, &[2, 4], &Values::Int(vec![1, 2, 3, 4, 5, 6, 7, -8])).unwrap();
        let (apart, each) = b.in_blocks(codes, &[1, 2]).unwrap();
        let each: Vec<u64> = each.iter().map(|size| size.exact()).collect();
        assert_eq!((b.dims(apart).to_vec(), each.clone()), (vec![2, 2, 2], vec![2, 2, 1]));
        let scale = floats(&mut b, &each, &[1.0, 10.0, 100.0, 1000.0]);
        let zero = b.values(DType::I32, &each, &Values::Int(vec![1, 0, 0, 1])).unwrap();
        let made = b.dequantize_affine(apart, scale, Some(zero), DType::F32.into()).unwrap();
        assert_eq!(read(&b, made), [0.0, 1.0, 30.0, 40.0, 500.0, 600.0, 6000.0, -9000.0]);
        assert!(b.in_blocks(codes, &[1, 3]).is_err());
        assert_eq!(b.in_blocks(codes, &[-1, 4]).unwrap().1, [Size::from(1); 2]);
    }

    #[test]
    fn ranges_give_scales_and_zero_points() {
        let mut b = Builder::new();
        let x = floats(&mut b, &[2, 2], &[-1.0, 1.55, 2.0, 5.1]);
        let mut choose = |choice| {
            let [scale, zero] = b.choose_affine(x, &[1], choice, BYTES).unwrap();
            let scales: Vec<f64> = read(&b, scale).iter().map(|s| (s * 1e6).round() / 1e6).collect();
            (scales, read(&b, zero))
        };
        assert_eq!(choose(Choice::Whole(1e-9)), (vec![0.01, 0.02], vec![-28.0, -128.0]));
        assert_eq!(choose(Choice::Nearer(0.015)), (vec![0.015, 0.02], vec![-61.0, -128.0]));
        assert_eq!(choose(Choice::Symmetric(1e-9)), (vec![0.012157, 0.04], vec![0.0, 0.0]));
        assert_eq!(choose(Choice::SymmetricUnclipped(1e-9)).0, [0.012205, 0.040157]);
    }
}
