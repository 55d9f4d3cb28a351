//! The list of a kernel's accesses to memory that several invocations see.

use std::collections::HashSet;

use spirv::{Decoration, Op, StorageClass};

use super::uniform::root_variable;
use crate::{
    cfg::Function, decorations::Decorations, pointers::accessed, program::ParsedModule, types::Type,
};

/// Kernels with more memory accesses are not analysed.
const MAX_ACCESSES: usize = 4096;

/// Why a kernel cannot be analysed; it then counts as one that may need lockstep.
pub(super) type Unknown = String;

/// One instruction's access to a variable.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Instruction index.
    pub inst: usize,
    pub variable: u32,
    pub shared: bool,
    pub write: bool,
    pub atomic: bool,
    /// Accesses of one class have the same addresses.
    pub class: usize,
    /// The constant that every invocation writes, if it is one.
    pub constant: Option<u32>,
    /// The first access that is like this one in all of the above but the instruction.
    pub like: usize,
}

pub(super) fn aliased_shared_memory(program: &ParsedModule<'_>, decorations: &Decorations<'_>) -> bool {
    program
        .module
        .insts()
        .iter()
        .filter(|i| i.op == Op::Variable)
        .any(|i| decorations.has(i.id, Decoration::Aliased) && memory_kind(program, i.id) == Some(true))
}

pub(super) fn accesses_shared(program: &ParsedModule<'_>, function: &Function) -> bool {
    accesses(program, function, &[StorageClass::Workgroup, StorageClass::StorageBuffer])
}

pub(super) fn accesses_workgroup(program: &ParsedModule<'_>, function: &Function) -> bool {
    accesses(program, function, &[StorageClass::Workgroup])
}

fn accesses(program: &ParsedModule<'_>, function: &Function, classes: &[StorageClass]) -> bool {
    let known = |id: u32| {
        let ty = program.module.def(id).and_then(|d| program.types.get(d.ty));
        matches!(ty, Some(Type::Pointer { class, .. }) if classes.contains(class))
    };
    program.body(function).any(|inst| program.module.uses(inst).any(|used| known(used.id)))
}

/// The accesses to memory that other invocations see too, with their index expressions.
pub(super) fn collect(
    program: &ParsedModule<'_>,
    function: &Function,
) -> Result<Vec<(Access, Vec<u32>)>, Unknown> {
    let mut list: Vec<(Access, Vec<u32>)> = Vec::new();
    for block in (0..function.blocks.len()).filter(|b| function.reachable(*b)) {
        for index in function.blocks[block].first..=function.blocks[block].last {
            let inst = &program.module.insts()[index];
            for (pointer, write) in accessed(&program.module, inst) {
                let Some(shared) = memory_kind(program, pointer) else { continue };
                let variable = root_variable(program, pointer);
                let variable = match (variable, shared) {
                    (Some(variable), _) => variable,
                    (None, true) => {
                        return Err(
                            "it reaches workgroup memory through pointers that cannot be traced".to_owned()
                        );
                    }
                    (None, false) => continue,
                };
                let whole = !matches!(inst.op, Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR);
                let indices = if whole { indices_of(program, pointer) } else { Vec::new() };
                let atomic = (227..=242).contains(&(inst.op as u32));
                let (class, constant, like) = (0, None, 0);
                let access = Access { inst: index, variable, shared, write, atomic, class, constant, like };
                list.push((access, indices));
                if list.len() > MAX_ACCESSES {
                    return Err(format!("it has more than {MAX_ACCESSES} accesses to shared memory"));
                }
            }
        }
    }
    // Only variables that are written matter, and buffers only if they are read as well.
    let written: HashSet<u32> = list.iter().filter(|(a, _)| a.write).map(|(a, _)| a.variable).collect();
    let read: HashSet<u32> = list.iter().filter(|(a, _)| !a.write).map(|(a, _)| a.variable).collect();
    list.retain(|(a, _)| written.contains(&a.variable) && (a.shared || read.contains(&a.variable)));
    Ok(list)
}

/// Whether a pointer leads to workgroup memory (true) or a storage buffer (false).
fn memory_kind(program: &ParsedModule<'_>, pointer: u32) -> Option<bool> {
    match program.types.get(program.module.def(pointer)?.ty)? {
        Type::Pointer { class: StorageClass::Workgroup, .. } => Some(true),
        Type::Pointer { class: StorageClass::StorageBuffer, .. } => Some(false),
        _ => None,
    }
}

/// The indices from the variable to the pointer, outermost first.
fn indices_of(program: &ParsedModule<'_>, pointer: u32) -> Vec<u32> {
    let mut chains = Vec::new();
    let mut at = pointer;
    while let Some(def) = program.module.def(at).filter(|d| d.op != Op::Variable) {
        let words = program.module.operands(def);
        chains.push(&words[1..]);
        at = words[0];
    }
    chains.iter().rev().flat_map(|c| c.iter().copied()).collect()
}

pub(super) fn stored_constant(program: &ParsedModule<'_>, inst: usize) -> Option<u32> {
    let inst = &program.module.insts()[inst];
    let value = *program.module.operands(inst).get(1).filter(|_| inst.op == Op::Store)?;
    program.module.def(value).filter(|d| crate::grammar::is_constant(d.op)).map(|_| value)
}
