//! Another name for a kernel.

use spirv::Op;

use crate::{
    edit::Editor,
    error::SpirvError,
    module::Module,
    words::{instruction, literal},
};

/// The module with another name for its entry point, by which pipelines, profilers and messages know it. `name` ends at its
/// first zero byte, if it has one.
///
/// # Errors
/// [`SpirvError`] if the words are no module, there are several entry points or none, or the name is too long.
pub fn rename_entry(words: &[u32], name: &str) -> Result<Vec<u32>, SpirvError> {
    let module = Module::parse(words)?;
    let mut entries = module.entry_points();
    let (Some((inst, entry)), None) = (entries.next(), entries.next()) else {
        return Err(SpirvError::Edit("it has no single entry point".to_owned()));
    };
    let head = [entry.model, entry.function];
    let mut edit = Editor::new(&module);
    edit.replace(inst, instruction(Op::EntryPoint, &[&head, &literal(name)[..], entry.interface].concat()));
    edit.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, a capability, and an entry point `main` with two variables.
    const MODULE: [u32; 14] =
        [0x0723_0203, 0x1_0000, 0, 9, 0, 2 << 16 | 17, 1, 7 << 16 | 15, 5, 4, 0x6E69_616D, 0, 6, 8];

    #[test]
    fn entry_points_get_names_and_keep_their_interface() {
        let made = rename_entry(&MODULE, "softmax").unwrap();
        assert_eq!(made[..7], MODULE[..7]);
        assert_eq!(made[7..], [7 << 16 | 15, 5, 4, 0x7466_6F73, 0x0078_616D, 6, 8]);
        assert_eq!(rename_entry(&made, "main").unwrap(), MODULE);
    }

    #[test]
    fn names_have_an_end() {
        assert!(matches!(rename_entry(&MODULE, &"x".repeat(1 << 20)), Err(SpirvError::Edit(_))));
        assert!(matches!(rename_entry(&MODULE[..7], "x"), Err(SpirvError::Edit(_))), "no entry point");
    }
}
