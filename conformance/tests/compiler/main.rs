//! Compiled programs on the Vulkan device at hand, and in the original runtime where it is installed, against the kernels'
//! references on the host.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod device;
mod hazards;
mod models;
mod pte;
mod requests;
mod shared;
mod stock;

use halite_compiler::{CompileOptions, Compiled, Control, Program, compile};
use halite_targets::Target;

use halite_conformance::suites::models::programs::{self, Sample};

use crate::device::{Device, compare};

/// All programs of the suite.
fn all() -> Vec<Sample> {
    programs::all().unwrap()
}

/// For whom modules are compiled: everybody; and the CPU devices that tests run on, with everybody.
fn options() -> [CompileOptions; 2] {
    let targets = ["cpu-llvmpipe-unknown", "cpu-swiftshader-unknown"].map(|t| Target::parse(t).unwrap());
    [CompileOptions::default(), CompileOptions::for_targets(&targets)]
}

fn compiled(program: &Program, options: &CompileOptions) -> Compiled {
    compile(program, options, &Control::default()).unwrap()
}

#[test]
fn programs_compute_what_the_references_compute() {
    let Some(device) = Device::vulkan() else { return };
    for options in options() {
        for case in all() {
            let module = compiled(&case.program, &options);
            for (call, inputs) in case.calls.iter().enumerate() {
                let expected = case.graph(call).evaluate(inputs).unwrap();
                let found = device.run(&module, "main", case.graph(call), inputs).unwrap();
                compare(&format!("{} call {call}", case.name), case.graph(call), &expected, &found);
            }
        }
    }
}

#[test]
fn the_original_runtime_computes_the_same() {
    let Some(stock) = stock::Stock::find() else { return };
    for options in options() {
        for case in all() {
            let module = compiled(&case.program, &options);
            for (call, inputs) in case.calls.iter().enumerate() {
                let expected = case.graph(call).evaluate(inputs).unwrap();
                let found = stock.run(&module.module.to_vec(), case.graph(call), inputs);
                compare(&format!("{} call {call}", case.name), case.graph(call), &expected, &found);
            }
        }
    }
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    for options in options() {
        for case in all() {
            let [one, two] = [(); 2].map(|()| compiled(&case.program, &options));
            assert!(one.module.to_vec() == two.module.to_vec(), "{}", case.name);
        }
    }
}
