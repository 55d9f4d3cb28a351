//! The types of tensors and numbers.

use spirv::Op;

use super::Element;
use crate::{
    error::SpirvError,
    module::{Inst, Module},
};

/// A tensor's type, or that of a number: without sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) element: Element,
    pub(super) shape: Option<Vec<u32>>,
}

/// Numbers of the encodings of floats (`SPV_KHR_bfloat16`, `SPV_EXT_float8`).
const BFLOAT16: u32 = 0;
const FLOAT8_E4M3: u32 = 4214;
const FLOAT8_E5M2: u32 = 4215;

/// Most axes of a tensor.
const MOST_RANK: u32 = 64;

/// Reads the type with an id that a tensor or number has.
pub(super) fn value_type(module: &Module<'_>, id: u32, at: usize) -> Result<Type, SpirvError> {
    let bad = |what: &str| SpirvError::at(at, format!("type {id} {what}"));
    let def = module.def(id).ok_or_else(|| bad("is not defined"))?;
    if def.op != Op::TypeTensorARM {
        let element = scalar(module, def).ok_or_else(|| bad("is no tensor, number or boolean"))?;
        return Ok(Type { element, shape: None });
    }
    let [element, rest @ ..] = module.operands(def) else { return Err(bad("has no element type")) };
    let element = module.def(*element).and_then(|def| scalar(module, def));
    let element = element.ok_or_else(|| bad("is a tensor of what is no number or boolean"))?;
    let [rank, shape] = *rest else { return Err(bad("is a tensor whose sizes are open")) };
    let rank = module.constant_u32(rank).filter(|rank| *rank <= MOST_RANK);
    let rank = rank.ok_or_else(|| bad("is a tensor without a usable rank"))?;
    let sizes = sizes(module, shape).filter(|sizes| sizes.len() == rank as usize);
    let sizes = sizes.ok_or_else(|| bad("is a tensor whose shape is no constant of its rank"))?;
    Ok(Type { element, shape: Some(sizes) })
}

/// The type of a number or boolean.
fn scalar(module: &Module<'_>, def: &Inst) -> Option<Element> {
    Some(match (def.op, module.operands(def)) {
        (Op::TypeBool, _) => Element::Bool,
        (Op::TypeInt, [width @ (8 | 16 | 32 | 64), _]) => Element::Int(*width),
        (Op::TypeFloat, [width @ (16 | 32 | 64)]) => Element::Float(*width),
        (Op::TypeFloat, [16, BFLOAT16]) => Element::BFloat16,
        (Op::TypeFloat, [8, FLOAT8_E4M3]) => Element::Float8E4M3,
        (Op::TypeFloat, [8, FLOAT8_E5M2]) => Element::Float8E5M2,
        _ => return None,
    })
}

/// The sizes that a constant array lists.
fn sizes(module: &Module<'_>, id: u32) -> Option<Vec<u32>> {
    let def = module.def(id)?;
    let number = |id: &u32| module.constant_u32(*id);
    let length = |def: &Inst| {
        let array = module.def(def.ty).filter(|ty| ty.op == Op::TypeArray)?;
        module.operands(array).get(1).and_then(number).filter(|length| *length <= MOST_RANK)
    };
    match def.op {
        Op::ConstantComposite => {
            let sizes = module.operands(def);
            (sizes.len() <= MOST_RANK as usize).then(|| sizes.iter().map(number).collect())?
        }
        Op::ConstantCompositeReplicateEXT => {
            let size = module.operands(def).first().and_then(number)?;
            Some(vec![size; length(def)? as usize])
        }
        Op::ConstantNull => Some(vec![0; length(def)? as usize]),
        _ => None,
    }
}
