//! Replays a corpus of compiled modules on a device and prints what differs from the expectations.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use halite_conformance::{corpus, expectations::Expectations, replay};
use halite_hal::{DriverRegistry, Options};
use halite_local as _;

/// Replays a corpus of compiled modules on a device.
#[derive(Parser)]
struct Cli {
    /// Folder of the corpus; by default the shared one beside the checkout.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Sets to replay; `.` for a corpus whose manifest lies at its root.
    #[arg(long, value_delimiter = ',', default_value = "small,models,vm_ops,bad")]
    sets: Vec<String>,
    /// Only programs whose name contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
    /// Device URI.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// Option for the driver, as `name=value`.
    #[arg(long = "option")]
    options: Vec<String>,
    /// Folder of expectation files; without it every failure counts.
    #[arg(long)]
    expectations: Option<PathBuf>,
    /// Print every program, not only surprises.
    #[arg(long)]
    all: bool,
}

fn main() -> Result<ExitCode> {
    halite_vulkan::link();
    halite_tools::logger::install("conformance");
    let cli = Cli::parse();
    let root = cli.corpus.or_else(corpus::shared).context("no corpus: give --corpus=FOLDER")?;
    let options = cli.options.iter().map(|o| o.split_once('=').unwrap_or((o, "true")));
    let options: Options = options.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let device = DriverRegistry::with_static_drivers().open(&cli.device, &options)?;
    println!("# {} ({})", device.info().uri(), device.info().name);
    let expectations = match &cli.expectations {
        Some(folder) => {
            Expectations::for_device(folder, &format!("{} {}", device.info().driver, device.info().name))?
        }
        None => Expectations::default(),
    };
    let (mut programs, mut calls, mut passed, mut surprises) = (0, 0, 0, 0);
    for set in &cli.sets {
        for program in corpus::programs(&root, set)?.iter().filter(|p| p.name.contains(&cli.filter)) {
            let verdicts = replay::run(&root, program, &device);
            programs += 1;
            calls += verdicts.len();
            passed += verdicts.iter().filter(|v| v.passed()).count();
            let complaint = expectations.complaint(&program.name, &verdicts).filter(|_| set != "bad");
            surprises += u32::from(complaint.is_some());
            if let Some(complaint) = complaint {
                println!("{}: {complaint}", program.name);
            } else if cli.all {
                let worst =
                    verdicts.iter().find(|v| !v.passed()).map_or("pass".to_owned(), ToString::to_string);
                println!("{}: {worst}", program.name);
            }
        }
    }
    println!(
        "{programs} programs, {calls} calls: {passed} passed, {} failed; {surprises} surprises",
        calls - passed
    );
    let messages = halite_vulkan::validation_message_count();
    if messages > 0 {
        println!("{messages} validation messages");
    }
    Ok(if surprises == 0 && messages == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
