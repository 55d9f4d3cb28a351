//! Masks that need no tensor: what is computed of constants, and hides nothing or what comes behind each query.

use std::{cell::RefCell, collections::HashMap};

use halite_ops::{
    DType, Operation, Values,
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{self, Expression, Operand},
};
use halite_sizes::Size;

use super::chain::Chain;
use crate::graph::{NodeOp, TensorId};

/// Most elements of a constant mask that is looked at.
const MOST_LOOKED_AT: u64 = 1 << 24;
/// Most operations behind one another that compute a mask.
const MOST_STEPS: usize = 16;

/// Values of a constant mask from here down hide a key from a query that sees another one: the lowest number of 16-bit floats, which exporters of
/// such models write for minus infinity. A weight is left of it only where scores are 65,000 apart.
const HIDDEN: f64 = -65504.0;

/// A mask that needs no tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It hides nothing.
    Nothing,
    /// A query sees the keys up to its own, and the last query sees all.
    Causal,
}

/// What was found of masks, by the tensors, the program and the sizes: layers share them.
#[derive(Default)]
pub(super) struct KnownMasks(RefCell<HashMap<String, Option<Known>>>);

impl KnownMasks {
    /// What a program says of `[queries, keys]`, if it computes a mask of constants alone that is one of those.
    pub(super) fn known(
        &self,
        chain: &Chain<'_>,
        (program, value): (&Expression, Operand),
        inputs: &[(TensorId, DType, Vec<Size>)],
        sizes: [Size; 2],
    ) -> Option<Known> {
        if !sizes.iter().all(|size| size.is_constant()) || !inputs.iter().all(|input| is_fixed(&input.2)) {
            return None;
        }
        let key = format!("{inputs:?} {program:?} {value:?} {sizes:?}");
        if let Some(found) = self.0.borrow().get(&key) {
            return *found;
        }
        let values = computed(chain, (program, value), inputs);
        let found = values.and_then(|(dims, values)| looked_at(&values, &dims, sizes));
        self.0.borrow_mut().insert(key, found);
        found
    }
}

fn is_fixed(dims: &[Size]) -> bool {
    dims.iter().all(|size| size.is_constant())
}

/// A tensor's dimensions and values; where it repeats one plane for all dimensions before the last two, those of the plane.
type Plane = (Vec<Size>, Values);

/// The mask, for all that have the same one only once.
fn computed(
    chain: &Chain<'_>,
    (program, value): (&Expression, Operand),
    inputs: &[(TensorId, DType, Vec<Size>)],
) -> Option<Plane> {
    if let (Operand::Input(0), [(id, _, dims)]) = (value, inputs) {
        return plane(chain, *id, dims, MOST_STEPS);
    }
    let mut program = program.clone();
    program.store(value, DType::F32);
    let (dims, mut made) = elementwise(chain, program, inputs.iter().cloned(), MOST_STEPS)?;
    Some((dims, made.pop()?))
}

/// The results of a program for planes of its inputs.
fn elementwise(
    chain: &Chain<'_>,
    program: Expression,
    inputs: impl Iterator<Item = (TensorId, DType, Vec<Size>)>,
    steps: usize,
) -> Option<(Vec<Size>, Vec<Values>)> {
    let (mut shapes, mut values) = (Vec::new(), Vec::new());
    for (id, dtype, dims) in inputs {
        let (dims, own) = plane(chain, id, &dims, steps)?;
        // A program reads truths as numbers, as they lie in memory.
        if chain.graph.tensor(id).element.storage() != dtype {
            return None;
        }
        shapes.push((dtype, dims));
        values.push(own);
    }
    let all: Vec<Vec<Size>> = shapes.iter().map(|(_, dims)| dims.clone()).collect();
    let dims = expression::broadcast(&all).ok()?;
    if !chain.uses.may_compute(count(&dims)) {
        return None;
    }
    let made = Operation::Elementwise(Elementwise::new(shapes, program)).reference(&values);
    Some((dims, made))
}

fn count(dims: &[Size]) -> u64 {
    dims.iter().fold(1, |all: u64, size| all.saturating_mul(size.exact()))
}

/// What a tensor is, if it is computed of constants alone within `steps` operations.
fn plane(chain: &Chain<'_>, id: TensorId, dims: &[Size], steps: usize) -> Option<Plane> {
    let steps = steps.checked_sub(1)?;
    let shown = chain.behind_views(id);
    let node = chain.producer(shown);
    match node.map(|node| (&node.op, node)) {
        Some((NodeOp::Operation(Operation::StridedCopy(copy)), node)) => {
            let Some((one, dims)) = one_plane(copy, dims) else { return whole(chain, id, dims, steps) };
            let (_, from) = chain
                .uses
                .may_compute(count(&dims))
                .then(|| whole(chain, node.inputs[0], chain.graph.tensor(node.inputs[0]).sizes(), steps))??;
            Some((dims, Operation::StridedCopy(one).reference(&[from]).pop()?))
        }
        Some((NodeOp::Operation(Operation::Elementwise(op)), node)) => {
            let plain = op.strided.is_empty() && op.tables.0.is_empty();
            if !plain || chain.graph.tensor(shown).sizes() != dims {
                return whole(chain, id, dims, steps);
            }
            let place = node.outputs.iter().position(|output| *output == shown)?;
            let inputs = node.inputs.iter().zip(&op.inputs.0);
            let inputs = inputs.map(|(id, (dtype, dims))| (*id, *dtype, dims.clone()));
            let (dims, made) = elementwise(chain, op.program.clone(), inputs, steps)?;
            let storage = chain.graph.tensor(shown).element.storage();
            // As memory has them.
            Some((dims, Values::from_bytes(storage, &made.get(place)?.to_bytes(storage))))
        }
        _ => whole(chain, id, dims, steps),
    }
}

/// The copy of one plane, and its dimensions, where a copy repeats a plane for all dimensions before the last two.
fn one_plane(copy: &StridedCopy, dims: &[Size]) -> Option<(StridedCopy, Vec<Size>)> {
    let fixed = is_fixed(&copy.shape) && is_fixed(&copy.strides);
    if !fixed || !copy.offset.is_constant() || !copy.source.is_constant() {
        return None;
    }
    let mut dims = dims.to_vec();
    let lead = dims.len().saturating_sub(2);
    let repeated = copy.strides.iter().take_while(|stride| **stride == 0).count();
    // The copy may have other dimensions, but those that repeat come first in both.
    let all = count(&dims[..lead]);
    let (mut before, mut own) = (0, 1);
    while before < repeated && own < all {
        own = own.saturating_mul(copy.shape[before].exact());
        before += 1;
    }
    if own != all {
        return None;
    }
    let mut one = copy.clone();
    one.shape[..before].fill(Size::constant(1));
    dims[..lead].fill(Size::constant(1));
    Some((one, dims))
}

/// The same, of all that there is, as no plane is known to repeat.
fn whole(chain: &Chain<'_>, id: TensorId, dims: &[Size], steps: usize) -> Option<Plane> {
    let tensor = chain.graph.tensor(id);
    if !is_fixed(tensor.sizes()) || !is_fixed(dims) {
        return None;
    }
    let storage = tensor.element.storage();
    if let Some(bytes) = &tensor.constant {
        let few = tensor.elements() <= MOST_LOOKED_AT;
        return few.then(|| (dims.to_vec(), Values::from_bytes(storage, bytes)));
    }
    let node = chain.producer(id)?;
    let steps = steps.checked_sub(1)?;
    let own =
        |id: TensorId| whole(chain, id, chain.graph.tensor(id).sizes(), steps).map(|(_, values)| values);
    let values = match &node.op {
        NodeOp::View if chain.graph.tensor(node.inputs[0]).element.storage() == storage => {
            own(node.inputs[0])?
        }
        NodeOp::Operation(operation @ (Operation::Elementwise(_) | Operation::StridedCopy(_))) => {
            let place = node.outputs.iter().position(|output| *output == id)?;
            let inputs: Option<Vec<_>> = node.inputs.iter().map(|id| own(*id)).collect();
            let inputs = inputs.filter(|_| chain.uses.may_compute(tensor.elements()))?;
            let made = operation.reference(&inputs).into_iter().nth(place)?;
            Values::from_bytes(storage, &made.to_bytes(storage))
        }
        _ => return None,
    };
    Some((dims.to_vec(), values))
}

/// What a mask of `[queries, keys]`, once or several times, says.
fn looked_at(values: &Values, dims: &[Size], sizes: [Size; 2]) -> Option<Known> {
    if (0..values.len()).all(|i| values.float(i) == 0.0) {
        return Some(Known::Nothing);
    }
    if !dims.ends_with(&sizes) {
        return None;
    }
    let [queries, keys] = sizes.map(Size::exact);
    let keys_each = usize::try_from(keys).ok().filter(|keys| *keys > 0)?;
    // The first queries must see a key: what else they give is not the same.
    let last = |row: usize| (keys + row as u64 % queries).checked_sub(queries);
    let fits = |row: usize| {
        let Some(last) = last(row) else { return false };
        (0..keys_each).all(|key| {
            let value = values.float(row * keys_each + key);
            if key as u64 <= last { value == 0.0 } else { value <= HIDDEN }
        })
    };
    (0..values.len() / keys_each).all(fits).then_some(Known::Causal)
}
