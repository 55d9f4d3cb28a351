//! Tools on a full disk, and tools that are killed: results stay right, and nothing half is left.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::common::finish;

fn digits(name: &str) -> String {
    format!("{}/../demo/digits/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What every run of the demo's network is given.
fn arguments(cache: &Path) -> Vec<String> {
    vec![
        "run".to_owned(),
        digits("digits.onnx"),
        "--device=vulkan".to_owned(),
        format!("--compile-cache={}", cache.display()),
        format!("--input=@{}", digits("sample_3.npy")),
        format!("--expected_output=@{}", digits("expected_3.npy")),
    ]
}

/// The same command, run by a shell that sets something up before.
fn behind(shell: &str, cache: &Path) -> Command {
    let own = common::command("halite");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")])
        .arg(own.get_program())
        .args(arguments(cache));
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    command
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let all = entries.map(|entry| entry.unwrap().path());
    all.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_full_disk_costs_what_would_have_been_kept() {
    if !common::has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    // Files may have 4 KiB: writing more fails, as it does on a full disk.
    let ran = finish(behind("trap '' XFSZ; ulimit -f 8", &cache).output().unwrap());
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("[SUCCESS]"), "{}", ran.stdout);
    let large = |file: &PathBuf| fs::metadata(file).unwrap().len() > 4096;
    assert!(!files(&cache).iter().any(|file| large(file) || file.extension().is_some_and(|e| e == "vmfb")));
    // With room again it is kept.
    let ran = finish(behind("true", &cache).output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{} {}", ran.stdout, ran.stderr);
    assert!(files(&cache).iter().any(large));
    // Where a result should go there is no room.
    if Path::new("/dev/full").exists() {
        let mut command = common::command("halite");
        let given = arguments(&cache).into_iter().filter(|argument| !argument.starts_with("--expected"));
        command.args(given).arg("--output=@/dev/full");
        let ran = finish(command.stdin(Stdio::null()).output().unwrap());
        assert_ne!(ran.code, 0);
        let says = ran.stderr.contains("RESOURCE_EXHAUSTED") && ran.stderr.contains("/dev/full");
        assert!(says, "{}", ran.stderr);
    }
}

#[test]
fn a_run_that_is_killed_leaves_nothing_half() {
    if !common::has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for tenths in 0..8 {
        // Killed at some point of loading, compiling, keeping, or calling.
        let mut child = behind("true", &cache).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_millis(15 * tenths);
        while std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = finish(behind("true", &cache).output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{} {}", ran.stdout, ran.stderr);
    // The next run finds what this one kept.
    let before = files(&cache);
    let ran = finish(behind("true", &cache).output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(files(&cache), before);
}
