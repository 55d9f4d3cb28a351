//! What may crash or hang, tried in a process of its own: devices that are opened, plug-ins that are loaded for the first time.

use std::{
    ffi::OsString,
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use halite::{
    hal::{self, status},
    plugin::LibrarySource,
};

/// How long loading a plug-in and listing its devices may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(10);
/// Says to a process that it is a trial: it is `devices`, whatever it is called by, and tries nothing itself.
const VARIABLE: &str = "HALITE_PROBE";

/// How a process ended.
pub(crate) enum Outcome {
    /// It did what it should.
    Well,
    /// It failed and said why.
    Refused(String),
    /// It crashed: how, and its last words.
    Crashed(String),
    /// It did not end.
    Hung,
}

/// Whether this process is a trial, which must not try again.
pub(crate) fn is_trial() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Loads a plug-in and lists its devices. An error when that ends the process or does not end; what it could report itself
/// shows again when the library is loaded here.
pub(crate) fn library(source: &LibrarySource, name: &str) -> hal::Result<()> {
    let mut path = OsString::from("--driver-path=");
    path.push(source.manifest.as_ref().unwrap_or(&source.library));
    let how = match run([path, format!("--list_devices={name}").into()], LIMIT) {
        Outcome::Well | Outcome::Refused(_) => return Ok(()),
        Outcome::Crashed(how) => how,
        Outcome::Hung => format!("did not end within {LIMIT:?}"),
    };
    Err(status!(
        Unavailable,
        "loading it in a process of its own {how}; remove the plug-in, or leave all out with --no-plugins"
    ))
}

/// Runs this program with other arguments.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, limit: Duration) -> Outcome {
    let program = std::env::current_exe();
    let child = program.and_then(|program| {
        Command::new(program)
            .arg("devices")
            .args(args)
            .env(VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    });
    match child {
        Ok(child) => watch(child, limit),
        Err(e) => Outcome::Refused(format!("a process to open it in cannot be started: {e}")),
    }
}

fn watch(mut child: Child, limit: Duration) -> Outcome {
    let (send, words) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read is no reason; how the process ended still counts.
            _ = stderr.read_to_end(&mut bytes);
            _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    let end = Instant::now() + limit;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::park_timeout(LOOK),
            _ => {
                // It is ours, and it hangs; nothing is lost when it cannot be ended either.
                _ = child.kill();
                _ = child.wait();
                return Outcome::Hung;
            }
        }
    };
    // Others may hold the pipe open: processes that a driver started.
    judge(ended, &words.recv_timeout(Duration::from_secs(1)).unwrap_or_default())
}

fn judge(ended: ExitStatus, words: &str) -> Outcome {
    let error = words.lines().find_map(|line| line.split_once(" error: ")).map(|(_, text)| text);
    match (ended.code(), error) {
        (Some(0), _) => Outcome::Well,
        (Some(1 | 2), Some(error)) => Outcome::Refused(error.to_owned()),
        _ => {
            let last = words.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map(|line| format!(", after '{}'", line.trim())).unwrap_or_default();
            Outcome::Crashed(format!("ended with {}{last}", describe(ended)))
        }
    }
}

/// `signal 11 (SIGSEGV)`, or the exit code.
fn describe(ended: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&ended) {
        let name = match signal {
            4 => " (SIGILL)",
            6 => " (SIGABRT)",
            7 => " (SIGBUS)",
            8 => " (SIGFPE)",
            9 => " (SIGKILL)",
            11 => " (SIGSEGV)",
            _ => "",
        };
        return format!("signal {signal}{name}");
    }
    // Windows puts exceptions there, which are known by their hexadecimal form.
    ended.code().map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code} ({code:#x})"))
}
