//! Owns how a tool begins and ends: arguments, log, failures, exit codes. Does not own: what a tool does.

use std::{fmt, io, process::ExitCode};

use clap::{CommandFactory, Parser};
use halite_status::{Code, Status};

use crate::{argv, interrupt, logger};

/// How a tool fails.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// Something went wrong: exit code 1, or 130 after Ctrl-C; one line on standard error.
    Status(Status),
    /// The failure is on standard output already: exit codes as above, nothing more is printed.
    Reported,
}

/// `Result` of tools.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failed file operation, with the file's name.
    pub fn file(doing: &str, path: &std::path::Path, error: &io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Unknown,
        };
        Failure::Status(Status::new(code, format!("{doing} '{}': {error}", path.display())))
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Status(status)
    }
}

impl From<halite_runtime::Error> for Failure {
    fn from(error: halite_runtime::Error) -> Self {
        match error {
            halite_runtime::Error::Status(status) => Failure::Status(status),
            other => Failure::Status(Status::new(other.code(), other.to_string())),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // Whoever closed the pipe wants no more output and no complaint.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::Reported;
        }
        Failure::Status(Status::new(Code::Unknown, format!("writing the output: {error}")))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) => f.write_str(text),
            Failure::Status(status) => fmt::Display::fmt(status, f),
            Failure::Reported => Ok(()),
        }
    }
}

/// Version of the tools, as `--version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads the command line, runs the tool, reports its failure.
pub fn tool_main<T: Parser>(name: &'static str, body: impl FnOnce(T) -> Result<()>) -> ExitCode {
    logger::install(name);
    let parsed = argv::prepare(&T::command(), std::env::args_os());
    let flags = match parsed {
        Ok(prepared) => {
            prepared.warnings.iter().for_each(|w| eprintln!("{name}: warning: {w}"));
            T::try_parse_from(prepared.args)
        }
        Err(message) => {
            eprintln!("{name}: error: {message}\nTry '{name} --help'.");
            return ExitCode::from(2);
        }
    };
    let result = match flags {
        Ok(flags) => body(flags),
        Err(error) => {
            // Help and version are "errors" that go to standard output with code 0.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return if error.print().is_ok() { ExitCode::from(code) } else { ExitCode::FAILURE };
        }
    };
    let failed =
        if interrupt::interrupted() { ExitCode::from(interrupt::INTERRUPTED) } else { ExitCode::FAILURE };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Reported) => failed,
        Err(failure @ Failure::Status(_)) => {
            eprintln!("{name}: error: {failure}");
            failed
        }
        Err(failure @ Failure::Usage(_)) => {
            eprintln!("{name}: error: {failure}\nTry '{name} --help'.");
            ExitCode::from(2)
        }
    }
}

/// Writes the completion script of a tool for a shell to standard output.
pub fn completions<T: CommandFactory>(name: &str, shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut T::command(), name, &mut io::stdout());
}
