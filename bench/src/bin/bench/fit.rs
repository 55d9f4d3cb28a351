//! The command `fit`: the constants of the cost model that fit measured times best.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use halite_bench::kernels::{Data, Fit, Fitted};
use serde_json::Value as Json;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// Files that `bench kernels --json` wrote on one device.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Set of constants to fit, such as PRODUCTS. May be repeated. Default: all that there are times for
    #[arg(long = "set", value_name = "NAME")]
    sets: Vec<String>,
    /// Into how many parts shapes are divided, each of which is held out of a fit once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100))]
    folds: u32,
    /// Registers beside sums and tiles that are tried, such as 40,60,90; they count in steps. Default: those of the constants that are there
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    registers: Vec<f64>,
    /// Constants that stay as they are, such as launch,alone: those of which these shapes say nothing
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    keep: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Fits and prints.
pub fn run(flags: &Flags) -> Result<bool> {
    ensure!(flags.registers.iter().all(|n| (1.0..=255.0).contains(n)), "--registers: from 1 to 255");
    let read = |file: &PathBuf| -> Result<Json> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    };
    let data = Data::read(&flags.files.iter().map(read).collect::<Result<Vec<_>>>()?)?;
    if data.differing > 0 {
        eprintln!(
            "{} times were measured when estimates were others: by other constants, or another plan",
            data.differing
        );
    }
    let there = data.sets();
    ensure!(!there.is_empty(), "no variant in these files has an estimate whose constants are fitted");
    let all = || there.iter().map(|(name, _)| (*name).to_owned()).collect();
    let sets: Vec<String> = if flags.sets.is_empty() { all() } else { flags.sets.clone() };
    let mut fitted = Vec::new();
    for set in sets {
        let fit = Fit {
            set: set.clone(),
            folds: flags.folds as usize,
            registers: flags.registers.clone(),
            keep: flags.keep.clone(),
        };
        match fit.run(&data) {
            Ok(one) => fitted.push(one),
            // Of sets that nobody named those with few shapes are left out.
            Err(why) if flags.sets.is_empty() => eprintln!("{set}: {why}"),
            Err(why) => return Err(why.into()),
        }
    }
    if flags.json {
        println!("{:#}", Json::Array(fitted.iter().map(Fitted::json).collect()));
    } else {
        fitted.iter().for_each(|one| println!("{}", one.text()));
    }
    Ok(!fitted.is_empty())
}
