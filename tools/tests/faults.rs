//! Tools on drivers that crash, fail and hang: through the loader of `drivers/vulkan/tests/shim`.
#![allow(dead_code, reason = "each test crate uses a part of what tests share")]

mod common;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use common::{Ran, finish};
// Named so that it is built; what it does happens in the library that the tools load.
use halite_vulkan_shim as _;

fn shim() -> PathBuf {
    let name = format!("{}halite_vulkan_shim{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = std::env::current_exe().expect("tests know their path").with_file_name(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// A tool that reaches Vulkan through the shim, which follows these rules.
fn command(tool: &str, rules: &str) -> Command {
    let mut command = common::command(tool);
    command.env("HALITE_VULKAN_SHIM", rules).stdin(Stdio::null());
    command.arg(format!("--vulkan_libvulkan_search_path={}", shim().display()));
    command.arg("--vulkan_swiftshader=off");
    command
}

fn list(rules: &str, args: &[&str]) -> Ran {
    finish(command("list-devices", rules).args(args).output().expect("the tool starts"))
}

#[test]
fn a_driver_that_crashes_makes_its_device_unusable_and_no_more() {
    if !common::has_llvmpipe() {
        return;
    }
    let ran = list("", &["--probe", "vulkan"]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("not chosen"), "{}", ran.stdout);

    let ran = list("vkCreateDevice=crash", &["--probe", "vulkan"]);
    assert_eq!(ran.code, 1, "{} {}", ran.stdout, ran.stderr);
    let (text, signal) = (&ran.stdout, if cfg!(unix) { "signal 6 (SIGABRT)" } else { "exit code" });
    assert!(
        text.contains("opening it in a process of its own ended with") && text.contains(signal),
        "{text}"
    );
    let json = list("vkCreateDevice=crash", &["--probe", "--json", "vulkan"]);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("a report");
    assert_eq!(report["devices"][0]["usable"], false);

    let ran = list("vkCreateDevice=-3", &["--probe", "vulkan"]);
    let why = "vkCreateDevice failed with ERROR_INITIALIZATION_FAILED";
    assert!(ran.code == 1 && ran.stdout.contains(why), "{} {}", ran.stdout, ran.stderr);
    // Named devices too.
    let ran = list("vkCreateDevice=crash", &["--probe", "--device=vulkan://0"]);
    assert!(ran.code == 1 && ran.stderr.contains("device 'vulkan://0"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn a_driver_that_crashes_while_it_is_listed_is_found_out() {
    if !common::has_llvmpipe() {
        return;
    }
    let ran = list("vkEnumeratePhysicalDevices=crash", &["--probe", "vulkan"]);
    assert_eq!(ran.code, 1, "{} {}", ran.stdout, ran.stderr);
    for part in ["list-devices: error: UNAVAILABLE", "fails as soon as it is loaded", "VK_DRIVER_FILES"] {
        assert!(ran.stderr.contains(part), "'{part}' is missing from: {}", ran.stderr);
    }
}

#[test]
fn a_lost_device_ends_a_run_with_its_story() {
    let Some(corpus) = common::corpus().filter(|_| common::has_llvmpipe()) else { return };
    let ran = command("run-module", "vkQueueSubmit=-4")
        .current_dir(corpus)
        .args(["--device=vulkan", "--module=small/add_f32/module.vmfb", "--function=main"])
        .args(["--input=@small/add_f32/c0_in0.npy", "--input=@small/add_f32/c0_in1.npy"])
        .output();
    let ran = finish(ran.expect("the tool starts"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for part in ["run-module: error: DATA_LOSS; vkQueueSubmit failed with ERROR_DEVICE_LOST", "llvmpipe"] {
        assert!(ran.stderr.contains(part), "'{part}' is missing from: {}", ran.stderr);
    }
}

/// A program whose kernels never end, as far as it can tell.
#[cfg(unix)]
fn hanging(tool: &str) -> Option<Child> {
    let corpus = common::corpus().filter(|_| common::has_llvmpipe())?;
    // Its driver takes an end in order badly, as some do whose threads are at work.
    let child = command(tool, "all=stall,vkQueueSubmit=tell,exit=crash")
        .current_dir(corpus)
        .args(["--device=vulkan?stall_limit=1", "--module=small/add_f32/module.vmfb", "--function=main"])
        .args(["--input=@small/add_f32/c0_in0.npy", "--input=@small/add_f32/c0_in1.npy"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Some(child.expect("the tool starts"))
}

#[cfg(unix)]
#[test]
fn interrupts_end_runs_whose_kernels_do_not() {
    let Some(mut child) = hanging("run-module") else { return };
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "EXEC @main\n");
    // The line comes before the call: the kernels have to reach the device first, on a busy machine too.
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut told = String::new();
    while !told.ends_with("vkQueueSubmit is done\n") {
        assert!(errors.read_line(&mut told).expect("a line") > 0, "it ended: {told}");
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !sent.is_ok_and(|s| s.success()) {
        eprintln!("SKIPPED: no kill program");
        child.kill().expect("the test's own process");
        child.wait().expect("the test's own process");
        return;
    }
    let begun = std::time::Instant::now();
    errors.read_to_string(&mut told).expect("the tool ends");
    let ended = child.wait().expect("the tool ends");
    // 90 ms; a busy machine may take much longer, and the kernels never end.
    assert!(begun.elapsed().as_secs() < 60, "took {:?}", begun.elapsed());
    assert_eq!(ended.code(), Some(130), "{told}");
    assert!(told.contains("run-module: error: CANCELLED"), "{told}");
    // A machine that is too busy for the call to end in time tells what it did instead.
    let is_told = told.contains("unfinished is batch") && told.contains("in command buffer");
    assert!(is_told || told.contains("interrupted while"), "{told}");
}
