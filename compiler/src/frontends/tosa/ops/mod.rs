//! What the operators of TOSA become: one list over all, and a file for each family.

mod call;
mod cast;
mod conv;
mod elementwise;
mod fft;
mod fft_long;
mod fft_turn;
mod float8;
mod matmul;
mod moves;
mod pool;
mod reduce;
mod rescale;
mod resize;
mod rules;
mod taps;
#[cfg(test)]
mod tests;
mod values;

use call::Call;
use halite_formats::tosa::{Graph, Node, Operator as O};
use halite_ops::{expression::Function, reduce::ReduceKind};
use rescale::Rescale;

use super::Result;
use crate::{build::Builder, graph::TensorId};

/// Builds what a node computes, from the tensors that it reads: one for each output of the node.
///
/// # Errors
/// The node breaks a rule of its operator, or is not supported.
pub(super) fn lower(
    b: &mut Builder,
    graph: &Graph,
    node: &Node,
    inputs: &[TensorId],
) -> Result<Vec<TensorId>> {
    let call = Call::new(b, graph, node, inputs)?;
    rules::check(b, &node.operator, &call)?;
    match &node.operator {
        O::Fft2d { inverse, .. } => fft::fft2d(b, &call, *inverse),
        O::Rfft2d { .. } => fft::rfft2d(b, &call),
        operator => Ok(vec![one(b, &call, operator)?]),
    }
}

/// An operator with one output.
fn one(b: &mut Builder, call: &Call<'_>, operator: &O) -> Result<TensorId> {
    match operator {
        O::Conv2d(with) => conv::conv2d(b, call, with),
        O::Conv3d(with) => conv::conv3d(b, call, with),
        O::DepthwiseConv2d(with) => conv::depthwise(b, call, with),
        O::TransposeConv2d(with) => conv::transposed(b, call, with),
        O::MatMul { a_zero, b_zero } => matmul::matmul(b, call, [*a_zero, *b_zero]),
        O::AvgPool2d { pool, input_zero, output_zero, .. } => {
            pool::average(b, call, pool, [*input_zero, *output_zero])
        }
        O::MaxPool2d { pool, nan_mode } => pool::max(b, call, pool, *nan_mode),
        O::ArgMax { axis, nan_mode } => reduce::argmax(b, call, *axis, *nan_mode),
        O::ReduceAll { axis } => reduce::booleans(b, call, ReduceKind::Min, *axis),
        O::ReduceAny { axis } => reduce::booleans(b, call, ReduceKind::Max, *axis),
        O::ReduceMax { axis, nan_mode } => reduce::extreme(b, call, ReduceKind::Max, *axis, *nan_mode),
        O::ReduceMin { axis, nan_mode } => reduce::extreme(b, call, ReduceKind::Min, *axis, *nan_mode),
        O::ReduceProduct { axis } => reduce::reduce(b, call, ReduceKind::Prod, *axis),
        O::ReduceSum { axis } => reduce::reduce(b, call, ReduceKind::Sum, *axis),
        O::Cast => cast::cast(b, call),
        _ => number(b, call, operator),
    }
}

/// Operators on each element, but those that are a function alone.
fn number(b: &mut Builder, call: &Call<'_>, operator: &O) -> Result<TensorId> {
    match *operator {
        O::Clamp { min, max, nan_mode } => elementwise::clamp(b, call, min, max, nan_mode),
        O::Maximum { nan_mode } => elementwise::extreme(b, call, Function::Max, nan_mode),
        O::Minimum { nan_mode } => elementwise::extreme(b, call, Function::Min, nan_mode),
        O::Mul { shift } => elementwise::mul(b, call, shift),
        O::Negate { input_zero, output_zero } => elementwise::negate(b, call, input_zero, output_zero),
        O::ArithmeticRightShift { round } => elementwise::arithmetic_right_shift(b, call, round),
        O::LogicalRightShift => elementwise::logical_right_shift(b, call),
        O::Clz => elementwise::leading_zeros(b, call),
        O::Select => elementwise::select(b, call),
        O::Table => elementwise::table(b, call),
        O::Rescale {
            scale32,
            rounding,
            per_channel,
            input_unsigned,
            output_unsigned,
            input_zero,
            output_zero,
        } => {
            let with = Rescale {
                scale32,
                rounding,
                per_channel,
                input_unsigned,
                output_unsigned,
                input_zero,
                output_zero,
            };
            rescale::rescale(b, call, &with)
        }
        _ => match function(operator) {
            Some(Kind::Unary(function)) => elementwise::unary(b, call, function),
            Some(Kind::Binary(function)) => elementwise::binary(b, call, function),
            Some(Kind::Compare(function)) => elementwise::compare(b, call, function),
            None => place(b, call, operator),
        },
    }
}

/// Operators that move elements.
fn place(b: &mut Builder, call: &Call<'_>, operator: &O) -> Result<TensorId> {
    match operator {
        O::Concat { axis } => moves::concat(b, call, *axis),
        O::Pad { padding } => moves::pad(b, call, padding),
        O::Reshape { shape } => moves::reshape(b, call, shape),
        O::Reverse { axis } => moves::reverse(b, call, *axis),
        O::Slice { start, size } => moves::slice(b, call, start, size),
        O::Tile { multiples } => moves::tile(b, call, multiples),
        O::Transpose { perms } => moves::transpose(b, call, perms),
        O::Gather => moves::gather(b, call),
        O::Scatter => moves::scatter(b, call),
        O::Resize { mode, scale, offset, border } => resize::resize(b, call, *mode, *scale, *offset, *border),
        O::Identity => Ok(call.inputs[0]),
        other => Err(b.unsupported(format!("the operator {}", other.name()))),
    }
}

/// Operators that are one function of expressions.
enum Kind {
    Unary(Function),
    Binary(Function),
    Compare(Function),
}

fn function(operator: &O) -> Option<Kind> {
    use Kind::{Binary, Compare, Unary};
    Some(match operator {
        O::Erf => Unary(Function::Erf),
        O::Sigmoid => Unary(Function::Sigmoid),
        O::Tanh => Unary(Function::Tanh),
        O::Abs => Unary(Function::Abs),
        O::BitwiseNot | O::LogicalNot => Unary(Function::Not),
        O::Ceil => Unary(Function::Ceil),
        O::Cos => Unary(Function::Cos),
        O::Exp => Unary(Function::Exp),
        O::Floor => Unary(Function::Floor),
        O::Log => Unary(Function::Log),
        O::Reciprocal => Unary(Function::Reciprocal),
        O::Rsqrt => Unary(Function::Rsqrt),
        O::Sin => Unary(Function::Sin),
        O::Add => Binary(Function::Add),
        O::BitwiseAnd | O::LogicalAnd => Binary(Function::And),
        O::BitwiseOr | O::LogicalOr => Binary(Function::Or),
        O::BitwiseXor | O::LogicalXor => Binary(Function::Xor),
        O::IntDiv => Binary(Function::Div),
        O::LogicalLeftShift => Binary(Function::Shl),
        O::Pow => Binary(Function::Pow),
        O::Sub => Binary(Function::Sub),
        O::Equal => Compare(Function::Eq),
        O::Greater => Compare(Function::Gt),
        O::GreaterEqual => Compare(Function::Ge),
        _ => return None,
    })
}
