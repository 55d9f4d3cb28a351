//! The question which values and blocks are the same for all invocations of a workgroup.
//!
//! A value is divergent if it derives from an invocation's own id, from memory that invocations write, from an
//! operation this module does not know, or if it is defined in a non-uniform block. A block is non-uniform if it is
//! control-dependent on a branch whose condition is divergent. Both sets grow together until nothing changes, so
//! what is left is uniform: every invocation of the workgroup gets there together, or none does.

use std::collections::HashSet;

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use crate::{
    cfg::Function,
    decorations::Decorations,
    module::{IdUse, Inst},
    program::ParsedModule,
    types::Type,
};

/// Functions with more blocks are not analysed.
const MAX_BLOCKS: usize = 4096;
/// Rounds until the sets must have stopped growing; real kernels need fewer than ten.
const MAX_ROUNDS: usize = 256;

/// Divergent values and non-uniform blocks of one function.
pub(super) struct Uniformity {
    divergent: HashSet<u32>,
    /// By block index.
    pub non_uniform: Vec<bool>,
    /// By block index: whether the block can run more than once.
    pub in_cycle: Vec<bool>,
}

impl Uniformity {
    /// Analyses an entry function; `None` if its control flow has no exit from some block.
    pub fn of(
        program: &ParsedModule<'_>,
        function: &Function,
        decorations: &Decorations<'_>,
    ) -> Option<Self> {
        if function.blocks.len() > MAX_BLOCKS {
            return None;
        }
        let depends = control_dependence(function)?;
        let written = written_variables(program, function);
        let in_cycle = cycles(function);
        let non_uniform = vec![false; function.blocks.len()];
        let mut this = Uniformity { divergent: escaping_variables(program, function), non_uniform, in_cycle };
        for _ in 0..MAX_ROUNDS {
            let before = (this.divergent.len(), this.non_uniform.iter().filter(|n| **n).count());
            for (number, block) in function.blocks.iter().enumerate() {
                let rule = |d: &usize| this.non_uniform[*d] || this.branch_diverges(program, function, *d);
                if !this.non_uniform[number] && depends[number].iter().any(rule) {
                    this.non_uniform[number] = true;
                }
                for inst in &program.module.insts()[block.first..=block.last] {
                    this.divergent.extend(this.variable_that_diverges(program, number, inst));
                    if inst.id != 0 && !this.divergent.contains(&inst.id) {
                        let diverges = this.non_uniform[number]
                            || this.diverges(program, function, decorations, &written, number, inst);
                        if diverges {
                            this.divergent.insert(inst.id);
                        }
                    }
                }
            }
            if before == (this.divergent.len(), this.non_uniform.iter().filter(|n| **n).count()) {
                return Some(this);
            }
        }
        None
    }

    /// Whether all invocations that compute this value together get the same one.
    pub fn is_uniform(&self, program: &ParsedModule<'_>, id: u32) -> bool {
        let undefined = program.module.def(id).is_none_or(|d| d.op == Op::Undef);
        !undefined && !self.divergent.contains(&id)
    }

    /// Whether the block ends in a branch that invocations may take differently.
    pub fn branch_diverges(&self, program: &ParsedModule<'_>, function: &Function, block: usize) -> bool {
        let end = &program.module.insts()[function.blocks[block].last];
        match end.op {
            Op::BranchConditional | Op::Switch => !self.is_uniform(program, program.module.operands(end)[0]),
            _ => false,
        }
    }

    /// The invocation's own variable that holds different values from this instruction on.
    fn variable_that_diverges(&self, program: &ParsedModule<'_>, block: usize, inst: &Inst) -> Option<u32> {
        if inst.op != Op::Store {
            return None;
        }
        let words = program.module.operands(inst);
        let same = !self.non_uniform[block] && words[..2].iter().all(|w| self.is_uniform(program, *w));
        root_variable(program, words[0]).filter(|_| !same)
    }

    fn diverges(
        &self,
        program: &ParsedModule<'_>,
        function: &Function,
        decorations: &Decorations<'_>,
        written: &HashSet<u32>,
        block: usize,
        inst: &Inst,
    ) -> bool {
        let diverges =
            |used: IdUse| used.id != inst.ty && !used.forward && !self.is_uniform(program, used.id);
        let operands_diverge = program.module.uses(inst).any(diverges);
        match inst.op {
            Op::Phi => {
                let values = program.module.operands(inst).chunks(2);
                let split = |p: &usize| self.non_uniform[*p] || self.branch_diverges(program, function, *p);
                values.into_iter().any(|v| !self.is_uniform(program, v[0]))
                    || function.blocks[block].preds.iter().any(split)
            }
            Op::Load => {
                operands_diverge
                    || !load_is_uniform(program, decorations, written, program.module.operands(inst)[0])
            }
            Op::Label | Op::Variable => false,
            op => operands_diverge || !is_pure(op),
        }
    }
}

/// Whether all invocations read the same value through a pointer that is itself uniform.
fn load_is_uniform(
    program: &ParsedModule<'_>,
    decorations: &Decorations<'_>,
    written: &HashSet<u32>,
    pointer: u32,
) -> bool {
    let Some(root) = root_variable(program, pointer) else { return false };
    let Some(Type::Pointer { class, .. }) = program.module.def(root).and_then(|v| program.types.get(v.ty))
    else {
        return false;
    };
    match class {
        StorageClass::PushConstant | StorageClass::Uniform | StorageClass::UniformConstant => true,
        StorageClass::StorageBuffer => !written.contains(&root),
        // Stores of divergent values make the variable itself divergent, so that its pointers are.
        StorageClass::Function | StorageClass::Private => true,
        StorageClass::Input => {
            let same = [BuiltIn::WorkgroupId, BuiltIn::NumWorkgroups, BuiltIn::WorkgroupSize];
            decorations
                .value(root, Decoration::BuiltIn)
                .is_some_and(|b| same.iter().any(|s| *s as u32 == b) || b == BuiltIn::SubgroupSize as u32)
        }
        _ => false,
    }
}

/// The variable that a pointer leads into, through access chains only.
pub(super) fn root_variable(program: &ParsedModule<'_>, pointer: u32) -> Option<u32> {
    let mut at = pointer;
    // Each step goes to an earlier definition, so the walk ends.
    loop {
        let def = program.module.def(at)?;
        match def.op {
            Op::Variable => return Some(at),
            Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject => {
                let base = program.module.operands(def)[0];
                if program.module.def(base)?.at >= def.at {
                    return None;
                }
                at = base;
            }
            _ => return None,
        }
    }
}

/// Variables that something other than loads, stores and access chains accesses.
pub(super) fn escaping_variables(program: &ParsedModule<'_>, function: &Function) -> HashSet<u32> {
    let mut escaping = HashSet::new();
    let plain = |op| matches!(op, Op::Load | Op::AccessChain | Op::InBoundsAccessChain | Op::ArrayLength);
    for inst in program.body(function).filter(|i| !plain(i.op)) {
        let words = program.module.operands(inst);
        let others = program.module.uses(inst).filter(|used| inst.op != Op::Store || used.id != words[0]);
        escaping.extend(others.filter_map(|used| root_variable(program, used.id)));
    }
    escaping
}

/// Variables that something other than a load or an access chain accesses.
pub(super) fn written_variables(program: &ParsedModule<'_>, function: &Function) -> HashSet<u32> {
    let mut written = HashSet::new();
    for inst in program.body(function) {
        if matches!(inst.op, Op::Load | Op::AccessChain | Op::InBoundsAccessChain | Op::ArrayLength) {
            continue;
        }
        written.extend(program.module.uses(inst).filter_map(|used| root_variable(program, used.id)));
    }
    written
}

/// Whether equal operands always give equal results.
pub(super) fn is_pure(op: Op) -> bool {
    let code = op as u32;
    (109..=116).contains(&code)
        || (124..=191).contains(&code)
        || (194..=205).contains(&code)
        || (77..=84).contains(&code)
        || matches!(op, Op::ExtInst | Op::AccessChain | Op::InBoundsAccessChain | Op::ArrayLength)
        || matches!(op, Op::SDot | Op::UDot | Op::SUDot | Op::FmaKHR | Op::ConvertPtrToU | Op::ConvertUToPtr)
}

/// For each block, the blocks whose branch decides whether it runs.
fn control_dependence(function: &Function) -> Option<Vec<Vec<usize>>> {
    let up = function.post_dominators()?;
    let mut depends = vec![Vec::new(); function.blocks.len()];
    let mut budget = 4_000_000usize;
    for (number, block) in function.blocks.iter().enumerate().filter(|(n, _)| function.reachable(*n)) {
        let stop = up[number]?;
        for &to in block.succs.iter().filter(|_| block.succs.len() > 1) {
            let mut at = to;
            while at != stop {
                depends[at].push(number);
                at = up[at]?;
                budget = budget.checked_sub(1)?;
            }
        }
    }
    Some(depends)
}

/// Blocks that can be reached from themselves: those in a natural loop, found from the back edges.
fn cycles(function: &Function) -> Vec<bool> {
    let mut in_cycle = vec![false; function.blocks.len()];
    for (number, block) in function.blocks.iter().enumerate() {
        for &header in block.succs.iter().filter(|h| function.dominates(**h, number)) {
            in_cycle[header] = true;
            let mut stack = vec![number];
            let mut seen = HashSet::from([header]);
            while let Some(at) = stack.pop() {
                if seen.insert(at) {
                    in_cycle[at] = true;
                    stack.extend(function.blocks[at].preds.iter().copied());
                }
            }
        }
    }
    in_cycle
}
