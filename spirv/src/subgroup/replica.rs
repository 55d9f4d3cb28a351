//! The search for dimensions of the workgroup along which all invocations do exactly the same work.
//!
//! Compilers launch more invocations than the work has rows, so that several compute the same rows. If no branch,
//! and no address or value of a workgroup store, depends on the id in a dimension, then invocations that differ in
//! that dimension only ("replicas") make the same sequence of stores. Their stores to one place may come in any
//! order: the last one is the last one of some replica, which is the same for all. Loads are another matter, they
//! still need a barrier against the stores of other replicas.

use std::collections::HashSet;

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use super::uniform::{escaping_variables, is_pure, root_variable, written_variables};
use crate::{cfg::Function, decorations::Decorations, module::Inst, program::ParsedModule, types::Type};

/// Rounds until the set of dependent values must have stopped growing.
const MAX_ROUNDS: usize = 64;

/// What replicas must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Equal {
    /// Branches and stores to workgroup memory, however the invocations advance against each other.
    SharedStores,
    /// Branches and all stores, if the invocations advance instruction by instruction.
    AllStores,
    /// Single values, however the invocations advance and wherever they branch.
    Values,
}

/// For x, y and z: whether invocations that differ in that dimension only are replicas of each other.
pub(super) fn replica_dimensions(
    program: &ParsedModule<'_>,
    function: &Function,
    decorations: &Decorations<'_>,
    local_size: [u32; 3],
    equal: Equal,
) -> [bool; 3] {
    let written = written_variables(program, function);
    // What is written through a pointer that is passed on is not followed.
    let escaping = escaping_variables(program, function);
    std::array::from_fn(|dimension| {
        let (written, dependent, dimension) = (&written, escaping.clone(), dimension as u32);
        local_size[dimension as usize] > 1
            && Dependence { program, decorations, written, equal, dimension, dependent }
                .does_not_matter(function)
    })
}

/// For x, y and z: whether none of the values depends on the id in that dimension, in whatever way.
pub(super) fn dimensions_of_no_value(
    program: &ParsedModule<'_>,
    function: &Function,
    decorations: &Decorations<'_>,
    local_size: [u32; 3],
    values: &[u32],
) -> [bool; 3] {
    let written = written_variables(program, function);
    let escaping = escaping_variables(program, function);
    std::array::from_fn(|dimension| {
        let (written, dependent, dimension) = (&written, escaping.clone(), dimension as u32);
        let mut dependence =
            Dependence { program, decorations, written, equal: Equal::Values, dimension, dependent };
        // Definitions come before uses but for phis, and what comes from a phi is dependent.
        for inst in program.body(function) {
            if inst.id != 0 && dependence.depends(inst) {
                dependence.dependent.insert(inst.id);
            }
        }
        local_size[dimension as usize] > 1 && !values.iter().any(|v| dependence.value_depends(*v))
    })
}

/// What depends on the invocation's id in one dimension.
struct Dependence<'a, 'w> {
    program: &'a ParsedModule<'w>,
    decorations: &'a Decorations<'w>,
    written: &'a HashSet<u32>,
    equal: Equal,
    dimension: u32,
    /// Values, and variables of a single invocation that dependent values were stored to.
    dependent: HashSet<u32>,
}

impl Dependence<'_, '_> {
    fn does_not_matter(mut self, function: &Function) -> bool {
        for _ in 0..MAX_ROUNDS {
            let before = self.dependent.len();
            for inst in self.program.body(function) {
                if self.breaks(inst) {
                    return false;
                }
                if inst.id != 0 && !self.dependent.contains(&inst.id) && self.depends(inst) {
                    self.dependent.insert(inst.id);
                }
            }
            if self.dependent.len() == before {
                return true;
            }
        }
        false
    }

    /// Whether replicas part ways here; notes stores of dependent values on the way.
    fn breaks(&mut self, inst: &Inst) -> bool {
        let words = self.program.module.operands(inst);
        match inst.op {
            Op::BranchConditional | Op::Switch => self.dependent.contains(&words[0]),
            Op::Store => {
                let dependent = words[..2].iter().any(|w| self.value_depends(*w));
                match self.class_of(words[0]) {
                    Some(StorageClass::Function | StorageClass::Private) => {
                        let Some(root) = root_variable(self.program, words[0]) else { return true };
                        if dependent {
                            self.dependent.insert(root);
                        }
                        false
                    }
                    // Replicas may well store different results.
                    Some(StorageClass::StorageBuffer) => self.equal == Equal::AllStores && dependent,
                    _ => dependent,
                }
            }
            Op::CopyMemory | Op::AtomicStore | Op::CooperativeMatrixStoreKHR => true,
            _ => false,
        }
    }

    fn depends(&self, inst: &Inst) -> bool {
        let words = self.program.module.operands(inst);
        match inst.op {
            Op::Label | Op::Variable => false,
            Op::Load => self.load_depends(words[0]),
            Op::CompositeExtract => match self.id_vector(words[0]) {
                Some(()) => words.len() != 2 || words[1] == self.dimension,
                None => self.value_depends(words[0]),
            },
            // The way to a phi is a matter of branches.
            Op::Phi if self.equal == Equal::Values => true,
            op if op == Op::Phi || is_pure(op) => {
                let mut uses = self.program.module.uses(inst);
                uses.any(|used| used.id != inst.ty && self.value_depends(used.id))
            }
            _ => true,
        }
    }

    fn value_depends(&self, id: u32) -> bool {
        let undefined = self.program.module.def(id).is_none_or(|d| d.op == Op::Undef);
        // A whole id vector depends on every dimension; only its components are told apart.
        undefined || self.dependent.contains(&id) || self.id_vector(id).is_some()
    }

    fn load_depends(&self, pointer: u32) -> bool {
        let module = &self.program.module;
        if self.dependent.contains(&pointer) {
            return true;
        }
        let memory = [StorageClass::StorageBuffer, StorageClass::PhysicalStorageBuffer];
        if self.equal == Equal::AllStores && self.class_of(pointer).is_some_and(|c| memory.contains(&c)) {
            // Invocations that advance together load before any of them stores.
            return self.value_depends(pointer);
        }
        let (Some(root), Some(class)) = (root_variable(self.program, pointer), self.class_of(pointer)) else {
            return true;
        };
        let own = [StorageClass::Workgroup, StorageClass::Function, StorageClass::Private];
        match class {
            // What was stored last may depend on anything.
            class if self.equal == Equal::Values && own.contains(&class) => true,
            StorageClass::Workgroup | StorageClass::PushConstant => false,
            StorageClass::Uniform | StorageClass::UniformConstant => false,
            StorageClass::StorageBuffer => self.written.contains(&root),
            StorageClass::Function | StorageClass::Private => self.dependent.contains(&root),
            StorageClass::Input if self.is_id(root) => {
                let chain = module.def(pointer).filter(|d| d.op == Op::AccessChain);
                let component = chain.and_then(|d| module.constant_u32(*module.operands(d).get(1)?));
                // The whole vector is looked at where its components are taken out.
                component == Some(self.dimension) || (root != pointer && component.is_none())
            }
            StorageClass::Input => {
                let same = [BuiltIn::WorkgroupId, BuiltIn::NumWorkgroups, BuiltIn::WorkgroupSize];
                let built_in = self.decorations.value(root, Decoration::BuiltIn);
                !same.iter().any(|b| built_in == Some(*b as u32))
            }
            _ => true,
        }
    }

    /// Whether the value is the whole vector of the invocation's ids.
    fn id_vector(&self, id: u32) -> Option<()> {
        let module = &self.program.module;
        let load = module.def(id).filter(|d| d.op == Op::Load)?;
        self.is_id(module.operands(load)[0]).then_some(())
    }

    fn is_id(&self, variable: u32) -> bool {
        let built_in = self.decorations.value(variable, Decoration::BuiltIn);
        [BuiltIn::LocalInvocationId, BuiltIn::GlobalInvocationId].iter().any(|b| built_in == Some(*b as u32))
    }

    fn class_of(&self, pointer: u32) -> Option<StorageClass> {
        match self.program.types.get(self.program.module.def(pointer)?.ty)? {
            Type::Pointer { class, .. } => Some(*class),
            _ => None,
        }
    }
}
