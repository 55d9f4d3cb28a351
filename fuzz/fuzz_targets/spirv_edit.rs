//! The reader, the editor and the assembler of SPIR-V: what is read is written again word for word, changes can be read or are
//! refused, and transformations of kernels that pass the checks give kernels that pass them.
#![no_main]

use halite_spirv::{
    Editor, Module, NewBinding, SpirvError, analyze, instruction, normalize, rebase, rebind, rename_entry,
};
use libfuzzer_sys::fuzz_target;
use spirv::{BuiltIn, Op};

/// Nothing but the changes that the bytes ask for, each at one instruction.
fn changed(module: &Module<'_>, script: &[u8]) -> Result<Vec<u32>, SpirvError> {
    let mut edit = Editor::new(module);
    for step in script.as_chunks::<3>().0 {
        let at = usize::from(step[1]) << 8 | usize::from(step[2]);
        let Some(inst) = module.insts().get(at % module.insts().len().max(1)) else { break };
        let uint = edit.uint();
        match step[0] % 8 {
            0 => edit.insert_before(inst, instruction(Op::Nop, &[])),
            1 => edit.replace(inst, module.words_of(inst).to_vec()),
            2 => edit.remove(inst),
            3 => {
                edit.input(uint, BuiltIn::LocalInvocationIndex);
            }
            4 => {
                edit.workgroup_array(uint, 32);
            }
            5 => {
                edit.glsl();
            }
            6 => {
                edit.constant(step[1].into());
            }
            _ => edit.insert_before(inst, module.words_of(inst).to_vec()),
        }
    }
    edit.finish()
}

/// What was read is written again as it was.
fn same_again(words: &[u32]) {
    let module = Module::parse(words).expect("it was read before");
    assert_eq!(Editor::new(&module).finish().expect("nothing was added"), words);
}

fuzz_target!(|data: &[u8]| {
    // The last bytes are the changes, as many as the last one says.
    let Some((count, data)) = data.split_last() else { return };
    let (data, script) = data.split_at(data.len().saturating_sub(usize::from(*count % 64) * 3));
    let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let Ok(module) = Module::parse(&words) else { return };
    same_again(&words);
    if let Ok(made) = changed(&module, script)
        && Module::parse(&made).is_ok()
    {
        same_again(&made);
    }
    let named = rename_entry(&words, "another name");
    let bindings = [0, 1, 1, 0, 2, 2].map(|binding| NewBinding { binding, offset: 256 * u64::from(binding) });
    let bound = rebind(&words, &bindings);
    let normal = normalize(&words);
    let Ok(facts) = analyze(&words) else { return };
    let entry = &facts.entry_points[0].name;
    let sound = |words: &[u32]| analyze(words).map_err(|e| e.to_string()).map(drop);
    // A name may be too long for an entry point that lists as many variables as the format has room for.
    if let Ok(named) = named {
        assert_eq!(sound(&named), Ok(()));
        assert_eq!(sound(&rename_entry(&named, entry).expect("its own name fits")), Ok(()));
    }
    if let Ok(Some(normal)) = normal {
        assert_eq!(sound(&normal), Ok(()));
    }
    if let Ok(bound) = bound {
        same_again(&bound);
    }
    if let Ok(parts) = rebase(&words, entry, 64) {
        assert_eq!(sound(&parts), Ok(()));
    }
});
