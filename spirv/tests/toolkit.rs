//! The reader, the editor and the assembler together: what is read and written again is the same, changes can be read, and
//! no change of damaged words panics.

use crate::common::{Random, damaged, fixtures};
use halite_spirv::{
    Assembler, Editor, Id, Module, NewBinding, SpirvError, analyze, instruction, normalize, rebase, rebind,
    rename_entry,
};
use spirv::{BuiltIn, Decoration, Op, StorageClass};

/// Writes a module again with nothing changed.
fn rewritten(words: &[u32]) -> Vec<u32> {
    let module = Module::parse(words).expect("it was read before");
    Editor::new(&module).finish().expect("nothing was added")
}

/// Makes some changes of every kind.
fn changed(module: &Module<'_>, random: &mut Random) -> Result<Vec<u32>, SpirvError> {
    let mut edit = Editor::new(module);
    let uint = edit.uint();
    edit.input(uint, BuiltIn::LocalInvocationIndex);
    edit.workgroup_array(uint, 64);
    edit.glsl();
    edit.decorate(Op::Decorate, &[uint, Decoration::RelaxedPrecision as u32]);
    for _ in 0..random.below(8) {
        let inst = &module.insts()[random.below(module.insts().len())];
        match random.below(3) {
            0 => edit.insert_before(inst, instruction(Op::Nop, &[])),
            1 => edit.replace(inst, module.words_of(inst).to_vec()),
            _ => edit.remove(inst),
        }
    }
    edit.constant(random.below(1 << 16) as u32);
    edit.finish()
}

/// Whatever a change makes of words can be read, or is refused.
fn exercise(words: &[u32], random: &mut Random) {
    let Ok(module) = Module::parse(words) else { return };
    assert_eq!(rewritten(words), words);
    let places = [0, 1, 1, 0].map(|binding| NewBinding { binding, offset: 256 * u64::from(binding) });
    let results = [
        changed(&module, random).ok(),
        rebind(words, &places).ok(),
        rename_entry(words, "another_name").ok(),
        normalize(words).ok().flatten(),
        module.entry_points().next().and_then(|(_, entry)| rebase(words, &entry.name, 64).ok()),
    ];
    for made in results.into_iter().flatten() {
        match Module::parse(&made) {
            Ok(_) => assert_eq!(rewritten(&made), made),
            // What was removed may have been needed by the shape of others, such as the type of a selector.
            Err(e) => assert!(matches!(e, SpirvError::Invalid { .. }), "{e}"),
        }
    }
}

#[test]
fn what_is_read_is_written_again() {
    for words in fixtures() {
        assert_eq!(rewritten(&words), words);
    }
}

#[test]
fn changes_of_sound_modules_can_be_read() {
    let mut random = Random(0x0DD_B175);
    for words in fixtures() {
        let module = Module::parse(&words).expect("a sound module");
        let made = changed(&module, &mut random).expect("there is room");
        let again = Module::parse(&made).expect("a changed module can be read");
        assert!(again.bound() > module.bound());
        exercise(&words, &mut random);
    }
}

#[test]
fn changes_of_damaged_modules_never_panic() {
    let mut random = Random(0xED17_2026);
    let fixtures = fixtures();
    for _ in 0..4000 {
        let words = damaged(&fixtures, &mut random);
        exercise(&words, &mut random);
    }
}

#[test]
fn what_the_format_has_no_room_for_is_refused() {
    let words = fixtures().remove(0);
    let module = Module::parse(&words).expect("sound");
    let mut edit = Editor::new(&module);
    edit.insert_before(&module.insts()[0], instruction(Op::Source, &vec![0; 1 << 16]));
    assert!(matches!(edit.finish(), Err(SpirvError::Edit(_))), "an instruction of 65537 words");
    let mut edit = Editor::new(&module);
    edit.insert_before(&module.insts()[0], [5 << 16 | Op::Nop as u32]);
    assert!(matches!(edit.finish(), Err(SpirvError::Edit(_))), "a length beyond the end");
    let mut edit = Editor::new(&module);
    for _ in 0..1 << 16 {
        edit.fresh();
    }
    assert!(matches!(edit.finish(), Err(SpirvError::Edit(_))), "ids that nothing defines");
    // A header and nothing else has no place for a type.
    let header = [0x0723_0203, 0x0001_0300, 0, 1, 0];
    let module = Module::parse(&header).expect("a header");
    let mut edit = Editor::new(&module);
    edit.uint();
    assert!(matches!(edit.finish(), Err(SpirvError::Edit(_))), "no function");
}

#[test]
fn the_editor_uses_what_is_there() {
    for words in fixtures() {
        let module = Module::parse(&words).expect("sound");
        let mut edit = Editor::new(&module);
        let uint = module.insts().iter().find(|i| i.op == Op::TypeInt && module.operands(i) == [32, 0]);
        if let Some(uint) = uint {
            assert_eq!(edit.uint(), uint.id);
            assert_eq!(edit.finish().expect("nothing was added"), words);
            continue;
        }
        let uint = edit.uint();
        assert_eq!(uint, module.bound());
        assert_eq!((edit.uint(), edit.constant(7), edit.constant(7)), (uint, uint + 1, uint + 1));
        assert_ne!(
            edit.own_global(Op::TypeStruct, None, &[uint]),
            edit.global(Op::TypeStruct, None, &[uint])
        );
    }
}

/// `out[gl_GlobalInvocationID.x] = 7`.
fn assembled() -> Vec<u32> {
    let mut asm = Assembler::default();
    let void = asm.ty(Op::TypeVoid, &[]);
    let signature = asm.ty(Op::TypeFunction, &[void.0]);
    let main = asm.effect(Op::Function, void, &[0, signature.0]);
    let label = asm.reserve();
    asm.block(label);
    let word = asm.ty(Op::TypeInt, &[32, 0]);
    let vector = asm.ty(Op::TypeVector, &[word.0, 3]);
    let pointer = asm.ty(Op::TypePointer, &[StorageClass::Input as u32, vector.0]);
    let input = asm.variable(pointer, StorageClass::Input);
    asm.decorate(input, Decoration::BuiltIn, &[BuiltIn::GlobalInvocationId as u32]);
    let array = asm.own_type(Op::TypeRuntimeArray, &[word.0]);
    asm.decorate(array, Decoration::ArrayStride, &[4]);
    let block = asm.own_type(Op::TypeStruct, &[array.0]);
    asm.decorate(block, Decoration::Block, &[]);
    asm.decorate_member(block, 0, Decoration::Offset, &[0]);
    let buffer = asm.ty(Op::TypePointer, &[StorageClass::StorageBuffer as u32, block.0]);
    let element = asm.ty(Op::TypePointer, &[StorageClass::StorageBuffer as u32, word.0]);
    let buffer = asm.variable(buffer, StorageClass::StorageBuffer);
    asm.decorate(buffer, Decoration::DescriptorSet, &[0]);
    asm.decorate(buffer, Decoration::Binding, &[0]);
    let [zero, seven]: [Id; 2] = [0, 7].map(|value| asm.constant(Op::Constant, word, &[value]));
    let id = asm.effect(Op::Load, vector, &[input.0]);
    let index = asm.pure(Op::CompositeExtract, word, &[id.0, 0]);
    assert_eq!(asm.pure(Op::CompositeExtract, word, &[id.0, 0]), index, "computed once");
    let place = asm.pure(Op::AccessChain, element, &[buffer.0, zero.0, index.0]);
    asm.statement(Op::Store, &[place.0, seven.0]);
    asm.statement(Op::Return, &[]);
    asm.statement(Op::FunctionEnd, &[]);
    asm.finish(main, "store_seven", [64, 2, 1])
}

#[test]
fn what_is_assembled_is_sound_and_can_be_changed() {
    let words = assembled();
    let facts = analyze(&words).expect("sound");
    let entry = &facts.entry_points[0];
    assert_eq!((entry.name.as_str(), entry.local_size), ("store_seven", [64, 2, 1]));
    assert_eq!((facts.capabilities.as_slice(), entry.bindings.len()), (&["Shader".to_owned()][..], 1));
    let moved = rebind(&words, &[NewBinding { binding: 3, offset: 1024 }]).expect("it is an array");
    let moved = analyze(&moved).expect("sound");
    assert_eq!(moved.entry_points[0].bindings[0].binding, 3);
    let odd = rebind(&words, &[NewBinding { binding: 0, offset: 6 }]);
    assert!(odd.unwrap_err().to_string().contains("no array"), "half an element");
    assert!(rebind(&words, &[]).unwrap_err().to_string().contains("more than are bound"));
    exercise(&words, &mut Random(1));
}

#[test]
fn capabilities_follow_from_types() {
    let mut asm = Assembler::default();
    let void = asm.ty(Op::TypeVoid, &[]);
    let signature = asm.ty(Op::TypeFunction, &[void.0]);
    let main = asm.effect(Op::Function, void, &[0, signature.0]);
    let label = asm.reserve();
    asm.block(label);
    asm.ty(Op::TypeFloat, &[16]);
    asm.ty(Op::TypeInt, &[64, 0]);
    asm.statement(Op::Return, &[]);
    asm.statement(Op::FunctionEnd, &[]);
    let facts = analyze(&asm.finish(main, "main", [1; 3])).expect("sound");
    assert_eq!(facts.capabilities, ["Shader", "Float16", "Int64"]);
}
