//! The command `onnx`: the node tests of the `onnx` package through our compiler.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;
use halite_conformance::onnx::{Case, Host, Outcome, Summary, check, find_tests};

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// Evaluate graphs on the host, without a device.
    #[arg(long)]
    host: bool,
    /// Folder with the tests; without it, that of the Python package `onnx`.
    #[arg(long, value_name = "DIR")]
    tests: Option<PathBuf>,
    /// Python that is asked for the package.
    #[arg(long, default_value = "python3")]
    python: String,
    /// Only cases whose name contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print cases that pass or are not supported, too.
    #[arg(long)]
    all: bool,
}

/// Runs the tests and prints; whether no case failed.
pub fn run(flags: &Flags) -> Result<bool> {
    if !flags.host {
        bail!("give --host: graphs are evaluated on the host only");
    }
    let tests = flags.tests.clone().map_or_else(|| find_tests(&flags.python), Ok)?;
    let mut cases = Case::all(&tests)?;
    cases.retain(|case| case.name.contains(&flags.filter));
    ensure!(!cases.is_empty(), "no case in {} has '{}' in its name", tests.display(), flags.filter);
    let mut summary = Summary::default();
    for case in cases {
        let outcome = check(&case, &Host);
        match &outcome {
            _ if flags.json => {}
            Outcome::Failed(reason) => println!("FAILED {}: {reason}", case.name),
            Outcome::Unsupported(reason) if flags.all => println!("unsupported {}: {reason}", case.name),
            Outcome::Passed if flags.all => println!("passed {}", case.name),
            _ => {}
        }
        summary.outcomes.push((case.name, outcome));
    }
    if flags.json {
        println!("{:#}", summary.json("host"));
    } else {
        println!("{summary}");
    }
    Ok(summary.failed() == 0)
}
