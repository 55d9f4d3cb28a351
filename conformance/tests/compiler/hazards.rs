//! The proof that compiled recordings have every barrier that they need, and that the check of barriers notices when one is
//! missing.

use std::sync::Arc;

use halite_compiler::CompileOptions;
use halite_conformance::hazards::{Findings, Watched};
use halite_layers::hazards::HazardCheck;

use crate::{all, compiled, device::Device};

#[test]
fn every_barrier_that_is_needed_is_there_and_would_be_missed() {
    let Some(device) = Device::vulkan() else { return };
    let watched = Watched::before(device.hal(), HazardCheck::Known);
    let mut all_findings = Findings::default();
    for case in all() {
        let module = compiled(&case.program, &CompileOptions::default());
        for (call, inputs) in case.calls.iter().enumerate() {
            let device = Device::of(watched.clone() as Arc<dyn halite_hal::Device>);
            device.run(&module, "main", case.graph(call), inputs).unwrap();
            let findings = watched.layer().take();
            let complaints: Vec<_> = findings.complaints().cloned().collect();
            assert!(complaints.is_empty(), "{} call {call}: {}", case.name, complaints.join("\n"));
            all_findings.add(findings);
        }
    }
    println!("{all_findings}");
    assert!(all_findings.needed > 20, "{all_findings}");
}
