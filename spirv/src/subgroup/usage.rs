//! How a kernel depends on the width of subgroups.

use std::collections::BTreeSet;

use spirv::Op;

use super::{hazard::Analysis, repair};
use crate::{
    decorations::Decorations, entry::Entry, error::SpirvError, facts::is_subgroup_op, program::ParsedModule,
    validate::validated,
};

/// How a kernel depends on the width of subgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubgroupUse {
    /// Not at all.
    None,
    /// It has subgroup instructions, and no unsynchronised exchange.
    SubgroupOps {
        /// Names of the instructions, sorted.
        ops: Vec<String>,
        /// Widths that the code itself gives away, ascending; empty if it gives none away.
        implied_sizes: Vec<u32>,
    },
    /// Memory that one invocation writes may be read or written by another one without a barrier between.
    LockstepWorkgroup {
        /// What is exchanged, for a person; the first few.
        exchanges: Vec<String>,
        /// Names of the subgroup instructions it has as well, sorted.
        ops: Vec<String>,
        /// Widths that subgroup instructions give away, as above.
        implied_sizes: Vec<u32>,
    },
}

/// Analyses one entry point of a module.
///
/// # Errors
/// If the module is not valid, or has no such entry point.
pub fn subgroup_use(words: &[u32], entry: &str) -> Result<SubgroupUse, SpirvError> {
    let program = validated(words)?;
    let entry = program.entry(entry)?;
    let decorations = Decorations::read(&program.module);
    let analysis = Analysis::of(&program, entry, &decorations);
    Ok(usage(&program, entry, &analysis))
}

/// The same for a program that was analysed already.
pub(super) fn usage(
    program: &ParsedModule<'_>,
    entry: &Entry,
    analysis: &Result<Option<Analysis<'_, '_>>, String>,
) -> SubgroupUse {
    let ops: BTreeSet<String> = program
        .reachable_instructions(entry.function)
        .filter(|i| is_subgroup_op(i.op))
        .map(|i| format!("{:?}", i.op))
        .collect();
    let ops: Vec<String> = ops.into_iter().collect();
    let implied_sizes = if ops.is_empty() { Vec::new() } else { implied_sizes(program, entry) };
    let exchanges = match analysis {
        Err(why) => vec![format!("unknown, since {why}")],
        Ok(None) => Vec::new(),
        Ok(Some(analysis)) => {
            let hazards = analysis.hazards(&[]);
            hazards.iter().take(4).map(|h| repair::describe(analysis, h.first, h.second)).collect()
        }
    };
    match (exchanges.is_empty(), ops.is_empty()) {
        (false, _) => SubgroupUse::LockstepWorkgroup { exchanges, ops, implied_sizes },
        (true, false) => SubgroupUse::SubgroupOps { ops, implied_sizes },
        (true, true) => SubgroupUse::None,
    }
}

/// Widths that the code gives away: powers of two that it divides an invocation's own id by, as compilers do to find
/// the lane and the subgroup; or the whole workgroup, if nothing in the code tells several subgroups apart.
fn implied_sizes(program: &ParsedModule<'_>, entry: &Entry) -> Vec<u32> {
    let module = &program.module;
    let decorations = Decorations::read(&program.module);
    let mut sizes = BTreeSet::new();
    for inst in program.reachable_instructions(entry.function) {
        let words = module.operands(inst);
        if !matches!(inst.op, Op::UDiv | Op::UMod | Op::SDiv | Op::SRem) {
            continue;
        }
        let Some(by @ (4 | 8 | 16 | 32 | 64 | 128)) = module.constant_u32(words[1]) else { continue };
        if is_local_id(program, &decorations, words[0]) {
            sizes.insert(by);
        }
    }
    let total = entry.local_size.iter().product::<u32>();
    let asks = program.module.insts().iter().filter(|i| i.op == Op::Variable).any(|i| {
        let built_in = decorations.value(i.id, spirv::Decoration::BuiltIn);
        [spirv::BuiltIn::SubgroupSize, spirv::BuiltIn::SubgroupId, spirv::BuiltIn::SubgroupLocalInvocationId]
            .iter()
            .any(|b| built_in == Some(*b as u32))
    });
    if sizes.is_empty() && !asks && total.is_power_of_two() && (4..=128).contains(&total) {
        sizes.insert(total);
    }
    sizes.into_iter().collect()
}

fn is_local_id(program: &ParsedModule<'_>, decorations: &Decorations<'_>, id: u32) -> bool {
    let module = &program.module;
    let load = module.def(id).and_then(|d| match d.op {
        Op::CompositeExtract => module.def(module.operands(d)[0]),
        _ => Some(d),
    });
    let Some(load) = load.filter(|d| d.op == Op::Load) else { return false };
    let root = super::uniform::root_variable(program, module.operands(load)[0]);
    let built_in = root.and_then(|r| decorations.value(r, spirv::Decoration::BuiltIn));
    [spirv::BuiltIn::LocalInvocationId, spirv::BuiltIn::LocalInvocationIndex]
        .iter()
        .any(|b| built_in == Some(*b as u32))
}
