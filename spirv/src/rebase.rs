//! The change of a kernel that lets several dispatches stand for one with more workgroups than a device allows.
//!
//! The kernel gets six more push constants: the first workgroup of the dispatch, and the workgroups of the whole. What
//! it reads from `WorkgroupId`, `GlobalInvocationId` and `NumWorkgroups` is then what one large dispatch would give.

use std::collections::HashMap;

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use crate::{
    decorations::Decorations,
    edit::Editor,
    entry::Entry,
    error::{ChangeError, unsupported},
    grammar::is_constant,
    module::{Inst, Module},
    program::ParsedModule,
    types::Type,
    validate::validated,
    words::instruction,
};

/// Bytes of push constants that [`rebase`] adds: the first workgroup in x, y, z, then the total in x, y, z, each a u32.
pub const REBASE_BYTES: u32 = 24;

/// Member of the added six at which the totals begin.
const TOTALS: u32 = 3;
/// Most members of a push-constant block that is extended; 128 bytes are common for all of them.
const MOST_MEMBERS: usize = 1024;
/// Offset at which no device has push constants any more.
const MOST_OFFSET: u32 = 0xFFFF;

/// The module with an entry point that takes its first workgroup and the total number of workgroups as push constants,
/// [`REBASE_BYTES`] from byte `offset` on: a multiple of four, behind all push constants of the kernel's layout.
///
/// # Errors
/// [`ChangeError::Unsupported`] if the kernel hands the built-in variables or its push constants on as pointers, reads
/// them as signed numbers, or shares its module with other entry points. Compilers make no such kernels from tensors.
pub fn rebase(words: &[u32], entry: &str, offset: u32) -> Result<Vec<u32>, ChangeError> {
    let program = validated(words)?;
    let entry = program.entry(entry)?;
    if program.entries.len() != 1 {
        return unsupported(format!("its shader has {} entry points", program.entries.len()));
    }
    if !offset.is_multiple_of(4) || offset > MOST_OFFSET {
        return unsupported(format!("there is no room for push constants at byte {offset}"));
    }
    let decorations = Decorations::read(&program.module);
    let reads = find_reads(&program, &decorations)?;
    if reads.is_empty() {
        return Ok(words.to_vec());
    }
    let old = find_block(&program, &decorations, offset)?;
    let mut edit = Editor::new(&program.module);
    let uint = edit.uint();
    let vector = edit.global(Op::TypeVector, None, &[uint, 3]);
    let mut rewriter = Rewriter {
        uint,
        vector,
        pointer: edit.pointer(StorageClass::PushConstant, uint),
        size: workgroup_size(&program, entry, &decorations, &mut edit, vector),
        block: extend_block(&program.module, &mut edit, old.as_ref(), offset),
        first: old.as_ref().map_or(0, |b| b.members.len() as u32),
        edit,
    };
    for read in &reads {
        rewriter.replace(read);
    }
    let words = rewriter.edit.finish()?;
    match validated(&words) {
        Ok(_) => Ok(words),
        Err(e) => unsupported(format!("the changed module would not be valid: {e}")),
    }
}

/// A load of a built-in variable.
struct Read {
    load: Inst,
    variable: u32,
    builtin: BuiltIn,
    component: Component,
}

#[derive(Clone, Copy)]
enum Component {
    All,
    Constant(u32),
    /// Id of the index.
    Dynamic(u32),
}

fn is_chain(op: Op) -> bool {
    matches!(op, Op::AccessChain | Op::InBoundsAccessChain)
}

/// All loads of the built-in variables that depend on the dispatch.
fn find_reads(program: &ParsedModule<'_>, decorations: &Decorations<'_>) -> Result<Vec<Read>, ChangeError> {
    let module = &program.module;
    let mut places = HashMap::new();
    for inst in module.insts().iter().filter(|i| i.op == Op::Variable) {
        let number = decorations.value(inst.id, Decoration::BuiltIn);
        let builtin = number.and_then(BuiltIn::from_u32).filter(|b| {
            matches!(b, BuiltIn::WorkgroupId | BuiltIn::GlobalInvocationId | BuiltIn::NumWorkgroups)
        });
        if let Some(builtin) = builtin {
            if !is_unsigned_vector(program, inst) {
                return unsupported(format!("it reads {builtin:?} as signed numbers"));
            }
            places.insert(inst.id, (inst.id, builtin, Component::All));
        }
    }
    let mut reads = Vec::new();
    for inst in program.functions.iter().flat_map(|f| program.body(f)) {
        let used = module.uses(inst).find_map(|used| places.get(&used.id).copied());
        let Some((variable, builtin, component)) = used else { continue };
        match (inst.op, component, module.operands(inst)) {
            (Op::Load, ..) => reads.push(Read { load: *inst, variable, builtin, component }),
            (op, Component::All, [base, index]) if is_chain(op) && *base == variable => {
                let component = match module.constant_u32(*index) {
                    Some(number @ 0..=2) => Component::Constant(number),
                    Some(number) => {
                        return unsupported(format!("it reads component {number} of {builtin:?}"));
                    }
                    None => Component::Dynamic(*index),
                };
                places.insert(inst.id, (variable, builtin, component));
            }
            (op, ..) => return unsupported(format!("it uses {builtin:?} in Op{op:?}")),
        }
    }
    Ok(reads)
}

/// Whether a variable holds unsigned 32-bit numbers; validation has seen that there are three.
fn is_unsigned_vector(program: &ParsedModule<'_>, variable: &Inst) -> bool {
    let Some(Type::Pointer { pointee, .. }) = program.types.get(variable.ty) else { return false };
    let Some(Type::Vector { elem, count: 3 }) = program.types.get(*pointee) else { return false };
    program.module.def(*elem).is_some_and(|d| d.op == Op::TypeInt && program.module.operands(d) == [32, 0])
}

/// The push constants that a kernel has already.
struct Block<'p> {
    variable: Inst,
    ty: u32,
    members: &'p [u32],
}

fn find_block<'p>(
    program: &'p ParsedModule<'_>,
    decorations: &Decorations<'_>,
    offset: u32,
) -> Result<Option<Block<'p>>, ChangeError> {
    let module = &program.module;
    let class = StorageClass::PushConstant as u32;
    let mut variables =
        module.insts().iter().filter(|i| i.op == Op::Variable && module.operands(i).first() == Some(&class));
    let Some(variable) = variables.next() else { return Ok(None) };
    if variables.next().is_some() {
        return unsupported("it declares several push-constant blocks");
    }
    let Some(Type::Pointer { pointee, .. }) = program.types.get(variable.ty) else {
        return unsupported("its push constants have no type");
    };
    let Some(Type::Struct { members }) = program.types.get(*pointee) else {
        return unsupported("its push constants are no struct");
    };
    if members.len() > MOST_MEMBERS {
        return unsupported(format!("its push constants have {} members", members.len()));
    }
    for inst in program.functions.iter().flat_map(|f| program.body(f)) {
        let (uses, operands) = (module.has_use(inst, variable.id), module.operands(inst));
        // A chain with an index points to a member, and its type says nothing about the block.
        if uses && !(is_chain(inst.op) && operands.len() > 1 && operands[0] == variable.id) {
            return unsupported(format!("it uses its push constants as a whole, in Op{:?}", inst.op));
        }
    }
    let block = Block { variable: *variable, ty: *pointee, members };
    check_members(program, decorations, &block, offset)?;
    Ok(Some(block))
}

/// All members end before the byte at which more are added.
fn check_members(
    program: &ParsedModule<'_>,
    decorations: &Decorations<'_>,
    block: &Block<'_>,
    offset: u32,
) -> Result<(), ChangeError> {
    for ty in block.members {
        let dense = match program.types.get(*ty) {
            Some(Type::Int { .. } | Type::Float { .. } | Type::Vector { .. } | Type::Pointer { .. }) => true,
            Some(Type::Array { elem, len: Some(_) }) => {
                let stride = decorations.value(*ty, Decoration::ArrayStride).map(u64::from);
                program.types.lanes(*elem).is_some() && stride == Some(program.types.size(*elem))
            }
            _ => false,
        };
        if !dense {
            return unsupported("its push constants are neither plain values nor dense arrays of them");
        }
    }
    let end = decorations.end_of_block(&program.types, block.ty, block.members);
    if end > u64::from(offset) {
        return unsupported(format!("its push constants end at byte {end}, its layout at byte {offset}"));
    }
    Ok(())
}

/// Declares the block with six more members; returns its variable.
fn extend_block(module: &Module<'_>, edit: &mut Editor<'_, '_>, old: Option<&Block<'_>>, offset: u32) -> u32 {
    let uint = edit.uint();
    let mut members = old.map_or_else(Vec::new, |b| b.members.to_vec());
    let first = members.len() as u32;
    members.extend([uint; REBASE_BYTES as usize / 4]);
    let ty = edit.own_global(Op::TypeStruct, None, &members);
    match old {
        None => edit.decorate(Op::Decorate, &[ty, Decoration::Block as u32]),
        Some(old) => {
            for inst in module.insts() {
                let words = module.operands(inst);
                if matches!(inst.op, Op::Decorate | Op::MemberDecorate) && words[0] == old.ty {
                    let moved: Vec<u32> = std::iter::once(ty).chain(words[1..].iter().copied()).collect();
                    edit.decorate(inst.op, &moved);
                }
            }
        }
    }
    for (added, at) in (first..).zip((offset..).step_by(4)).take(REBASE_BYTES as usize / 4) {
        edit.decorate(Op::MemberDecorate, &[ty, added, Decoration::Offset as u32, at]);
    }
    edit.push_constants(ty, old.map(|b| &b.variable))
}

/// The size of a workgroup as a constant vector: the one that the module declares, which then counts, or a new one.
fn workgroup_size(
    program: &ParsedModule<'_>,
    entry: &Entry,
    decorations: &Decorations<'_>,
    edit: &mut Editor<'_, '_>,
    vector: u32,
) -> u32 {
    let declared = program.module.insts().iter().find(|i| {
        is_constant(i.op)
            && decorations.value(i.id, Decoration::BuiltIn) == Some(BuiltIn::WorkgroupSize as u32)
    });
    if let Some(size) = declared {
        return size.id;
    }
    let parts = entry.local_size.map(|s| edit.constant(s));
    edit.global(Op::ConstantComposite, Some(vector), &parts)
}

/// Replaces reads by what a whole dispatch would give.
struct Rewriter<'a, 'w> {
    edit: Editor<'a, 'w>,
    uint: u32,
    vector: u32,
    /// Type of pointers to a u32 push constant.
    pointer: u32,
    /// Workgroup size, a vector.
    size: u32,
    /// The push-constant variable.
    block: u32,
    /// The first of the six members.
    first: u32,
}

impl Rewriter<'_, '_> {
    fn replace(&mut self, read: &Read) {
        let Read { load, variable, builtin, component } = read;
        let whole = match component {
            Component::All => load.id,
            _ => self.edit.fresh(),
        };
        let mut code = Vec::new();
        if *builtin == BuiltIn::NumWorkgroups {
            self.constants(TOTALS, whole, &mut code);
        } else {
            let (here, mut base) = (self.edit.fresh(), self.edit.fresh());
            code.extend(instruction(Op::Load, &[self.vector, here, *variable]));
            self.constants(0, base, &mut code);
            if *builtin == BuiltIn::GlobalInvocationId {
                let invocations = self.edit.fresh();
                code.extend(instruction(Op::IMul, &[self.vector, invocations, base, self.size]));
                base = invocations;
            }
            code.extend(instruction(Op::IAdd, &[self.vector, whole, here, base]));
        }
        match component {
            Component::All => {}
            Component::Constant(number) => {
                code.extend(instruction(Op::CompositeExtract, &[self.uint, load.id, whole, *number]));
            }
            Component::Dynamic(index) => {
                code.extend(instruction(Op::VectorExtractDynamic, &[self.uint, load.id, whole, *index]));
            }
        }
        self.edit.replace(load, code);
    }

    /// Three of the added push constants as a vector with this id.
    fn constants(&mut self, from: u32, id: u32, code: &mut Vec<u32>) {
        let parts = [0, 1, 2].map(|part| {
            let (place, value) = (self.edit.fresh(), self.edit.fresh());
            let member = self.edit.constant(self.first + from + part);
            code.extend(instruction(Op::AccessChain, &[self.pointer, place, self.block, member]));
            code.extend(instruction(Op::Load, &[self.uint, value, place]));
            value
        });
        code.extend(instruction(Op::CompositeConstruct, &[self.vector, id, parts[0], parts[1], parts[2]]));
    }
}
