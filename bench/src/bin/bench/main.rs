//! Measures devices: the variants of the kernel library, and what calls into a driver cost.
#![forbid(unsafe_code)]

mod calls;
mod choice;
mod fit;
mod kernels;
mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures devices.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures every variant of the kernel library beside the device's own ceilings.
    Kernels(kernels::Flags),
    /// Measures them for the choice of kernels on this machine, and writes its tuning file.
    Tune(tune::Flags),
    /// Measures whether the variants that are chosen are near the fastest on random shapes.
    Choice(choice::Flags),
    /// Fits the constants of the cost model to what `kernels --json` measured, with shapes held out.
    Fit(fit::Flags),
    /// Measures what calls into a driver cost: linked, and as a plug-in.
    Calls(calls::Flags),
}

/// Whether nothing is wrong.
fn run(command: &Command) -> anyhow::Result<bool> {
    halite_hal::verify_linked()?;
    match command {
        Command::Kernels(flags) => kernels::run(flags),
        Command::Tune(flags) => tune::run(flags),
        Command::Choice(flags) => choice::run(flags),
        Command::Fit(flags) => fit::run(flags),
        Command::Calls(flags) => calls::run(flags),
    }
}

/// 0 when nothing is wrong, 1 when something is, 2 when that could not be found out.
fn main() -> ExitCode {
    halite_tools::logger::install("bench");
    let good = match run(&Cli::parse().command) {
        Ok(good) => good,
        Err(e) => {
            eprintln!("bench: {e:#}");
            return ExitCode::from(2);
        }
    };
    let messages = halite_tools::logger::validation_messages();
    if messages > 0 {
        eprintln!("bench: {messages} validation messages");
        return ExitCode::FAILURE;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
