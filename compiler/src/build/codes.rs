//! Convolutions between codes: where floats are made of codes, convolved, and made codes again, bytes are convolved.
//!
//! Both say the same, but for the rounding of sums of floats; what quantized the model, and ONNX Runtime, mean bytes.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation, Values,
    expression::{Function, Operand, Scalar},
};

use super::{Builder, Result, Sliding};
use crate::graph::{ElementType, NodeOp, TensorId};

/// Operations between a convolution and its codes that are looked through.
const MOST_LIMITS: usize = 3;
/// Most filters.
const MOST_FILTERS: u64 = 1 << 20;
/// How far from a whole number of sums, relative to it, a bias may be that was a whole number before it became floats.
const WHOLE: f64 = 1.0 / (1 << 21) as f64;
/// Nodes among which these are looked for.
const MOST_NODES: usize = 64;

/// Codes that floats are made of.
#[derive(Clone, Copy, Debug)]
pub struct Coded {
    /// The codes.
    pub codes: TensorId,
    /// Their scale, one or one for each place of the axis.
    pub scale: TensorId,
    /// Their zero point, as many.
    pub zero: Option<TensorId>,
    /// The axis.
    pub axis: usize,
}

/// A convolution of floats that are made of codes.
#[derive(Clone, Debug)]
pub(super) struct CodedConv {
    x: Coded,
    filter: Coded,
    bias: Option<TensorId>,
    sliding: Sliding,
    groups: u64,
}

/// What is added for each filter.
#[derive(Clone, Debug)]
enum Bias {
    /// In units of sums.
    Sums(Vec<i64>),
    /// As it is.
    Floats(Vec<f64>),
}

/// What is known of floats in this respect.
#[derive(Debug, Default)]
pub(super) struct Known {
    made: HashMap<TensorId, Coded>,
    convolutions: HashMap<TensorId, CodedConv>,
}

impl Builder {
    /// Remembers what floats are made of.
    pub fn remember_coded(&mut self, floats: TensorId, coded: Coded) {
        self.known.made.insert(floats, coded);
    }

    /// Remembers what a convolution is made of, where both its operands are made of codes.
    pub fn remember_conv(
        &mut self,
        made: TensorId,
        [x, filter]: [TensorId; 2],
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) {
        let coded = |id| self.known.made.get(&id).copied();
        if let (Some(x), Some(filter)) = (coded(x), coded(filter)) {
            let conv = CodedConv { x, filter, bias, sliding: sliding.clone(), groups };
            self.known.convolutions.insert(made, conv);
        }
    }

    /// Codes of a scale and zero point of what `x` is, where that is a convolution of codes by codes, perhaps behind limits;
    /// `None` where it is not, or not in a form that one operation computes.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn conv_between_codes(
        &mut self,
        x: TensorId,
        scale: TensorId,
        zero: Option<TensorId>,
        to: DType,
    ) -> Result<Option<TensorId>> {
        let Some((conv, limits)) = self.behind_limits(x) else { return Ok(None) };
        let known = (self.one(scale), self.zero_of(zero), self.one(conv.x.scale), self.zero_of(conv.x.zero));
        let (Some(scale), Some(zero), Some(x_scale), Some(x_zero)) = known else { return Ok(None) };
        let (Some(range), Some(steps)) = (range(to), self.steps(&conv, x_scale)) else { return Ok(None) };
        let Some(bias) = self.bias_of_sums(&conv, &steps) else { return Ok(None) };
        let code = |value: f64| {
            ((value / scale).round_ties_even() + zero as f64).clamp(range.0.into(), range.1.into()) as i32
        };
        let limits = [limits[0].map(code), limits[1].map(code)];
        if let [Some(least), Some(most)] = limits
            && least > most
        {
            return Ok(None);
        }
        let filters = steps.len() as u64;
        let factors = steps.iter().map(|step| DType::F32.round(step / scale)).collect();
        let factor = self.values(DType::F32, &[filters], &Values::Float(factors))?;
        let bias = match bias {
            None => None,
            Some(Bias::Sums(all)) => Some(self.values(DType::I32, &[filters], &Values::Int(all))?),
            Some(Bias::Floats(all)) => {
                let all = all.into_iter().map(|value| DType::F32.round(value / scale)).collect();
                Some(self.values(DType::F32, &[filters], &Values::Float(all))?)
            }
        };
        let sums = [conv.x.codes, conv.filter.codes, factor];
        let (x_zero, zero) = (x_zero as i32, zero as i32);
        self.conv_to_limited(sums, bias, x_zero, (to, zero, limits), &conv.sliding, conv.groups).map(Some)
    }

    /// What a sum of one is for each filter, where one operation computes the sums.
    fn steps(&self, conv: &CodedConv, x_scale: f64) -> Option<Vec<f64>> {
        let filters = self.dims(conv.filter.codes).first().copied().filter(|count| *count <= MOST_FILTERS)?;
        let bytes = |id| self.element(id) == DType::I8.into() || self.element(id) == DType::U8.into();
        let around_zero =
            |zero| self.ints(zero).is_some_and(|all: Vec<i64>| all.iter().all(|value| *value == 0));
        let plain = self.element(conv.filter.codes) == ElementType::Of(DType::I8)
            && conv.filter.zero.is_none_or(around_zero);
        if !plain || !bytes(conv.x.codes) || !(3..=4).contains(&self.rank(conv.x.codes)) {
            return None;
        }
        let steps = self.floats(conv.filter.scale)?;
        match steps[..] {
            [step] => Some(vec![step * x_scale; filters as usize]),
            _ if steps.len() as u64 == filters && conv.filter.axis == 0 => {
                Some(steps.into_iter().map(|step| step * x_scale).collect())
            }
            _ => None,
        }
    }

    /// What is added to sums, if anything. Quantizers that leave a bias as floats, as PyTorch's do, mean all of it: a sum is
    /// up to a hundredth of a code of the result.
    fn bias_of_sums(&self, conv: &CodedConv, steps: &[f64]) -> Option<Option<Bias>> {
        let Some(bias) = conv.bias else { return Some(None) };
        let all = self.floats(bias).filter(|all| all.len() == steps.len())?;
        if !all.iter().all(|value| value.is_finite()) {
            return None;
        }
        let whole = |(value, step): (&f64, &f64)| {
            let (sums, nearest) = (value / step, (value / step).round_ties_even());
            let same = (sums - nearest).abs() <= nearest.abs() * WHOLE;
            (same && nearest.abs() <= f64::from(i32::MAX)).then_some(nearest as i64)
        };
        let sums = all.iter().zip(steps).map(whole).collect::<Option<Vec<i64>>>();
        Some(Some(sums.map_or(Bias::Floats(all), Bias::Sums)))
    }

    /// The number that a tensor has as its only element; no scale is 0 or infinite.
    fn one(&self, id: TensorId) -> Option<f64> {
        let all = self.floats(id)?;
        all.first().copied().filter(|value| all.len() == 1 && *value > 0.0 && value.is_finite())
    }

    fn zero_of(&self, zero: Option<TensorId>) -> Option<i64> {
        let Some(zero) = zero else { return Some(0) };
        self.ints(zero).filter(|all| all.len() == 1).map(|all| all[0])
    }

    /// The convolution that makes a tensor, with the least and the most that is let through.
    fn behind_limits(&self, mut id: TensorId) -> Option<(CodedConv, [Option<f64>; 2])> {
        let mut limits = [None, None];
        let nodes = &self.open.last()?.nodes;
        for _ in 0..=MOST_LIMITS {
            if let Some(conv) = self.known.convolutions.get(&id) {
                return Some((conv.clone(), limits));
            }
            let node = nodes.iter().rev().take(MOST_NODES).find(|node| node.outputs.contains(&id))?;
            let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
            let [own] = &elementwise.program.nodes[..] else { return None };
            let number = |operand: &Operand| match operand {
                Operand::Constant(Scalar::Float(value)) => Some(*value),
                Operand::Input(input) => {
                    let all = self.floats(*node.inputs.get(*input)?)?;
                    (all.len() == 1).then_some(all[0])
                }
                _ => None,
            };
            let (x, limit, value) = match (own.function, &own.operands[..]) {
                (Function::Relu, [Operand::Input(x)]) => (*x, 0, 0.0),
                (Function::Max, [Operand::Input(x), limit]) => (*x, 0, number(limit)?),
                (Function::Min, [Operand::Input(x), limit]) => (*x, 1, number(limit)?),
                _ => return None,
            };
            // Limits outside of others would have to be put in order.
            if value.is_nan() || limits[limit].is_some() || (limit == 1 && limits[0].is_some()) {
                return None;
            }
            limits[limit] = Some(value);
            id = *node.inputs.get(x)?;
        }
        None
    }
}

/// What codes of a type reach over.
fn range(dtype: DType) -> Option<(i32, i32)> {
    match dtype {
        DType::I8 => Some((-128, 127)),
        DType::U8 => Some((0, 255)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A convolution of codes 0.5 apart around 100, as floats; its bias and scales are powers of two.
    fn convolved(b: &mut Builder, codes: TensorId) -> TensorId {
        convolved_with(b, codes, &[12.5, -3.0, 100.0])
    }

    fn convolved_with(b: &mut Builder, codes: TensorId, bias: &[f64]) -> TensorId {
        let ints = |b: &mut Builder, dtype: DType, dims: &[u64], all: Vec<i64>| {
            b.values(dtype, dims, &Values::Int(all)).unwrap()
        };
        let floats = |b: &mut Builder, all: &[f64]| {
            b.values(DType::F32, &[all.len() as u64], &Values::Float(all.to_vec())).unwrap()
        };
        let filter = ints(b, DType::I8, &[3, 2, 2, 2], (0..24).map(|i| i * 29 % 200 - 100).collect());
        let (scale, zero) = (floats(b, &[0.5]), ints(b, DType::U8, &[1], vec![100]));
        let steps = floats(b, &[0.25, 0.125, 0.5]);
        let column = b.reshape(steps, &[3, 1, 1, 1]).unwrap();
        let x = b.dequantize(codes, scale, Some(zero), DType::F32.into()).unwrap();
        let w = b.dequantize(filter, column, None, DType::F32.into()).unwrap();
        b.remember_coded(x, Coded { codes, scale, zero: Some(zero), axis: 1 });
        b.remember_coded(w, Coded { codes: filter, scale: steps, zero: None, axis: 0 });
        let bias = floats(b, bias);
        let sliding = Sliding { pads: vec![(1, 0), (0, 1)], ..Sliding::plain(2) };
        let made = b.conv(x, w, Some(bias), &sliding, 1).unwrap();
        b.remember_conv(made, [x, w], Some(bias), &sliding, 1);
        made
    }

    /// Step 16, zero 90.
    fn target(b: &mut Builder) -> (TensorId, TensorId) {
        let step = b.float(DType::F32, 16.0).unwrap();
        (step, b.values(DType::U8, &[], &Values::Int(vec![90])).unwrap())
    }

    #[test]
    fn codes_are_those_that_floats_would_have() {
        let mut b = Builder::new();
        let all = Values::Int((0..18).map(|i| i * 37 % 251).collect());
        let codes = b.values(DType::U8, &[1, 2, 3, 3], &all).unwrap();
        let floats = convolved(&mut b, codes);
        let (step, zero) = target(&mut b);
        let made = b.conv_between_codes(floats, step, Some(zero), DType::U8).unwrap().unwrap();
        let wanted = b.quantize(floats, step, Some(zero), DType::U8).unwrap();
        assert_eq!(b.ints(made).unwrap(), b.ints(wanted).unwrap());
        assert_eq!(b.conv_between_codes(step, step, Some(zero), DType::U8).unwrap(), None);
    }

    /// Each of these is half a sum more than a whole number of them.
    #[test]
    fn a_bias_between_sums_is_not_rounded() {
        let bias = [12.5625, -3.03125, 100.125];
        let mut b = Builder::new();
        let all = Values::Int((0..18).map(|i| i * 37 % 251).collect());
        let codes = b.values(DType::U8, &[1, 2, 3, 3], &all).unwrap();
        let floats = convolved_with(&mut b, codes, &bias);
        let (step, zero) = target(&mut b);
        let made = b.conv_between_codes(floats, step, Some(zero), DType::U8).unwrap().unwrap();
        let wanted = b.quantize(floats, step, Some(zero), DType::U8).unwrap();
        assert_eq!(b.ints(made).unwrap(), b.ints(wanted).unwrap());

        let codes = b.input("codes", DType::U8.into(), &[1, 2, 3, 3]).unwrap();
        let floats = convolved_with(&mut b, codes, &bias);
        let made = b.conv_between_codes(floats, step, Some(zero), DType::U8).unwrap().unwrap();
        let nodes = &b.open.last().unwrap().nodes;
        let last = nodes.iter().find(|node| node.outputs == [made]).unwrap();
        let NodeOp::Operation(Operation::Conv2dInt8(conv)) = &last.op else { panic!("{last:?}") };
        assert_eq!(conv.bias_type, DType::F32);
        assert_eq!(b.floats(last.inputs[2]).unwrap(), bias.map(|value| value / 16.0));
    }

    #[test]
    fn limits_of_floats_are_those_of_codes() {
        let mut b = Builder::new();
        let codes = b.input("codes", DType::U8.into(), &[1, 2, 3, 3]).unwrap();
        let floats = convolved(&mut b, codes);
        let most = b.float(DType::F32, 800.0).unwrap();
        let kept = b.unary(Function::Relu, floats).unwrap();
        let kept = b.binary(Function::Min, kept, most).unwrap();
        let (step, zero) = target(&mut b);
        let made = b.conv_between_codes(kept, step, Some(zero), DType::U8).unwrap().unwrap();
        b.output("made", made);
        let graph = b.finish().unwrap();
        let last = graph.body.nodes.iter().find(|node| node.outputs == [made]).unwrap();
        let NodeOp::Operation(Operation::Conv2dInt8(conv)) = &last.op else { panic!("{graph}") };
        assert_eq!((conv.least, conv.most), (Some(90), Some(140)));
        assert_eq!((conv.input_zero, conv.output_zero, conv.bias), (100, 90, true));
    }
}
