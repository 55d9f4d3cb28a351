//! What the command-line tests share: running a tool, finding the corpus and a device.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

/// The result of a run.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a tool in a folder with a clean environment for drivers and logs.
pub fn run_in(folder: &Path, tool: &str, args: &[&str]) -> Ran {
    let mut command = command(tool);
    command.current_dir(folder).args(args).stdin(Stdio::null());
    finish(command.output().expect("the tool starts"))
}

/// Runs a tool that needs no particular folder.
pub fn run(tool: &str, args: &[&str]) -> Ran {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), tool, args)
}

/// A command that runs a tool on llvmpipe, if Vulkan is needed.
pub fn command(tool: &str) -> Command {
    let mut command = Command::new(program(tool));
    command.env_remove("HALITE_LOG");
    // Not the models, pipelines and measurements that this user keeps.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache")).env("HALITE_TUNING", "");
    if Path::new(LLVMPIPE).exists() {
        command.env("VK_DRIVER_FILES", LLVMPIPE);
    }
    command
}

/// The program `halite`, or one of its old names, such as `run-module`: a link that is made once.
pub fn program(tool: &str) -> PathBuf {
    static LINKS: OnceLock<PathBuf> = OnceLock::new();
    let halite = Path::new(env!("CARGO_BIN_EXE_halite"));
    if tool == "halite" {
        return halite.to_owned();
    }
    let folder = LINKS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools");
        let made = Command::new(halite).arg("links").arg(&folder).output().expect("the program starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    folder.join(format!("{tool}{}", std::env::consts::EXE_SUFFIX))
}

/// Copies a program. By another process: while this one has the copy open for writing, so have the programs that other
/// tests start at that moment, and a file that is open for writing cannot be run.
pub fn copy_program(from: &Path, to: &Path) {
    if cfg!(unix) {
        let status = Command::new("cp").arg(from).arg(to).status().expect("every Unix has cp");
        assert!(status.success(), "{} to {}", from.display(), to.display());
    } else {
        std::fs::copy(from, to).expect("the program can be copied");
    }
}

/// Turns a process's output into text.
pub fn finish(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Where Debian installs Mesa's CPU driver.
const LLVMPIPE: &str = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

/// The corpus of real modules, or a loud skip.
pub fn corpus() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb")).to_owned();
    if path.join("README.md").exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

/// Whether llvmpipe can be opened, or a loud skip.
pub fn has_llvmpipe() -> bool {
    let found = Path::new(LLVMPIPE).exists() && run("list-devices", &["vulkan"]).stdout.contains("llvmpipe");
    if !found {
        eprintln!("SKIPPED: no llvmpipe");
    }
    found
}
