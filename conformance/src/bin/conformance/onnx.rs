//! The command `onnx`: the node tests of the `onnx` package, or other cases of that form, through our compiler.

use std::path::PathBuf;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use halite_conformance::onnx::{
    Case, Engine, Host, OnDevice, Outcome, Row, Summary, TABLE, find_tests, measure, superseded,
};
use halite_testing::flags::DeviceFlags;
use halite_tools::kernels::capabilities;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    /// Evaluate graphs on the host, without a device.
    #[arg(long)]
    host: bool,
    /// With --host: graphs as they come from the models, without the compiler's passes.
    #[arg(long, requires = "host")]
    plain: bool,
    /// Use kernels that every device runs, not those for the device at hand.
    #[arg(long, conflicts_with = "host")]
    baseline: bool,
    /// Folder with the tests; without it, that of the Python package `onnx`.
    #[arg(long, value_name = "DIR")]
    tests: Option<PathBuf>,
    /// Python that is asked for the package.
    #[arg(long, default_value = "python3")]
    python: String,
    /// Only cases whose name contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
    /// How far floats may be from those that are expected, besides a part in a thousand.
    #[arg(long, default_value_t = 1e-7)]
    atol: f64,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print cases that pass or are not supported, too.
    #[arg(long)]
    all: bool,
    /// Print a Markdown table of differences, times, sizes and memory; every case has a device of its own, and each function
    /// is called up to five times.
    #[arg(long, conflicts_with_all = ["json", "host"])]
    table: bool,
}

/// Calls of each function whose quickest one is told.
const CALLS: u32 = 5;

/// Runs the tests and prints; whether no case failed.
pub fn run(flags: &Flags) -> Result<bool> {
    let tests = flags.tests.clone().map_or_else(|| find_tests(&flags.python), Ok)?;
    let mut cases = Case::all(&tests)?;
    cases.retain(|case| case.name.contains(&flags.filter));
    ensure!(!cases.is_empty(), "no case in {} has '{}' in its name", tests.display(), flags.filter);
    let (engine, name) = engine(flags)?;
    if flags.table {
        println!("{name}\n\n{TABLE}");
    } else if !flags.json {
        println!("# {name}");
    }
    let mut summary = Summary::default();
    for case in cases {
        let (outcome, measured) = if flags.table {
            // Peaks of memory are those of a device.
            measure(&case, &*self::engine(flags)?.0, flags.atol)
        } else {
            measure(&case, &*engine, flags.atol)
        };
        if flags.table && measured.sets > 0 {
            println!("{}", Row(&case.name, &measured));
        }
        let outcome = match (outcome, superseded(&case.name)) {
            // What is corrected are values, which are told by their output.
            (Outcome::Failed(reason), Some(why)) if reason.starts_with("output ") => Outcome::Superseded(why),
            (outcome, _) => outcome,
        };
        match &outcome {
            _ if flags.json => {}
            Outcome::Failed(reason) => println!("FAILED {}: {reason}", case.name),
            Outcome::Unsupported(reason) if flags.all => println!("unsupported {}: {reason}", case.name),
            Outcome::Superseded(why) if flags.all => println!("superseded {}: {why}", case.name),
            Outcome::Passed if flags.all => println!("passed {}", case.name),
            _ => {}
        }
        summary.outcomes.push((case.name, outcome));
    }
    if flags.json {
        println!("{:#}", summary.json(&name));
    } else {
        println!("{summary}");
    }
    Ok(summary.failed() == 0)
}

/// What runs the graphs, and its name.
fn engine(flags: &Flags) -> Result<(Box<dyn Engine>, String)> {
    if flags.host {
        return Ok((Box::new(Host { optimize: !flags.plain }), "the host".to_owned()));
    }
    let device = flags.device.opener()()?;
    let uri = device.info().uri();
    let target = capabilities(device.info()).map_err(|why| anyhow!("{uri}: {why}"))?;
    let target = Some(target).filter(|_| !flags.baseline);
    let engine = OnDevice::new(device, target).with_calls(if flags.table { CALLS } else { 1 });
    Ok((Box::new(engine), uri))
}
