//! How a tool begins and ends: its name, arguments, log, failures, exit codes.

use std::{
    ffi::OsString,
    fmt,
    io::{self, Write},
    process::ExitCode,
    sync::OnceLock,
};

use clap::{
    ArgAction, Args, Parser,
    error::{ContextKind, ErrorKind},
};
use serde_json::json;

use crate::{
    argv, cli,
    engine::{Code, Status},
    interrupt, logger, progress,
    visible::visible,
};

/// How a tool fails.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// Something went wrong: exit code 1, or 130 after Ctrl-C; one line on standard error.
    Status(Status),
    /// The failure is on standard output already: exit codes as above, nothing more is printed.
    Reported,
    /// Whoever read standard output wants no more of it: exit code 0, as there is nothing to mend.
    Unread,
}

/// `Result` of tools.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failed file operation, with the file's name.
    pub fn file(doing: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Failure::Status(Status::new(code_of(error), format!("{doing} '{}': {error}", path.display())))
    }

    /// Something that cannot be as it is given.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Failure::Status(Status::new(Code::InvalidArgument, text.into()))
    }

    /// Says what was being done.
    #[must_use]
    pub(crate) fn context(self, text: impl Into<String>) -> Self {
        match self {
            Failure::Status(status) => Failure::Status(status.annotate(text)),
            other => other,
        }
    }

    /// For when results are on standard output as JSON already: the failure goes to standard error now.
    pub(crate) fn beside_results(self) -> Self {
        if !matches!(self, Failure::Reported | Failure::Unread) {
            eprintln!("{}: error: {}", name(), visible(&self.to_string()));
        }
        Failure::Reported
    }

    /// For machines.
    fn to_json(&self) -> serde_json::Value {
        let (code, message, context) = match self {
            Failure::Status(status) => (status.code(), status.message(), status.annotations()),
            Failure::Usage(text) => (Code::InvalidArgument, text.as_str(), &[][..]),
            Failure::Reported | Failure::Unread => (Code::Unknown, "", &[][..]),
        };
        json!({"error": {"code": code.name(), "message": message, "context": context}})
    }
}

/// Of a report that was written: what is wrong is a failure, also where nobody reads on.
pub(crate) fn verdict(written: Result<()>, is_right: bool) -> Result<()> {
    match (written, is_right) {
        (Ok(()) | Err(Failure::Unread), false) => Err(Failure::Reported),
        (written, _) => written,
    }
}

/// What a failed file operation is called.
fn code_of(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::PermissionDenied,
        io::ErrorKind::AlreadyExists => Code::AlreadyExists,
        // The disk is full, or what may be had of it.
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::FileTooLarge
        | io::ErrorKind::OutOfMemory => Code::ResourceExhausted,
        // A folder in place of a file, or a text that is none.
        io::ErrorKind::IsADirectory
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidData => Code::InvalidArgument,
        _ => Code::Unknown,
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Status(status)
    }
}

impl From<halite::Error> for Failure {
    fn from(error: halite::Error) -> Self {
        Failure::Status(error.into_status())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // Whoever closed the pipe wants no more output and no complaint.
        if error.kind() == io::ErrorKind::BrokenPipe || is_closed_pipe_of_windows(&error) {
            return Failure::Unread;
        }
        Failure::Status(Status::new(code_of(&error), format!("writing the output: {error}")))
    }
}

/// Whether nobody is at the other end of a pipe: ERROR_PIPE_NOT_CONNECTED, which has no kind of its own.
fn is_closed_pipe_of_windows(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(233)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) => f.write_str(text),
            Failure::Status(status) => fmt::Display::fmt(status, f),
            Failure::Reported | Failure::Unread => Ok(()),
        }
    }
}

/// Version of the tools, as `--version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Flags that all tools have.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "General")]
pub struct CommonFlags {
    /// Logs more to standard error: once information, twice what helps to find errors, three times everything.
    /// HALITE_LOG=off|error|warn|info|debug|trace goes before
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Prints nothing but results and errors; twice, no log at all
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub quiet: u8,
    /// Prints the completion script for a shell
    #[arg(long, value_name = "SHELL")]
    completions: Option<clap_complete::Shell>,
}

/// A tool: its flags, and what it does with them.
pub trait Tool: Parser {
    /// What all tools have.
    fn common(&self) -> &CommonFlags;

    /// Steps of the log above warnings that the flags ask for.
    fn verbosity(&self) -> i16 {
        i16::from(self.common().verbose) - i16::from(self.common().quiet)
    }

    /// Whether failures go to standard output as JSON.
    fn json(&self) -> bool {
        false
    }

    /// Does it.
    fn run(self) -> Result<()>;
}

/// Makes flags a tool of the usual form: with the fields `common` and `json`, and a function `run` beside them.
macro_rules! tool {
    ($flags:ty) => {
        impl $crate::console::Tool for $flags {
            fn common(&self) -> &$crate::console::CommonFlags {
                &self.common
            }

            fn json(&self) -> bool {
                self.json
            }

            fn run(self) -> $crate::console::Result<()> {
                run(&self)
            }
        }
    };
}
pub(crate) use tool;

/// A tool's command line. Flags without a value also take `=true` and `=false`, as in IREE's tools. Numbers below zero are
/// values: what is wrong with them is told by the flag before them.
pub(crate) fn command<T: Parser>() -> clap::Command {
    T::command().mut_args(|arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_negative_numbers(true),
        // Those that are on unless they are turned off say so themselves.
        ArgAction::SetTrue if arg.get_default_values().is_empty() => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .hide_possible_values(true)
            .value_name("BOOL"),
        _ => arg,
    })
}

/// How the program was called.
#[derive(Clone, Debug)]
pub struct Called {
    /// The tool as the user named it: `halite run` or `run-module`.
    pub name: String,
    /// What follows that name.
    pub arguments: Vec<OsString>,
}

static CALLED: OnceLock<Called> = OnceLock::new();

/// Notes how the program was called, once. Returns the tool's name.
pub(crate) fn called(called: Called) -> &'static str {
    &CALLED.get_or_init(|| called).name
}

/// The tool as the user named it: `halite run` or `run-module`.
pub(crate) fn name() -> &'static str {
    CALLED.get().map_or(cli::PROGRAM, |called| &called.name)
}

/// The arguments behind the tool's name, as they were given.
pub(crate) fn arguments() -> &'static [OsString] {
    CALLED.get().map_or(&[], |called| &called.arguments)
}

/// Says something about the work on standard error, unless the user wants to hear less.
pub(crate) fn remark(text: fmt::Arguments<'_>) {
    if !logger::is_quiet() {
        progress::clear();
        eprintln!("{}: {}", name(), visible(&text.to_string()));
    }
}

/// Reads the command line, runs the tool, reports its failure.
pub fn tool_main<T: Tool>(how: Called) -> ExitCode {
    let name = called(how);
    logger::install(name);
    let command = spelled(command::<T>(), name);
    let prepared = match argv::prepare(&command, arguments().iter().cloned()) {
        Ok(prepared) => prepared,
        Err(message) => return usage_failed(name, &message, arguments()),
    };
    let all = std::iter::once(OsString::from(name)).chain(prepared.args);
    let flags = match command.clone().try_get_matches_from(all).and_then(|m| T::from_arg_matches(&m)) {
        Ok(flags) => flags,
        Err(error) => {
            return match no_subcommand(&command, &error) {
                Some(text) => usage_failed(name, &text, arguments()),
                None => parse_failed(name, &error, arguments()),
            };
        }
    };
    logger::set_verbosity(flags.verbosity());
    prepared.warnings.iter().for_each(|warning| log::warn!("{warning}"));
    if let Some(shell) = flags.common().completions {
        return match completions(name, command, shell) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failed(name, &failure, false),
        };
    }
    let json = flags.json();
    let result = flags.run();
    progress::clear();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = report(name, &failure, json);
            // Nobody else can say more about it.
            _ = io::stdout().flush();
            // Work that was ended may still be with drivers' threads.
            interrupt::leave(code)
        }
    }
}

/// What to say about a subcommand of a tool that there is not.
fn no_subcommand(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let word = error.get(ContextKind::InvalidSubcommand)?;
    let all: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
    Some(format!("there is no subcommand '{word}'; there are: {}", all.join(", ")))
}

fn failed(name: &str, failure: &Failure, json: bool) -> ExitCode {
    ExitCode::from(report(name, failure, json))
}

/// Reports a failure. Exit codes: 1, 2 for wrong usage, 130 after Ctrl-C.
fn report(name: &str, failure: &Failure, json: bool) -> u8 {
    let code = match failure {
        Failure::Usage(_) => 2,
        _ if interrupt::interrupted() => interrupt::INTERRUPTED,
        Failure::Unread => 0,
        _ => 1,
    };
    match failure {
        Failure::Reported | Failure::Unread => {}
        // On standard error where standard output takes nothing.
        _ if json && writeln!(io::stdout(), "{}", failure.to_json()).is_ok() => {}
        Failure::Status(_) => eprintln!("{name}: error: {}", visible(&failure.to_string())),
        Failure::Usage(_) => {
            eprintln!("{name}: error: {}\nTry '{name} --help'.", visible(&failure.to_string()));
        }
    }
    code
}

/// Reports wrong usage that was found before the flags were read.
pub(crate) fn usage_failed(name: &str, text: &str, arguments: &[OsString]) -> ExitCode {
    failed(name, &Failure::Usage(text.to_owned()), asks_for_json(arguments))
}

/// Reports what clap found. Help and version are "errors" that go to standard output with code 0.
pub(crate) fn parse_failed(name: &str, error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let code = u8::try_from(error.exit_code()).unwrap_or(2);
        return if error.print().is_ok() { ExitCode::from(code) } else { ExitCode::FAILURE };
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    if asks_for_json(arguments) {
        let message =
            text.split("\n\nUsage:").next().unwrap_or(text).split("\n\nFor more information").next();
        return failed(name, &Failure::Usage(message.unwrap_or(text).trim().to_owned()), true);
    }
    eprint!("{name}: error: {}", text.replace("try '--help'", &format!("try '{name} --help'")));
    ExitCode::from(2)
}

/// Whether arguments that could not be read ask for JSON.
fn asks_for_json(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|arg| *arg != "--");
    let asks = |arg: &str| match arg.replace('-', "_").as_str() {
        "__json" | "__json=true" | "__benchmark_format=json" => Some(true),
        "__json=false" => Some(false),
        _ => None,
    };
    own.filter_map(|arg| arg.to_str().and_then(asks)).last().unwrap_or(false)
}

/// The flags of a tool under the name that the user knows it by, in its examples too.
fn spelled(command: clap::Command, name: &'static str) -> clap::Command {
    let mut command = command.name(name).bin_name(name);
    if name.starts_with(cli::PROGRAM) {
        return command;
    }
    let old_names = |text: &clap::builder::StyledStr| {
        cli::ENTRIES.iter().fold(text.to_string(), |text, entry| match entry.program {
            Some(program) => text.replace(&format!("{} {}", cli::PROGRAM, entry.name), program),
            None => text,
        })
    };
    if let Some(text) = command.get_after_help().map(old_names) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_after_long_help().map(old_names) {
        command = command.after_long_help(text);
    }
    command
}

/// Writes the completion script: of the tool that has a name of its own, else of the whole program.
fn completions(name: &str, own: clap::Command, shell: clap_complete::Shell) -> Result<()> {
    let (mut command, program) =
        if name.starts_with(cli::PROGRAM) { (cli::command(), cli::PROGRAM) } else { (own, name) };
    script(shell, &mut command, program)
}

/// Writes a completion script to standard output.
pub(crate) fn script(shell: clap_complete::Shell, command: &mut clap::Command, program: &str) -> Result<()> {
    // In memory first: whoever makes it does not care for a full disk.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, program, &mut script);
    let mut out = io::stdout().lock();
    Ok(out.write_all(&script).and_then(|()| out.flush())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_seen_where_flags_are_wrong() {
        let asks = |args: &[&str]| asks_for_json(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(asks(&["--x", "--json"]) && asks(&["--json=true"]) && asks(&["--benchmark-format=json"]));
        assert!(!asks(&["--json", "--json=false"]) && !asks(&["--", "--json"]) && !asks(&["json"]));
    }
}
