//! The command `choice`: whether the variants that are chosen are near the fastest on shapes that nobody measured.

use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use halite_bench::kernels::{
    Bench, Caches, Chosen, Clock, NAMES, Options, Pace, Report, Shapes, Size, cores, share,
};
use halite_ops::Operation;
use halite_shaders::Tuning;
use halite_testing::flags::DeviceFlags;
use halite_tools::kernels::capabilities;
use serde_json::json;

use crate::kernels::seconds;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    /// Operation whose shapes are measured, such as conv2d. May be repeated. Default: all that random shapes are made of
    #[arg(long = "op", value_name = "NAME")]
    operations: Vec<String>,
    /// Shapes of each operation
    #[arg(long, default_value_t = 20, value_name = "N")]
    shapes: u32,
    /// Seed of the shapes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A choice is good that takes at most so many times as long as the fastest variant
    #[arg(long, default_value_t = 1.3, value_name = "TIMES")]
    within: f64,
    /// Share of good choices that is wanted for every operation; with less, the exit status is 1
    #[arg(long, default_value_t = 0.95, value_name = "SHARE")]
    share: f64,
    /// How long each variant is measured, in seconds; at least five samples are taken
    #[arg(long, default_value_t = 0.1, value_parser = seconds)]
    seconds: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How often a shape is measured at most.
const MOST_TURNS: usize = 3;

/// Measures and prints; whether enough choices are good and no variant is wrong.
pub fn run(flags: &Flags) -> Result<bool> {
    for name in &flags.operations {
        ensure!(
            NAMES.contains(&name.as_str()),
            "no random shapes of '{name}'; there are {}",
            NAMES.join(", ")
        );
    }
    let device = flags.device.opener()()?;
    let info = device.info().clone();
    let target = capabilities(&info).map_err(|why| anyhow!("{}: {why}", info.uri()))?;
    let size = Size::of(&target);
    let processor = target.target.is_processor();
    if !flags.json {
        println!("{}, target {}", flags.device.headline(&info), target.target);
    }
    let bench = Bench::new(device, target, Tuning::shipped().clone(), options(flags, processor))?;
    let named: Vec<&str> = flags.operations.iter().map(String::as_str).collect();
    let names = if named.is_empty() { NAMES.to_vec() } else { named };
    let (mut good, mut told) = (true, Vec::new());
    for name in names {
        let (mut shapes, mut chosen) = (Shapes::new(flags.seed, size), Vec::new());
        for _ in 0..flags.shapes {
            let (one, right) = measured(&bench, &shapes.next(name)?, flags.within)?;
            good &= right;
            chosen.extend(one);
        }
        let near = share(&chosen, flags.within);
        good &= near >= flags.share;
        chosen.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        if !flags.json {
            print(name, near, flags.within, &chosen);
        }
        let shapes: Vec<_> = chosen.iter().map(Chosen::json).collect();
        told.push(json!({"operation": name, "share": near, "shapes": shapes}));
    }
    if flags.json {
        println!("{:#}", json!({"device": info.name, "within": flags.within, "operations": told}));
    }
    Ok(good)
}

/// What was chosen for a shape, and whether all variants are right. What seems slow is measured again: drivers that run on the
/// processor take three times as long for a short dispatch when another thread has to wake.
fn measured(bench: &Bench, operation: &Operation, within: f64) -> Result<(Option<Chosen>, bool)> {
    let mut reports = Vec::new();
    while reports.len() < MOST_TURNS {
        let report = bench.measure(operation)?;
        for row in &report.rows {
            if let Err(why) = &row.outcome {
                eprintln!("{operation}: {}: {why}", row.variant);
            }
        }
        reports.push(report);
        if Chosen::of(&reports).is_none_or(|one| one.ratio() <= within) {
            break;
        }
    }
    Ok((Chosen::of(&reports), !reports.iter().any(Report::failed)))
}

fn print(name: &str, near: f64, within: f64, chosen: &[Chosen]) {
    println!("\n{name}: {:.0} % of {} shapes within {within} of the fastest", near * 100.0, chosen.len());
    chosen.iter().filter(|one| one.ratio() > within).for_each(|one| println!("  {}", one.text()));
}

/// Devices on the processor are measured by the time that processors worked: others use these too.
fn options(flags: &Flags, processor: bool) -> Options {
    Options {
        pace: Pace {
            clock: if processor { Clock::Processor } else { Clock::Wall },
            warm: Duration::from_secs_f64(flags.seconds / 4.0),
            sample: Duration::from_millis(10),
            measure: Duration::from_secs_f64(flags.seconds),
        },
        filter: String::new(),
        reference_flops: 6e8,
        caches: Caches::Warm,
        seed: flags.seed,
        original: None,
        patience: Options::PATIENCE,
        jobs: cores(),
        forced: Vec::new(),
    }
}
