//! Plans of small graphs: what shares memory, what waits for what, what happens at load.

use halite_ops::{
    DType, Values,
    expression::{Function as Call, Type},
};
use halite_sizes::{Size, Trace};

use super::{
    ModulePlan, plan,
    schedule::{Command, Memory},
};
use crate::{
    CompileOptions, Control, Function, Program,
    backend::vulkan::Vulkan,
    build::{Builder, Range},
    graph::{ElementType, Graph, OpenSizes, TensorId},
};

const F32: ElementType = ElementType::Of(DType::F32);

fn made(make: impl FnOnce(&mut Builder)) -> Graph {
    let mut builder = Builder::new();
    make(&mut builder);
    builder.finish().unwrap()
}

fn planned(versions: Vec<Graph>) -> ModulePlan {
    let program = Program { functions: vec![Function::new("main", versions)], model: None };
    let options = CompileOptions::default();
    plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap()
}

fn constant(b: &mut Builder, dims: &[u64], start: f64) -> TensorId {
    let values = (0..dims.iter().product::<u64>()).map(|i| start + i as f64).collect();
    b.values(DType::F32, dims, &Values::Float(values)).unwrap()
}

/// The commands as a line: d for a dispatch, c for a copy, | for a barrier.
fn line(commands: &[Command]) -> String {
    let letter = |command: &Command| match command {
        Command::Dispatch { .. } => 'd',
        Command::Copy { .. } => 'c',
        Command::Barrier => '|',
    };
    commands.iter().map(letter).collect()
}

#[test]
fn a_chain_of_elementwise_operations_stays_in_one_place() {
    let plan = planned(vec![made(|b| {
        let mut x = b.input("x", F32, &[1000]).unwrap();
        for _ in 0..5 {
            x = b.binary(Call::Mul, x, x).unwrap();
        }
        b.output("y", x);
    })]);
    let lowered = &plan.targets[0].functions[0][0];
    assert_eq!(
        (lowered.transient_bytes, lowered.unshared_bytes, lowered.in_place),
        (4000.into(), 16000.into(), 3)
    );
    assert_eq!(line(&lowered.segments[0]), "d|d|d|d|d|");
}

#[test]
fn an_input_that_is_needed_later_is_not_overwritten() {
    let plan = planned(vec![made(|b| {
        let x = b.input("x", F32, &[64]).unwrap();
        let a = b.unary(Call::Exp, x).unwrap();
        let c = b.unary(Call::Neg, a).unwrap();
        let y = b.binary(Call::Add, c, a).unwrap();
        b.output("y", y);
    })]);
    let lowered = &plan.targets[0].functions[0][0];
    assert_eq!((lowered.in_place, lowered.transient_bytes), (0, 512.into()));
}

#[test]
fn a_table_is_not_overwritten() {
    let plan = planned(vec![made(|b| {
        let x = b.input("x", F32, &[8, 8]).unwrap();
        // Both are computed, have the size of the result, and are not needed afterwards.
        let [table, place] = [0, 1].map(|axis| b.softmax(x, axis, false).unwrap());
        let y = b
            .map_with(&[place], &[table], DType::F32, |p, x, table| {
                let number = p.cast(Type::Of(DType::I32), x[0]);
                p.lookup(DType::F32, number, table[0])
            })
            .unwrap();
        let y = b.softmax(y, 1, false).unwrap();
        b.output("y", y);
    })]);
    let lowered = &plan.targets[0].functions[0][0];
    // The result lies where the places were.
    assert_eq!((lowered.in_place, lowered.transient_bytes), (1, 512.into()));
}

#[test]
fn branches_run_side_by_side() {
    let plan = planned(vec![made(|b| {
        let x = b.input("x", F32, &[32, 32]).unwrap();
        let ends: Vec<_> = (0..3).map(|_| b.softmax(x, 1, false).unwrap()).collect();
        let y = b.concat(&ends, 1).unwrap();
        b.output("y", y);
    })]);
    assert_eq!(line(&plan.targets[0].functions[0][0].segments[0]), "ddd|ddd|");
}

/// The commands of the first target's first function, as a line, and the bytes between them.
fn commands(make: impl FnOnce(&mut Builder)) -> (String, u64) {
    let plan = planned(vec![made(make)]);
    let lowered = &plan.targets[0].functions[0][0];
    (line(&lowered.segments[0]), lowered.transient_bytes.value())
}

#[test]
fn what_is_joined_is_computed_where_it_is_joined() {
    let joined = |columns: u64| {
        commands(|b| {
            let x = b.input("x", F32, &[2, columns]).unwrap();
            let ends: Vec<_> = (0..3).map(|_| b.softmax(x, 1, false).unwrap()).collect();
            let y = b.concat(&ends, 0).unwrap();
            b.output("y", y);
        })
    };
    // Straight into the output.
    assert_eq!(joined(32), ("ddd|".to_owned(), 0));
    // Parts that cannot be bound are copied: 240 bytes, of which the first begins at a multiple of 256.
    assert_eq!(joined(30), ("ddd|cc|".to_owned(), 496));
    // The input, constants, and what is there twice, are copied.
    let (line, _) = commands(|b| {
        let x = b.input("x", F32, &[2, 32]).unwrap();
        let c = constant(b, &[2, 32], 0.0);
        let y = b.softmax(x, 1, false).unwrap();
        let all = b.concat(&[c, y, x, y], 0).unwrap();
        b.output("all", all);
    });
    assert_eq!(line, "dcc|c|");
}

#[test]
fn growing_concatenations_have_one_memory() {
    // As in dense blocks: each layer reads all before it.
    let (line, bytes) = commands(|b| {
        let mut parts = vec![b.input("x", F32, &[4, 64]).unwrap()];
        parts[0] = b.softmax(parts[0], 1, false).unwrap();
        for _ in 0..3 {
            let all = b.concat(&parts, 0).unwrap();
            let rows = b.dims(all)[0];
            let weights = constant(b, &[4, rows], 1.0);
            parts.push(b.matmul(weights, all).unwrap());
        }
        let all = b.concat(&parts, 0).unwrap();
        let y = b.softmax(all, 1, false).unwrap();
        b.output("y", y);
    });
    assert_eq!((line.as_str(), bytes), ("d|d|d|d|d|", 16 * 64 * 4));
}

#[test]
fn slices_that_lie_together_are_parts() {
    let (line, _) = commands(|b| {
        let x = b.input("x", F32, &[4, 64]).unwrap();
        let y = b.softmax(x, 1, false).unwrap();
        let part = |b: &mut Builder, of: TensorId, start: u64, count: u64| {
            b.slice(of, &[Range { start, step: 1, count }, Range::all(64)]).unwrap()
        };
        // Of an input, of a result, of a part.
        let parts = [part(b, x, 1, 2), part(b, y, 2, 2)];
        let inner = part(b, parts[1], 1, 1);
        for (index, of) in [parts[0], parts[1], inner].into_iter().enumerate() {
            let end = b.softmax(of, 1, false).unwrap();
            b.output(&format!("y{index}"), end);
        }
        // What is returned has memory of its own.
        b.output("part", parts[0]);
    });
    assert_eq!(line, "ddc|dd|");
}

#[test]
fn slices_of_fixed_sizes_are_parts_where_others_are_open() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let rows = trace.symbol("rows", 8, 2, 100);
    let graph = made(|b| {
        let x = b.input_of("x", F32, &[rows, 64.into()]).unwrap();
        let fixed = b.input("fixed", F32, &[4, 64]).unwrap();
        let half = |b: &mut Builder, of: TensorId, count: Size| {
            let range = Range { start: Size::from(1), step: 1, count };
            b.slice(of, &[range, Range::all(64.into())]).unwrap()
        };
        let parts = [half(b, fixed, 2.into()), half(b, x, rows - 1)];
        for (index, part) in parts.into_iter().enumerate() {
            let y = b.softmax(part, 1, false).unwrap();
            b.output(&format!("y{index}"), y);
        }
    });
    let open = Some(OpenSizes { trace, symbols: vec![(0, 0)], data: Vec::new() });
    let plan = planned(vec![Graph { open, ..graph }]);
    // The open one is copied.
    assert_eq!(line(&plan.targets[0].functions[0][0].segments[0]), "dd|d|");
}

#[test]
fn parts_of_what_is_written_again_are_saved() {
    // The state is written while a part of its old value is needed.
    let graph = made(|b| {
        let x = b.input("x", F32, &[4, 64]).unwrap();
        let part = b.slice(x, &[Range { start: 1, step: 1, count: 1 }, Range::all(64)]).unwrap();
        let new = b.unary(Call::Exp, x).unwrap();
        let y = b.softmax(part, 1, false).unwrap();
        b.output("y", y);
        b.output("new", new);
    });
    let graph = Graph {
        states: vec![crate::graph::StatePort { input: 0, output: 1, grows: None, dropped: 0.into() }],
        ..graph
    };
    let plan = planned(vec![graph]);
    assert_eq!(line(&plan.targets[0].functions[0][0].segments[0]), "d|dd|");
}

#[test]
fn versions_share_constants_and_what_is_computed_of_them() {
    let version = |rows: u64| {
        made(|b| {
            let x = b.input("x", F32, &[rows, 200]).unwrap();
            let w = constant(b, &[150, 200], 0.5);
            let w = b.transpose(w, &[1, 0]).unwrap();
            let y = b.matmul(x, w).unwrap();
            b.output("y", y);
        })
    };
    let plan = planned(vec![version(1), version(8)]);
    assert_eq!((plan.pool.constants.len(), plan.pool.packings.len()), (1, 1));
    // The weights as they were are needed for loading only.
    let slabs: Vec<_> = plan.slabs.constant_slabs.iter().map(|slab| slab.resident).collect();
    assert_eq!((slabs, plan.slabs.packed_slabs.len()), (vec![false], 1));
    assert_eq!(plan.targets[0].load.segments.len(), 1);
    for version in &plan.targets[0].functions[0] {
        let read = |command: &Command| {
            matches!(command, Command::Dispatch { bindings, .. }
                if bindings.iter().any(|binding| binding.span.memory == Memory::Packed(0)))
        };
        assert!(version.segments[0].iter().any(read));
    }
}

#[test]
fn what_is_returned_has_its_own_memory() {
    let plan = planned(vec![made(|b| {
        let x = b.input("x", F32, &[6]).unwrap();
        let c = constant(b, &[6], 1.0);
        let y = b.binary(Call::Add, x, c).unwrap();
        let again = b.reshape(y, &[2, 3]).unwrap();
        for (name, id) in [("y", y), ("again", again), ("x", x), ("c", c)] {
            b.output(name, id);
        }
    })]);
    let lowered = &plan.targets[0].functions[0][0];
    assert_eq!((line(&lowered.segments[0]).as_str(), lowered.transient_bytes), ("dcc|c|", 0.into()));
    let targets = lowered.segments[0].iter().filter_map(|command| match command {
        Command::Copy { to, .. } => Some(to.memory),
        _ => None,
    });
    assert!(targets.eq([Memory::Output(2), Memory::Output(3), Memory::Output(1)]));
}

#[test]
fn wrong_requests_are_refused() {
    let graph = || {
        made(|b| {
            let x = b.input("x", F32, &[6]).unwrap();
            b.output("y", x);
        })
    };
    let of = |functions: Vec<(&str, Vec<Graph>)>| {
        let one = |(name, versions): (&str, Vec<Graph>)| Function::new(name, versions);
        Program { functions: functions.into_iter().map(one).collect(), model: None }
    };
    let compile = |program: &Program, options: &CompileOptions| {
        crate::compile(program, options, &Control::new()).unwrap_err().to_string()
    };
    let options = CompileOptions::default();
    assert!(compile(&of(vec![]), &options).contains("no function"));
    assert!(compile(&of(vec![("main", vec![])]), &options).contains("no version"));
    assert!(compile(&of(vec![("__init", vec![graph()])]), &options).contains("__init"));
    assert!(
        compile(&of(vec![("a", vec![graph()]), ("a", vec![graph()])]), &options).contains("two functions")
    );
    let other = made(|b| {
        let x = b.input("z", F32, &[6]).unwrap();
        b.output("y", x);
    });
    assert!(compile(&of(vec![("a", vec![graph(), other])]), &options).contains("version 1 of 'a'"));
    let nobody = CompileOptions { baseline: false, ..CompileOptions::default() };
    assert!(compile(&of(vec![("a", vec![graph()])]), &nobody).contains("no target"));
}
