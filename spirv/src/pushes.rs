//! Push constants as a storage buffer: for those whose values only the caller of a call knows.

use spirv::{Decoration, Op, StorageClass};

use crate::{
    edit::Editor,
    error::ChangeError,
    module::Module,
    words::{instruction, literal, literal_text},
};

const BUFFERS: &str = "SPV_KHR_storage_buffer_storage_class";
/// First version that knows storage buffers without an extension.
const BUFFERS_SINCE: u32 = 0x0001_0300;

/// The module with its block of push constants as a storage buffer of the same layout at this binding of set 0; `None` where it
/// has none.
///
/// # Errors
/// The words are no module.
pub fn push_constants_as_buffer(words: &[u32], binding: u32) -> Result<Option<Vec<u32>>, ChangeError> {
    let module = Module::parse(words)?;
    let push = StorageClass::PushConstant as u32;
    let variables: Vec<_> =
        module.insts().iter().filter(|i| module.variable_class(i.id) == Some(push)).collect();
    if variables.is_empty() {
        return Ok(None);
    }
    let mut edit = Editor::new(&module);
    let mut has_buffers = module.version() >= BUFFERS_SINCE;
    for inst in module.insts() {
        let mut new = module.words_of(inst)[1..].to_vec();
        match inst.op {
            Op::Extension => has_buffers |= literal_text(&new).as_deref() == Some(BUFFERS),
            Op::TypePointer if new[1] == push => {
                new[1] = StorageClass::StorageBuffer as u32;
                edit.replace(inst, instruction(inst.op, &new));
            }
            Op::Variable if new[2] == push => {
                new[2] = StorageClass::StorageBuffer as u32;
                edit.replace(inst, instruction(inst.op, &new));
            }
            _ => {}
        }
    }
    for variable in variables {
        for (decoration, value) in [(Decoration::DescriptorSet, 0), (Decoration::Binding, binding)] {
            edit.decorate(Op::Decorate, &[variable.id, decoration as u32, value]);
        }
    }
    let behind = module.insts().iter().find(|inst| inst.op != Op::Capability);
    if let Some(first) = behind.filter(|_| !has_buffers) {
        edit.insert_before(first, instruction(Op::Extension, &literal(BUFFERS)));
    }
    Ok(Some(edit.finish()?))
}
