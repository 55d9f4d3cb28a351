//! Barriers that repairs put into kernels.

use spirv::Op;

use crate::{edit::Editor, words::instruction};

/// Memory semantics: acquire and release.
const ACQUIRE_RELEASE: u32 = 0x8;
/// Memory semantics bits of storage buffers and of workgroup memory.
pub(super) const UNIFORM_MEMORY: u32 = 0x40;
pub(super) const WORKGROUP_MEMORY: u32 = 0x100;
/// The scope of a workgroup.
const WORKGROUP_SCOPE: u32 = 2;

/// The words of a barrier over the workgroup, for workgroup memory and, if asked, storage buffers.
pub(super) fn barrier(edit: &mut Editor<'_, '_>, buffers: bool) -> Vec<u32> {
    let memory = WORKGROUP_MEMORY | if buffers { UNIFORM_MEMORY } else { 0 };
    let (scope, semantics) = (edit.constant(WORKGROUP_SCOPE), edit.constant(ACQUIRE_RELEASE | memory));
    instruction(Op::ControlBarrier, &[scope, scope, semantics])
}
