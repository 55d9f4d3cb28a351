//! The constants of graphs as bytes.

use spirv::Op;

use super::{Element, Origin, types::Type};
use crate::{
    error::SpirvError,
    module::{Inst, Module},
};

/// Bytes that constants may take, for each byte of the module: those that are put together of others may have the same
/// part many times.
const BUDGET_FACTOR: u64 = 64;

/// Bytes that the constants of a module may take.
pub(super) fn budget(module: &Module<'_>) -> u64 {
    (module.words().len() as u64).saturating_mul(4 * BUDGET_FACTOR)
}

/// The data of a constant; `None` if the instruction is none. Specialization constants have their defaults, as nothing
/// specializes a graph. What it takes goes off `budget`.
pub(super) fn origin(
    module: &Module<'_>,
    inst: &Inst,
    ty: &Type,
    budget: &mut u64,
) -> Result<Option<Origin>, SpirvError> {
    let operands = module.operands(inst);
    let bad = |what: String| SpirvError::at(inst.at, format!("constant {}: {what}", inst.id));
    Ok(Some(match inst.op {
        Op::GraphConstantARM => match (operands, &ty.shape) {
            ([number], Some(_)) => Origin::GraphConstant(*number),
            _ => return Err(bad("a graph's constant has to be a tensor".to_owned())),
        },
        Op::ConstantComposite | Op::SpecConstantComposite => {
            let mut bytes = Vec::new();
            let shape = ty.shape.as_deref().ok_or_else(|| bad("a composite that is no tensor".to_owned()))?;
            composite(module, inst, ty.element, shape, &mut bytes, budget)?;
            Origin::Elements(bytes)
        }
        Op::ConstantCompositeReplicateEXT | Op::SpecConstantCompositeReplicateEXT => {
            let id = operands.first().filter(|_| ty.shape.is_some());
            let bytes = id.and_then(|id| element(module, *id, ty.element));
            Origin::Splat(bytes.ok_or_else(|| bad("its element is no constant of its type".to_owned()))?)
        }
        Op::ConstantNull => Origin::Splat(vec![0; ty.element.size()]),
        _ if ty.shape.is_none() => match element(module, inst.id, ty.element) {
            Some(bytes) => Origin::Splat(bytes),
            None => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

/// Appends the elements of a composite: numbers, all of them, or tensors of one axis less. Each level has an axis less, so
/// the recursion is as deep as a tensor has axes.
fn composite(
    module: &Module<'_>,
    inst: &Inst,
    of: Element,
    shape: &[u32],
    bytes: &mut Vec<u8>,
    budget: &mut u64,
) -> Result<(), SpirvError> {
    let bad = |what: String| SpirvError::at(inst.at, format!("constant {}: {what}", inst.id));
    let parts = module.operands(inst);
    let (count, inner) = (elements(shape), shape.get(1..).unwrap_or_default());
    let is_flat = parts.iter().all(|id| element(module, *id, of).is_some());
    let expected = if is_flat { count } else { shape.first().map(|first| u64::from(*first)) };
    if expected != Some(parts.len() as u64) {
        return Err(bad(format!("{} parts for a tensor of {shape:?}", parts.len())));
    }
    for id in parts {
        if is_flat {
            let part = element(module, *id, of).ok_or_else(|| bad(format!("element {id}")))?;
            push(bytes, &part, 1, budget).ok_or_else(|| bad(TOO_LARGE.to_owned()))?;
            continue;
        }
        let part = module.def(*id).filter(|def| def.ty != 0);
        let part = part.ok_or_else(|| bad(format!("part {id} is no constant")))?;
        let has = super::types::value_type(module, part.ty, part.at)?;
        if (has.element, has.shape.as_deref()) != (of, Some(inner)) {
            return Err(bad(format!("part {id} is no {of} tensor of {inner:?}")));
        }
        if matches!(part.op, Op::ConstantComposite | Op::SpecConstantComposite) {
            composite(module, part, of, inner, bytes, budget)?;
            continue;
        }
        let repeated = repeated(module, part, of).ok_or_else(|| bad(format!("part {id} is no constant")))?;
        let times = elements(inner).ok_or_else(|| bad(TOO_LARGE.to_owned()))?;
        push(bytes, &repeated, times, budget).ok_or_else(|| bad(TOO_LARGE.to_owned()))?;
    }
    Ok(())
}

/// The one element of a constant tensor whose elements are all equal.
fn repeated(module: &Module<'_>, inst: &Inst, of: Element) -> Option<Vec<u8>> {
    match (inst.op, module.operands(inst)) {
        (Op::ConstantNull, _) => Some(vec![0; of.size()]),
        (Op::ConstantCompositeReplicateEXT | Op::SpecConstantCompositeReplicateEXT, [id]) => {
            element(module, *id, of)
        }
        _ => None,
    }
}

const TOO_LARGE: &str = "the constants are far larger than the module; large ones belong outside of it";

/// Appends an element so many times; `None` if that is more than the budget.
fn push(bytes: &mut Vec<u8>, element: &[u8], times: u64, budget: &mut u64) -> Option<()> {
    *budget = budget.checked_sub(times.checked_mul(element.len() as u64)?)?;
    (0..times).for_each(|_| bytes.extend(element));
    Some(())
}

/// Number of elements.
fn elements(shape: &[u32]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, size| n.checked_mul(u64::from(*size)))
}

/// The bytes of a constant that is a number or boolean of the type.
fn element(module: &Module<'_>, id: u32, of: Element) -> Option<Vec<u8>> {
    let inst = module.def(id)?;
    let has = super::types::value_type(module, inst.ty, inst.at).ok()?;
    if (has.element, has.shape.is_some()) != (of, false) {
        return None;
    }
    let bits = match (inst.op, module.operands(inst)) {
        (Op::ConstantTrue | Op::SpecConstantTrue, _) => 1,
        (Op::ConstantFalse | Op::SpecConstantFalse | Op::ConstantNull, _) => 0,
        (Op::Constant | Op::SpecConstant, [low]) => u64::from(*low),
        (Op::Constant | Op::SpecConstant, [low, high]) => u64::from(*high) << 32 | u64::from(*low),
        _ => return None,
    };
    Some(bits.to_le_bytes()[..of.size()].to_vec())
}
