//! Moving a kernel's variables to other descriptors, whatever the sets are that they are in.

use std::collections::{BTreeMap, HashMap, HashSet};

use spirv::{Decoration, Op, StorageClass};

use crate::{
    decorations::Decorations,
    edit::Editor,
    error::ChangeError,
    module::{Inst, Module},
};

/// The module with the variable at (set, binding) at set 0 and the binding that `places` has for it. Buffers that the module
/// never writes are declared so (`NonWritable`).
///
/// # Errors
/// The words are no module, or a variable has no place.
pub fn move_bindings(words: &[u32], places: &BTreeMap<(u32, u32), u32>) -> Result<Vec<u32>, ChangeError> {
    let module = Module::parse(words)?;
    let decorations = Decorations::read(&module);
    let mut moved = HashMap::new();
    let mut buffers = HashSet::new();
    for inst in module.insts().iter().filter(|inst| inst.op == Op::Variable) {
        let number = |decoration| decorations.value(inst.id, decoration);
        let Some(binding) = number(Decoration::Binding) else { continue };
        let set = number(Decoration::DescriptorSet).unwrap_or(0);
        let Some(place) = places.get(&(set, binding)) else {
            // A variable that the entry point does not reach may have any place.
            continue;
        };
        moved.insert(inst.id, *place);
        let class = module.variable_class(inst.id).and_then(StorageClass::from_u32);
        if matches!(class, Some(StorageClass::StorageBuffer | StorageClass::Uniform)) {
            buffers.insert(inst.id);
        }
    }
    let written = written(&module, &buffers);
    let mut edit = Editor::new(&module);
    for id in buffers.iter().filter(|id| !written.contains(id)) {
        if !decorations.has(*id, Decoration::NonWritable) {
            edit.decorate(Op::Decorate, &[*id, Decoration::NonWritable as u32]);
        }
    }
    for inst in module.insts().iter().filter(|inst| inst.op == Op::Decorate) {
        let [id, kind, _] = *module.operands(inst) else { continue };
        let Some(place) = moved.get(&id) else { continue };
        let number = match Decoration::from_u32(kind) {
            Some(Decoration::DescriptorSet) => 0,
            Some(Decoration::Binding) => *place,
            _ => continue,
        };
        edit.replace(inst, crate::words::instruction(Op::Decorate, &[id, kind, number]));
    }
    Ok(edit.finish()?)
}

/// Those of the variables that may be written: pointers into them go anywhere but to loads.
fn written(module: &Module<'_>, variables: &HashSet<u32>) -> HashSet<u32> {
    // The variable that each pointer points into.
    let mut roots: HashMap<u32, u32> = variables.iter().map(|id| (*id, *id)).collect();
    let mut written = HashSet::new();
    for inst in module.insts() {
        let root = |at: usize| module.operands(inst).get(at).and_then(|id| roots.get(id)).copied();
        match inst.op {
            Op::Name | Op::Decorate | Op::EntryPoint | Op::Load | Op::ArrayLength => {}
            Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject => {
                if let Some(root) = root(0) {
                    roots.insert(inst.id, root);
                }
            }
            _ => written.extend(others(module, inst, &roots)),
        }
    }
    written
}

/// The variables that an instruction's operands point into.
fn others<'a>(
    module: &'a Module<'_>,
    inst: &'a Inst,
    roots: &'a HashMap<u32, u32>,
) -> impl Iterator<Item = u32> + 'a {
    module.uses(inst).filter_map(|used| roots.get(&used.id).copied())
}
