//! What the specification allows: types of tensors, and the sizes of level 8K.

use halite_formats::tosa::{ElementType as E, Operator};

use super::{super::Result, call::Call};
use crate::build::Builder;

/// Most places that a kernel reaches over (`MAX_KERNEL`).
pub(super) const MOST_KERNEL: u64 = 8192;
/// Most steps from one place of a kernel to the next (`MAX_STRIDE`).
pub(super) const MOST_STRIDE: u64 = 8192;
/// How much larger RESIZE makes images at most (`MAX_SCALE`).
pub(super) const MOST_SCALE: i64 = 256;
/// Most dimensions of a tensor (`MAX_RANK`).
const MOST_DIMS: usize = 6;
/// Most tensors in a list (`MAX_TENSOR_LIST_SIZE`).
const MOST_TENSORS: usize = 64;
/// Most bytes of a tensor.
const MOST_BYTES: u64 = (1 << 31) - 1;

/// The types that an operator's tensors have.
enum Types {
    /// One of these for all inputs and the output.
    Same(&'static [E]),
    /// The first for all inputs, the second for the output.
    To(&'static [(E, E)]),
    /// One for each input, then the output's.
    Each(&'static [&'static [E]]),
    /// Any.
    Any,
}

const FLOATS: &[E] = &[E::F16, E::F32, E::BF16];
const BITS: &[E] = &[E::I8, E::I16, E::I32];
const NUMBERS: &[E] = &[E::I32, E::F16, E::F32, E::BF16];
const REDUCED: &[E] = &[E::I8, E::I16, E::I32, E::F16, E::F32, E::BF16];
const POOLED: &[E] = &[E::I8, E::I16, E::F8E4M3, E::F8E5M2, E::F16, E::F32, E::BF16];
const MOVED: &[E] = &[E::Bool, E::I8, E::I16, E::I32, E::I48, E::F8E4M3, E::F8E5M2, E::F16, E::F32, E::BF16];
const COMPARED: &[(E, E)] = &[(E::I32, E::Bool), (E::F16, E::Bool), (E::F32, E::Bool), (E::BF16, E::Bool)];
const PLACES: &[(E, E)] = &[
    (E::I8, E::I32),
    (E::I16, E::I32),
    (E::F8E4M3, E::I32),
    (E::F8E5M2, E::I32),
    (E::F16, E::I32),
    (E::F32, E::I32),
    (E::BF16, E::I32),
];
/// Input, weights, bias, output.
const CONVOLVED: &[&[E]] = &[
    &[E::I8, E::I8, E::I32, E::I32],
    &[E::I8, E::I4, E::I32, E::I32],
    &[E::I16, E::I8, E::I48, E::I48],
    &[E::F8E4M3, E::F8E4M3, E::F16, E::F16],
    &[E::F8E5M2, E::F8E5M2, E::F16, E::F16],
    &[E::F16, E::F16, E::F16, E::F16],
    &[E::F32, E::F32, E::F32, E::F32],
    &[E::BF16, E::BF16, E::BF16, E::BF16],
];
const MULTIPLIED: &[(E, E)] = &[
    (E::I8, E::I32),
    (E::I16, E::I48),
    (E::F8E4M3, E::F16),
    (E::F8E5M2, E::F16),
    (E::F16, E::F16),
    (E::F16, E::F32),
    (E::F32, E::F32),
    (E::BF16, E::F32),
];
const PRODUCTS: &[(E, E)] = &[
    (E::I8, E::I32),
    (E::I16, E::I32),
    (E::I32, E::I32),
    (E::F16, E::F16),
    (E::F32, E::F32),
    (E::BF16, E::BF16),
];
const RESIZED: &[(E, E)] = &[
    (E::I8, E::I32),
    (E::I8, E::I8),
    (E::I16, E::I48),
    (E::I16, E::I16),
    (E::F16, E::F16),
    (E::F32, E::F32),
    (E::BF16, E::BF16),
];
const RESCALED: &[(E, E)] = &[
    (E::I8, E::I8),
    (E::I8, E::I16),
    (E::I8, E::I32),
    (E::I16, E::I8),
    (E::I16, E::I16),
    (E::I16, E::I32),
    (E::I32, E::I8),
    (E::I32, E::I16),
    (E::I32, E::I32),
    (E::I48, E::I8),
    (E::I48, E::I16),
    (E::I48, E::I32),
];

fn types(operator: &Operator) -> Types {
    use Operator as O;
    match operator {
        O::ArgMax { .. } => Types::To(PLACES),
        O::AvgPool2d { .. } | O::MaxPool2d { .. } => Types::Same(POOLED),
        O::Conv2d(_) | O::Conv3d(_) | O::DepthwiseConv2d(_) | O::TransposeConv2d(_) => Types::Each(CONVOLVED),
        O::Fft2d { .. } | O::Rfft2d { .. } => Types::Same(&[E::F32]),
        O::MatMul { .. } => Types::To(MULTIPLIED),
        O::Clamp { .. } => Types::Same(&[E::I8, E::I16, E::F16, E::F32, E::BF16]),
        O::Erf | O::Sigmoid | O::Tanh | O::Ceil | O::Cos | O::Exp | O::Floor | O::Log => Types::Same(FLOATS),
        O::Reciprocal | O::Rsqrt | O::Sin | O::Pow | O::ReduceProduct { .. } => Types::Same(FLOATS),
        O::Add | O::Sub | O::Maximum { .. } | O::Minimum { .. } | O::Abs => Types::Same(NUMBERS),
        O::ReduceSum { .. } => Types::Same(NUMBERS),
        O::ArithmeticRightShift { .. } | O::LogicalLeftShift | O::LogicalRightShift => Types::Same(BITS),
        O::BitwiseAnd | O::BitwiseOr | O::BitwiseXor | O::BitwiseNot => Types::Same(BITS),
        O::IntDiv | O::Clz => Types::Same(&[E::I32]),
        O::LogicalAnd | O::LogicalOr | O::LogicalXor | O::LogicalNot => Types::Same(&[E::Bool]),
        O::ReduceAll { .. } | O::ReduceAny { .. } => Types::Same(&[E::Bool]),
        O::Negate { .. } | O::ReduceMax { .. } | O::ReduceMin { .. } => Types::Same(REDUCED),
        O::Mul { .. } => Types::To(PRODUCTS),
        O::Table => Types::Each(&[&[E::I8, E::I8, E::I8], &[E::I16, E::I16, E::I32]]),
        O::Equal | O::Greater | O::GreaterEqual => Types::To(COMPARED),
        O::Resize { .. } => Types::To(RESIZED),
        // Multipliers and shifts are no part of what is chosen.
        O::Rescale { .. } => Types::To(RESCALED),
        O::Concat { .. } | O::Pad { .. } | O::Reshape { .. } | O::Reverse { .. } => Types::Same(MOVED),
        O::Slice { .. } | O::Tile { .. } | O::Transpose { .. } => Types::Same(MOVED),
        _ => Types::Any,
    }
}

/// Whether the node's types are such as the operator takes, and its tensors no larger than the level allows.
///
/// # Errors
/// Names the operator, what it has, and what there is.
pub(super) fn check(b: &Builder, operator: &Operator, call: &Call<'_>) -> Result<()> {
    let mut found: Vec<E> = call.elements().collect();
    if matches!(operator, Operator::Rescale { .. }) {
        found.truncate(1);
    }
    let out = call.output().element;
    let (fits, list) = match types(operator) {
        Types::Any => (true, String::new()),
        Types::Same(all) => {
            let fits = all.contains(&out) && found.iter().all(|t| *t == out);
            (fits, all.iter().map(|t| t.name()).collect::<Vec<_>>().join(", "))
        }
        Types::To(pairs) => {
            let fits = pairs.iter().any(|(from, to)| *to == out && found.iter().all(|t| t == from));
            let each = |(from, to): &(E, E)| format!("{from} to {to}");
            (fits, pairs.iter().map(each).collect::<Vec<_>>().join(", "))
        }
        Types::Each(rows) => {
            let fits = rows.iter().any(|row| row[..row.len() - 1] == found && row[row.len() - 1] == out);
            (
                fits,
                rows.iter()
                    .map(|row| signature(&row[..row.len() - 1], row[row.len() - 1]))
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        }
    };
    if !fits {
        let has = signature(&found, out);
        return Err(b.unsupported(format!("{} of {has}; TOSA 1.0 has {list}", call.name())));
    }
    sizes(b, call)
}

fn signature(inputs: &[E], out: E) -> String {
    let inputs: Vec<_> = inputs.iter().map(|t| t.name()).collect();
    format!("{} to {out}", inputs.join(", "))
}

fn sizes(b: &Builder, call: &Call<'_>) -> Result<()> {
    if call.inputs.len() > MOST_TENSORS {
        let count = call.inputs.len();
        return Err(b.unsupported(format!(
            "{} of {count} tensors; level 8K has {MOST_TENSORS} at most",
            call.name()
        )));
    }
    for (shape, element) in call.shapes() {
        if shape.len() > MOST_DIMS {
            let reason =
                format!("{} with {} dimensions; level 8K has {MOST_DIMS} at most", call.name(), shape.len());
            return Err(b.unsupported(reason));
        }
        let bytes = shape.iter().fold(element.size(), |n, size| n.saturating_mul(*size));
        if bytes > MOST_BYTES {
            let reason = format!("{} of {shape:?} {element}; level 8K has {MOST_BYTES} bytes", call.name());
            return Err(b.unsupported(reason));
        }
    }
    Ok(())
}

/// Whether a number is at least 1 and within a bound of the level.
///
/// # Errors
/// Names the operator, the number and the bound.
pub(super) fn bounded(b: &Builder, call: &Call<'_>, what: &str, value: u64, most: u64) -> Result<()> {
    if value == 0 {
        return Err(b.invalid(format!("{}: {what} of 0", call.name())));
    }
    at_most(b, call, what, value, most)
}

/// Whether a number is within a bound of the level.
///
/// # Errors
/// Names the operator, the number and the bound.
pub(super) fn at_most(b: &Builder, call: &Call<'_>, what: &str, value: u64, most: u64) -> Result<()> {
    if value > most {
        let reason = format!("{}: {what} of {value}; level 8K has {most} at most", call.name());
        return Err(b.unsupported(reason));
    }
    Ok(())
}
