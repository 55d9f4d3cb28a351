//! Running `run-module` on one module in a process of its own, and naming how it ended.

use std::{
    ffi::OsString,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use halite::hal::Code;

use crate::common;

/// How long the tool itself allows a damaged module.
pub const DAMAGED: Duration = Duration::from_secs(10);
/// The same for a sound one, which has to end, however busy the machine is.
pub const SOUND: Duration = Duration::from_secs(240);
/// How much longer a process may live. The tool ends itself long before; a process that does not hangs.
const GRACE: Duration = Duration::from_secs(80);
/// Address space of a process in KiB: an allocation that the module's size does not justify fails.
const ADDRESS_SPACE: u32 = 6 << 20;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end: the damage did not matter, or only the numbers are wrong.
    Ran,
    /// It was refused with a code and a message.
    Refused(String),
    /// The tool's own time limit ended it.
    OutOfTime,
    /// It failed without naming a known code and a reason.
    Nameless(String),
    /// A panic, a signal, or an abort.
    Crashed(String),
    /// It outlived its time limit.
    Hung,
}

/// Runs a module; the tool ends it after `limit`.
pub fn run(module: &Path, args: &[String], limit: Duration) -> Outcome {
    let mut child = command(module, args, limit).spawn().expect("run-module can be started");
    let mut stderr = child.stderr.take().expect("standard error is a pipe");
    let (send, text) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is judged as nothing; the exit status still counts.
        let _ = stderr.read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    match text.recv_timeout(limit + GRACE) {
        Ok(text) => judge(&mut child, &text),
        Err(_) => {
            let _ = child.kill();
            let _ = child.wait();
            Outcome::Hung
        }
    }
}

/// The binary of this build, or another one, such as a release build.
pub fn tool() -> OsString {
    std::env::var_os("HALITE_MALFORMED_TOOL").unwrap_or_else(|| common::program("run-module").into())
}

fn command(module: &Path, args: &[String], limit: Duration) -> Command {
    let tool = tool();
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -c 0; ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")]).arg(tool);
        shell
    } else {
        Command::new(tool)
    };
    // What a damaged module leaves behind is not for the pipelines that this user keeps.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    let device = std::env::var("HALITE_MALFORMED_DEVICE").unwrap_or_else(|_| "vulkan".to_owned());
    command.arg(format!("--device={device}")).arg(format!("--timeout={}", limit.as_secs()));
    command
        .arg(format!("--module={}", module.display()))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn judge(child: &mut Child, stderr: &str) -> Outcome {
    let status = match child.wait() {
        Ok(status) => status,
        Err(error) => return Outcome::Crashed(format!("no exit status: {error}")),
    };
    let tail =
        || stderr.lines().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    if stderr.contains("panicked at") || !matches!(status.code(), Some(0..=2)) {
        return Outcome::Crashed(format!("{status}\n{}", tail()));
    }
    if status.success() {
        return Outcome::Ran;
    }
    let line = stderr.lines().find_map(|line| line.split_once("run-module: error: ")).map(|(_, text)| text);
    match line.and_then(|text| text.split_once("; ")) {
        Some(("DEADLINE_EXCEEDED", _)) => Outcome::OutOfTime,
        Some((code, message)) if !message.trim().is_empty() && Code::ALL.iter().any(|c| c.name() == code) => {
            Outcome::Refused(format!("{code}; {message}"))
        }
        _ => Outcome::Nameless(format!("{status}\n{}", tail())),
    }
}
