//! The memory that single instructions access.

use spirv::Op;

use crate::module::{Inst, Module};

/// The pointers that an instruction goes through, and whether it writes there.
pub(crate) fn accessed(module: &Module<'_>, inst: &Inst) -> Vec<(u32, bool)> {
    let words = module.operands(inst);
    let atomic = (227..=242).contains(&(inst.op as u32));
    let float_atomic = matches!(inst.op, Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT);
    match inst.op {
        Op::Load | Op::CooperativeMatrixLoadKHR => vec![(words[0], false)],
        Op::Store | Op::CooperativeMatrixStoreKHR => vec![(words[0], true)],
        Op::CopyMemory => vec![(words[0], true), (words[1], false)],
        Op::AtomicLoad => vec![(words[0], false)],
        _ if atomic || float_atomic => vec![(words[0], true), (words[0], false)],
        _ => Vec::new(),
    }
}
