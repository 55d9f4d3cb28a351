//! Moving a kernel's variables to other bindings: several may share one, each from an offset on.

use std::collections::{HashMap, HashSet};

use spirv::{Decoration, Op};

use crate::{
    decorations::Decorations,
    edit::Editor,
    error::{ChangeError, unsupported},
    module::{Inst, Module},
    words::instruction,
};

/// Where the memory of a binding is bound instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewBinding {
    /// The binding that it goes to.
    pub binding: u32,
    /// Bytes from the start of what is bound there.
    pub offset: u64,
}

/// The module with the variables of binding n at `bindings[n]`, in the same descriptor set.
///
/// Variables that share a binding afterwards are decorated `Aliased`. A variable with an offset must be a block of one
/// runtime array, of which single elements are read and written; their indices become larger.
///
/// # Errors
/// [`ChangeError::Unsupported`] if a variable with an offset is used in another way, or a binding has no new one.
pub fn rebind(words: &[u32], bindings: &[NewBinding]) -> Result<Vec<u32>, ChangeError> {
    let module = Module::parse(words)?;
    let moved = Moved::of(&module, bindings)?;
    let mut edit = Editor::new(&module);
    let mut constants = HashMap::new();
    let mut in_function = false;
    for inst in module.insts() {
        in_function |= inst.op == Op::Function;
        if inst.op == Op::Decorate {
            moved.decoration(inst, &mut edit);
        } else if in_function {
            if moved.elements.is_empty() {
                // Decorations are all that changes, and they are in front of functions.
                break;
            }
            moved.access(inst, &mut edit, &mut constants)?;
        }
    }
    if !in_function {
        return unsupported("it has no function");
    }
    Ok(edit.finish()?)
}

/// The variables that move.
struct Moved<'m, 'w> {
    module: &'m Module<'w>,
    bindings: HashMap<u32, NewBinding>,
    /// Elements that are added to the indices of each variable with an offset.
    elements: HashMap<u32, u32>,
    /// Variables that share a binding.
    aliased: HashSet<u32>,
}

impl<'m, 'w> Moved<'m, 'w> {
    fn of(module: &'m Module<'w>, bindings: &[NewBinding]) -> Result<Self, ChangeError> {
        let decorations = Decorations::read(module);
        let mut moved =
            Moved { module, bindings: HashMap::new(), elements: HashMap::new(), aliased: HashSet::new() };
        let mut sharing: HashMap<u32, Vec<u32>> = HashMap::new();
        for variable in module.insts().iter().filter(|inst| inst.op == Op::Variable) {
            let Some(old) = decorations.value(variable.id, Decoration::Binding) else { continue };
            let Some(new) = bindings.get(old as usize).copied() else {
                return unsupported("there are more than are bound");
            };
            moved.bindings.insert(variable.id, new);
            sharing.entry(new.binding).or_default().push(variable.id);
            if new.offset > 0 {
                let stride = stride(module, &decorations, variable);
                let Some(stride) = stride.filter(|stride| new.offset.is_multiple_of(*stride)) else {
                    return unsupported("one is no array");
                };
                let Ok(elements) = u32::try_from(new.offset / stride) else {
                    return unsupported("an offset is too large");
                };
                moved.elements.insert(variable.id, elements);
            }
        }
        moved.aliased = sharing.into_values().filter(|ids| ids.len() > 1).flatten().collect();
        Ok(moved)
    }

    fn decoration(&self, inst: &Inst, edit: &mut Editor<'_, '_>) {
        let &[id, decoration, ..] = self.module.operands(inst) else { return };
        let Some(new) = self.bindings.get(&id) else { return };
        let aliased = self.aliased.contains(&id);
        match Decoration::from_u32(decoration) {
            Some(Decoration::Binding) => {
                let mut words = instruction(Op::Decorate, &[id, decoration, new.binding]);
                if aliased {
                    words.extend(instruction(Op::Decorate, &[id, Decoration::Aliased as u32]));
                }
                edit.replace(inst, words);
            }
            Some(Decoration::Restrict | Decoration::Aliased) if aliased => edit.remove(inst),
            _ => {}
        }
    }

    /// Moves the index of an access chain to a variable with an offset. `constants` are those that are added, by type
    /// and value.
    fn access(
        &self,
        inst: &Inst,
        edit: &mut Editor<'_, '_>,
        constants: &mut HashMap<(u32, u32), u32>,
    ) -> Result<(), ChangeError> {
        // Nearly no instruction has one of these words, and what words mean takes long to find out.
        let words = self.module.words_of(inst);
        if !words.iter().any(|word| self.elements.keys().any(|id| id == word)) {
            return Ok(());
        }
        let Some(used) = self.module.uses(inst).find(|used| self.elements.contains_key(&used.id)) else {
            return Ok(());
        };
        let whole = || unsupported("an array is used whole");
        if !matches!(inst.op, Op::AccessChain | Op::InBoundsAccessChain) {
            return whole();
        }
        let operands = self.module.operands(inst);
        let &[base, _, index, ..] = operands else { return whole() };
        if used.id != base || operands[1..].iter().any(|id| self.elements.contains_key(id)) {
            return whole();
        }
        let Some(ty) = self.plain_type(index) else { return unsupported("an index has no plain type") };
        let elements = self.elements[&base];
        let constant = *constants
            .entry((ty, elements))
            .or_insert_with(|| edit.own_global(Op::Constant, Some(ty), &[elements]));
        let sum = edit.fresh();
        edit.insert_before(inst, instruction(Op::IAdd, &[ty, sum, index, constant]));
        let mut words = words.to_vec();
        // Opcode, type, result, base and the member come before the index.
        words[5] = sum;
        edit.replace(inst, words);
        Ok(())
    }

    /// The type of a value that is an integer of 32 bits.
    fn plain_type(&self, id: u32) -> Option<u32> {
        let ty = self.module.def(self.module.def(id)?.ty).filter(|ty| ty.op == Op::TypeInt)?;
        matches!(self.module.operands(ty), [32, _]).then_some(ty.id)
    }
}

/// Bytes from element to element of a variable that is a block of one runtime array.
fn stride(module: &Module<'_>, decorations: &Decorations<'_>, variable: &Inst) -> Option<u64> {
    let part = |id: u32, op: Op| module.def(id).filter(|def| def.op == op).map(|def| module.operands(def));
    let &[_, block] = part(variable.ty, Op::TypePointer)? else { return None };
    let &[array] = part(block, Op::TypeStruct)? else { return None };
    part(array, Op::TypeRuntimeArray)?;
    let stride = decorations.value(array, Decoration::ArrayStride)?;
    (stride > 0).then_some(u64::from(stride))
}
