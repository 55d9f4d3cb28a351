//! The constants of graphs as bytes.

use spirv::Op;

use super::{Element, Origin, types::Type};
use crate::{
    error::SpirvError,
    module::{Inst, Module},
};

/// The data of a constant; `None` if the instruction is none. Specialization constants have their defaults, as nothing
/// specializes a graph.
pub(super) fn origin(module: &Module<'_>, inst: &Inst, ty: &Type) -> Result<Option<Origin>, SpirvError> {
    let operands = module.operands(inst);
    let bad = |what: String| SpirvError::at(inst.at, format!("constant {}: {what}", inst.id));
    Ok(Some(match inst.op {
        Op::GraphConstantARM => match (operands, &ty.shape) {
            ([number], Some(_)) => Origin::GraphConstant(*number),
            _ => return Err(bad("a graph's constant has to be a tensor".to_owned())),
        },
        Op::ConstantComposite | Op::SpecConstantComposite => {
            let count = ty.shape.as_ref().and_then(|shape| elements(shape));
            if count != Some(operands.len() as u64) {
                return Err(bad(format!("{} elements for a type of {:?}", operands.len(), ty.shape)));
            }
            let mut bytes = Vec::with_capacity(operands.len().saturating_mul(ty.element.size()));
            for id in operands {
                bytes.extend(element(module, *id, ty.element).ok_or_else(|| bad(format!("element {id}")))?);
            }
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
