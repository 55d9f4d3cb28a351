//! Tools that are asked to end where it is hard: while a file is half written, while a server loads its model, and while nobody reads
//! what they say.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;

use std::{
    fs,
    io::{self, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preload/points.c");
/// More writes than making a file takes.
const MANY: usize = 100;
/// No machine is as busy as that; what ends by itself does so within 200 ms.
const LIMIT: Duration = Duration::from_secs(120);

fn repo(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Waits for a process that has to end.
fn ended(mut child: Child, what: &str) -> ExitStatus {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("{what}: it does not end");
}

/// A pipe with a name, or a loud skip.
fn pipe_in(folder: &Path) -> Option<PathBuf> {
    let pipe = folder.join("pipe.gguf");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        return Some(pipe);
    }
    eprintln!("SKIPPED: no mkfifo");
    None
}

/// Waits until somebody reads a pipe, and gives its other end.
fn read_by_somebody(pipe: &Path) -> fs::File {
    let (sender, opened) = mpsc::channel();
    let pipe = pipe.to_owned();
    std::thread::spawn(move || sender.send(fs::File::options().write(true).open(pipe).unwrap()));
    opened.recv_timeout(LIMIT).expect("the tool opens the pipe")
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Files that were begun: they get the names of what they are for when they are whole.
fn half(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let begun = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".halite-");
    paths.filter(begun).collect()
}

/// Asks for the end at each write of a file in `folder`, which never returns then, as on a disk that hangs.
fn hangs_at_each_write(library: &Path, folder: &Path, args: &[&str]) {
    let step = if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 1 } else { 3 };
    for (stopped, at) in (1..MANY).step_by(step).enumerate() {
        _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).unwrap();
        let mut command = common::command("halite");
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("LD_PRELOAD", library).env("POINTS_FOLDER", folder).env("POINTS_STAYS", "1");
        command.env("POINTS_AT", at.to_string()).env("POINTS_SIGNAL", "15");
        let status = ended(command.spawn().unwrap(), &format!("{args:?} at write {at}"));
        assert_eq!(status.signal(), None, "{args:?} at write {at}");
        assert!(half(folder).is_empty(), "{args:?} at write {at}: {:?}", half(folder));
        if status.success() {
            assert!(stopped > 0, "the library sees no write");
            return;
        }
        assert_eq!(status.code(), Some(130), "{args:?} at write {at}");
    }
    panic!("more than {MANY} writes");
}

#[test]
fn a_process_that_is_asked_to_end_while_a_write_hangs_leaves_nothing_half() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("points.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([SOURCE, "-ldl"]).output();
    match built {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return eprintln!("SKIPPED: no C compiler: {error}"),
    }
    let (model, to) = (repo("demo/digits/digits.onnx"), dir.path().join("to"));
    let module = to.join("digits.vmfb").display().to_string();
    hangs_at_each_write(&library, &to, &["compile", &model, "-o", &module]);
    if common::has_llvmpipe() {
        let sample = format!("--input=@{}", repo("demo/digits/sample_7.npy"));
        let cache = format!("--compile-cache={}", to.display());
        hangs_at_each_write(&library, &to, &["run", &model, "--device=vulkan", &sample, &cache]);
    }
}

/// Standard error is a pipe that is full. The tool is reading its model when it is asked to end.
#[test]
fn nobody_has_to_read_what_an_interrupted_tool_says() {
    let dir = tempfile::tempdir().unwrap();
    let Some(pipe) = pipe_in(dir.path()) else { return };
    let (unread, mut full) = io::pipe().unwrap();
    let errors = full.try_clone().unwrap();
    let (sender, filled) = mpsc::channel();
    // Goes on until nobody can read any more: there is never room.
    let filling =
        std::thread::spawn(move || while full.write_all(&[0; 512]).is_ok() && sender.send(()).is_ok() {});
    let mut child = common::command("halite");
    child.arg("run").arg(&pipe).arg("--device=local-sync").stdin(Stdio::null());
    let child = child.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let model = read_by_somebody(&pipe);
    while filled.recv_timeout(Duration::from_millis(500)).is_ok() {}
    signal(&child, "-TERM");
    let status = ended(child, "a tool whose errors nobody reads");
    assert_eq!(status.code(), Some(130));
    drop((model, unread, filled));
    filling.join().unwrap();
}

#[cfg(feature = "serve")]
#[test]
fn a_server_that_is_asked_to_end_while_it_loads_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let Some(pipe) = pipe_in(dir.path()) else { return };
    let mut child = common::command("halite");
    child.arg("serve").arg(&pipe).args(["--port=0", "--device=local-sync"]).stdin(Stdio::null());
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = child.stderr.take().unwrap();
    let model = read_by_somebody(&pipe);
    signal(&child, "-TERM");
    let status = ended(child, "a server that loads");
    let mut told = String::new();
    io::Read::read_to_string(&mut errors, &mut told).unwrap();
    assert_eq!(status.code(), Some(130), "{told}");
    assert!(told.contains("CANCELLED") && told.contains("reading the model"), "{told}");
    drop(model);
}
