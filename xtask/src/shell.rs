//! Runs other programs, and finds the repository.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context, Result, bail};

/// Root of the repository.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    // Cargo tells it when it runs something, too: a copy of a build folder has the names of the first checkout in it.
    let now = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).filter(|folder| folder.ends_with("xtask"));
    ROOT.get_or_init(|| {
        let folder = now.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        folder.parent().expect("xtask lies in a folder of the repository").to_path_buf()
    })
}

/// A path below the root.
pub fn repo(path: &str) -> PathBuf {
    root().join(path)
}

/// A heading between the steps of a chore.
pub fn say(step: &str) {
    println!("\n== {step}");
}

/// A command that starts in the repository root.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// The cargo that runs this chore.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = command(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), args);
    if env::var_os("CARGO_INCREMENTAL").is_none() && is_fresh() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Whether nobody has worked with this checkout yet. What cargo keeps for faster builds of changed sources would only take time then.
fn is_fresh() -> bool {
    let kept = std::fs::read_dir(repo("target/debug/incremental")).into_iter().flatten().flatten();
    let mut names = kept.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Of the chores themselves there is something always.
    !names.any(|name| name.starts_with("halite"))
}

/// Runs to the end; an error when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Runs and returns its standard output; an error with its standard error when it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Whether a program can be started at all.
pub fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs apt-get, as root or by sudo.
pub fn apt(args: &[&str]) -> Result<()> {
    let root = output(&mut command("id", &["-u"])).is_ok_and(|id| id.trim() == "0");
    let mut line = vec!["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    line.extend(args);
    if !root {
        line.insert(0, "sudo");
    }
    run(&mut command(line[0], &line[1..]))
        .context("package installation failed; run it by hand and try again")
}
