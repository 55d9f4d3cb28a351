//! Every function of expressions with every type of elements that it takes, and every conversion between two types, on the
//! Vulkan device at hand against the host. Longer programs, shapes and special values are among the kernel library's cases.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{sync::Arc, time::Duration};

use halite_conformance::suites::kernels;
use halite_hal::{Deadline, Device, Options};
use halite_ops::{DType, Operation, expression::Function};
use halite_shaders::{Plan, Tuning, rank};
use halite_targets::{Capabilities, Target};
use halite_testing::{
    Part,
    drivers::{opener, registry},
    library::data::Inputs,
};
use halite_tools::kernels::capabilities;

/// Elements of each tensor: some words of the last vector are no elements.
const ELEMENTS: u64 = 131;

/// The Vulkan device at hand.
fn vulkan() -> Option<Arc<dyn Device>> {
    match opener(registry(&[]), "vulkan?pipeline_cache=off", Options::new())() {
        Ok(device) => Some(device),
        Err(e) => {
            assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "the tests were to run on a device: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            None
        }
    }
}

/// An operation of one program, if there is such a thing.
fn operation(inputs: &[DType], program: &str) -> Option<Operation> {
    let inputs: Vec<String> = inputs.iter().map(|dtype| format!("{dtype}[{ELEMENTS}]")).collect();
    Operation::parse(&format!("elementwise:inputs={},program={program}", inputs.join(" "))).ok()
}

/// A function of elements of one type, where it takes them.
fn call(function: Function, dtype: DType) -> Option<Operation> {
    let name = function.name();
    match (function, function.arity()) {
        (Function::Cast, _) => None,
        // Numbers of all magnitudes, below 0 and behind the end.
        (Function::Lookup, _) => {
            let inputs = if dtype.is_float() { "i16" } else { dtype.name() };
            let text = format!(
                "elementwise:inputs={inputs}[{ELEMENTS}],tables={dtype}[37] i32[61],program=cast:i32 $0; mod %0 70i32; \
                 sub %1 4i32; lookup:i32 %2 @1; add %3 %2; lookup:{dtype} %4 @0; lookup:{dtype} %0 @0 \
                 -> %5:{dtype} %6:{dtype}"
            );
            Some(Operation::parse(&text).expect("every type has tables"))
        }
        (Function::Select, _) => {
            operation(&[DType::U8, dtype, dtype], &format!("cast:bool $0; select %0 $1 $2 -> %1:{dtype}"))
        }
        (Function::Quantize, _) => operation(
            &[DType::F32, DType::F32, dtype],
            &format!("abs $1; add %0 0.01; quantize:{dtype} $0 %1 $2 -> %2:{dtype}"),
        ),
        (Function::Dequantize, _) => operation(&[dtype, DType::F32, dtype], "dequantize $0 $1 $2 -> %0:f32"),
        (_, arity) => {
            let operands: Vec<String> = (0..arity).map(|index| format!("${index}")).collect();
            let of = |out: DType| {
                operation(&vec![dtype; arity], &format!("{name} {} -> %0:{out}", operands.join(" ")))
            };
            of(dtype).or_else(|| of(DType::U8))
        }
    }
}

/// The plan that would be used on a target.
fn plan(target: &Capabilities, operation: &Operation) -> Plan {
    let ranked = rank(operation, target, Tuning::shipped());
    ranked.iter().find_map(|candidate| candidate.plan()).expect("it has a kernel for every device").clone()
}

/// No kernel here takes longer.
fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// What is wrong with any of the operations, planned for the device.
fn failures(device: &Arc<dyn Device>, operations: &[Operation]) -> Vec<String> {
    failures_as(&capabilities(device.info()).unwrap(), device, operations)
}

/// What is wrong with any of the operations, planned for a target.
fn failures_as(target: &Capabilities, device: &Arc<dyn Device>, operations: &[Operation]) -> Vec<String> {
    let tried = |operation: &Operation| {
        let told = kernels::trial(device, operation, &plan(target, operation), Inputs::Plain, 1, soon());
        told.err().map(|stop| format!("{operation}: {stop:?}"))
    };
    Part::wanted().of(operations).filter_map(tried).collect()
}

#[test]
fn functions_of_every_type_agree_with_the_host() {
    let Some(device) = vulkan() else { return };
    let calls = |dtype: DType| {
        Function::ALL.iter().filter_map(move |function| call(*function, dtype)).collect::<Vec<_>>()
    };
    let every: Vec<Vec<Operation>> = DType::ALL.into_iter().map(calls).collect();
    for (dtype, calls) in DType::ALL.into_iter().zip(&every) {
        // Arithmetic, comparisons, extremes, and for integers bits and shifts.
        assert!(
            calls.len() >= if dtype.is_float() { 50 } else { 25 },
            "{dtype} has {} functions",
            calls.len()
        );
    }
    let failures = failures(&device, &every.concat());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn conversions_between_all_types_agree_with_the_host() {
    let Some(device) = vulkan() else { return };
    let mut conversions = Vec::new();
    for from in DType::ALL {
        for to in DType::ALL {
            conversions.push(operation(&[from], &format!("cast:{to} $0 -> %0:{to}")).unwrap());
            // Of numbers that have no fraction, and through a truth value.
            let scaled = if from.is_float() {
                format!("mul $0 1e3; cast:{to} %0")
            } else {
                format!("abs $0; cast:{to} %0")
            };
            conversions.push(
                operation(&[from], &format!("{scaled}; cast:bool $0; cast:{to} %2 -> %1:{to} %3:{to}"))
                    .unwrap(),
            );
        }
    }
    let failures = failures(&device, &conversions);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Devices that bind 4 storage buffers compute them in several steps.
#[test]
fn look_ups_in_several_tables_are_taken_apart() {
    let Some(device) = vulkan() else { return };
    let weakest = Capabilities::of(Target::parse("vp-vulkan_1_1-unknown").unwrap());
    let looks_up =
        |operation: &Operation| matches!(operation, Operation::Elementwise(op) if !op.tables.is_empty());
    let samples: Vec<Operation> = Operation::samples("elementwise").into_iter().filter(looks_up).collect();
    assert!(samples.iter().any(|operation| plan(&weakest, operation).steps.len() > 1));
    let failures = failures_as(&weakest, &device, &samples);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
