//! The shared corpus on the CPU devices: networks as native code, and the VM's own operations beside them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::Arc, thread, time::Duration};

use halite_conformance::{corpus, expectations::Expectations, replay};
use halite_hal::{Device, DriverRegistry, Options};
use halite_local as _;
use halite_runtime::{
    BufferView, CallOptions, Deadline, ElementType, HostTensor, Session, Value,
    tensor::{Tolerance, compare},
};

fn device(driver: &str) -> Arc<dyn Device> {
    halite_layers::open(&DriverRegistry::with_static_drivers(), driver, &Options::new()).unwrap()
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
    // Machine code of the corpus is for the processor that made it.
    programs.retain(|program| {
        let devices = [device.clone()];
        let unfit = module.and_then(|_| replay::unfit_processor(&root, program, &devices));
        unfit.inspect(|why| eprintln!("SKIPPED: {}: {why}", program.name)).is_none()
    });
    let complaints: Vec<String> = programs
        .iter()
        .filter_map(|program| {
            let verdicts = replay::run(&root, program, &device);
            expectations.complaint(&program.name, &verdicts).map(|c| format!("{}: {c}", program.name))
        })
        .collect();
    assert!(complaints.is_empty(), "on {driver}:\n{}", complaints.join("\n"));
}

#[test]
fn models_on_the_callers_thread() {
    replay_set("local-sync", "models", Some("llvm_cpu.vmfb"));
}

#[test]
fn models_on_a_pool_of_threads() {
    replay_set("local-task", "models", Some("llvm_cpu.vmfb"));
}

#[test]
fn scalar_operations_of_the_vm() {
    replay_set("local-task", "vm_ops", None);
}

/// Elements of a made-up matrix.
fn matrix(rows: usize, seed: usize) -> Vec<f32> {
    (0..rows * 16).map(|i| ((i * 7 + seed) % 11) as f32 / 64.0).collect()
}

fn tensor(rows: usize, values: &[f32]) -> HostTensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(ElementType::F32, [rows as u64, 16].as_slice(), bytes).unwrap()
}

/// Runs `steps.mlir`: x times w, as often as `steps` says.
fn run_steps(device: &Arc<dyn Device>, module: &Path, rows: usize, steps: i32) {
    let (mut x, w) = (matrix(rows, rows), matrix(16, 3));
    let session = Session::builder().devices(vec![device.clone()]).module_file(module).build().unwrap();
    let view =
        |rows, values: &[f32]| Value::View(BufferView::from_host(device, &tensor(rows, values)).unwrap());
    let args = [view(rows, &x), view(16, &w), Value::I32(steps)];
    let options =
        CallOptions { deadline: Deadline::after(Duration::from_secs(120)), ..CallOptions::default() };
    let results = session.function("main").unwrap().call_with(&args, &options).unwrap();
    for _ in 0..steps {
        let product = |row: usize, column: usize| -> f32 {
            (0..16).map(|k| x[row * 16 + k] * w[k * 16 + column]).sum()
        };
        x = (0..rows * 16).map(|i| product(i / 16, i % 16)).collect();
    }
    let result = results[0].as_view().unwrap().to_host().unwrap();
    let tolerance = Tolerance { exact: false, f16: 0.0, bf16: 0.0, f32: 1e-4, f64: 0.0, relative: 1e-4 };
    compare(&result, &tensor(rows, &x), &tolerance).unwrap();
}

/// A loop on the host with work on the device in between, from several threads that share the device.
#[test]
fn programs_of_many_submissions_on_several_threads() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers/local/tests/data");
    let native = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let modules = [(native, "steps_x86_64.vmfb"), (true, "steps_vmvx.vmfb")];
    for driver in ["local-sync", "local-task"] {
        let device = device(driver);
        for (_, module) in modules.iter().filter(|(runs, _)| *runs) {
            thread::scope(|scope| {
                for rows in 1..5 {
                    let (device, module) = (&device, data.join(module));
                    scope.spawn(move || (0..4).for_each(|steps| run_steps(device, &module, rows, 3 * steps)));
                }
            });
        }
    }
}
