//! Scales, zero points and codes that ranges of lines give: one operation finds a range, chooses, and makes codes.

use halite_ops::{
    DType, Operation,
    expression::{Function, Operand},
    line_codes::LineCodes,
};
use halite_sizes::Size;

use super::{Builder, Codes, Result};
use crate::graph::{ElementType, NodeOp, TensorId};

/// Nodes among which the maker of a scale is looked for.
const MOST_NODES: usize = 64;
/// Views and conversions that are looked through.
const MOST_STEPS: usize = 8;

/// A scale and a zero point, or what says them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantization {
    pub(super) scale: TensorId,
    pub(super) zero: TensorId,
}

/// An operation that chose both.
struct Maker {
    /// Its place in the region that is open.
    place: usize,
    operation: LineCodes,
}

impl Builder {
    /// Scale, `f32`, and zero point, `i32`, of what lies along axes, which stay with one element; codes too, if `operation` has
    /// any, with the dimensions of `x`. Sizes of lines and the type of elements need not be in `operation`. None where the
    /// axes are not the last ones: elements of a line are neighbours.
    ///
    /// # Errors
    /// An axis is none of the tensor's, or the numbers do not go together.
    pub fn codes_of_lines(
        &mut self,
        x: TensorId,
        axes: &[usize],
        operation: LineCodes,
    ) -> Result<Option<Vec<TensorId>>> {
        let sizes = self.sizes(x).to_vec();
        if axes.iter().any(|axis| *axis >= sizes.len()) {
            let what = self.describe(&[x]);
            return Err(self.invalid(format!("{what} has no axes {axes:?}")));
        }
        // Dimensions of one element may be anywhere.
        let wide = |d: &usize| !sizes[*d].is(1.into());
        let first = axes.iter().copied().filter(wide).min().unwrap_or(sizes.len());
        if (first..sizes.len()).filter(wide).any(|d| !axes.contains(&d)) {
            return Ok(None);
        }
        let x = if self.element(x) == ElementType::Of(DType::F16) { x } else { self.as_f32(x)? };
        let (outer, length) = (sizes[..first].iter().product(), sizes[first..].iter().product());
        let lines = self.reshape_to(x, &[outer, length])?;
        let dtype = self.element(x).storage();
        let operation = LineCodes { outer, length, dtype, ..operation };
        let mut outputs =
            vec![(ElementType::from(DType::F32), vec![outer]), (DType::I32.into(), vec![outer])];
        outputs.extend(operation.codes.map(|codes| (codes.into(), vec![outer, length])));
        let made = self.kernel(Operation::LineCodes(operation), &[lines], &outputs)?;
        let each = |d: usize| if d < first { sizes[d] } else { 1.into() };
        let each: Vec<Size> = (0..sizes.len()).map(each).collect();
        let dims = [&each, &each, &sizes];
        made.into_iter()
            .zip(dims)
            .map(|(id, dims)| self.reshape_to(id, dims))
            .collect::<Result<_>>()
            .map(Some)
    }

    /// Codes of `x` by a scale and a zero point that were chosen for its own lines: made by the operation that chose them.
    /// None where they come from elsewhere.
    ///
    /// # Errors
    /// There are too many operations.
    pub(super) fn codes_where_chosen(
        &mut self,
        x: TensorId,
        by: Quantization,
        codes: Codes,
        divide: bool,
    ) -> Result<Option<TensorId>> {
        let Some(Maker { place, operation }) = self.chosen_for(x, by) else { return Ok(None) };
        let dtype = codes.element.storage();
        let range = (i64::from(operation.least), i64::from(operation.most));
        let wanted =
            LineCodes { zero_first: codes.zero_first, divide, codes: Some(dtype), ..operation.clone() };
        let other = operation.codes.is_some() && operation != wanted;
        let fits = crate::backend::check(&Operation::LineCodes(wanted.clone())).is_ok();
        if codes.range != range || codes.element != dtype.into() || other || !fits {
            return Ok(None);
        }
        let made = match operation.codes {
            Some(_) => self.open.last().and_then(|region| region.nodes[place].outputs.get(2).copied()),
            None => None,
        };
        let made = match made {
            Some(made) => made,
            None => {
                let name = self.location.as_str().to_owned();
                let made = self.define(&name, dtype.into(), &[operation.outer, operation.length])?;
                let region = self.open.last_mut().expect("the body stays open until the end");
                region.nodes[place].op = NodeOp::Operation(Operation::LineCodes(wanted));
                region.nodes[place].outputs.push(made);
                made
            }
        };
        let dims = self.sizes(x).to_vec();
        self.reshape_to(made, &dims).map(Some)
    }

    /// The operation that chose both for the lines of `x`, each for the elements that they are broadcast to.
    fn chosen_for(&self, x: TensorId, by: Quantization) -> Option<Maker> {
        let (place, output) = self.maker(by.scale)?;
        let node = &self.open.last()?.nodes[place];
        let NodeOp::Operation(Operation::LineCodes(operation)) = &node.op else { return None };
        if output != 0 || self.maker(by.zero) != Some((place, 1)) {
            return None;
        }
        let operation = operation.clone();
        let same = self.behind_views(x) == self.behind_views(*node.inputs.first()?);
        (same
            && self.are_of_lines(by.scale, x, operation.outer)
            && self.are_of_lines(by.zero, x, operation.outer))
        .then_some(Maker { place, operation })
    }

    /// Zero points of codes of 8 bits as `i32`, where they were chosen as such or are bytes with a sign.
    ///
    /// # Errors
    /// There are too many operations.
    pub(super) fn whole_zeros(&mut self, zero: TensorId) -> Result<Option<TensorId>> {
        if let Some((place, 1)) = self.maker(zero)
            && let Some(node) = self.open.last().map(|region| &region.nodes[place])
            && let NodeOp::Operation(Operation::LineCodes(made)) = &node.op
            && made.least >= -128
            && made.most <= 127
        {
            return Ok(Some(node.outputs[1]));
        }
        let bytes = self.element(zero) == ElementType::Of(DType::I8);
        if bytes { self.cast(zero, DType::I32).map(Some) } else { Ok(None) }
    }

    /// The place of the node and the output of it that a tensor is, behind views and conversions of integers.
    fn maker(&self, mut id: TensorId) -> Option<(usize, usize)> {
        let nodes = &self.open.last()?.nodes;
        for _ in 0..MOST_STEPS {
            let place = nodes.iter().rev().take(MOST_NODES).position(|node| node.outputs.contains(&id))?;
            let place = nodes.len() - 1 - place;
            let node = &nodes[place];
            match &node.op {
                NodeOp::View => id = *node.inputs.first()?,
                NodeOp::Operation(Operation::Elementwise(own)) => {
                    // Zero points are within the types that they are converted to.
                    let [call] = &own.program.nodes[..] else { return None };
                    let plain = call.function == Function::Cast && call.operands == [Operand::Input(0)];
                    let whole = !self.element(id).is_float() && !self.element(node.inputs[0]).is_float();
                    if !plain || !whole || node.inputs.len() != 1 || !self.holds_zeros(id) {
                        return None;
                    }
                    id = node.inputs[0];
                }
                _ => return node.outputs.iter().position(|own| *own == id).map(|output| (place, output)),
            }
        }
        None
    }

    /// Whether a type holds all zero points of bytes with a sign.
    fn holds_zeros(&self, id: TensorId) -> bool {
        matches!(self.element(id).storage(), DType::I8 | DType::I32 | DType::I64)
    }

    fn behind_views(&self, mut id: TensorId) -> TensorId {
        let Some(region) = self.open.last() else { return id };
        for _ in 0..MOST_STEPS {
            let made = region.nodes.iter().rev().take(MOST_NODES).find(|node| node.outputs.contains(&id));
            match made {
                Some(node) if matches!(node.op, NodeOp::View) => id = node.inputs[0],
                _ => break,
            }
        }
        id
    }

    /// Whether a tensor has one element for each of the first `outer` lines of `x`, in the form that is broadcast to it.
    fn are_of_lines(&self, each: TensorId, x: TensorId, outer: Size) -> bool {
        let (own, dims) = (self.sizes(each), self.sizes(x));
        if own.len() > dims.len() || self.tensor(each).count() != outer {
            return false;
        }
        let dims_behind = &dims[dims.len() - own.len()..];
        let lead: Size = dims[..dims.len() - own.len()].iter().product();
        let split = own.iter().zip(dims_behind).take_while(|(own, size)| own == size).count();
        let rest_is_one = own[split..].iter().all(|size| size.is(1.into()));
        // The lines end where the sizes of each do: those behind have one for all.
        rest_is_one && (lead.is(1.into()) || outer.is(1.into()))
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{Values, line_codes::CodeRule};

    use super::super::{Choice, QuantRows, QuantWeights};
    use super::*;
    use crate::graph::Graph;

    const BYTES: Codes = Codes { range: (-128, 127), element: ElementType::Of(DType::I8), zero_first: false };

    /// The names of a graph's operations.
    fn names(graph: &Graph) -> Vec<&'static str> {
        let name = |node: &crate::graph::Node| match &node.op {
            NodeOp::Operation(operation) => Some(operation.name()),
            _ => None,
        };
        graph.body.nodes.iter().filter_map(name).collect()
    }

    /// Codes of rows whose scales and zero points are seen under other dimensions and types in between.
    fn quantized(b: &mut Builder, x: TensorId, scale_dims: &[u64]) -> TensorId {
        let [scale, zero] = b.choose_affine(x, &[2], Choice::Whole(1e-9), BYTES).unwrap();
        let [scale, zero] = [scale, zero].map(|id| b.reshape(id, &[1, 3]).unwrap());
        let [scale, zero] = [scale, zero].map(|id| b.reshape(id, scale_dims).unwrap());
        b.quantize_affine(x, scale, Some(zero), BYTES).unwrap()
    }

    #[test]
    fn one_operation_chooses_and_makes_codes() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 3, 4]).unwrap();
        let codes = quantized(&mut b, x, &[1, 3, 1]);
        let again = quantized(&mut b, x, &[3, 1]);
        b.output("codes", codes);
        b.output("again", again);
        let graph = b.finish().unwrap();
        assert_eq!(
            names(&graph),
            ["line_codes", "elementwise", "line_codes", "elementwise"],
            "zero points become bytes"
        );
        let rows = [0.0, 0.5, 1.0, 2.55, -1.0, -0.5, 0.0, 0.25, 10.0, 20.0, 30.0, 51.0];
        let made = graph.evaluate(&[Values::Float(rows.to_vec())]).unwrap();
        let wanted = [-128, -78, -28, 127, -128, -26, 76, 127, -78, -28, 22, 127];
        assert_eq!((0..12).map(|at| made[0].int(at)).collect::<Vec<_>>(), wanted);
        assert_eq!(made[0], made[1]);
    }

    #[test]
    fn scales_of_others_make_codes_by_themselves() {
        let mut b = Builder::new();
        let [x, y] = ["x", "y"].map(|name| b.input(name, DType::F32.into(), &[1, 4, 4]).unwrap());
        let [scale, zero] = b.choose_affine(x, &[2], Choice::Whole(1e-9), BYTES).unwrap();
        let by = Quantization { scale, zero };
        assert!(b.codes_where_chosen(y, by, BYTES, false).unwrap().is_none(), "of another tensor");
        let turned = [scale, zero].map(|id| b.reshape(id, &[1, 4]).unwrap());
        let by = Quantization { scale: turned[0], zero: turned[1] };
        assert!(b.codes_where_chosen(x, by, BYTES, false).unwrap().is_none(), "of columns");
        let by = Quantization { scale, zero };
        let few = Codes { range: (-8, 7), ..BYTES };
        assert!(b.codes_where_chosen(x, by, few, false).unwrap().is_none(), "other codes");
        assert!(b.codes_where_chosen(x, by, BYTES, false).unwrap().is_some());
        assert!(b.codes_where_chosen(x, by, BYTES, true).unwrap().is_none(), "one way of rounding");
        let rule = LineCodes::new(CodeRule::Whole, -128, 127);
        assert!(b.codes_of_lines(x, &[1], rule.clone()).unwrap().is_none(), "lines whose elements lie apart");
        assert!(b.codes_of_lines(x, &[3], rule).is_err());
    }

    #[test]
    fn products_take_zero_points_of_rows() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 2, 32]).unwrap();
        let [scales, zeros] = b.choose_affine(x, &[2], Choice::Whole(1e-9), BYTES).unwrap();
        let codes = b.quantize_affine(x, scales, Some(zeros), BYTES).unwrap();
        let packed: Vec<i64> = (0..48).map(|i| i * 37 % 256).collect();
        let packed = b.values(DType::U8, &[3, 16], &Values::Int(packed)).unwrap();
        let of_rows = b.values(DType::F32, &[3, 1], &Values::Float(vec![0.5, 0.25, 1.0])).unwrap();
        let weights = QuantWeights { packed, bits: 4, length: 32, scales: of_rows, zeros: None, group: 32 };
        let plain = b.dequantized(&weights).unwrap();
        let rows = QuantRows { codes, scales, zeros: Some(zeros) };
        let made = b.quant_product_of_rows(&rows, &weights).unwrap();
        let floats = b.dequantize_affine(codes, scales, Some(zeros), DType::F32.into()).unwrap();
        let wanted = b.product(floats, plain, true).unwrap();
        b.output("made", made);
        b.output("wanted", wanted);
        let graph = b.finish().unwrap();
        let of_zeros = |node: &crate::graph::Node| matches!(&node.op, NodeOp::Operation(Operation::QuantMatMul(own)) if own.lhs_zeros);
        assert_eq!(graph.body.nodes.iter().filter(|node| of_zeros(node)).count(), 1);
        let x = (0..64).map(|i| f64::from(i * 29 % 64) / 8.0 - 3.0).collect();
        let all = graph.evaluate(&[Values::Float(x)]).unwrap();
        assert!((0..6).all(|at| (all[0].float(at) - all[1].float(at)).abs() < 1e-3), "{all:?}");
    }
}
