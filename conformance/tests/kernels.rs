//! A sample of the kernel library's cases on the Vulkan device at hand: every fortieth, so that all operations are among
//! them. `conformance kernels` runs all.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use std::sync::Arc;

use halite_conformance::{
    drivers::{Opener, opener, registry},
    suites::{
        Runner, Verdict,
        kernels::{self, Guards, Prepared, capabilities},
    },
};
use halite_hal::{Deadline, Device, Options};
use halite_shaders::{Operation, Plan, TensorDesc, variants_of};

const LIMIT: Duration = Duration::from_secs(110);

/// The Vulkan device at hand.
fn vulkan() -> Option<(Opener, Arc<dyn Device>)> {
    let opener = opener(registry(&[]), "vulkan", Options::new());
    match opener() {
        Ok(device) => Some((opener, device)),
        Err(e) => {
            assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "the tests were to run on a device: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            None
        }
    }
}

#[test]
fn a_sample_of_all_kernels_agrees_with_the_twins() {
    let Some((opener, _)) = vulkan() else { return };
    let cases: Vec<_> = kernels::cases(1, "").into_iter().step_by(40).collect();
    let summary = Runner::new(opener, LIMIT).run(&cases, |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let passed = summary.reports.iter().filter(|r| r.verdict == Verdict::Pass).count();
    assert!(passed > cases.len() / 4, "only {passed} of {} cases could be run", cases.len());
}

/// What the guard words tell of a plan on buffers of so many bytes.
fn damage(device: &Arc<dyn Device>, plan: &Plan, inputs: &[u64], outputs: &[u64]) -> Option<String> {
    let prepared = Prepared::new(device, "guards", plan, inputs, outputs, 1, Guards::AROUND).unwrap();
    prepared.poison(0xA5).unwrap();
    prepared.run(Deadline::after(LIMIT)).unwrap();
    prepared.damage().unwrap()
}

#[test]
fn what_a_kernel_writes_beyond_its_buffers_is_seen() {
    let Some((_, device)) = vulkan() else { return };
    let target = capabilities(device.info()).unwrap();
    let bytes = |tensors: Vec<TensorDesc>| tensors.iter().map(TensorDesc::bytes).collect::<Vec<_>>();
    let mut with_scratch = 0;
    for text in ["matmul:m=5,n=3,k=4", "attention:batch=1,heads=1,q_len=1,kv_len=600,head_dim=64"] {
        let operation = Operation::parse(text).unwrap();
        let (inputs, mut outputs) = (bytes(operation.inputs()), bytes(operation.outputs()));
        let able = variants_of(operation.name()).filter(|v| v.needs.missing(&target).is_empty());
        for plan in able.filter_map(|variant| variant.plan(&operation).ok()) {
            assert_eq!(damage(&device, &plan, &inputs, &outputs), None, "{text}");
            // The last word of the result has no place.
            outputs[0] -= 4;
            let told = damage(&device, &plan, &inputs, &outputs).unwrap();
            let last = format!("to byte {}", outputs[0] + 3);
            assert!(told.starts_with("output 0: ") && told.ends_with(&last), "{text}: {told}");
            outputs[0] += 4;
            let mut plan = plan;
            let Some(scratch) = plan.scratch.first_mut() else { continue };
            *scratch /= 2;
            let told = damage(&device, &plan, &inputs, &outputs).unwrap();
            assert!(told.starts_with("scratch buffer 0: "), "{text}: {told}");
            with_scratch += 1;
        }
    }
    assert!(with_scratch > 0, "no plan has scratch memory");
}
