//! Storage buffers as modules before SPIR-V 1.3 declare them (`Uniform` with `BufferBlock`), in the words of today.

use spirv::{Decoration, Op, StorageClass};

use crate::{
    decorations::Decorations,
    edit::Editor,
    error::{ChangeError, unsupported},
    module::{Inst, Module},
    words::{instruction, literal},
};

/// First version that knows the storage class without an extension.
const SINCE: u32 = 0x0001_0300;
/// The extension that older modules need for it.
const EXTENSION: &str = "SPV_KHR_storage_buffer_storage_class";

/// The module with its storage buffers in the storage class `StorageBuffer`; `None` where they are, or there are none.
///
/// # Errors
/// The words are no module, or it has uniform buffers beside such storage buffers.
pub fn modern_buffers(words: &[u32]) -> Result<Option<Vec<u32>>, ChangeError> {
    let module = Module::parse(words)?;
    let is_old = |inst: &&Inst| {
        inst.op == Op::Decorate && module.operands(inst).get(1) == Some(&(Decoration::BufferBlock as u32))
    };
    if !module.insts().iter().any(|inst| is_old(&inst)) {
        return Ok(None);
    }
    let decorations = Decorations::read(&module);
    let uniform = StorageClass::Uniform as u32;
    let variables = module.insts().iter().filter(|inst| module.variable_class(inst.id) == Some(uniform));
    for variable in variables {
        let pointer = module.def(variable.ty).map(|def| module.operands(def)).unwrap_or_default();
        let is_storage = pointer.get(1).is_some_and(|ty| decorations.has(*ty, Decoration::BufferBlock));
        if !is_storage {
            return unsupported(format!(
                "variable {} is a uniform buffer beside old storage buffers",
                variable.id
            ));
        }
    }
    let mut edit = Editor::new(&module);
    for inst in module.insts() {
        let mut new = module.words_of(inst)[1..].to_vec();
        let place = match inst.op {
            Op::TypePointer if new[1] == uniform => (1, StorageClass::StorageBuffer as u32),
            Op::Variable if new[2] == uniform => (2, StorageClass::StorageBuffer as u32),
            Op::Decorate if new[1] == Decoration::BufferBlock as u32 => (1, Decoration::Block as u32),
            _ => continue,
        };
        new[place.0] = place.1;
        edit.replace(inst, instruction(inst.op, &new));
    }
    let behind = module.insts().iter().find(|inst| inst.op != Op::Capability);
    if let Some(first) = behind.filter(|_| module.version() < SINCE) {
        edit.insert_before(first, instruction(Op::Extension, &literal(EXTENSION)));
    }
    Ok(Some(edit.finish()?))
}
