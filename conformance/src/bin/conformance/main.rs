//! Checks and measures devices: suites of cases, replays of compiled modules, soak runs, the cost of calls.
#![forbid(unsafe_code)]

mod abi_bench;
mod kernels_bench;
mod kernels_tune;
mod onnx;
mod replay;
mod report;
mod run;
mod soak;
mod worker;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use halite_conformance::drivers::{self, Opener};
use halite_hal::DeviceInfo;
use halite_plugin::LibrarySource;

/// Checks and measures devices. Without a command it replays, with the flags of `replay`.
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
    /// Measures every variant of the kernel library beside the device's own ceilings.
    KernelsBench(kernels_bench::Flags),
    /// Measures them for the choice of kernels on this machine, and writes its tuning file.
    KernelsTune(kernels_tune::Flags),
    /// Compiles and runs the node tests of the `onnx` package, and compares with the values that they expect.
    Onnx(onnx::Flags),
    /// Replays a corpus of compiled modules and compares with the expected values.
    Replay(replay::Flags),
    /// Measures what calls into a driver cost: linked, and as a plug-in.
    AbiBench(abi_bench::Flags),
    /// Calls a module from several threads for long, checks every result, and fails when memory grows.
    Soak(soak::Flags),
}

/// Flags that choose the device.
#[derive(Args)]
struct DeviceFlags {
    /// Device URI.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// Option for the driver, as `name=value`.
    #[arg(long = "option")]
    options: Vec<String>,
    /// Driver plug-in: a manifest, a library, or a folder of manifests. Replaces a linked driver of its name.
    #[arg(long = "driver-path", alias = "driver_path", value_name = "PATH")]
    driver_path: Vec<PathBuf>,
}

impl DeviceFlags {
    /// The device in words, and the library that its driver comes from, if it is not linked in.
    fn headline(&self, info: &DeviceInfo) -> String {
        let registry = drivers::registry(&self.driver_path);
        let mut text = format!("# {} ({})", info.uri(), info.name);
        let entry = registry.entries().iter().find(|e| e.name() == info.driver);
        if let Some(library) = entry.and_then(LibrarySource::of) {
            text.push_str(&format!(", driver from {library}"));
        }
        text
    }

    fn opener(&self) -> Opener {
        let registry = drivers::registry(&self.driver_path);
        drivers::opener(registry, &self.device, drivers::parse_options(&self.options))
    }
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
        Some(Command::AbiBench(flags)) => abi_bench::run(flags),
        Some(Command::Soak(flags)) => soak::run(flags),
        Some(Command::KernelsBench(flags)) => kernels_bench::run(flags),
        Some(Command::KernelsTune(flags)) => kernels_tune::run(flags),
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
