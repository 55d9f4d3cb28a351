//! The shared corpus on the CPU devices: networks as native code, and the VM's own operations beside them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::Arc};

use halite_conformance::{corpus, expectations::Expectations, replay};
use halite_hal::{Device, DriverRegistry, Options};
use halite_local as _;

fn device(driver: &str) -> Arc<dyn Device> {
    DriverRegistry::with_static_drivers().open(driver, &Options::new()).unwrap()
}

/// Replays a set on a device; `module` names another file beside each program's own.
fn replay_set(driver: &str, set: &str, module: Option<&str>) {
    let Some(root) = corpus::shared() else {
        eprintln!("SKIPPED: the shared corpus is not beside this checkout");
        return;
    };
    let device = device(driver);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("expectations");
    let expectations = Expectations::for_device(&folder, driver).unwrap();
    let mut programs = corpus::programs(&root, set).unwrap();
    if let Some(module) = module {
        programs.iter_mut().for_each(|p| p.module = p.module.with_file_name(module));
        programs.retain(|p| p.module.exists());
    }
    assert!(!programs.is_empty(), "the corpus has no set '{set}'");
    let complaints: Vec<String> = programs
        .iter()
        .filter_map(|program| {
            let verdicts = replay::run(&root, program, &device);
            expectations.complaint(&program.name, &verdicts).map(|c| format!("{}: {c}", program.name))
        })
        .collect();
    assert!(complaints.is_empty(), "on {driver}:\n{}", complaints.join("\n"));
}

/// The modules were compiled for the processor that made the corpus, with AVX-512 among other things.
fn has_features_of_the_models() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
        return true;
    }
    eprintln!("SKIPPED: the modules' native code needs AVX-512 on Linux");
    false
}

#[test]
fn models_on_the_callers_thread() {
    if has_features_of_the_models() {
        replay_set("local-sync", "models", Some("llvm_cpu.vmfb"));
    }
}

#[test]
fn models_on_a_pool_of_threads() {
    if has_features_of_the_models() {
        replay_set("local-task", "models", Some("llvm_cpu.vmfb"));
    }
}

#[test]
fn scalar_operations_of_the_vm() {
    replay_set("local-task", "vm_ops", None);
}
