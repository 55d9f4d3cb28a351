//! The command `kernels`: every variant of the kernel library against its twin on one device.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use halite_conformance::suites::{Runner, Verdict, kernels};

use crate::DeviceFlags;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    /// Only cases whose name contains this, such as matmul.f32 or softmax.
    #[arg(long = "match", default_value = "")]
    filter: String,
    /// Print the names of the cases and run none.
    #[arg(long)]
    list: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print cases that pass or are skipped, too.
    #[arg(long)]
    all: bool,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Longest time that one case may take, in seconds.
    #[arg(long, default_value_t = 120)]
    limit: u64,
}

/// Runs the suite and prints; whether no case failed.
pub fn run(flags: &Flags) -> Result<bool> {
    let mut cases = kernels::cases(flags.seed, "");
    cases.retain(|case| case.name.contains(&flags.filter));
    ensure!(!cases.is_empty(), "no case has '{}' in its name; --list shows them", flags.filter);
    if flags.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    let opener = flags.device.opener();
    let info = opener()?.info().clone();
    if !flags.json {
        println!("{}", flags.device.headline(&info));
    }
    let summary = Runner::new(opener, Duration::from_secs(flags.limit)).run(&cases, |report| {
        if !flags.json && (flags.all || matches!(report.verdict, Verdict::Fail(_))) {
            println!("{report}");
        }
    })?;
    if flags.json {
        println!("{:#}", summary.json(&info));
    } else {
        println!("{summary}");
    }
    Ok(summary.failures().next().is_none())
}
