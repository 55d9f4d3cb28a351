//! Plans of graphs with state: what is computed in its memory, what is copied there, and what waits for what.

use halite_ops::{DType, Operation, expression::Function as Call, kv_append::KvAppend};
use halite_sizes::Trace;

use super::{
    ModulePlan, plan,
    schedule::{Command, Memory},
};
use crate::{
    CompileOptions, Control, Function, Program,
    backend::vulkan::Vulkan,
    build::Builder,
    graph::{ElementType, OpenSizes, StatePort, TensorId},
};

const F32: ElementType = ElementType::Of(DType::F32);

/// The plan of a graph whose state `a` becomes `A`, and so on.
fn planned(states: &[&str], make: impl FnOnce(&mut Builder)) -> ModulePlan {
    let mut builder = Builder::new();
    make(&mut builder);
    let mut graph = builder.finish().unwrap();
    let outputs: Vec<String> = states.iter().map(|name| name.to_uppercase()).collect();
    graph.bind_states(states.iter().copied().zip(outputs.iter().map(String::as_str)));
    graph.check().unwrap();
    assert_eq!(graph.states.len(), states.len());
    let program = Program { functions: vec![Function::new("main", vec![graph])], model: None };
    let options = CompileOptions::default();
    plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap()
}

/// The commands as a line: what they read and write of states (`s0`), outputs and the rest.
fn line(plan: &ModulePlan) -> String {
    let name = |memory: Memory| match memory {
        Memory::State(index) => format!("s{index}"),
        Memory::Input(index) => format!("i{index}"),
        Memory::Output(index) => format!("o{index}"),
        Memory::Transient(_) => "t".to_owned(),
        _ => "c".to_owned(),
    };
    let command = |command: &Command| match command {
        Command::Dispatch { bindings, .. } => {
            let written: Vec<_> =
                bindings.iter().filter(|b| b.written).map(|b| name(b.span.memory)).collect();
            format!("->{}", written.join("+"))
        }
        Command::Copy { from, to } => format!("{}=>{}", name(from.memory), name(to.memory)),
        Command::Barrier => "|".to_owned(),
    };
    plan.targets[0].functions[0][0].segments[0].iter().map(command).collect::<Vec<_>>().join(" ")
}

fn why(plan: &ModulePlan, state: usize) -> Option<&str> {
    plan.functions[0][0].states[state].copied.as_deref()
}

fn append(b: &mut Builder, rows: TensorId, cache: TensorId) -> TensorId {
    let append = KvAppend { start: 3.into(), ..KvAppend::new(2, 1, 8, 4, DType::F32) };
    b.kernel1(Operation::KvAppend(append), &[rows, cache], F32, &[1, 2, 8, 4]).unwrap()
}

#[test]
fn rows_are_appended_where_the_cache_is() {
    let plan = planned(&["k"], |b| {
        let rows = b.input("rows", F32, &[1, 2, 1, 4]).unwrap();
        let k = b.input("k", F32, &[1, 2, 8, 4]).unwrap();
        let made = append(b, rows, k);
        let read = b.unary(Call::Exp, made).unwrap();
        b.output("K", made);
        b.output("y", read);
    });
    assert_eq!(line(&plan), "->s1 | ->o1 |");
    assert_eq!(why(&plan, 0), None);
    assert_eq!(plan.functions[0][0].outputs[0], 0, "it has no buffer of its own");
}

#[test]
fn an_old_value_that_is_needed_later_is_kept() {
    let plan = planned(&["k"], |b| {
        let rows = b.input("rows", F32, &[1, 2, 1, 4]).unwrap();
        let k = b.input("k", F32, &[1, 2, 8, 4]).unwrap();
        let made = append(b, rows, k);
        let both = b.binary(Call::Add, made, k).unwrap();
        b.output("K", made);
        b.output("y", both);
    });
    assert!(line(&plan).ends_with("t=>s1 |"), "{}", line(&plan));
    assert!(why(&plan, 0).unwrap().contains("read after the new one"));
    let output = planned(&["k"], |b| {
        let rows = b.input("rows", F32, &[1, 2, 1, 4]).unwrap();
        let k = b.input("k", F32, &[1, 2, 8, 4]).unwrap();
        let made = append(b, rows, k);
        b.output("K", made);
        b.output("before", k);
    });
    assert!(why(&output, 0).unwrap().contains("'before' is its old value"));
    assert!(line(&output).contains("s1=>o1") && line(&output).ends_with("| t=>s1 |"), "{}", line(&output));
}

#[test]
fn elementwise_updates_and_new_values_go_straight_to_the_state() {
    let plan = planned(&["count", "h"], |b| {
        let x = b.input("x", F32, &[4, 4]).unwrap();
        let count = b.input("count", F32, &[16]).unwrap();
        let h = b.input("h", F32, &[4, 4]).unwrap();
        let more = b.binary(Call::Add, count, count).unwrap();
        let mixed = b.matmul(x, h).unwrap();
        let bent = b.softmax(mixed, 1, false).unwrap();
        b.output("COUNT", more);
        b.output("H", bent);
    });
    assert_eq!((why(&plan, 0), why(&plan, 1)), (None, None), "{}", line(&plan));
    assert!(!line(&plan).contains("=>"), "{}", line(&plan));
    // A product reads all of what it would overwrite.
    let product = planned(&["h"], |b| {
        let x = b.input("x", F32, &[4, 4]).unwrap();
        let h = b.input("h", F32, &[4, 4]).unwrap();
        let mixed = b.matmul(x, h).unwrap();
        b.output("H", mixed);
    });
    assert!(line(&product).ends_with("| t=>s1 |"), "{}", line(&product));
}

#[test]
fn states_that_change_places_and_that_stay_are_right() {
    let plan = planned(&["a", "b", "c"], |b| {
        let ids: Vec<_> = ["a", "b", "c"].iter().map(|name| b.input(name, F32, &[4]).unwrap()).collect();
        b.output("A", ids[1]);
        b.output("B", ids[0]);
        b.output("C", ids[2]);
    });
    // Both are saved before either is written.
    assert_eq!(line(&plan), "s1=>t s0=>t | t=>s0 t=>s1 |");
    assert_eq!(why(&plan, 2), None);
}

#[test]
fn states_need_equal_sizes_and_whole_words() {
    let mut b = Builder::new();
    let a = b.input("a", F32, &[1, 4]).unwrap();
    let long = b.concat(&[a, a], 1).unwrap();
    let odd = b.input("odd", ElementType::Bool, &[3]).unwrap();
    let other = b.unary(Call::Not, odd).unwrap();
    b.output("A", long);
    b.output("ODD", other);
    let mut graph = b.finish().unwrap();
    graph.bind_states([("a", "A"), ("odd", "ODD"), ("no", "A")]);
    assert!(graph.states.is_empty());
}

/// Sizes that callers decide stay open: looking for states fixes none of them.
#[test]
fn states_of_open_sizes_leave_them_open() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (batch, past) = (trace.symbol("batch", 2, 1, 8), trace.symbol("past", 5, 0, 100));
    let mut b = Builder::new();
    let a = b.input_of("a", F32, &[batch, past]).unwrap();
    let c = b.input_of("c", F32, &[batch, 4.into()]).unwrap();
    let long = b.concat(&[a, c], 1).unwrap();
    let twice = b.binary(Call::Add, c, c).unwrap();
    b.output("A", long);
    b.output("C", twice);
    let mut graph = b.finish().unwrap();
    graph.open = Some(OpenSizes { trace: trace.clone(), symbols: vec![(0, 0), (0, 1)], data: Vec::new() });
    let before = trace.guards().len();
    graph.bind_states([("a", "A"), ("c", "C")]);
    assert_eq!(
        graph.states,
        [StatePort { input: 1, output: 1, grows: None, dropped: 0.into() }],
        "what grows is replaced, and not written over"
    );
    assert!(trace.guards().len() <= before + 1, "{:?}", trace.guards());
    assert!(!batch.is_constant() && !past.is_constant());
}
