//! Queries that were scaled before their heads were put first: the factor goes into the attention, and what is left of the arithmetic
//! into the product before it.
//!
//! Transformers of many kinds multiply the projection of queries, with its bias, and transpose it then. The factor would be a kernel of
//! its own, as the projections of queries, keys and values are one product.

use halite_ops::{
    DType, Operation,
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{self, Operand},
};
use halite_sizes::Size;

use super::{
    chain::{Chain, factor, part},
    merge::Reader,
};
use crate::graph::TensorId;

/// Where queries come from without a factor.
pub(super) struct Queries {
    /// What they are copied from, one copy after the other, the first one first.
    pub copies: Vec<StridedCopy>,
    /// What the first copy reads, or the queries themselves.
    pub from: From,
}

/// What is copied.
pub(super) enum From {
    /// A tensor.
    Tensor(TensorId),
    /// What is computed of some, with its dimensions.
    Computed(Elementwise, Vec<TensorId>, Vec<Size>),
}

impl Queries {
    /// A tensor and the factor that it was given, also behind copies that nothing else reads.
    pub fn of(chain: &Chain<'_>, id: TensorId, dtype: DType) -> (f64, Queries) {
        let (mut scale, mut id) = (1.0, chain.behind_views(id));
        while let Some((factor, from)) = chain.scaled(id) {
            scale *= factor;
            id = chain.behind_views(from);
        }
        match behind_copies(chain, id, dtype) {
            Some((factor, queries)) => (scale * factor, queries),
            None => (scale, Queries { copies: Vec::new(), from: From::Tensor(id) }),
        }
    }
}

/// A factor that is behind some copies.
fn behind_copies(chain: &Chain<'_>, id: TensorId, dtype: DType) -> Option<(f64, Queries)> {
    let (mut copies, mut at) = (Vec::new(), id);
    loop {
        match chain.only_maker(at)? {
            (node, Operation::StridedCopy(copy)) if copy.dtype == dtype => {
                copies.push(copy.clone());
                at = node.inputs[0];
            }
            (node, Operation::Elementwise(elementwise)) if !copies.is_empty() => {
                let made = node.outputs[0];
                let (factor, from) = without_factor(chain, elementwise, &node.inputs, made, dtype)?;
                copies.reverse();
                return Some((factor, Queries { copies, from }));
            }
            _ => return None,
        }
    }
}

/// The factor that an operation multiplies by at its end, and what is there without it.
fn without_factor(
    chain: &Chain<'_>,
    elementwise: &Elementwise,
    ids: &[TensorId],
    made: TensorId,
    dtype: DType,
) -> Option<(f64, From)> {
    if let Some((factor, from)) = chain.scaled(made) {
        return Some((factor, From::Tensor(from)));
    }
    let reader = Reader::new(elementwise, ids);
    let [output] = reader.program.outputs[..] else { return None };
    let Operand::Node(last) = output.value else { return None };
    if output.dtype != dtype || !elementwise.strided.is_empty() || !reader.tables.is_empty() {
        return None;
    }
    let call = &reader.program.nodes[last];
    let (factor, inner) =
        call.operands.iter().find_map(|operand| Some((factor(call, *operand)?, *operand)))?;
    let (mut program, value, inputs) = part(&reader.program, inner);
    program.store(value, dtype);
    let inputs: Vec<_> = inputs.into_iter().map(|input| reader.inputs[input].clone()).collect();
    let all: Vec<_> = inputs.iter().map(|(_, _, dims)| dims.clone()).collect();
    let dims = expression::broadcast(&all).ok()?;
    if dims.iter().product::<Size>() != chain.graph.tensor(made).count() {
        return None;
    }
    let ids = inputs.iter().map(|(id, ..)| *id).collect();
    let shapes: Vec<_> = inputs.into_iter().map(|(_, dtype, dims)| (dtype, dims)).collect();
    Some((factor, From::Computed(Elementwise::new(shapes, program), ids, dims)))
}
