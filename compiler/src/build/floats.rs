//! Floats that are computed of open sizes: what they are rounded to is a size again, an expression as others are. Models scale images
//! by a factor that they compute of the image's size.

use halite_ops::{
    DType, Operation, Values,
    expression::{Function, Node, Scalar, Type},
    reduce::ReduceKind,
};
use halite_sizes::{Float, FloatFunction, Size};

use super::{
    Builder,
    sizes::{MOST, apply, elementwise, moved, whole_constant},
};
use crate::graph::TensorId;

/// A number that is computed of sizes.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// An integer, or a boolean.
    Whole(Size),
    /// A float of single precision.
    Float(Float),
}

impl Known {
    pub(super) fn whole(&self) -> Option<Size> {
        if let Known::Whole(size) = self { Some(*size) } else { None }
    }

    fn float(&self) -> Option<Float> {
        if let Known::Float(float) = self { Some(float.clone()) } else { None }
    }
}

impl Builder {
    /// The result of an operation on few numbers that are computed of sizes, some of which are floats or become such.
    pub(super) fn fold_floats(&self, operation: &Operation, inputs: &[TensorId]) -> Option<Vec<Known>> {
        let known: Option<Vec<Vec<Known>>> = inputs.iter().map(|id| self.numbers_known(*id)).collect();
        let known = known?;
        let (made, is_general) = halite_sizes::for_all_data(|| fold(operation, &known));
        made.filter(|_| is_general)
    }

    /// Notes what the floats of a tensor are computed of.
    pub(super) fn remember_floats(&mut self, id: TensorId, known: Vec<Known>) {
        let count = self.tensor(id).count();
        let floats: Option<Vec<Float>> = known.iter().map(Known::float).collect();
        if let Some(floats) =
            floats.filter(|floats| count.is_constant() && count.value() == floats.len() as u64)
        {
            self.floats_of_sizes.insert(id, floats);
        }
    }

    /// The few floats of a tensor as they are computed of sizes, where some of these are open.
    pub fn floats_of_sizes(&self, id: TensorId) -> Option<Vec<Float>> {
        self.floats_of_sizes.get(&id).cloned()
    }

    /// The same, or the numbers that they are for all sizes.
    pub fn floats_known(&self, id: TensorId) -> Option<Vec<Float>> {
        self.numbers_known(id)?.iter().map(Known::float).collect()
    }

    /// The few elements of a tensor as they are computed of sizes.
    fn numbers_known(&self, id: TensorId) -> Option<Vec<Known>> {
        if let Some(floats) = self.floats_of_sizes.get(&id) {
            return Some(floats.iter().cloned().map(Known::Float).collect());
        }
        let tensor = self.tensor(id);
        if !tensor.count().is_constant() || tensor.count().value() > MOST as u64 {
            return None;
        }
        if let Some(values) = &tensor.values {
            return Some(values.iter().copied().map(Known::Whole).collect());
        }
        let is_single = tensor.element == DType::F32.into();
        match self.known(id)? {
            Values::Int(values) => Some(values.into_iter().map(|value| Known::Whole(value.into())).collect()),
            Values::Float(values) => {
                let float = |value: f64| Known::Float(Float::number(value as f32));
                is_single.then(|| values.into_iter().map(float).collect())
            }
        }
    }
}

fn fold(operation: &Operation, inputs: &[Vec<Known>]) -> Option<Vec<Known>> {
    match operation {
        Operation::Elementwise(op) => {
            let types = op.program.types(&op.dtypes()).ok()?;
            let is_single = |dtype: DType| !dtype.is_float() || dtype == DType::F32;
            let takes = |ty: &Type| if let Type::Of(dtype) = ty { is_single(*dtype) } else { true };
            let all = op.dtypes().into_iter().all(is_single)
                && types.iter().all(takes)
                && op.program.outputs.iter().all(|output| is_single(output.dtype));
            if all { elementwise(op, inputs, &of, &constant) } else { None }
        }
        Operation::Reduce(reduce) if reduce.outer == 1 && reduce.inner == 1 && reduce.dtype == DType::F32 => {
            let function = match reduce.kind {
                ReduceKind::Max => FloatFunction::Max,
                ReduceKind::Min => FloatFunction::Min,
                _ => return None,
            };
            let mut all = inputs[0].iter().map(Known::float);
            let first = all.next()??;
            let join = |a: Float, b: Option<Float>| Float::call(function, vec![a, b?]);
            Some(vec![Known::Float(all.try_fold(first, join)?)])
        }
        _ => moved(operation, inputs, &Known::whole),
    }
}

fn constant(scalar: Scalar) -> Option<Known> {
    match scalar {
        Scalar::Float(value) => Some(Known::Float(Float::number(value as f32))),
        other => whole_constant(other).map(Known::Whole),
    }
}

fn of(node: &Node, x: &[Known]) -> Option<Known> {
    let whole: Option<Vec<Size>> = x.iter().map(Known::whole).collect();
    let to_float = matches!(node.to, Some(Type::Of(dtype)) if dtype.is_float());
    match (whole, node.function) {
        (Some(whole), Function::Cast) if to_float => Float::of(whole[0]).map(Known::Float),
        (Some(whole), _) => apply(node, &whole).map(Known::Whole),
        (None, Function::Cast) if to_float => Some(x[0].clone()),
        (None, Function::Cast) if node.to == Some(Type::Bool) => None,
        (None, Function::Cast) => x[0].float()?.truncated().map(Known::Whole),
        (None, function) => {
            let floats: Option<Vec<Float>> = x.iter().map(Known::float).collect();
            float(function, floats?).map(Known::Float)
        }
    }
}

fn float(function: Function, mut x: Vec<Float>) -> Option<Float> {
    let function = match function {
        Function::Add => FloatFunction::Add,
        Function::Sub => FloatFunction::Sub,
        Function::Mul => FloatFunction::Mul,
        Function::Div => FloatFunction::Div,
        Function::Min => FloatFunction::Min,
        Function::Max => FloatFunction::Max,
        Function::Floor => FloatFunction::Floor,
        Function::Ceil => FloatFunction::Ceil,
        Function::Round => FloatFunction::Round,
        Function::Sqrt => FloatFunction::Sqrt,
        Function::Reciprocal => {
            x.insert(0, Float::number(1.0));
            FloatFunction::Div
        }
        Function::Neg => {
            x.insert(0, Float::number(0.0));
            FloatFunction::Sub
        }
        Function::Clip => {
            let high = x.pop()?;
            let raised = Float::call(FloatFunction::Max, x)?;
            return Float::call(FloatFunction::Min, vec![raised, high]);
        }
        _ => return None,
    };
    Float::call(function, x)
}
