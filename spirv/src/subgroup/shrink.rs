//! Leaving out invocations that only repeat what others of their workgroup do.
//!
//! If neither a branch, nor the address or the value of any store, depends on the id in a dimension, then a run in
//! which the invocations that differ only in that dimension advance together, instruction by instruction, is one of
//! the runs that the kernel allows, and one invocation alone leaves the same memory behind. So a workgroup of extent
//! one in that dimension does what the kernel may do anyway, and what its compiler meant if it counted on lockstep.

use spirv::{BuiltIn, Decoration, ExecutionMode, Op, Scope, StorageClass};

use super::{
    replica::{Equal, replica_dimensions},
    uniform::is_pure,
};
use crate::{
    cfg::Function, decorations::Decorations, edit::Editor, entry::Entry, error::SpirvError, module::Inst,
    program::ParsedModule, types::Type, words::instruction,
};

/// The size of the workgroup without repeated work; `None` if nothing is repeated, or that cannot be proved.
pub(super) fn smaller_size(
    program: &ParsedModule<'_>,
    entry: &Entry,
    decorations: &Decorations<'_>,
) -> Option<[u32; 3]> {
    let functions = program.call_tree(entry.function);
    let [function] = functions.as_slice() else { return None };
    if !size_is_free(program, entry, decorations) || !all_plain(program, function) {
        return None;
    }
    let size = entry.local_size;
    let repeats = replica_dimensions(program, function, decorations, size, Equal::AllStores);
    let smaller = std::array::from_fn(|d| if repeats[d] { 1 } else { size[d] });
    (smaller != size).then_some(smaller)
}

/// The module with another workgroup size for one entry point.
pub(super) fn shrink(
    program: &ParsedModule<'_>,
    entry: &Entry,
    [x, y, z]: [u32; 3],
) -> Result<Vec<u32>, SpirvError> {
    let mut edit = Editor::new(&program.module);
    let size = ExecutionMode::LocalSize as u32;
    for inst in modes_of(program, entry).filter(|i| program.module.operands(i)[1] == size) {
        edit.replace(inst, instruction(Op::ExecutionMode, &[entry.function, size, x, y, z]));
    }
    edit.finish()
}

fn modes_of<'a>(program: &'a ParsedModule<'_>, entry: &'a Entry) -> impl Iterator<Item = &'a Inst> {
    let modes = program.module.insts().iter().filter(|i| i.op == Op::ExecutionMode);
    modes.filter(|i| program.module.operands(i)[0] == entry.function)
}

/// Whether nothing but the execution mode says how large the workgroup is, and no other mode builds on it.
fn size_is_free(program: &ParsedModule<'_>, entry: &Entry, decorations: &Decorations<'_>) -> bool {
    let is_size = |id: u32| decorations.value(id, Decoration::BuiltIn) == Some(BuiltIn::WorkgroupSize as u32);
    let about_numbers = ExecutionMode::DenormPreserve as u32..=ExecutionMode::RoundingModeRTZ as u32;
    let mut modes = modes_of(program, entry).map(|i| program.module.operands(i)[1]);
    !program.module.insts().iter().any(|i| i.id != 0 && is_size(i.id))
        && modes.all(|m| m == ExecutionMode::LocalSize as u32 || about_numbers.contains(&m))
}

/// Whether the function does nothing but compute, branch, load, store and wait for its workgroup.
fn all_plain(program: &ParsedModule<'_>, function: &Function) -> bool {
    let pointer_of_others = |id: u32| {
        let ty = program.module.def(id).and_then(|d| program.types.get(d.ty));
        let own = [StorageClass::Function, StorageClass::Private];
        matches!(ty, Some(Type::Pointer { class, .. }) if !own.contains(class))
    };
    program.body(function).all(|inst| {
        let words = program.module.operands(inst);
        match inst.op {
            // Some of these write through a pointer.
            Op::ExtInst => !words[2..].iter().any(|w| pointer_of_others(*w)),
            Op::ControlBarrier => program.module.constant_u32(words[0]) == Some(Scope::Workgroup as u32),
            Op::Load | Op::Store | Op::Variable | Op::Undef | Op::Phi | Op::MemoryBarrier => true,
            Op::Label | Op::Branch | Op::BranchConditional | Op::Switch | Op::Return => true,
            Op::LoopMerge | Op::SelectionMerge | Op::Unreachable | Op::Line | Op::NoLine | Op::Nop => true,
            op => is_pure(op),
        }
    })
}
