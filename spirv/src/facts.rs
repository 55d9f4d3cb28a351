//! What a module says about itself: capabilities, entry points, bindings, memory, subgroup operations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use spirv::{BuiltIn, Decoration, GlslStd450Op, Op, StorageClass};

use crate::{
    decorations::Decorations, entry::Entry, error::SpirvError, module::Inst, program::ParsedModule,
    types::Type, validate::validated, words::literal_text,
};

/// What a valid SPIR-V module declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleFacts {
    /// Major and minor version of SPIR-V.
    pub version: (u8, u8),
    /// Addressing model by its SPIR-V name, e.g. `Logical`.
    pub addressing_model: String,
    /// Memory model by its SPIR-V name, e.g. `GLSL450` or `Vulkan`.
    pub memory_model: String,
    /// Declared capabilities by their SPIR-V names, in order of declaration.
    pub capabilities: Vec<String>,
    /// Declared extensions, in order of declaration.
    pub extensions: Vec<String>,
    /// Whether 16-bit floats of IEEE 754 occur: values of that type, or words that they are packed into or unpacked from.
    pub has_halves: bool,
    /// Whether a variable is the number of workgroups of the dispatch (`NumWorkgroups`).
    pub counts_workgroups: bool,
    /// The compute entry points.
    pub entry_points: Vec<EntryFacts>,
}

impl ModuleFacts {
    /// The entry point with this name.
    pub fn entry(&self, name: &str) -> Option<&EntryFacts> {
        self.entry_points.iter().find(|e| e.name == name)
    }
}

/// What one compute entry point declares and uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryFacts {
    /// Name, as pipelines refer to it.
    pub name: String,
    /// Invocations per workgroup in x, y, z.
    pub local_size: [u32; 3],
    /// Bytes of Workgroup variables the entry point can reach, packed naturally.
    pub workgroup_memory_bytes: u64,
    /// Resource variables the entry point can reach, ordered by set and binding.
    pub bindings: Vec<BindingFacts>,
    /// Bytes of the push-constant block, 0 if there is none.
    pub push_constant_bytes: u64,
    /// Specialization constants of the module.
    pub spec_constants: Vec<SpecConstant>,
    /// Names of the subgroup instructions in use, sorted, e.g. `GroupNonUniformFAdd`.
    pub subgroup_ops: Vec<String>,
    /// Whether an OpControlBarrier occurs.
    pub uses_control_barrier: bool,
}

/// One resource variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindingFacts {
    /// Descriptor set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// Storage class by its SPIR-V name, e.g. `StorageBuffer`.
    pub class: String,
    /// Decorated NonWritable.
    pub readonly: bool,
    /// Decorated NonReadable.
    pub writeonly: bool,
}

/// One specialization constant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecConstant {
    /// The SpecId that the host sets it by.
    pub id: u32,
    /// Default value, low 32 bits.
    pub default: u32,
}

/// Validates a module and collects its facts.
///
/// The checks are structural: header, instruction lengths, ids, dominance, block structure, and the types of the
/// instructions that kernels are made of. A module that passes does not crash a driver's parser; whether its
/// capabilities are allowed on a device is what the table of features in `halite-facts` says.
///
/// # Errors
/// [`SpirvError::Invalid`] names the word at which the first broken rule was found.
pub fn analyze(words: &[u32]) -> Result<ModuleFacts, SpirvError> {
    let program = &validated(words)?;
    let module = &program.module;
    let decorations = Decorations::read(module);
    let (mut capabilities, mut extensions) = (Vec::new(), Vec::new());
    let mut models = (String::new(), String::new());
    let (mut has_halves, mut counts_workgroups) = (false, false);
    for inst in module.insts() {
        let words = module.operands(inst);
        match inst.op {
            Op::Capability => capabilities.push(name_of(spirv::Capability::from_u32(words[0]), words[0])),
            Op::Extension => extensions.push(literal_text(words).unwrap_or_default()),
            Op::MemoryModel => {
                models.0 = name_of(spirv::AddressingModel::from_u32(words[0]), words[0]);
                models.1 = name_of(spirv::MemoryModel::from_u32(words[1]), words[1]);
            }
            // A second operand names another encoding.
            Op::TypeFloat => has_halves |= words == [16],
            Op::QuantizeToF16 => has_halves = true,
            Op::Decorate => counts_workgroups |= words.get(1..) == Some(&NUM_WORKGROUPS),
            Op::ExtInst => has_halves |= is_packing(module.glsl_op(words[0], words[1])),
            _ => {}
        }
    }
    let entry_points = program.entries.iter().map(|e| entry_facts(program, &decorations, e)).collect();
    let version = module.version();
    Ok(ModuleFacts {
        version: ((version >> 16) as u8, (version >> 8) as u8),
        addressing_model: models.0,
        memory_model: models.1,
        capabilities,
        extensions,
        has_halves,
        counts_workgroups,
        entry_points,
    })
}

/// The decoration of variables that are the number of workgroups.
const NUM_WORKGROUPS: [u32; 2] = [Decoration::BuiltIn as u32, BuiltIn::NumWorkgroups as u32];

/// Whether an instruction packs 16-bit floats into words or takes them out.
fn is_packing(op: Option<GlslStd450Op>) -> bool {
    matches!(op, Some(GlslStd450Op::PackHalf2x16 | GlslStd450Op::UnpackHalf2x16))
}

fn name_of<T: std::fmt::Debug>(value: Option<T>, number: u32) -> String {
    value.map_or_else(|| format!("#{number}"), |v| format!("{v:?}"))
}

fn entry_facts(program: &ParsedModule<'_>, decorations: &Decorations<'_>, entry: &Entry) -> EntryFacts {
    let module = &program.module;
    let (mut ops, mut uses_control_barrier) = (BTreeSet::new(), false);
    let mut variables: BTreeMap<u32, &Inst> = BTreeMap::new();
    for inst in program.reachable_instructions(entry.function) {
        if is_subgroup_op(inst.op) {
            ops.insert(format!("{:?}", inst.op));
        }
        uses_control_barrier |= inst.op == Op::ControlBarrier;
        let used = module.uses(inst).filter_map(|used| module.def(used.id));
        variables.extend(used.filter(|def| def.op == Op::Variable).map(|def| (def.id, def)));
    }
    let (mut workgroup_memory_bytes, mut push_constant_bytes) = (0u64, 0u64);
    let mut bindings = Vec::new();
    for variable in variables.values() {
        let Some(Type::Pointer { class, pointee }) = program.types.get(variable.ty) else { continue };
        match class {
            StorageClass::Workgroup => {
                workgroup_memory_bytes = workgroup_memory_bytes.saturating_add(program.types.size(*pointee));
            }
            StorageClass::PushConstant => {
                if let Some(Type::Struct { members }) = program.types.get(*pointee) {
                    push_constant_bytes = decorations.end_of_block(&program.types, *pointee, members);
                }
            }
            class => bindings.extend(binding_facts(program, decorations, variable.id, *class, *pointee)),
        }
    }
    bindings.sort_by_key(|b: &BindingFacts| (b.set, b.binding));
    EntryFacts {
        name: entry.name.clone(),
        local_size: entry.local_size,
        workgroup_memory_bytes,
        bindings,
        push_constant_bytes,
        spec_constants: spec_constants(program, decorations),
        subgroup_ops: ops.into_iter().collect(),
        uses_control_barrier,
    }
}

fn binding_facts(
    program: &ParsedModule<'_>,
    decorations: &Decorations<'_>,
    id: u32,
    class: StorageClass,
    pointee: u32,
) -> Option<BindingFacts> {
    let set = decorations.value(id, Decoration::DescriptorSet)?;
    let binding = decorations.value(id, Decoration::Binding)?;
    let members = match program.types.get(pointee) {
        Some(Type::Struct { members }) => members.len(),
        _ => 0,
    };
    let all = |d| decorations.has(id, d) || decorations.all_members_have(pointee, members, d);
    Some(BindingFacts {
        set,
        binding,
        class: format!("{class:?}"),
        readonly: all(Decoration::NonWritable),
        writeonly: all(Decoration::NonReadable),
    })
}

fn spec_constants(program: &ParsedModule<'_>, decorations: &Decorations<'_>) -> Vec<SpecConstant> {
    let module = &program.module;
    let constants = module.insts().iter().filter_map(|inst| {
        let default = match inst.op {
            Op::SpecConstant => module.operands(inst)[0],
            Op::SpecConstantTrue => 1,
            Op::SpecConstantFalse => 0,
            _ => return None,
        };
        Some(SpecConstant { id: decorations.value(inst.id, Decoration::SpecId)?, default })
    });
    constants.collect()
}

/// Whether the result of the instruction depends on which invocations form a subgroup.
pub(crate) fn is_subgroup_op(op: Op) -> bool {
    let code = op as u32;
    (333..=366).contains(&code)
        || matches!(op, Op::SubgroupBallotKHR | Op::SubgroupFirstInvocationKHR | Op::SubgroupAllKHR)
        || matches!(op, Op::SubgroupAnyKHR | Op::SubgroupAllEqualKHR | Op::SubgroupReadInvocationKHR)
        || matches!(op, Op::GroupNonUniformRotateKHR)
        || matches!(op, Op::GroupNonUniformQuadAllKHR | Op::GroupNonUniformQuadAnyKHR)
        || matches!(op, Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR)
        || matches!(op, Op::CooperativeMatrixMulAddKHR)
}
