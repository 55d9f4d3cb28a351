//! What modules of one model share of what they compute of weights when they are loaded.

use std::sync::Arc;

use halite_compiler::{
    CompileOptions, Compiled, ParameterStorage, Program,
    build::Builder,
    graph::{ElementType, Graph, TensorId},
};
use halite_formats::vmfb::read_module;
use halite_hal::Options;
use halite_ops::{DType, Values, expression::Function};
use halite_runtime::{ParameterIndex, Session, SharedParameters};
use halite_testing::drivers::registry;

use crate::{all, compiled, device::Device};

const F32: ElementType = ElementType::Of(DType::F32);
const WIDE: u64 = 128;
/// Bytes of a matrix.
const BYTES: u64 = WIDE * WIDE * 4;
/// Bytes that a session has beside its weights at most.
const REST: u64 = BYTES / 4;

fn shared_options(device: &Device) -> CompileOptions {
    CompileOptions {
        targets: vec![device.capabilities()],
        baseline: false,
        at_hand: true,
        parameters: ParameterStorage::External { scope: "weights".to_owned() },
        shares_results: true,
        ..CompileOptions::default()
    }
}

fn session(device: &Device, module: &Compiled, shared: &Arc<SharedParameters>) -> Session {
    let mut index = ParameterIndex::default();
    let entries = module.parameters.iter().flat_map(|archive| archive.entries.iter().cloned());
    index.add_entries("weights", entries);
    Session::builder()
        .devices(vec![device.hal()])
        .module_bytes(module.module.to_vec())
        .parameter_index(index)
        .shared_parameters(shared.clone())
        .build()
        .unwrap()
}

fn matrix(b: &mut Builder, seed: u64) -> TensorId {
    let values = (0..WIDE * WIDE).map(|i| ((i * 31 + seed * 977) % 97) as f64 / 64.0 - 0.75).collect();
    b.values(DType::F32, &[WIDE, WIDE], &Values::Float(values)).unwrap()
}

/// Outputs `rows` of `x` by each of these, which are computed of weights alone.
fn products(rows: u64, weights: &[&dyn Fn(&mut Builder) -> TensorId]) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", F32, &[rows, WIDE]).unwrap();
    for (index, weight) in weights.iter().enumerate() {
        let weight = weight(&mut b);
        let y = b.matmul(x, weight).unwrap();
        b.output(&format!("y{index}"), y);
        b.output(&format!("w{index}"), weight);
    }
    b.finish().unwrap()
}

fn turned(b: &mut Builder, seed: u64) -> TensorId {
    let w = matrix(b, seed);
    b.transpose(w, &[1, 0]).unwrap()
}

/// A sum of two turned matrices.
fn sum(b: &mut Builder, first: u64, second: u64) -> TensorId {
    let (first, second) = (turned(b, first), turned(b, second));
    b.binary(Function::Add, first, second).unwrap()
}

/// Calls a module's function, alone and together with others; all bits are the same.
fn call(device: &Device, graph: &Graph, session: &Session) -> Vec<Values> {
    let count = graph.tensor(graph.inputs[0].tensor).dims().iter().product::<u64>();
    let inputs = [Values::Float((0..count).map(|i| f64::from((i % 13) as u32) / 8.0 - 0.75).collect())];
    let found = device.call(session, "main", graph, &inputs).unwrap();
    crate::compare("shared", graph, &graph.evaluate(&inputs).unwrap(), &found);
    let alone = compiled(
        &Program::of("main", graph.clone()),
        &CompileOptions { shares_results: false, ..shared_options(device) },
    );
    let fresh = self::session(device, &alone, &Arc::default());
    assert_eq!(device.call(&fresh, "main", graph, &inputs).unwrap(), found);
    found
}

#[test]
fn results_that_modules_share_are_on_the_device_once() {
    if Device::vulkan().is_none() {
        return;
    }
    // One of its own: its memory is that of this test alone.
    let opened = halite_layers::open(&registry(&[]), "vulkan?hazards=on", &Options::new());
    let device = Device::of(opened.unwrap());
    let options = shared_options(&device);
    let shared: Arc<SharedParameters> = Arc::default();
    let graphs = [
        products(1, &[&|b| turned(b, 1)]),
        // One that is there, one that is not.
        products(8, &[&|b| turned(b, 1), &|b| turned(b, 2)]),
        products(3, &[&|b| turned(b, 2)]),
        // Computed of what is there, which it computes by itself: other modules have no more than they are asked for.
        products(2, &[&|b| sum(b, 1, 2), &|b| turned(b, 2)]),
        products(5, &[&|b| sum(b, 1, 2)]),
        // The same text over other weights, and the same weights in another order.
        products(5, &[&|b| sum(b, 3, 2)]),
        products(5, &[&|b| sum(b, 2, 1)]),
    ];
    let memory = || device.hal().memory_stats().used;
    let new = [1, 1, 0, 1, 0, 1, 1];
    let (mut sessions, begun) = (Vec::new(), memory());
    for (index, (graph, new)) in graphs.iter().zip(new).enumerate() {
        let module = compiled(&Program::of("main", graph.clone()), &options);
        let before = memory();
        sessions.push(session(&device, &module, &shared));
        let held = memory() - before;
        let fits = (new * BYTES..new * BYTES + REST).contains(&held);
        assert!(fits, "module {index}: {held} bytes for {new} of {BYTES}");
        call(&device, graph, &sessions[index]);
    }
    // What one has stays when another goes, and goes with the last.
    sessions.remove(1);
    call(&device, &graphs[0], &sessions[0]);
    call(&device, &graphs[2], &sessions[1]);
    sessions.clear();
    assert!(memory() < begun + REST, "{} {begun}", memory());
    let module = compiled(&Program::of("main", graphs[1].clone()), &options);
    call(&device, &graphs[1], &session(&device, &module, &shared));
}

#[test]
fn programs_that_share_results_compute_the_same() {
    let Some(device) = Device::vulkan() else { return };
    let shared: Arc<SharedParameters> = Arc::default();
    let options = shared_options(&device);
    for case in all() {
        let module = compiled(&case.program, &options);
        // Of the second, what is computed of weights is there.
        let sessions = [(); 2].map(|()| session(&device, &module, &shared));
        for (index, inputs) in case.calls.iter().enumerate() {
            let graph = case.graph(index);
            let expected = graph.evaluate(inputs).unwrap();
            let [one, two] = [0, 1].map(|of| device.call(&sessions[of], "main", graph, inputs).unwrap());
            crate::compare(case.name, graph, &expected, &one);
            assert!(one == two, "{} call {index}", case.name);
        }
    }
}

#[test]
fn modules_for_others_ask_for_no_results() {
    let Some(device) = Device::vulkan() else { return };
    let program = Program::of("main", products(2, &[&|b| turned(b, 1)]));
    let asks = |options: &CompileOptions| {
        let module = read_module(compiled(&program, options).module.to_vec().into()).unwrap();
        module.imports.iter().any(|import| import.full_name.contains(".results."))
    };
    let options = shared_options(&device);
    assert!(asks(&options));
    assert!(!asks(&CompileOptions { shares_results: false, ..options.clone() }));
    assert!(!asks(&CompileOptions { parameters: ParameterStorage::Embedded, ..options }));
}
