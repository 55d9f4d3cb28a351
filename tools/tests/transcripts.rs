//! Replays recorded sessions of iree-run-module: same standard output, same success or failure.

use crate::common;
use std::{fs, path::Path};

/// Recorded sessions that are not replayed, and why.
const SKIPPED: &[(&str, &str)] = &[
    ("01_help", "help is our own"),
    ("02_list_drivers", "the drivers are others"),
    ("03_list_devices", "the drivers are others"),
    ("05_dump_devices", "properties are our own"),
    ("21_vulkan_index", "devices by index work here"),
    ("27_no_device_flag", "the default device is Vulkan here"),
    ("35_bool_out", "truth values are read as one digit, too"),
    ("45_output_npy", "writes into the corpus; covered in cli.rs"),
    ("46_output_bin", "writes into the corpus; covered in cli.rs"),
    ("60_input_npy_concat", "its input was not kept; covered by the tensor tests"),
    ("61_dump_module", "another tool"),
    ("62_dump_module_metadata", "another tool"),
    ("63_benchmark", "another tool"),
    ("64_help_benchmark", "help is our own"),
    ("65_dump_devices_swiftshader", "properties are our own"),
];

/// The parts of a session's file: arguments, standard output, exit code.
fn parse(text: &str) -> Option<(Vec<&str>, &str, i32)> {
    let (command, rest) = text.strip_prefix("$ iree-run-module ")?.split_once("\n--- stdout\n")?;
    let (stdout, rest) = rest.split_once("--- stderr\n")?;
    let (_, code) = rest.rsplit_once("--- exit ")?;
    // Arguments were not quoted; all of them are flags.
    let args = command.split(" --").map(|a| a.trim_start_matches('-')).collect();
    Some((args, stdout, code.trim().parse().ok()?))
}

#[test]
fn sessions_of_the_original_replay() {
    let Some(corpus) = common::corpus() else { return };
    if !common::has_llvmpipe() {
        return;
    }
    let (mut same, mut failures) = (0, Vec::new());
    let mut files: Vec<_> =
        fs::read_dir(corpus.join("transcripts")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if SKIPPED.iter().any(|(skipped, _)| *skipped == name) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let (args, stdout, code) = parse(&text).unwrap_or_else(|| panic!("{name} has another form"));
        let args: Vec<_> = args.iter().map(|a| format!("--{a}")).collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let ran = common::run_in(&corpus, "run-module", &args);
        if ran.stdout == stdout && (ran.code == 0) == (code == 0) {
            same += 1;
        } else {
            failures.push(format!(
                "{name}: exit {}\n{}\n{}\ninstead of {code}\n{stdout}",
                ran.code, ran.stdout, ran.stderr
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n=====\n"));
    assert!(same >= 45, "only {same} sessions");
}

/// Whether an output is the recorded one. Long records were kept without their middle.
fn is_recorded(stdout: &str, record: &str) -> bool {
    let stdout = stdout.trim_end();
    match record.split_once(" ... ") {
        None => stdout == record.trim_end(),
        Some((head, tail)) => stdout.starts_with(head) && stdout.ends_with(tail.trim_end()),
    }
}

fn texts(value: &serde_json::Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// The command line of a recorded call; `None` when a parameter file of it was not kept.
fn arguments(corpus: &Path, row: &serde_json::Value, call: &serde_json::Value) -> Option<Vec<String>> {
    let mut args = if call["no_params"] == true { Vec::new() } else { texts(&row["run_flags"]) };
    let is_missing = |file: &str| file.contains('.') && !corpus.join(file).exists();
    if args.iter().any(|flag| flag.split('=').next_back().is_some_and(is_missing)) {
        return None;
    }
    args.extend(texts(&row["devices"]).iter().map(|d| format!("--device={d}")));
    // Kernels with addresses run on a processor only when they are asked for.
    let addresses = texts(&row["flags"]).iter().any(|flag| flag == "--iree-vulkan-dispatch-abi=bda");
    args.extend(addresses.then(|| "--vulkan_dispatch_abi=bda".to_owned()));
    args.push(format!("--module={}", row["vmfb"].as_str()?));
    args.push(format!("--function={}", call["function"].as_str()?));
    let inputs = call["inputs"].as_array().into_iter().flatten();
    args.extend(inputs.filter_map(|i| Some(format!("--input={}", i["flag"].as_str()?))));
    Some(args)
}

#[test]
fn small_programs_print_what_the_original_prints() {
    let Some(corpus) = common::corpus() else { return };
    if !common::has_llvmpipe() {
        return;
    }
    let manifest = fs::read_to_string(corpus.join("small/manifest.jsonl")).unwrap();
    // In the short form every third program: each call is a process that opens the device.
    let step = if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 1 } else { 3 };
    let (mut same, mut failures) = (0, Vec::new());
    for line in manifest.lines().step_by(step) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for call in row["calls"].as_array().into_iter().flatten() {
            let record = &call["llvmpipe"];
            // Where the original is wrong there is nothing to compare with.
            let (Some(stdout), Some("pass")) = (record["stdout"].as_str(), record["status"].as_str()) else {
                continue;
            };
            let Some(args) = arguments(&corpus, &row, call) else { continue };
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let ran = common::run_in(&corpus, "run-module", &args);
            let succeeded = record["rc"].as_i64().unwrap_or(0) == 0;
            if is_recorded(&ran.stdout, stdout) && (ran.code == 0) == succeeded {
                same += 1;
            } else {
                failures.push(format!("{}: exit {} {}", row["name"], ran.code, ran.stderr));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(same > 90 / step, "only {same} calls");
}
