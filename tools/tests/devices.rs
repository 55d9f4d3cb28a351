//! Tests of the command line that need a Vulkan device; llvmpipe will do.
#![allow(dead_code, reason = "each test crate uses a part of what tests share")]

mod common;

use std::path::PathBuf;

use common::{Ran, run, run_in};

const ADD: [&str; 4] = [
    "--module=small/add_f32/module.vmfb",
    "--function=main",
    "--input=@small/add_f32/c0_in0.npy",
    "--input=@small/add_f32/c0_in1.npy",
];

/// The corpus, when a device is there too.
fn set_up() -> Option<PathBuf> {
    common::corpus().filter(|_| common::has_llvmpipe())
}

fn add(corpus: &std::path::Path, more: &[&str]) -> Ran {
    run_in(corpus, "run-module", &[&ADD[..], more].concat())
}

#[test]
fn devices_have_many_names() {
    let Some(corpus) = set_up() else { return };
    let listed = run("run-module", &["--list_devices=vulkan"]);
    let uri = listed.stdout.lines().next().unwrap().to_owned();
    for name in ["vulkan", "vulkan://", "vulkan://0", "vulkan://LLVMpipe", &uri] {
        let ran =
            add(&corpus, &[&format!("--device={name}"), "--expected_output=@small/add_f32/c0_out0.npy"]);
        assert_eq!(ran.code, 0, "{name}: {} {}", ran.stdout, ran.stderr);
    }
    let ran = add(&corpus, &["--device=vulkan://7"]);
    assert!(ran.code == 1 && ran.stderr.contains("available: [0]"), "{}", ran.stderr);
    let ran = add(&corpus, &["--device=vulkan?no_such_option=1"]);
    assert!(ran.code == 1 && ran.stderr.contains("unknown option 'no_such_option'"), "{}", ran.stderr);
    let ran = add(&corpus, &["--device=null"]);
    assert!(ran.code == 1 && ran.stderr.contains("INCOMPATIBLE"), "{}", ran.stderr);
}

#[test]
fn driver_flags_reach_the_driver() {
    let Some(corpus) = set_up() else { return };
    let ran = add(&corpus, &["--device=vulkan", "--vulkan_dispatch_abi=bda"]);
    assert!(ran.code == 1 && ran.stderr.contains("not found or unavailable"), "{}", ran.stderr);
    let ran = add(&corpus, &["--vulkan_libvulkan_search_path=/no/such/loader.so", "--output="]);
    assert!(ran.code == 0 || ran.stderr.contains("/no/such/loader.so"), "{}", ran.stderr);
    let ran = add(
        &corpus,
        &["--vulkan_robust_buffer_access", "--vulkan-debug-utils=true", "--output=", "--print_statistics"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("Device: vulkan://") && ran.stderr.contains("B reserved now"),
        "{}",
        ran.stderr
    );
}

#[test]
fn json_results_hold_shapes_and_numbers() {
    let Some(corpus) = set_up() else { return };
    let ran = add(&corpus, &["--json", "--output_max_element_count=5"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let result = &json["results"][0];
    assert_eq!(result["shape"], serde_json::json!([4, 8]));
    assert_eq!((result["element_type"].as_str(), result["truncated"].as_bool()), (Some("f32"), Some(true)));
    assert_eq!(result["elements"].as_array().unwrap().len(), 5);
    assert!((result["elements"][0].as_f64().unwrap() + 0.977289).abs() < 1e-6);
    let ran = add(&corpus, &["--json", "--expected_output=4x8xf32=0"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (ran.code, json["success"].as_bool(), json["failures"][0]["result"].as_u64()),
        (1, Some(false), Some(0))
    );
}

#[test]
fn benchmarks_without_a_function_take_those_without_inputs() {
    let Some(corpus) = set_up() else { return };
    let ran = run_in(
        &corpus,
        "benchmark-module",
        &[
            "--module=small/multi_export/module.vmfb",
            "--benchmark_min_time=3x",
            "--benchmark_format=csv",
            "--batch_size=4",
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(rows.len(), 2, "{}", ran.stdout);
    assert!(rows[1].starts_with("\"BM_nothing/process_time/real_time\",3,"), "{}", rows[1]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    let out = format!("--benchmark_out={}", file.display());
    let ran = run_in(&corpus, "benchmark-module", &[&ADD[..], &["--benchmark_min_time=3x", &out]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(json["benchmarks"][0]["iterations"], 3);
    assert!(json["context"]["devices"][0]["peak_used_bytes"].as_u64().unwrap() >= 3 * 128);
}

#[test]
fn devices_are_listed_as_text_and_json() {
    if !common::has_llvmpipe() {
        return;
    }
    let json: serde_json::Value = serde_json::from_str(&run("list-devices", &["--json"]).stdout).unwrap();
    let devices = json["devices"].as_array().unwrap();
    let device = devices.iter().find(|d| d["name"].as_str().unwrap().contains("llvmpipe")).unwrap();
    let local = devices.iter().find(|d| d["driver"] == "local-task").unwrap();
    assert_eq!((device["kind"].as_str(), local["kind"].as_str()), (Some("cpu"), Some("cpu")));
    assert_eq!(device["usable"], true);
    assert_eq!(device["capabilities"]["name"], device["name"], "the record is there, as JSON");
    assert!(device["groups"]["extensions"].as_array().unwrap().len() > 10);
    let items = device["score"]["items"].as_array().unwrap();
    let sum: i64 = items.iter().map(|item| item["points"].as_i64().unwrap()).sum();
    assert_eq!(Some(sum), device["score"]["total"].as_i64());
    let text = run("list-devices", &["-v"]).stdout;
    assert!(text.contains(device["uri"].as_str().unwrap()) && text.contains("subgroup"), "{text}");
    assert!(!text.contains("null://"), "{text}");
    assert!(run("list-devices", &["null"]).stdout.contains("null://"));
    let named = run("list-devices", &["--device=vulkan://llvmpipe"]);
    assert!(named.code == 0 && named.stdout.starts_with(device["uri"].as_str().unwrap()), "{}", named.stderr);
}

#[test]
fn models_run_on_a_device_that_has_less_than_the_table_says_of_its_target() {
    if !common::has_llvmpipe() {
        return;
    }
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/digits");
    // Four lanes instead of eight, as on processors of ARM.
    let mut command = common::command("halite");
    command.current_dir(digits).env("LP_NATIVE_VECTOR_WIDTH", "128");
    command.args(["run", "digits.onnx", "--device=vulkan://llvmpipe", "--compile-cache=off"]);
    command.args(["--input=@sample_7.npy", "--expected_output=@expected_7.npy"]);
    let ran = common::finish(command.output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn drivers_and_known_faults_are_listed() {
    let drivers = run("list-devices", &["--drivers"]);
    assert!(drivers.code == 0 && drivers.stdout.contains("vulkan"), "{}", drivers.stderr);
    let json: serde_json::Value =
        serde_json::from_str(&run("list-devices", &["--drivers", "--json"]).stdout).unwrap();
    assert!(json["drivers"].as_array().unwrap().iter().any(|d| d["name"] == "vulkan"), "{json}");
    let faults = run("list-devices", &["--workarounds", "--json"]);
    let faults: serde_json::Value = serde_json::from_str(&faults.stdout).unwrap();
    let vulkan = faults["drivers"].as_array().unwrap().iter().find(|d| d["driver"] == "vulkan").unwrap();
    assert!(vulkan["workarounds"].as_array().unwrap().iter().any(|w| w["name"] == "swiftshader-no-bda"));
    assert!(faults["devices"].as_array().unwrap().iter().all(|d| d["in_force"].is_array()));
    let faults = run("list-devices", &["--workarounds"]);
    assert!(faults.stdout.contains("swiftshader-no-bda\n  avoids:"), "{} {}", faults.stdout, faults.stderr);
}

#[test]
fn the_exit_code_tells_whether_a_device_can_be_used() {
    let ran = run("list-devices", &["vulkan://?"]);
    assert!(ran.code == 1 && ran.stderr.contains("no driver named"), "{}", ran.stderr);
    let ran = run("list-devices", &["--device=null://nowhere"]);
    assert!(ran.code == 1 && ran.stderr.contains("NOT_FOUND"), "{}", ran.stderr);
    assert_eq!(run("list-devices", &["--device=null"]).code, 0);
}

#[test]
fn validation_finds_nothing_in_a_good_run() {
    let Some(corpus) = set_up() else { return };
    let ran = add(&corpus, &["--device=vulkan", "--vulkan_validation_layers=core,sync", "--output="]);
    if ran.code != 0 && ran.stderr.contains("VK_LAYER_KHRONOS_validation") {
        eprintln!("SKIPPED: no validation layer: {}", ran.stderr);
        return;
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "EXEC @main\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("validation layer reported"), "{}", ran.stderr);
    let ran = add(&corpus, &["--device=vulkan", "--vulkan_validation_layers=everything"]);
    assert!(ran.code == 1 && ran.stderr.contains("validation='everything'"), "{}", ran.stderr);
}
