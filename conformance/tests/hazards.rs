//! The check of barriers, proved on what programs of the shared corpus execute on the Vulkan device at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use halite_conformance::{
    corpus,
    hazards::{Findings, Watched},
    replay,
};
use halite_hal::{Device, Options};
use halite_layers::hazards::HazardCheck;
use halite_testing::drivers::registry;

/// Programs whose recordings are put on trial. What IREE's compiler makes of them has no hazard that is none.
fn trial(set: &str) -> Option<Findings> {
    let Some(root) = corpus::shared() else {
        eprintln!("SKIPPED: the shared corpus is not beside this checkout");
        return None;
    };
    let device = match halite_layers::open(&registry(&[]), "vulkan?pipeline_cache=off", &Options::new()) {
        Ok(device) => device,
        Err(e) => {
            assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "{e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            return None;
        }
    };
    let mut all = Findings::default();
    for program in corpus::programs(&root, set).unwrap() {
        let watched = Watched::before(device.clone(), HazardCheck::Known);
        replay::run(&root, &program, &(watched.clone() as Arc<dyn Device>));
        let findings = watched.layer().take();
        let complaints: Vec<_> = findings.complaints().cloned().collect();
        assert!(complaints.is_empty(), "{}: {}", program.name, complaints.join("\n"));
        all.add(findings);
    }
    println!("{set}: {all}");
    Some(all)
}

#[test]
fn small_programs_need_the_barriers_that_are_missed() {
    let Some(findings) = trial("small") else { return };
    assert!(findings.needed > 10 && findings.commands > 100, "{findings}");
}

#[test]
fn models_need_the_barriers_that_are_missed() {
    let Some(findings) = trial("models") else { return };
    assert!(findings.needed > 50, "{findings}");
}
