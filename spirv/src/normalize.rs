//! Making a module say what it means by the rules of the version it declares.
//!
//! iree-compile 3.13.0 writes the lowest version number that fits the capabilities, but follows rules of SPIR-V 1.4:
//! entry points list all global variables, and integers carry no-wrap decorations without their extension. Drivers
//! mostly accept it; the validation layer does not, and a strict driver need not.

use spirv::{Decoration, Op, StorageClass};

use crate::{
    edit::Editor,
    error::SpirvError,
    module::Module,
    words::{instruction, literal_text},
};

/// First version in which entry points list all global variables and no-wrap decorations need no extension.
const VERSION_1_4: u32 = 0x0001_0400;

/// Extension that brings the no-wrap decorations to older versions.
const NO_WRAP_EXTENSION: &str = "SPV_KHR_no_integer_wrap_decoration";

/// The module without what its version does not know, or `None` when there is nothing to change. What goes has no
/// effect on results: names of variables in an interface list, and hints that arithmetic does not wrap.
///
/// # Errors
/// The words are no SPIR-V.
pub fn normalize(words: &[u32]) -> Result<Option<Vec<u32>>, SpirvError> {
    let module = Module::parse(words)?;
    if module.version() >= VERSION_1_4 {
        return Ok(None);
    }
    let extended = module.insts().iter().any(|i| {
        i.op == Op::Extension && literal_text(module.operands(i)).as_deref() == Some(NO_WRAP_EXTENSION)
    });
    let mut edit = Editor::new(&module);
    let mut changed = false;
    for (inst, entry) in module.entry_points() {
        let kept: Vec<u32> =
            entry.interface.iter().copied().filter(|id| is_input_or_output(&module, *id)).collect();
        if kept.len() < entry.interface.len() {
            let operands = module.operands(inst);
            let head = &operands[..operands.len() - entry.interface.len()];
            edit.replace(inst, instruction(Op::EntryPoint, &[head, &kept].concat()));
            changed = true;
        }
    }
    let hints = module.insts().iter().filter(|inst| inst.op == Op::Decorate && !extended);
    for inst in hints.filter(|inst| is_no_wrap(module.operands(inst))) {
        edit.remove(inst);
        changed = true;
    }
    changed.then(|| edit.finish()).transpose()
}

fn is_no_wrap(decoration: &[u32]) -> bool {
    let no_wrap = [Decoration::NoSignedWrap as u32, Decoration::NoUnsignedWrap as u32];
    decoration.get(1).is_some_and(|d| no_wrap.contains(d))
}

fn is_input_or_output(module: &Module<'_>, id: u32) -> bool {
    let class = module.variable_class(id);
    class.is_some_and(|c| c == StorageClass::Input as u32 || c == StorageClass::Output as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `OpEntryPoint GLCompute %1 "main"` with an input, a buffer, and a no-wrap decoration.
    fn module(version: u32) -> Vec<u32> {
        let op = |op: Op, rest: &[u32]| [&[((rest.len() as u32 + 1) << 16) | op as u32], rest].concat();
        [
            vec![0x0723_0203, version, 0, 8, 0],
            op(Op::Capability, &[1]),
            op(Op::MemoryModel, &[0, 1]),
            op(Op::EntryPoint, &[5, 1, u32::from_le_bytes(*b"main"), 0, 2, 3]),
            op(Op::Decorate, &[4, Decoration::NoSignedWrap as u32]),
            op(Op::Variable, &[5, 2, StorageClass::Input as u32]),
            op(Op::Variable, &[6, 3, StorageClass::StorageBuffer as u32]),
        ]
        .concat()
    }

    #[test]
    fn old_versions_lose_what_they_do_not_know() {
        let before = module(0x0001_0300);
        let after = normalize(&before).unwrap().expect("two things to change");
        assert_eq!(after.len(), before.len() - 1 - 3);
        let parsed = Module::parse(&after).unwrap();
        assert!(parsed.insts().iter().all(|i| i.op != Op::Decorate));
        let entry = parsed.insts().iter().find(|i| i.op == Op::EntryPoint).unwrap();
        assert_eq!(parsed.words_of(entry), &[6 << 16 | 15, 5, 1, u32::from_le_bytes(*b"main"), 0, 2]);
        assert_eq!(normalize(&after).unwrap(), None);
    }

    #[test]
    fn versions_that_know_it_are_left_alone() {
        assert_eq!(normalize(&module(0x0001_0600)).unwrap(), None);
        assert!(normalize(&[1, 2, 3]).is_err());
    }
}
