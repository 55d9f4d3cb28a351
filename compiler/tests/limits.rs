//! What targets cannot do: every operation has a kernel on the weakest device, and what a device's limits forbid is told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use halite_compiler::{
    BASELINE, CompileError, CompileOptions, Control, Program, SourceLocation,
    build::Builder,
    compile,
    graph::{ElementType, Graph, TensorId},
};
use halite_ops::{DType, Operation, Values};
use halite_shaders::{Tuning, rank};
use halite_targets::{Capabilities, Target};

const F32: ElementType = ElementType::Of(DType::F32);

/// A device with nothing but what Vulkan 1.1 requires.
fn weakest() -> Capabilities {
    Capabilities::of(Target::parse(BASELINE).unwrap())
}

/// The same with bindings of so many bytes.
fn with_bindings_of(bytes: u64) -> Capabilities {
    let mut target = weakest();
    target.max_storage_buffer_bytes = bytes;
    target
}

fn refused(graph: Graph, target: Capabilities) -> CompileError {
    let options = CompileOptions { targets: vec![target], baseline: false, ..CompileOptions::default() };
    compile(&Program::of("main", graph), &options, &Control::default()).unwrap_err()
}

fn place(text: &str) -> SourceLocation {
    SourceLocation::new(text)
}

fn floats(b: &mut Builder, dims: &[u64]) -> TensorId {
    let count = dims.iter().product::<u64>();
    b.values(DType::F32, dims, &Values::Float((0..count).map(|i| i as f64).collect())).unwrap()
}

#[test]
fn the_weakest_device_has_a_kernel_for_every_operation() {
    let target = weakest();
    assert!(target.features.is_empty(), "{:?}", target.features);
    let mut served = 0;
    for name in Operation::NAMES {
        for operation in Operation::samples(name) {
            let ranked = rank(&operation, &target, Tuning::shipped());
            assert!(ranked.iter().any(|candidate| candidate.plan().is_some()), "{operation}: {ranked:?}");
            served += 1;
        }
    }
    assert!(served > 500, "{served} samples");
}

#[test]
fn a_tensor_that_no_binding_holds_is_told_with_its_place_and_the_limit() {
    let mut b = Builder::new();
    let x = b.input("x", F32, &[1, 64]).unwrap();
    let w = floats(&mut b, &[64, 32]);
    b.at(place("MatMul '/layer/MatMul'"));
    let y = b.matmul(x, w).unwrap();
    b.output("y", y);
    let target = with_bindings_of(4096);
    let error = refused(b.finish().unwrap(), target);
    let CompileError::NoKernel { ref location, ref operation, ref reason, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(location.as_str(), "MatMul '/layer/MatMul'");
    assert!(operation.starts_with("matmul:m=1,n=32,k=64"), "{operation}");
    assert!(reason.contains("8192 bytes") && reason.contains("(4096 bytes)"), "{reason}");
    let text = error.to_string();
    assert!(text.contains(BASELINE) && text.contains("'/layer/MatMul'"), "{text}");
}

#[test]
fn the_limit_holds_for_what_is_computed_at_load_too() {
    let mut b = Builder::new();
    let x = b.input("x", F32, &[1]).unwrap();
    // Too large to be folded.
    let table = floats(&mut b, &[1024, 1024]);
    b.at(place("Transpose '/turned'"));
    let turned = b.transpose(table, &[1, 0]).unwrap();
    let sum = b.reduce(halite_ops::reduce::ReduceKind::Sum, turned, &[0, 1], false).unwrap();
    let y = b.binary(halite_ops::expression::Function::Add, x, sum).unwrap();
    b.output("y", y);
    let target = with_bindings_of(1 << 20);
    let text = refused(b.finish().unwrap(), target).to_string();
    assert!(text.contains("'/turned'") && text.contains("4194304 bytes"), "{text}");
}
