//! The command `report`: reports of runs joined into one.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use halite_conformance::reports::{self, RunReport, SCHEMA};

use crate::run::Files;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// JSON reports of `run`: of several devices, or of parts of a run.
    #[arg(required = true, value_name = "FILE")]
    reports: Vec<PathBuf>,
    #[command(flatten)]
    files: Files,
}

/// Joins, writes and prints; whether nothing is wrong.
pub fn run(flags: &Flags) -> Result<bool> {
    let mut all = Vec::new();
    for path in &flags.reports {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let report: RunReport = serde_json::from_str(&text)
            .with_context(|| format!("{} is no report of 'conformance run --json'", path.display()))?;
        ensure!(
            report.schema == SCHEMA,
            "{} has the schema '{}', this program reads '{SCHEMA}'",
            path.display(),
            report.schema
        );
        all.push(report);
    }
    let report = reports::merge(all);
    for device in &report.devices {
        println!("{} ({}): {}", device.device.uri, device.device.name, device.counts);
    }
    flags.files.write(&report)?;
    Ok(report.devices.iter().all(reports::DeviceReport::is_good))
}
