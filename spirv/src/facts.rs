//! Owns what a module says about itself: capabilities, entry points, bindings, memory, subgroup operations.
//! Does not own: whether a device fits (`features`, `subgroup`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use spirv::{Decoration, ExecutionMode, Op, StorageClass};

use crate::{
    error::SpirvError,
    module::{Inst, literal_string},
    program::Program,
    types::Type,
};

/// Invocations per workgroup beyond which no device goes; analyses look at each of them.
const MAX_INVOCATIONS: u32 = 0x1_0000;

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

/// Decorations of ids, members under their own key.
pub(crate) struct Decorations<'w> {
    /// Decoration and its operands, by id.
    of: HashMap<u32, Vec<Decorated<'w>>>,
    /// Member, decoration and its operands, by type.
    of_member: HashMap<u32, Vec<MemberDecorated<'w>>>,
}

type Decorated<'w> = (u32, &'w [u32]);
type MemberDecorated<'w> = (u32, u32, &'w [u32]);

impl<'w> Decorations<'w> {
    pub fn read(program: &Program<'w>) -> Self {
        let (mut of, mut of_member) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for inst in &program.module.insts {
            let words = program.module.operands(inst);
            match inst.op {
                Op::Decorate => of.entry(words[0]).or_default().push((words[1], &words[2..])),
                Op::MemberDecorate => {
                    of_member.entry(words[0]).or_default().push((words[1], words[2], &words[3..]));
                }
                _ => {}
            }
        }
        Decorations { of, of_member }
    }

    pub fn has(&self, id: u32, decoration: Decoration) -> bool {
        self.of.get(&id).is_some_and(|list| list.iter().any(|(d, _)| *d == decoration as u32))
    }

    pub fn value(&self, id: u32, decoration: Decoration) -> Option<u32> {
        self.of.get(&id)?.iter().find(|(d, _)| *d == decoration as u32)?.1.first().copied()
    }

    /// Whether each of a struct's `count` members has the decoration.
    pub fn all_members_have(&self, ty: u32, count: usize, decoration: Decoration) -> bool {
        let Some(list) = self.of_member.get(&ty) else { return false };
        let members: BTreeSet<u32> =
            list.iter().filter(|(_, d, _)| *d == decoration as u32).map(|(m, _, _)| *m).collect();
        count > 0 && members.len() == count
    }

    /// Offset of a struct's member.
    pub fn member_offset(&self, ty: u32, member: u32) -> Option<u32> {
        let list = self.of_member.get(&ty)?;
        let found = list.iter().find(|(m, d, _)| *m == member && *d == Decoration::Offset as u32)?;
        found.2.first().copied()
    }

    /// Offset plus size of the member that ends last.
    pub fn end_of_block(&self, program: &Program<'_>, ty: u32, members: &[u32]) -> u64 {
        let offsets = self.of_member.get(&ty).map(Vec::as_slice).unwrap_or_default();
        let end =
            offsets.iter().filter(|(_, d, _)| *d == Decoration::Offset as u32).filter_map(|(m, _, v)| {
                let size = program.types.size(*members.get(*m as usize)?);
                Some(u64::from(*v.first()?).saturating_add(size))
            });
        end.max().unwrap_or_else(|| program.types.size(ty))
    }
}

/// Collects the facts of a validated module.
pub(crate) fn collect(program: &Program<'_>) -> Result<ModuleFacts, SpirvError> {
    let module = &program.module;
    let decorations = Decorations::read(program);
    let (mut capabilities, mut extensions) = (Vec::new(), Vec::new());
    let mut models = (String::new(), String::new());
    for inst in &module.insts {
        let words = module.operands(inst);
        match inst.op {
            Op::Capability => capabilities.push(name_of(spirv::Capability::from_u32(words[0]), words[0])),
            Op::Extension => extensions.push(literal_string(words).unwrap_or_default()),
            Op::MemoryModel => {
                models.0 = name_of(spirv::AddressingModel::from_u32(words[0]), words[0]);
                models.1 = name_of(spirv::MemoryModel::from_u32(words[1]), words[1]);
            }
            _ => {}
        }
    }
    let entry_points =
        program.entries.iter().map(|e| entry_facts(program, &decorations, e)).collect::<Result<_, _>>()?;
    let version = module.words[1];
    Ok(ModuleFacts {
        version: ((version >> 16) as u8, (version >> 8) as u8),
        addressing_model: models.0,
        memory_model: models.1,
        capabilities,
        extensions,
        entry_points,
    })
}

fn name_of<T: std::fmt::Debug>(value: Option<T>, number: u32) -> String {
    value.map_or_else(|| format!("#{number}"), |v| format!("{v:?}"))
}

fn entry_facts(
    program: &Program<'_>,
    decorations: &Decorations<'_>,
    entry: &Entry,
) -> Result<EntryFacts, SpirvError> {
    let module = &program.module;
    let (mut ops, mut uses_control_barrier) = (BTreeSet::new(), false);
    let mut variables: BTreeMap<u32, &Inst> = BTreeMap::new();
    for inst in program.reachable_instructions(entry.function) {
        if is_subgroup_op(inst.op) {
            ops.insert(format!("{:?}", inst.op));
        }
        uses_control_barrier |= inst.op == Op::ControlBarrier;
        module.for_each_use(inst, |used| {
            if let Some(def) = module.def(used.id).filter(|d| d.op == Op::Variable) {
                variables.insert(def.id, def);
            }
            Ok(())
        })?;
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
                    push_constant_bytes = decorations.end_of_block(program, *pointee, members);
                }
            }
            class => bindings.extend(binding_facts(program, decorations, variable.id, *class, *pointee)),
        }
    }
    bindings.sort_by_key(|b: &BindingFacts| (b.set, b.binding));
    Ok(EntryFacts {
        name: entry.name.clone(),
        local_size: entry.local_size,
        workgroup_memory_bytes,
        bindings,
        push_constant_bytes,
        spec_constants: spec_constants(program, decorations),
        subgroup_ops: ops.into_iter().collect(),
        uses_control_barrier,
    })
}

fn binding_facts(
    program: &Program<'_>,
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

fn spec_constants(program: &Program<'_>, decorations: &Decorations<'_>) -> Vec<SpecConstant> {
    let module = &program.module;
    let constants = module.insts.iter().filter_map(|inst| {
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

/// A compute entry point with its function and workgroup size.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    /// Id of the function.
    pub function: u32,
    pub local_size: [u32; 3],
}

/// Reads entry points and their execution modes.
pub(crate) fn read_entries(module: &crate::module::Module<'_>) -> Result<Vec<Entry>, SpirvError> {
    let mut entries: Vec<(Entry, bool)> = Vec::new();
    for inst in &module.insts {
        let words = module.operands(inst);
        match inst.op {
            Op::EntryPoint => {
                if words[0] != spirv::ExecutionModel::GLCompute as u32 {
                    let model = name_of(spirv::ExecutionModel::from_u32(words[0]), words[0]);
                    return Err(SpirvError::at(
                        inst.at,
                        format!("entry point of model {model}, only GLCompute runs here"),
                    ));
                }
                let name = literal_string(&words[2..]).unwrap_or_default();
                if entries.iter().any(|(e, _)| e.name == name) {
                    return Err(SpirvError::at(inst.at, format!("two entry points are named `{name}`")));
                }
                entries.push((Entry { name, function: words[1], local_size: [1; 3] }, false));
            }
            Op::ExecutionMode if words[1] == ExecutionMode::LocalSize as u32 => {
                let size: [u32; 3] = words[2..]
                    .try_into()
                    .map_err(|_| SpirvError::at(inst.at, "LocalSize needs three numbers"))?;
                let all = size.iter().try_fold(1u32, |all, s| all.checked_mul(*s));
                if !all.is_some_and(|all| (1..=MAX_INVOCATIONS).contains(&all)) {
                    return Err(SpirvError::at(
                        inst.at,
                        format!("LocalSize {size:?} is not a workgroup size"),
                    ));
                }
                for (entry, sized) in entries.iter_mut().filter(|(e, _)| e.function == words[0]) {
                    entry.local_size = size;
                    *sized = true;
                }
            }
            Op::ExecutionModeId => {
                return Err(SpirvError::at(
                    inst.at,
                    "execution modes by id are not supported; use a literal LocalSize",
                ));
            }
            _ => {}
        }
    }
    if let Some((entry, _)) = entries.iter().find(|(_, sized)| !sized) {
        return Err(SpirvError::at(0, format!("entry point `{}` has no literal LocalSize", entry.name)));
    }
    if entries.is_empty() {
        return Err(SpirvError::at(0, "the module has no entry point"));
    }
    Ok(entries.into_iter().map(|(e, _)| e).collect())
}
