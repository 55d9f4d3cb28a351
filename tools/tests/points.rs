//! Tools that end in the middle of a write of what they keep, and tools whose clock is set while they run. A library that stands before the
//! C library does both (`preload/points.c`), so that each moment is tried and none is left to chance.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preload/points.c");
/// More writes and syncs than keeping a model takes.
const MANY: usize = 200;

/// The library, built, or a loud skip.
fn library(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("points.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&path).args([SOURCE, "-ldl"]).output();
    match built {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(path)
        }
        Err(error) => {
            eprintln!("SKIPPED: no C compiler: {error}");
            None
        }
    }
}

/// Runs the demo's network with a cache of its own.
fn digits(cache: &Path, set: &[(&str, &str)]) -> Output {
    let file = |name: &str| format!("{}/../demo/digits/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = common::command("halite");
    command.args(["run", &file("digits.onnx"), "--device=vulkan"]);
    command.arg(format!("--compile-cache={}", cache.display()));
    command.arg(format!("--input=@{}", file("sample_3.npy")));
    command.arg(format!("--expected_output=@{}", file("expected_3.npy")));
    command.envs(set.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

fn right(output: Output, when: &str) {
    let ran = common::finish(output);
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{when}: {} {}", ran.stdout, ran.stderr);
}

/// Each write, or in the short form some of them.
fn step() -> usize {
    if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 1 } else { 4 }
}

/// Names and bytes of what is kept.
fn kept(cache: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(cache) else { return Vec::new() };
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut all: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// Ends a run at each write of what is kept; what comes behind it is right, finds the cache in order, and leaves it so.
fn ended_at_each_write(signal: &str, library: &Path, folder: &Path) {
    let mut ended_by_it = 0;
    for at in (1..MANY).step_by(step()) {
        let cache = folder.join(format!("{signal}-{at}"));
        let (place, number) = (cache.display().to_string(), at.to_string());
        let set = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("POINTS_FOLDER", &place),
            ("POINTS_AT", &number),
            ("POINTS_SIGNAL", signal),
        ];
        let ended = digits(&cache, &set);
        let when = format!("signal {signal} at write {at}");
        // A run that has no such write ends by itself: all were tried.
        let is_done = ended.status.success();
        let stopped = ended.status.signal() == Some(9) || ended.status.code() == Some(130);
        assert!(is_done || stopped, "{when}: {ended:?}");
        ended_by_it += usize::from(stopped);
        right(digits(&cache, &[]), &when);
        let before = kept(&cache);
        right(digits(&cache, &[]), &when);
        let after = kept(&cache);
        let names = |all: &[(PathBuf, Vec<u8>)]| all.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after), "{when}");
        assert!(before == after, "{when}: an entry was made once more");
        if is_done {
            println!("signal {signal} ended the run at {ended_by_it} writes");
            assert!(ended_by_it > 1, "{ended_by_it} writes: the library does not see them");
            return;
        }
    }
    panic!("more than {MANY} writes");
}

/// The same in a folder of its own, where there are a C compiler and llvmpipe.
fn ended_by(signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    if common::has_llvmpipe() {
        ended_at_each_write(signal, &library, folder.path());
    }
}

#[test]
fn a_process_that_is_killed_in_any_write_leaves_a_cache_in_order() {
    ended_by("9");
}

#[test]
fn a_process_that_is_asked_to_end_in_any_write_leaves_a_cache_in_order() {
    ended_by("15");
}

#[test]
fn a_clock_that_is_set_changes_no_result_and_loses_nothing_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    if !common::has_llvmpipe() {
        return;
    }
    let cache = folder.path().join("cache");
    let set = [("LD_PRELOAD", library.to_str().unwrap()), ("POINTS_CLOCK", "1")];
    right(digits(&cache, &set), "first");
    let before = kept(&cache);
    assert!(!before.is_empty());
    right(digits(&cache, &set), "again");
    right(digits(&cache, &[]), "by the right clock");
    right(digits(&cache, &set), "and by the other");
    assert!(before == kept(&cache), "an entry went, or was made once more");
}

#[test]
fn a_clock_that_is_set_does_not_move_deadlines() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(corpus)) = (library(folder.path()), common::corpus()) else { return };
    let begun = Instant::now();
    let mut command = common::command("halite");
    command.arg("run").arg(corpus.join("small/scalar_loop_fib/module.vmfb"));
    command.args(["--function=fib", "--input=2000000000", "--timeout=1"]);
    command.env("LD_PRELOAD", library).env("POINTS_CLOCK", "1").stdin(Stdio::null());
    let ran = common::finish(command.output().unwrap());
    assert!(ran.code != 0 && ran.stderr.contains("DEADLINE_EXCEEDED"), "{} {}", ran.stdout, ran.stderr);
    // Not by the years that the clock went forth, and not ten years late.
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(60), "{took:?}");
}
