//! ONNX models with the results of others: tiny ones with those of ONNX Runtime (`conformance/models/onnx_tiny.py` made them),
//! on the host and on the Vulkan device at hand; and the node tests of the Python package `onnx` where it is installed, all of
//! them on the host, a sample on the device (`conformance onnx` runs all).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use halite_conformance::onnx::{Case, Engine, Host, OnDevice, Outcome, check, find_tests, superseded};
use halite_hal::Options;
use halite_testing::drivers::{opener, registry};
use halite_tools::kernels::capabilities;

/// Every which node test runs on the device.
const STEP: usize = 16;

/// The Vulkan device at hand.
fn device() -> Option<OnDevice> {
    match opener(registry(&[]), "vulkan?pipeline_cache=off&kept_kernels=2048", Options::new())() {
        Ok(device) => {
            let target = capabilities(device.info()).ok();
            Some(OnDevice::new(device, target))
        }
        Err(e) => {
            assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "the tests were to run on a device: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            None
        }
    }
}

fn tiny() -> Vec<Case> {
    Case::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx")).unwrap()
}

fn node_tests() -> Option<PathBuf> {
    // Where virtual environments are, `python3` may be another one than that with the package.
    let pythons = std::env::var("HALITE_TEST_PYTHON").ok().into_iter();
    let found = pythons.chain(["python3".to_owned()]).find_map(|python| find_tests(&python).ok());
    if found.is_none() {
        eprintln!("SKIPPED: no Python with the package onnx, up to 1.22; HALITE_TEST_PYTHON names one");
    }
    found
}

/// Runs cases, of which as many may be refused; none may fail.
fn expect(cases: &[Case], engine: &dyn Engine, absolute: f64, refused: usize) {
    let mut failures = Vec::new();
    let mut unsupported = 0;
    for case in cases {
        match check(case, engine, absolute) {
            Outcome::Failed(reason)
                if !(reason.starts_with("output ") && superseded(&case.name).is_some()) =>
            {
                failures.push(format!("{}: {reason}", case.name));
            }
            Outcome::Unsupported(_) => unsupported += 1,
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(unsupported <= refused, "{unsupported} of {} cases are refused", cases.len());
}

#[test]
fn tiny_models_compute_what_the_other_runtime_computes() {
    let cases = tiny();
    assert!(cases.len() >= 5);
    for optimize in [false, true] {
        expect(&cases, &Host { optimize }, 1e-5, 0);
    }
    if let Some(device) = device() {
        expect(&cases, &device, 1e-5, 0);
    }
}

#[test]
fn sizes_that_data_decide_are_computed_on_the_device() {
    /// A device that is given no graphs that were made for values of their inputs.
    struct Open(OnDevice);
    impl Engine for Open {
        fn run(
            &self,
            graph: halite_compiler::graph::Graph,
            inputs: &[halite_compiler::signature::BoundValue],
        ) -> anyhow::Result<halite_conformance::onnx::Ran> {
            let bound = graph.inputs.iter().find(|port| port.value.is_some());
            anyhow::ensure!(
                bound.is_none(),
                "the graph is for a value of '{}'",
                bound.map_or("", |p| &p.name)
            );
            self.0.run(graph, inputs)
        }
    }
    // `conformance/models/onnx_data.py` makes them.
    let cases = Case::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx_data")).unwrap();
    assert!(cases.len() >= 11, "{}", cases.len());
    if let Some(device) = device() {
        expect(&cases, &Open(device), 1e-5, 0);
    }
}

#[test]
fn a_result_that_is_not_as_expected_is_a_failure() {
    /// Gives what the host gives, but for one bit of the last float.
    struct Wrong(Host);
    impl Engine for Wrong {
        fn run(
            &self,
            graph: halite_compiler::graph::Graph,
            inputs: &[halite_compiler::signature::BoundValue],
        ) -> anyhow::Result<halite_conformance::onnx::Ran> {
            let mut ran = self.0.run(graph, inputs)?;
            let mut bytes = ran.outputs[0].bytes.to_vec();
            *bytes.last_mut().unwrap() ^= 0x40;
            ran.outputs[0].bytes = bytes.into();
            Ok(ran)
        }
    }
    for case in tiny() {
        let outcome = check(&case, &Wrong(Host { optimize: true }), 1e-5);
        assert!(matches!(outcome, Outcome::Failed(_)), "{}", case.name);
    }
}

#[test]
fn node_tests_pass_or_are_refused_by_name() {
    let Some(folder) = node_tests() else { return };
    let cases = Case::all(&folder).unwrap();
    expect(&cases, &Host { optimize: true }, 1e-7, cases.len() / 10);
    if let Some(device) = device() {
        let sample: Vec<Case> = cases.into_iter().step_by(STEP).collect();
        expect(&sample, &device, 1e-7, sample.len() / 5);
    }
}
