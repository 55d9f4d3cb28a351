//! Graphs that are made here, whole and damaged.

use spirv::{Decoration, Op};

use super::*;
use crate::words::{instruction, literal};

/// Instructions with their operands.
type Parts = Vec<(Op, Vec<u32>)>;

/// Words of a module of instructions.
fn module(parts: &[(Op, Vec<u32>)]) -> Vec<u32> {
    let mut words = vec![spirv::MAGIC_NUMBER, 0x0001_0500, 0, 64, 0];
    parts.iter().for_each(|(op, operands)| words.extend(instruction(*op, operands)));
    words
}

fn with(start: &[u32], text: &str, end: &[u32]) -> Vec<u32> {
    [start, &literal(text), end].concat()
}

/// A graph of one operation on an input, a constant outside of the module, and constants of every kind.
fn sample() -> Parts {
    let (set, binding) = (Decoration::DescriptorSet as u32, Decoration::Binding as u32);
    vec![
        (Op::ExtInstImport, with(&[1], "TOSA.001000.1", &[])),
        (Op::ExtInstImport, with(&[2], "NonSemantic.Graph.DebugInfo.1", &[])),
        (Op::String, with(&[3], "sum", &[])),
        (Op::Name, with(&[20], "the input", &[])),
        (Op::Decorate, vec![20, set, 1]),
        (Op::Decorate, vec![20, binding, 4]),
        (Op::Decorate, vec![21, binding, 5]),
        (Op::TypeInt, vec![4, 8, 0]),
        (Op::TypeInt, vec![5, 32, 0]),
        (Op::TypeBool, vec![6]),
        (Op::Constant, vec![5, 7, 0]),
        (Op::Constant, vec![5, 8, 1]),
        (Op::Constant, vec![5, 9, 3]),
        (Op::Constant, vec![4, 10, 158]),
        (Op::ConstantTrue, vec![6, 11]),
        (Op::TypeArray, vec![12, 5, 8]),
        (Op::ConstantComposite, vec![12, 13, 9]),
        (Op::TypeTensorARM, vec![14, 4, 8, 13]),
        (Op::ConstantComposite, vec![14, 15, 10, 10, 10]),
        (Op::ConstantCompositeReplicateEXT, vec![14, 16, 10]),
        (Op::ConstantNull, vec![14, 17]),
        (Op::GraphConstantARM, vec![14, 18, 6]),
        (Op::TypePointer, vec![19, 0, 14]),
        (Op::Variable, vec![19, 20, 0]),
        (Op::Variable, vec![19, 21, 0]),
        (Op::TypeGraphARM, vec![22, 1, 14, 14, 14]),
        (Op::TypeStruct, vec![23, 14, 14]),
        (Op::TypeVoid, vec![24]),
        (Op::Decorate, vec![30, binding, 6]),
        (Op::Variable, vec![19, 30, 0]),
        (Op::GraphEntryPointARM, with(&[25], "main", &[20, 21, 30])),
        (Op::GraphARM, vec![22, 25]),
        (Op::GraphInputARM, vec![14, 26, 7]),
        (Op::ExtInst, vec![23, 27, 1, 5, 11, 9, 26, 15, 16, 17, 18]),
        (Op::CompositeExtract, vec![14, 28, 27, 1]),
        (Op::GraphSetOutputARM, vec![28, 7]),
        (Op::GraphSetOutputARM, vec![26, 8]),
        (Op::GraphEndARM, vec![]),
        (Op::ExtInst, vec![24, 29, 2, 2, 24, 3, 27]),
    ]
}

#[test]
fn operations_and_constants_are_read() {
    let made = read(&module(&sample())).unwrap();
    let [graph] = &made.graphs[..] else { panic!("{made:?}") };
    let [operation] = &graph.operations[..] else { panic!("{graph:?}") };
    assert_eq!((made.sets[operation.set].as_str(), operation.number), ("TOSA.001000.1", 5));
    assert_eq!((&*operation.name, operation.results.len()), ("sum", 2));
    let origins: Vec<_> = operation.operands.iter().map(|id| &made.values[*id].origin).collect();
    assert_eq!(*origins[0], Origin::Splat(vec![1]), "a boolean");
    assert_eq!(*origins[1], Origin::Splat(vec![3, 0, 0, 0]));
    assert_eq!(*origins[2], Origin::Input(0));
    assert_eq!(*origins[3], Origin::Elements(vec![158; 3]));
    assert_eq!((origins[4], origins[5]), (&Origin::Splat(vec![158]), &Origin::Splat(vec![0])));
    assert_eq!(*origins[6], Origin::GraphConstant(6));
    assert_eq!(graph.outputs, [operation.results[1], graph.inputs[0]], "an input may be an output");
    let entry = made.entry("main").unwrap();
    assert_eq!((&*entry.inputs[0].name, entry.inputs[0].set, entry.inputs[0].binding), ("the input", 1, 4));
    assert_eq!(entry.outputs.iter().map(|port| port.binding).collect::<Vec<_>>(), [5, 6]);
    assert_eq!((made.debug[0].kind, &made.debug[0].ids[..]), ("operation", &[27][..]));
}

#[test]
fn broken_rules_are_told() {
    let said = |change: &dyn Fn(&mut Parts)| {
        let mut parts = sample();
        change(&mut parts);
        read(&module(&parts)).unwrap_err().to_string()
    };
    let at = |op: Op| sample().iter().position(|(found, _)| *found == op).unwrap();
    let missing = said(&|parts| drop(parts.remove(at(Op::GraphSetOutputARM))));
    assert!(missing.contains("graph 25 does not set all outputs"), "{missing}");
    let order = said(&|parts| parts.swap(at(Op::ExtInst), at(Op::GraphInputARM)));
    assert!(order.contains("26 is read, but is no constant and not computed before"), "{order}");
    let short = said(&|parts| parts[18].1.truncate(4));
    assert!(short.contains("2 parts for a tensor of [3]"), "{short}");
    let open = said(&|parts| parts[at(Op::TypeTensorARM)].1.truncate(2));
    assert!(open.contains("a tensor whose sizes are open"), "{open}");
    let end = said(&|parts| parts.truncate(at(Op::GraphEndARM)));
    assert!(end.contains("graph 25 has no end"), "{end}");
    let many = said(&|parts| {
        let graph = parts[at(Op::TypeGraphARM)].1.clone();
        parts[at(Op::TypeGraphARM)].1 = [vec![graph[0], 4000], vec![14; 4000]].concat();
        let at = at(Op::GraphARM);
        (40..64).for_each(|id| parts.insert(at, (Op::GraphARM, vec![22, id])));
        (0..24).rev().for_each(|i| parts.insert(at + i + 1, (Op::GraphEndARM, vec![])));
    });
    assert!(many.contains("far more values than the module is long"), "{many}");
}

#[test]
fn constants_are_put_together_of_tensors() {
    let mut parts = sample();
    let at = parts.iter().position(|(op, _)| *op == Op::GraphConstantARM).unwrap();
    // Three rows of 3: a composite, one that repeats, zeros.
    let nested = [
        (Op::Constant, vec![5, 31, 2]),
        (Op::TypeArray, vec![32, 5, 31]),
        (Op::ConstantComposite, vec![32, 33, 9, 9]),
        (Op::TypeTensorARM, vec![34, 4, 31, 33]),
        (Op::ConstantComposite, vec![34, 35, 15, 16, 17]),
    ];
    parts.splice(at..at, nested);
    let read_with = |parts: &[(Op, Vec<u32>)]| {
        let mut parts = parts.to_vec();
        let graph = parts.iter().position(|(op, _)| *op == Op::ExtInst).unwrap();
        parts[graph].1[6] = 35;
        read(&module(&parts))
    };
    let made = read_with(&parts).unwrap();
    let found = made.values.iter().find(|value| value.id == 35).unwrap();
    let rows = [[158; 3], [158; 3], [0; 3]].concat();
    assert_eq!((&found.origin, &found.shape), (&Origin::Elements(rows), &Some(vec![3, 3])));
    parts[at + 4].1[3] = 10;
    let mixed = read_with(&parts).unwrap_err().to_string();
    assert!(mixed.contains("part 10"), "{mixed}");
}

#[test]
fn graphs_are_no_kernels() {
    let error = crate::analyze(&module(&sample())).unwrap_err().to_string();
    assert!(error.contains("is no part of compute kernels"), "{error}");
}

#[test]
fn damage_is_no_panic() {
    let words = module(&sample());
    for at in 0..words.len() {
        for value in [0, 1, 5, 14, 0xFFFF, u32::MAX, words[at] ^ 0x1_0000] {
            let mut damaged = words.clone();
            damaged[at] = value;
            let _ = read(&damaged);
        }
        let _ = read(&words[..at]);
    }
}
