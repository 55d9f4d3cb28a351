//! The command `calls`: what calls into a driver cost, linked and as a plug-in, or on two devices.

use anyhow::{Context as _, Result};
use clap::Args;
use halite_bench::calls::{Bench, Pattern, Phase, Plan, compare};
use halite_testing::{
    drivers::{self, Opener},
    flags::DeviceFlags,
};
use serde_json::{Value as Json, json};

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    /// Device to compare with; by default the same URI with the plug-ins of --driver-path.
    #[arg(long, value_name = "URI")]
    against: Option<String>,
    /// Commands in a recording.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    dispatches: u32,
    /// Times that each side does its work.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Only patterns whose name contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub fn run(flags: &Flags) -> Result<bool> {
    let plan = Plan { commands: flags.dispatches, iterations: flags.iterations };
    let [first, second] = sides(flags);
    let open = |opener: Opener, side| -> Result<_> {
        let device = opener().with_context(|| format!("the {side} side"))?;
        Ok((device.info().clone(), Bench::new(device, &plan)?))
    };
    let (first, second) = (open(first, "first")?, open(second, "second")?);
    if !flags.json {
        println!("# first:  {} ({}), linked driver", first.0.uri(), first.0.name);
        println!("# second: {}", flags.device.headline(&second.0).trim_start_matches("# "));
        if flags.against.is_none() && flags.device.driver_path.is_empty() {
            println!(
                "# both sides are the same driver: ratios tell the noise; give --driver-path or --against"
            );
        }
    }
    let mut report = Vec::new();
    for pattern in Pattern::ALL.into_iter().filter(|p| p.name().contains(&flags.filter)) {
        let phases = compare([&first.1, &second.1], pattern, &plan)?;
        if flags.json {
            report.push(
                json!({"pattern": pattern.name(), "phases": phases.iter().map(row).collect::<Vec<_>>()}),
            );
        } else {
            print_phases(&format!("{}: {}", pattern.name(), pattern.describe(&first.1, &plan)), &phases);
        }
    }
    if flags.json {
        let document = json!({
            "first": first.0.uri(), "second": second.0.uri(),
            "driver_path": flags.device.driver_path, "dispatches": plan.commands,
            "iterations": plan.iterations, "patterns": report,
        });
        println!("{document:#}");
    }
    Ok(true)
}

/// The linked driver first.
fn sides(flags: &Flags) -> [Opener; 2] {
    let options = || drivers::parse_options(&flags.device.options);
    let (linked, all) = (drivers::registry(&[]), drivers::registry(&flags.device.driver_path));
    let second = flags.against.as_ref().unwrap_or(&flags.device.device);
    [drivers::opener(linked, &flags.device.device, options()), drivers::opener(all, second, options())]
}

fn print_phases(title: &str, phases: &[Phase]) {
    println!("\n{title}\n{:>24} {:>12} {:>12} {:>8}", "median of", "first µs", "second µs", "ratio");
    for phase in phases {
        let [first, second] = phase.median.map(|d| d.as_secs_f64() * 1e6);
        let ratio = phase.ratio.map_or("?".to_owned(), |ratio| format!("{ratio:.2}"));
        println!("{:>24} {first:>12.2} {second:>12.2} {ratio:>8}", phase.name);
    }
}

fn row(phase: &Phase) -> Json {
    let [first, second] = phase.median.map(|d| d.as_secs_f64() * 1e6);
    json!({"phase": phase.name, "first_us": first, "second_us": second, "ratio": phase.ratio})
}
