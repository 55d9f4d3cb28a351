//! Plans of concatenations whose inputs are several runs of the result each: what is computed there, what is copied there, and what
//! waits for what.

use halite_ops::{DType, expression::Function as Call};

use super::{
    ModulePlan,
    flow::{Step, StorageClass},
    plan,
    schedule::Command,
};
use crate::{
    CompileOptions, Control, Function, Program,
    backend::{Computation, vulkan::Vulkan},
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

const F32: ElementType = ElementType::Of(DType::F32);

fn planned(make: impl FnOnce(&mut Builder)) -> ModulePlan {
    let mut builder = Builder::new();
    make(&mut builder);
    let program =
        Program { functions: vec![Function::new("main", vec![builder.finish().unwrap()])], model: None };
    let options = CompileOptions::default();
    plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap()
}

/// Columns of four rows.
fn columns(b: &mut Builder, x: TensorId, start: u64, count: u64) -> TensorId {
    b.slice(x, &[Range::all(4), Range { start, step: 1, count }]).unwrap()
}

/// The commands: d for a dispatch, c for a copy, | for a barrier.
fn line(plan: &ModulePlan) -> String {
    let letter = |command: &Command| match command {
        Command::Dispatch { .. } => 'd',
        Command::Copy { .. } => 'c',
        Command::Barrier => '|',
    };
    plan.targets[0].functions[0][0].segments[0].iter().map(letter).collect()
}

/// The names of the operations, with a ' behind those whose result is runs of another.
fn operations(plan: &ModulePlan) -> Vec<String> {
    let flow = &plan.functions[0][0];
    let name = |step: &Step| match step {
        Step::Compute { computation: Computation::Operation(operation), outputs, .. } => {
            let runs = matches!(flow.storages[outputs[0].index()].class, StorageClass::Runs(..));
            Some(format!("{}{}", operation.name(), if runs { "'" } else { "" }))
        }
        _ => None,
    };
    flow.steps.iter().filter_map(name).collect()
}

#[test]
fn parts_are_computed_where_they_are_joined() {
    let plan = planned(|b| {
        let [x, y] = [("x", 16), ("y", 32)].map(|(name, width)| b.input(name, F32, &[4, width]).unwrap());
        let parts = [b.unary(Call::Exp, x).unwrap(), b.unary(Call::Neg, y).unwrap()];
        let all = b.concat(&parts, 1).unwrap();
        b.output("all", all);
    });
    assert_eq!(operations(&plan), ["elementwise'", "elementwise'"]);
    // What is declared of a kernel is all of a buffer, so that both wait.
    assert_eq!(line(&plan), "d|d|");
}

#[test]
fn what_is_part_of_another_is_no_place_for_runs() {
    // The rows that are joined of columns lie behind others, as those of a convolution behind the rows of the call before.
    let plan = planned(|b| {
        let past = b.input("past", F32, &[2, 64]).unwrap();
        let [x, y] = [("x", 16), ("y", 48)].map(|(name, width)| b.input(name, F32, &[4, width]).unwrap());
        let parts = [b.unary(Call::Exp, x).unwrap(), b.unary(Call::Neg, y).unwrap()];
        let own = b.concat(&parts, 1).unwrap();
        let all = b.concat(&[past, own], 0).unwrap();
        let made = b.softmax(all, 1, false).unwrap();
        b.output("made", made);
    });
    assert!(operations(&plan).iter().all(|name| !name.ends_with('\'')), "{:?}", operations(&plan));
}

#[test]
fn inputs_and_results_of_a_graph_are_copied() {
    let plan = planned(|b| {
        let [x, y] = [("x", 16), ("y", 32)].map(|(name, width)| b.input(name, F32, &[4, width]).unwrap());
        let [a, c] = [b.unary(Call::Exp, x).unwrap(), b.unary(Call::Neg, y).unwrap()];
        let all = b.concat(&[y, a, c], 1).unwrap();
        b.output("all", all);
        b.output("a", a);
    });
    let mut found = operations(&plan);
    found.sort();
    assert_eq!(found, ["concat'", "concat'", "elementwise", "elementwise'"]);
}

#[test]
fn growing_concatenations_are_read_as_runs() {
    let plan = planned(|b| {
        let x = b.input("x", F32, &[4, 8]).unwrap();
        let mut parts = vec![x];
        for _ in 0..4 {
            let all = b.concat(&parts, 1).unwrap();
            parts.push(b.unary(Call::Exp, all).unwrap());
        }
        let all = b.concat(&parts, 1).unwrap();
        b.output("all", all);
    });
    // The first part is an input; all others are computed in their place, of what lies there already.
    let copies = operations(&plan).iter().filter(|name| *name == "concat'").count();
    let computed = operations(&plan).iter().filter(|name| *name == "elementwise'").count();
    assert_eq!((copies, computed), (1, 4), "{:?}", operations(&plan));
}

#[test]
fn what_other_kernels_read_lies_by_itself() {
    let plan = planned(|b| {
        let [x, y] = [("x", 16), ("y", 32)].map(|(name, width)| b.input(name, F32, &[4, width]).unwrap());
        let [a, c] = [b.unary(Call::Exp, x).unwrap(), b.unary(Call::Neg, y).unwrap()];
        let soft = b.softmax(a, 1, false).unwrap();
        let all = b.concat(&[a, c], 1).unwrap();
        b.output("all", all);
        b.output("soft", soft);
    });
    let mut found = operations(&plan);
    found.sort();
    assert_eq!(found, ["concat'", "elementwise", "elementwise'", "softmax"]);
}

#[test]
fn a_part_that_is_there_twice_is_joined_by_a_kernel() {
    let plan = planned(|b| {
        let x = b.input("x", F32, &[4, 16]).unwrap();
        let a = b.unary(Call::Exp, x).unwrap();
        let all = b.concat(&[a, a], 1).unwrap();
        b.output("all", all);
    });
    assert_eq!(operations(&plan), ["elementwise", "concat"]);
}

#[test]
fn concatenations_of_concatenations_have_one_memory() {
    let plan = planned(|b| {
        let x = b.input("x", F32, &[4, 16]).unwrap();
        let part = |b: &mut Builder, call| b.unary(call, x).unwrap();
        let [a, c, d] = [Call::Exp, Call::Neg, Call::Abs].map(|call| part(b, call));
        let inner = b.concat(&[a, c], 1).unwrap();
        let all = b.concat(&[d, inner], 1).unwrap();
        b.output("all", all);
    });
    assert!(operations(&plan).iter().all(|name| name.ends_with('\'')), "{:?}", operations(&plan));
    assert_eq!(line(&plan).matches('d').count(), 3);
}

#[test]
fn odd_runs_are_joined_by_a_kernel() {
    let plan = planned(|b| {
        let [x, y] = [("x", 3), ("y", 5)].map(|(name, width)| b.input(name, F32, &[4, width]).unwrap());
        let parts = [b.unary(Call::Exp, x).unwrap(), b.unary(Call::Neg, y).unwrap()];
        let all = b.concat(&parts, 1).unwrap();
        b.output("all", all);
    });
    assert!(operations(&plan).contains(&"concat".to_owned()));
}

#[test]
fn what_is_cut_out_of_rows_is_read_where_it_lies() {
    let plan = planned(|b| {
        let x = b.input("x", F32, &[4, 64]).unwrap();
        let all = b.unary(Call::Exp, x).unwrap();
        let [first, rest] = [(0, 16), (16, 48)].map(|(start, count)| columns(b, all, start, count));
        let first = b.unary(Call::Neg, first).unwrap();
        let joined = b.concat(&[first, rest], 1).unwrap();
        let sum = b.binary(Call::Add, joined, all).unwrap();
        b.output("sum", sum);
    });
    // The first part is computed from where it lies to where it is joined, the rest is moved from and to.
    assert_eq!(operations(&plan), ["elementwise", "elementwise'", "elementwise'", "elementwise"]);
}

#[test]
fn parts_of_parts_and_what_is_read_otherwise() {
    let plan = planned(|b| {
        let x = b.input("x", F32, &[4, 64]).unwrap();
        let half = columns(b, x, 32, 32);
        let quarter = columns(b, half, 16, 16);
        let quarter = b.unary(Call::Neg, quarter).unwrap();
        b.output("quarter", quarter);
        let other = columns(b, x, 0, 32);
        let other = b.softmax(other, 1, false).unwrap();
        b.output("other", other);
    });
    assert_eq!(operations(&plan), ["elementwise", "copy", "softmax"]);
}
