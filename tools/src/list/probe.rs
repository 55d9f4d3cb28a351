//! The proof that devices can be opened and plug-ins loaded: each in a process of its own, so that a driver that crashes or hangs
//! takes only that process along.

use std::{
    ffi::OsString,
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use halite::{
    hal::{DeviceInfo, DriverEntry, Options, status},
    plugin::LibrarySource,
};

use crate::{
    cli,
    console::{self, Failure, Result},
    devices,
    flags::PluginFlags,
};

/// How long opening a device may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(10);
/// Says to a process that it is a probe itself, whatever its flags say.
const PROBE_VARIABLE: &str = "HALITE_PROBE";

/// How a process ended.
enum Outcome {
    Well,
    /// It failed and said why.
    Refused(String),
    /// It crashed: how, and its last words.
    Crashed(String),
    Hung,
}

/// Whether this process is a probe, which must not probe again.
pub(super) fn is_probe() -> bool {
    std::env::var_os(PROBE_VARIABLE).is_some()
}

/// Lists the devices with this process's own flags. UNAVAILABLE when a driver ends the process.
pub(super) fn listing() -> Result<()> {
    let how = match run(console::arguments().iter().cloned()) {
        Outcome::Well | Outcome::Refused(_) => return Ok(()),
        Outcome::Crashed(how) => how,
        Outcome::Hung => format!("did not end within {LIMIT:?}"),
    };
    Err(Failure::Status(status!(
        Unavailable,
        "listing the devices in a process of its own {how}: a driver fails as soon as it is loaded; to find it, allow one \
         Vulkan driver at a time with VK_DRIVER_FILES=<manifest>, and leave plug-ins out with --no-plugins"
    )))
}

/// Marks the devices that cannot be opened.
pub(super) fn devices(found: &mut [DeviceInfo], plugins: &PluginFlags, options: &Options) -> Result<()> {
    for device in found.iter_mut().filter(|d| d.unusable.is_none()) {
        device.unusable = named(&device.uri(), plugins, options)?;
    }
    Ok(())
}

/// Why a device cannot be opened; `None` when it can.
pub(super) fn named(uri: &str, plugins: &PluginFlags, options: &Options) -> Result<Option<String>> {
    let mut args = vec![OsString::from(format!("--device={}", devices::with_options(uri, options)?))];
    for path in &plugins.driver_path {
        let mut flag = OsString::from("--driver-path=");
        flag.push(path);
        args.push(flag);
    }
    args.extend(plugins.no_plugins.then(|| OsString::from("--no-plugins")));
    Ok(match run(args) {
        Outcome::Well => None,
        Outcome::Refused(why) => Some(why),
        Outcome::Crashed(how) => Some(format!("opening it in a process of its own {how}")),
        Outcome::Hung => Some(format!("opening it in a process of its own did not end within {LIMIT:?}")),
    })
}

/// Loads a plug-in and lists its devices. An error when that ends the process or does not end; what it could report itself
/// shows again when the library is loaded here.
pub(super) fn driver(entry: &DriverEntry) -> halite::hal::Result<()> {
    let Some(source) = LibrarySource::of(entry) else { return Ok(()) };
    let mut path = OsString::from("--driver-path=");
    path.push(source.manifest.as_ref().unwrap_or(&source.library));
    let how = match run([path, format!("--list_devices={}", entry.name()).into()]) {
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
fn run(args: impl IntoIterator<Item = OsString>) -> Outcome {
    let program = std::env::current_exe();
    let child = program.and_then(|program| {
        // A copy or link that is called list-devices is this tool without being told.
        let subcommand = cli::by_program(program.as_os_str()).is_none().then_some("devices");
        Command::new(program)
            .args(subcommand)
            .args(args)
            .env(PROBE_VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    });
    match child {
        Ok(child) => watch(child),
        Err(e) => Outcome::Refused(format!("a process to open it in cannot be started: {e}")),
    }
}

fn watch(mut child: Child) -> Outcome {
    let (send, words) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read is no reason; how the process ended still counts.
            _ = stderr.read_to_end(&mut bytes);
            _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    let end = Instant::now() + LIMIT;
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
