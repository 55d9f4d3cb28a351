//! Arithmetic on sizes: what models compute of the shapes of their inputs is known, as expressions where the sizes are open.

use std::sync::Arc;

use halite_ops::{
    DType, Operation, Values,
    elementwise::Elementwise,
    expression::{Function, Node, Operand, Scalar, Type},
    moves::dense_strides,
    numbers::{self, Numbers},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{ElementType, NodeOp, TensorId};

/// Most elements that are computed so: shapes have few.
pub(super) const MOST: usize = 64;

impl Builder {
    /// A tensor whose elements, integers or booleans, are known as they are computed of symbols.
    ///
    /// # Errors
    /// There are not as many as the dimensions say.
    pub fn computed(
        &mut self,
        element: impl Into<ElementType>,
        dims: &[u64],
        values: Vec<Size>,
    ) -> Result<TensorId> {
        let element = element.into();
        if values.iter().all(|value| value.is_constant()) {
            let numbers = values.iter().map(|value| value.signed_value()).collect();
            return self.values(element, dims, &Values::Int(numbers));
        }
        let id = self.define("", element, dims)?;
        if self.tensor(id).elements() != values.len() as u64 {
            return Err(self.invalid(format!("{} has {} elements", self.describe(&[id]), values.len())));
        }
        self.graph.tensors[id.index()].values = Some(Arc::from(values));
        Ok(id)
    }

    /// A vector of `i64` sizes.
    ///
    /// # Errors
    /// As [`Builder::values`].
    pub fn sizes_constant(&mut self, values: &[Size]) -> Result<TensorId> {
        self.computed(DType::I64, &[values.len() as u64], values.to_vec())
    }

    /// The elements of an integer or boolean tensor, if they are known.
    pub fn size_values(&self, id: TensorId) -> Option<Vec<Size>> {
        if let Some(values) = &self.tensor(id).values {
            return Some(values.to_vec());
        }
        Some(self.ints(id)?.into_iter().map(Size::from).collect())
    }

    /// The elements of an integer or boolean tensor that decide the sizes of tensors: where they are not known, the host reads
    /// them while the function is at work, and they are not negative. `what` says what they are.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn need_sizes(&mut self, id: TensorId, what: &str) -> Result<Vec<Size>> {
        match self.size_values(id) {
            Some(values) => Ok(values),
            None => match self.late_ints(id) {
                Some(values) => Ok(values.into_iter().map(Size::from).collect()),
                None => self.sizes_of_data(id, what),
            },
        }
    }

    /// The same, where the call fails if they are larger than a size.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn need_sizes_within(&mut self, id: TensorId, what: &str, most: Size) -> Result<Vec<Size>> {
        match self.size_values(id) {
            Some(values) => Ok(values),
            None if self.late.contains_key(&id) => self.need_sizes(id, what),
            None => self.read(id, what, 0, most.most().clamp(0, super::MOST_SIZE)),
        }
    }

    /// A tensor that the host or a device can read: elements that are known as expressions are computed.
    ///
    /// # Errors
    /// As [`Builder::push`].
    pub fn written(&mut self, id: TensorId) -> Result<TensorId> {
        self.stored(id)
    }

    /// A tensor that a device can read: elements that are known as expressions are written when they have their values.
    pub(super) fn stored(&mut self, id: TensorId) -> Result<TensorId> {
        let tensor = self.tensor(id);
        let Some(values) = tensor.values.clone() else { return Ok(id) };
        let (element, dims) = (tensor.element, tensor.dims().to_vec());
        let mut parts = Vec::new();
        for values in values.chunks(numbers::MOST) {
            let made = Operation::Numbers(Numbers { values: values.to_vec() });
            let count = [values.len() as u64];
            parts.push(self.push(NodeOp::Operation(made), &[], &[(DType::I64.into(), count.to_vec())])?[0]);
        }
        let all = self.concat(&parts, 0)?;
        let all = self.reshape(all, &dims)?;
        self.cast(all, element)
    }

    /// The result of an operation on few known integers, some of which are open.
    pub(super) fn fold_sizes(&self, operation: &Operation, inputs: &[TensorId]) -> Option<Vec<Size>> {
        if !inputs.iter().any(|id| self.tensor(*id).values.is_some()) {
            return None;
        }
        let few = |id: &TensorId| self.tensor(*id).count().value() <= MOST as u64;
        if !inputs.iter().all(few) {
            return None;
        }
        let known: Option<Vec<Vec<Size>>> = inputs.iter().map(|id| self.size_values(*id)).collect();
        let known = known?;
        // What would need a number that only data decide is left to the device.
        let (made, is_general) = halite_sizes::for_all_data(|| fold(operation, &known));
        made.filter(|_| is_general)
    }
}

fn fold(operation: &Operation, inputs: &[Vec<Size>]) -> Option<Vec<Size>> {
    match operation {
        Operation::Elementwise(op) => {
            let types = op.program.types(&op.dtypes()).ok()?;
            let is_whole = |ty: &Type| match ty {
                Type::Bool => true,
                Type::Of(dtype) => !dtype.is_float(),
                Type::Table => false,
            };
            let is_float = |dtype: &DType| dtype.is_float();
            if !types.iter().all(is_whole)
                || op.dtypes().iter().any(is_float)
                || op.program.outputs.iter().any(|output| output.dtype.is_float())
            {
                return None;
            }
            elementwise(op, inputs, &apply, &whole_constant)
        }
        Operation::Reduce(reduce) if reduce.outer == 1 && reduce.inner == 1 => {
            let all = inputs[0].iter().copied();
            Some(vec![match reduce.kind {
                ReduceKind::Sum => all.sum(),
                ReduceKind::Prod => all.product(),
                ReduceKind::Max => all.reduce(Size::max)?,
                ReduceKind::Min => all.reduce(Size::min)?,
                _ => return None,
            }])
        }
        _ => moved(operation, inputs, &|index| Some(*index)),
    }
}

/// The result of an operation that moves few elements; `whole` is what an element is as an index.
pub(super) fn moved<T: Clone>(
    operation: &Operation,
    inputs: &[Vec<T>],
    whole: &dyn Fn(&T) -> Option<Size>,
) -> Option<Vec<T>> {
    let counts = operation.outputs();
    let [output] = &counts[..] else { return None };
    let count = usize::try_from(output.elements().value()).ok().filter(|count| *count <= MOST)?;
    match operation {
        Operation::StridedCopy(copy) => {
            let shape: Vec<usize> = copy.shape.iter().map(|size| size.exact_usize()).collect();
            let strides: Vec<i64> = copy.strides.iter().map(|stride| stride.exact_signed()).collect();
            let place = |index: usize| {
                let (mut rest, mut at) = (index, copy.offset.exact_signed());
                for (size, stride) in shape.iter().zip(&strides).rev() {
                    at += (rest % size) as i64 * stride;
                    rest /= size;
                }
                inputs[0].get(usize::try_from(at).ok()?).cloned()
            };
            (0..count).map(place).collect()
        }
        Operation::Gather(gather) => {
            let [outer, axis, inner] = [gather.outer, gather.axis, gather.inner].map(Size::exact_signed);
            let mut made = Vec::new();
            for o in 0..outer {
                for index in &inputs[1] {
                    let index = whole(index)?.exact_signed();
                    let index = if index < 0 { index + axis } else { index };
                    for i in 0..inner {
                        let at = (o * axis + index) * inner + i;
                        made.push(inputs[0].get(usize::try_from(at).ok()?)?.clone());
                    }
                }
            }
            Some(made)
        }
        Operation::Concat(concat) if concat.outer == 1 => Some(inputs.concat()),
        _ => None,
    }
}

/// What a function gives for numbers that are known.
type Apply<'a, T> = &'a dyn Fn(&Node, &[T]) -> Option<T>;

/// The results of an elementwise operation on few elements; `constant` is a constant of its expression.
pub(super) fn elementwise<T: Clone>(
    op: &Elementwise,
    inputs: &[Vec<T>],
    apply: Apply<'_, T>,
    constant: &dyn Fn(Scalar) -> Option<T>,
) -> Option<Vec<T>> {
    let [output] = &op.program.outputs[..] else { return None };
    let dims: Vec<usize> = op.dims().iter().map(|size| size.exact_usize()).collect();
    let shapes = op.shapes();
    let count: usize = Some(dims.iter().product()).filter(|count| *count <= MOST)?;
    let one = |place: usize| {
        let element = |input: usize| {
            let own = &shapes[input];
            let strides = dense_strides(own);
            let (mut rest, mut at) = (place, 0usize);
            for (axis, size) in dims.iter().enumerate().rev() {
                let coordinate = rest % size;
                rest /= size;
                if let Some(d) = (axis + own.len()).checked_sub(dims.len())
                    && own[d] != 1
                {
                    at += coordinate * strides[d].exact_usize();
                }
            }
            inputs[input].get(at).cloned()
        };
        let operand = |operand: Operand, nodes: &[T]| match operand {
            Operand::Input(input) => element(input),
            Operand::Node(node) => nodes.get(node).cloned(),
            Operand::Constant(scalar) => constant(scalar),
            Operand::Table(_) => None,
        };
        let mut nodes: Vec<T> = Vec::with_capacity(op.program.nodes.len());
        for node in &op.program.nodes {
            let operands: Option<Vec<T>> = node.operands.iter().map(|of| operand(*of, &nodes)).collect();
            nodes.push(apply(node, &operands?)?);
        }
        operand(output.value, &nodes)
    };
    (0..count).map(one).collect()
}

/// A constant that is no float.
pub(super) fn whole_constant(scalar: Scalar) -> Option<Size> {
    match scalar {
        Scalar::Int(value, _) => Some(value.into()),
        Scalar::Bool(value) => Some(i64::from(value).into()),
        Scalar::Float(_) => None,
    }
}

/// What a function of whole numbers gives.
pub(super) fn apply(node: &Node, x: &[Size]) -> Option<Size> {
    let truth = |value: bool| Some(Size::from(i64::from(value)));
    // What data decide is not known yet: the device computes it.
    let positive = |a: Size| a.is_below(0).map(|below| !below);
    let is_true = |a: Size| a.is_zero().map(|zero| !zero);
    match (node.function, x) {
        (Function::Cast, [a]) if node.to == Some(Type::Bool) => truth(is_true(*a)?),
        (Function::Cast, [a]) => Some(*a),
        (Function::Add, [a, b]) => Some(*a + *b),
        (Function::Sub, [a, b]) => Some(*a - *b),
        (Function::Mul, [a, b]) => Some(*a * *b),
        // Division of negative numbers is rounded towards 0, which sizes are not.
        (Function::Div, [a, b]) if positive(*a)? && Size::constant(0).is_below(*b)? => Some(*a / *b),
        (Function::Mod | Function::Fmod, [a, b]) if positive(*a)? && Size::constant(0).is_below(*b)? => {
            Some(*a % *b)
        }
        // As in Python, what is left has the sign of the divisor.
        (Function::Mod, [a, b]) if Size::constant(0).is_below(*b)? => Some((*b - -*a % *b) % *b),
        (Function::Min, [a, b]) => Some(Size::min(*a, *b)),
        (Function::Max, [a, b]) => Some(Size::max(*a, *b)),
        (Function::Neg, [a]) => Some(-*a),
        (Function::Abs, [a]) => Some(if positive(*a)? { *a } else { -*a }),
        (Function::Eq, [a, b]) => truth((*a - *b).is_zero()?),
        (Function::Ne, [a, b]) => truth(!(*a - *b).is_zero()?),
        (Function::Lt, [a, b]) => truth(a.is_below(*b)?),
        (Function::Le, [a, b]) => truth(!b.is_below(*a)?),
        (Function::Gt, [a, b]) => truth(b.is_below(*a)?),
        (Function::Ge, [a, b]) => truth(!a.is_below(*b)?),
        (Function::Not, [a]) => truth(a.is_zero()?),
        (Function::And, [a, b]) => truth(is_true(*a)? && is_true(*b)?),
        (Function::Or, [a, b]) => truth(is_true(*a)? || is_true(*b)?),
        (Function::Select, [condition, a, b]) => Some(if is_true(*condition)? { *a } else { *b }),
        _ => None,
    }
}
