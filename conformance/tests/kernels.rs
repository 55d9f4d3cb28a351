//! That a case of a kernel fails for what the kernel writes where it should not. Samples of all cases are run in `suites.rs`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::HashSet, sync::Arc, time::Duration};

use halite_conformance::suites::kernels;
use halite_hal::{Deadline, Device, Options};
use halite_ops::Operation;
use halite_shaders::{Plan, Slot, Tuning, rank, variants_of};
use halite_testing::{drivers::registry, library::data::Inputs};
use halite_tools::kernels::capabilities;

/// The Vulkan device at hand.
fn vulkan() -> Option<Arc<dyn Device>> {
    match halite_layers::open(&registry(&[]), "vulkan?pipeline_cache=off&kept_kernels=2048", &Options::new())
    {
        Ok(device) => Some(device),
        Err(e) => {
            assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "the tests were to run on a device: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            None
        }
    }
}

/// How a trial of a plan ends.
fn verdict(device: &Arc<dyn Device>, operation: &Operation, plan: &Plan) -> Result<(), String> {
    let deadline = Deadline::after(Duration::from_secs(60));
    kernels::trial(device, operation, plan, Inputs::Plain, 1, deadline).map_err(|stop| stop.to_string())
}

/// The plans of an operation that the device can run.
fn plans(device: &Arc<dyn Device>, operation: &Operation) -> Vec<Plan> {
    let target = capabilities(device.info()).unwrap();
    let able = variants_of(operation.name()).filter(|v| v.needs.missing(&target).is_empty());
    able.filter_map(|variant| variant.plan(operation).ok()).collect()
}

#[test]
fn what_a_kernel_writes_beyond_its_results_is_seen() {
    let Some(device) = vulkan() else { return };
    // The same rows for both, and one more result for the plan.
    let plan_of = Operation::parse("matmul:m=5,n=3,k=4").unwrap();
    let operation = Operation::parse("matmul:m=4,n=3,k=4").unwrap();
    for plan in plans(&device, &plan_of) {
        let told = verdict(&device, &operation, &plan).unwrap_err();
        assert!(told.starts_with("output 0: ") && told.ends_with("from byte 48 to byte 59"), "{told}");
        verdict(&device, &plan_of, &plan).unwrap();
    }
}

#[test]
fn what_a_kernel_writes_beyond_its_scratch_memory_is_seen() {
    let Some(device) = vulkan() else { return };
    let operation = Operation::parse("attention:heads=1,q_len=1,kv_len=600,head_dim=64").unwrap();
    let mut seen = 0;
    for mut plan in plans(&device, &operation) {
        let Some(scratch) = plan.scratch.first_mut() else { continue };
        *scratch /= 2;
        let told = verdict(&device, &operation, &plan).unwrap_err();
        assert!(told.starts_with("scratch buffer 0: "), "{told}");
        seen += 1;
    }
    assert!(seen > 0, "no plan has scratch memory");
}

#[test]
fn what_a_kernel_writes_to_an_input_is_seen() {
    let Some(device) = vulkan() else { return };
    let operation = Operation::parse("matmul:m=5,n=4,k=4").unwrap();
    for mut plan in plans(&device, &operation) {
        let output = plan.steps[0].bindings.iter_mut().find(|slot| **slot == Slot::Output(0)).unwrap();
        *output = Slot::Input(0);
        let told = verdict(&device, &operation, &plan).unwrap_err();
        assert!(told.starts_with("input 0 after the run: "), "{told}");
    }
}

#[test]
fn kernels_compute_the_same_where_few_buffers_can_be_bound() {
    /// What Vulkan promises.
    const BINDINGS: usize = 4;
    /// Arithmetic operations of a sample: the references compute them on the host.
    const WORK: f64 = 1e6;
    let Some(device) = vulkan() else { return };
    let mut target = capabilities(device.info()).unwrap();
    target.max_storage_buffers = BINDINGS as u32;
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let (mut tried, mut failures) = (HashSet::new(), Vec::new());
    let samples = Operation::NAMES.iter().flat_map(|name| Operation::samples(name));
    for operation in
        samples.filter(|sample| (1.0..WORK).contains(&sample.work().bytes.max(sample.work().flops)))
    {
        for candidate in rank(&operation, &target, Tuning::shipped()) {
            let Some(plan) = candidate.plan() else { continue };
            let whole = candidate.variant.plan(&operation).unwrap();
            let fits = whole.steps.iter().all(|step| step.bindings.len() <= BINDINGS);
            // One of each kind of binding, and in the short form one of each template: sizes of tiles and types of elements change nothing
            // of it, and drivers take long to compile.
            let bindings = whole.steps.iter().map(|step| step.bindings.clone());
            let slots: Vec<_> = bindings.filter(|_| is_thorough).collect();
            let kind = (operation.name(), &candidate.variant.template, operation.apart().is_some());
            if fits || !tried.insert((kind, format!("{slots:?}"))) {
                continue;
            }
            assert!(plan.steps.iter().all(|step| step.bindings.len() <= BINDINGS), "{operation}");
            if let Err(told) = verdict(&device, &operation, plan) {
                failures.push(format!("{} of {operation}: {told}", candidate.variant.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let least = if is_thorough { 40 } else { 15 };
    assert!(tried.len() > least, "{} plans", tried.len());
}
