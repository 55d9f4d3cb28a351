//! Tests of the rules that keep drivers from crashing: a sound kernel with one word changed, or one instruction
//! added, is refused, and the message names what is wrong. Random damage is in `robustness.rs`.

use crate::common::fixture;
use halite_spirv::{Module, analyze};

const OP_EXT_INST: u32 = 12;
const OP_MEMORY_MODEL: u32 = 14;
const OP_EXECUTION_MODE: u32 = 16;
const OP_LOAD: u32 = 61;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;
const OP_LOOP_MERGE: u32 = 246;
const OP_SELECTION_MERGE: u32 = 247;
const ARRAY_STRIDE: u32 = 6;
const BUILT_IN: u32 = 11;
const BINDING: u32 = 33;

fn softmax() -> Vec<u32> {
    fixture("softmax.spv")
}

/// Offset and length of the first instruction with this opcode whose words satisfy the condition.
fn find(words: &[u32], op: u32, wanted: impl Fn(&[u32]) -> bool) -> (usize, usize) {
    let module = Module::parse(words).expect("the fixture is sound");
    let mut insts = module.insts().iter();
    let found = insts.find(|inst| inst.op as u32 == op && wanted(module.words_of(inst)));
    found.map(|inst| (inst.at, inst.len)).expect("the fixture has such an instruction")
}

/// Analyses the fixture after a change; returns the message of the refusal.
fn refusal(change: impl Fn(&mut Vec<u32>)) -> String {
    let mut words = softmax();
    analyze(&words).expect("the fixture is sound");
    change(&mut words);
    analyze(&words).expect_err("must be refused").to_string()
}

/// Overwrites one word of an instruction.
fn with(op: u32, wanted: impl Fn(&[u32]) -> bool, word: usize, value: u32) -> String {
    refusal(|words| {
        let (at, _) = find(words, op, &wanted);
        words[at + word] = value;
    })
}

/// Removes an instruction.
fn without(op: u32, wanted: impl Fn(&[u32]) -> bool) -> String {
    refusal(|words| {
        let (at, length) = find(words, op, &wanted);
        words.drain(at..at + length);
    })
}

#[test]
fn unknown_enumerations_are_named() {
    let any = |_: &[u32]| true;
    let is = |n: u32| move |i: &[u32]| i[2] == n;
    let cases = [
        (with(OP_MEMORY_MODEL, any, 1, 4), "addressing model 4"),
        (with(OP_MEMORY_MODEL, any, 2, 0x6172_6F74), "memory model 1634889588"),
        (with(OP_EXECUTION_MODE, any, 2, 31), "LocalSize"),
        (with(OP_EXECUTION_MODE, any, 3, 0), "not a workgroup size"),
        (with(OP_EXECUTION_MODE, any, 4, 0x1_0000), "not a workgroup size"),
        (with(OP_EXECUTION_MODE, any, 5, u32::MAX), "not a workgroup size"),
        (with(OP_DECORATE, is(BINDING), 2, 161), "no decoration 161"),
        (with(OP_DECORATE, is(BUILT_IN), 3, 15), "built-in 15"),
        (with(OP_SELECTION_MERGE, any, 2, 0x1000_0000), "control bits 0x10000000"),
        (with(OP_LOOP_MERGE, any, 3, 8), "0 operands for control 0x8"),
        (with(OP_EXT_INST, any, 4, 0x0080_0008), "no instruction 8388616"),
        (with(OP_EXT_INST, any, 4, 8), "8 has 1 operands, not 2"),
        (with(OP_EXT_INST, any, 4, 39), "no integer"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "'{part}' is missing in: {message}");
    }
}

#[test]
fn decorations_stand_where_they_belong() {
    let is = |n: u32| move |i: &[u32]| i[2] == n;
    let member = |_: &[u32]| true;
    let cases = [
        (with(OP_DECORATE, is(ARRAY_STRIDE), 2, BINDING), "Binding on OpType"),
        (with(OP_MEMBER_DECORATE, member, 2, 0x2000_0000), "member 536870912 of a struct"),
        (with(OP_DECORATE, is(BINDING), 2, 34), "twice"),
        (without(OP_DECORATE, is(BINDING)), "no DescriptorSet or Binding"),
        (without(OP_DECORATE, is(BUILT_IN)), "no built-in"),
        (without(OP_DECORATE, is(ARRAY_STRIDE)), "no ArrayStride"),
        (without(OP_MEMBER_DECORATE, member), "without Offset"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "'{part}' is missing in: {message}");
    }
}

#[test]
fn memory_operands_have_their_words() {
    // (words after the pointer, part of the message; none if it is legal)
    let cases: [(&[u32], Option<&str>); 6] = [
        (&[2, 4], None),
        (&[2, 3], Some("alignment 3")),
        (&[2], Some("operand is missing")),
        (&[0, 4], Some("1 words follow")),
        (&[0x40], Some("bits 0x40")),
        (&[0x30, 1], Some("scope 1 is no constant")),
    ];
    for (extra, expected) in cases {
        let mut words = softmax();
        let (at, _) = find(&words, OP_LOAD, |i| i.len() == 4);
        words[at] += (extra.len() as u32) << 16;
        words.splice(at + 4..at + 4, extra.iter().copied());
        match (analyze(&words), expected) {
            (Ok(_), None) => {}
            (Err(e), Some(part)) => assert!(e.to_string().contains(part), "'{part}' is missing in: {e}"),
            (found, _) => panic!("{extra:?}: {found:?}"),
        }
    }
}

#[test]
fn an_instruction_must_fit_its_operands() {
    // (opcode in the fixture, opcode of the same shape in its place)
    for (from, to) in [(177, 145), (128, 146), (62, 63), (133, 143), (133, 144), (128, 142)] {
        let message = refusal(|words| {
            let (at, _) = find(words, from, |_| true);
            words[at] = (words[at] & 0xFFFF_0000) | to;
        });
        assert!(message.contains("invalid SPIR-V"), "{message}");
    }
}
