//! Checks devices: suites of cases, replays of compiled modules, soak runs.
#![forbid(unsafe_code)]

mod onnx;
mod replay;
mod report;
mod run;
mod soak;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks devices. Without a command it replays, with the flags of `replay`.
#[derive(Parser)]
#[command(name = "conformance", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    replay: replay::Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Runs suites of cases on devices, and writes reports.
    Run(Box<run::Flags>),
    /// Joins JSON reports of runs, of parts of a run or of several devices.
    Report(report::Flags),
    /// Runs cases that another process names.
    #[command(hide = true)]
    Worker(worker::Flags),
    /// Compiles and runs the node tests of the `onnx` package, and compares with the values that they expect.
    Onnx(onnx::Flags),
    /// Replays a corpus of compiled modules and compares with the expected values.
    Replay(replay::Flags),
    /// Calls a module from several threads for long, checks every result, and fails when memory grows.
    Soak(soak::Flags),
}

/// Whether nothing is wrong.
fn run(command: Option<&Command>, replay_flags: &replay::Flags) -> anyhow::Result<bool> {
    halite_hal::verify_linked()?;
    match command {
        None => replay::run(replay_flags),
        Some(Command::Run(flags)) => run::run(flags),
        Some(Command::Report(flags)) => report::run(flags),
        Some(Command::Worker(flags)) => worker::run(flags),
        Some(Command::Replay(flags)) => replay::run(flags),
        Some(Command::Soak(flags)) => soak::run(flags),
        Some(Command::Onnx(flags)) => onnx::run(flags),
    }
}

/// 0 when nothing is wrong, 1 when something is, 2 when that could not be found out.
fn main() -> ExitCode {
    halite_tools::logger::install("conformance");
    let cli = Cli::parse();
    let good = match run(cli.command.as_ref(), &cli.replay) {
        Ok(good) => good,
        Err(e) => {
            eprintln!("conformance: {e:#}");
            return ExitCode::from(2);
        }
    };
    // Runs count messages by case, also those of expected failures.
    let by_case = matches!(cli.command, Some(Command::Run(_) | Command::Worker(_)));
    let messages = halite_tools::logger::validation_messages();
    if messages > 0 && !by_case {
        eprintln!("conformance: {messages} validation messages");
        return ExitCode::FAILURE;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
