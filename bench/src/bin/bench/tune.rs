//! The command `tune`: measures variants on one device and writes what follows to the tuning file of this user.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use halite_bench::kernels::{self, Bench, Caches, Clock, Options, Pace, Report, Size, Subject, cores};
use halite_ops::Operation;
use halite_shaders::{Tuning, TuningError, TuningFile, rank};
use halite_testing::flags::DeviceFlags;
use halite_tools::kernels::capabilities;

use crate::kernels::{Choice, seconds};

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    #[command(flatten)]
    what: Choice,
    /// How long all measurements may take beside those of the device's ceilings, in seconds. More time makes better medians; operations that no time is left for
    /// are named.
    #[arg(long, default_value_t = 120.0, value_parser = seconds)]
    budget: f64,
    /// File to write; what it has about other shapes stays. Default: the tuning file of this user.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write no file, only print the rows.
    #[arg(long)]
    dry_run: bool,
}

/// Measures, writes and prints; whether every variant was right.
pub fn run(flags: &Flags) -> Result<bool> {
    let path = match &flags.out {
        Some(path) => path.clone(),
        None => TuningFile::place().ok_or(TuningError::NoPlace)?,
    };
    // What cannot be read is told before minutes of measuring.
    let mut file = if path.exists() { TuningFile::read(&path)? } else { TuningFile::default() };
    let device = flags.device.opener()()?;
    let info = device.info().clone();
    let target = capabilities(&info).map_err(|why| anyhow!("{}: {why}", info.uri()))?;
    let operations = flags.what.operations(Size::of(&target))?;
    let subject = Subject::new(&info, target.target.to_string());
    eprintln!("{}, target {}", flags.device.headline(&info), subject.target);
    let variants: usize = operations
        .iter()
        .map(|operation| {
            rank(operation, &target, Tuning::shipped()).iter().filter(|c| c.plan().is_some()).count()
        })
        .sum();
    let options = options(flags.budget / variants.max(1) as f64);
    let bench = Bench::new(device, target, Tuning::shipped().clone(), options).context("the ceilings")?;
    let reports = measure(&bench, &operations, Duration::from_secs_f64(flags.budget))?;
    let rows = kernels::rows(&subject, &reports);
    println!("{}", serde_json::to_string_pretty(&rows)?);
    if !flags.dry_run {
        file.replace(rows, kernels::measurements(&subject, &reports));
        file.write(&path)?;
        eprintln!("\nwritten to {}; the rows above are what shaders/tuning.json would need", path.display());
    }
    Ok(!reports.iter().any(Report::failed))
}

/// A share of the budget for each variant: part of it keeps the device busy first.
fn options(share: f64) -> Options {
    let share = share.clamp(0.05, 2.0);
    let warm = (share / 3.0).min(0.5);
    Options {
        pace: Pace {
            clock: Clock::Wall,
            warm: Duration::from_secs_f64(warm),
            sample: Duration::from_millis(10),
            measure: Duration::from_secs_f64(share - warm),
        },
        filter: String::new(),
        reference_flops: 6e8,
        caches: Caches::Auto,
        seed: 1,
        original: None,
        patience: Options::PATIENCE,
        jobs: cores(),
        forced: Vec::new(),
    }
}

fn measure(bench: &Bench, operations: &[Operation], budget: Duration) -> Result<Vec<Report>> {
    let start = Instant::now();
    let mut reports = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        if start.elapsed() >= budget {
            eprintln!("\nthe budget is spent; not measured (--budget gives more time):");
            operations[index..].iter().for_each(|left| eprintln!("  {left}"));
            break;
        }
        let report = bench.measure(operation)?;
        eprint!("{}", kernels::text(&report));
        reports.push(report);
    }
    Ok(reports)
}
