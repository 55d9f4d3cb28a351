//! The rules of structured control flow that drivers rely on when they rebuild loops and branches.

use std::collections::HashSet;

use crate::{cfg::Function, error::SpirvError, program::ParsedModule};

/// Checks all functions.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    program.functions.iter().try_for_each(|f| check_function(program, f))
}

fn check_function(program: &ParsedModule<'_>, function: &Function) -> Result<(), SpirvError> {
    let bad = |block: usize, what: &str| {
        Err(SpirvError::at(program.module.insts()[function.blocks[block].last].at, what))
    };
    let (mut merges, mut exits) = (HashSet::new(), HashSet::new());
    for (header, block) in function.blocks.iter().enumerate() {
        for merge in block.loop_merge.map(|(merge, _)| merge).into_iter().chain(block.selection_merge) {
            if !merges.insert(merge) {
                return bad(header, "two constructs have the same merge block");
            }
            if function.reachable(header) && function.reachable(merge) && !function.dominates(header, merge) {
                return bad(header, "a merge block can be reached around its header");
            }
            exits.insert(merge);
        }
        if let Some((_, next)) = block.loop_merge {
            if function.reachable(header) && function.reachable(next) && !function.dominates(header, next) {
                return bad(header, "a continue block can be reached around its loop header");
            }
            exits.insert(next);
        }
    }
    for (number, block) in function.blocks.iter().enumerate().filter(|(n, _)| function.reachable(*n)) {
        for &to in &block.succs {
            if function.dominates(to, number) && function.blocks[to].loop_merge.is_none() {
                return bad(number, "branches back to a block that is no loop header");
            }
        }
        let merges = block.loop_merge.is_some() || block.selection_merge.is_some();
        if block.succs.len() > 1 && !merges && !block.succs.iter().any(|s| exits.contains(s)) {
            return bad(number, "branches two ways without a merge instruction, and leaves no construct");
        }
    }
    Ok(())
}
