//! Hostile files by the thousand: makes them, has them read by all readers in processes that may break, and reports which were taken,
//! refused, or did harm. `cargo xtask attack` runs it.
#![forbid(unsafe_code)]

mod campaign;
mod growth;
mod journal;
mod made;
mod measure;
mod noise;
mod soak;
mod stop;
mod worker;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};

use crate::{
    campaign::{Bounds, How, Report},
    journal::Journal,
    made::{KINDS, Kind, Sound},
};

/// Hostile files, and what they cost.
#[derive(Parser)]
struct Cli {
    /// The repository, whose files are damaged.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    root: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Read many files; the exit code is 1 if one did harm.
    Run(Options),
    /// Write the file of a kind and a seed.
    Make {
        /// The kind.
        kind: String,
        /// The seed.
        seed: u64,
        /// Where to write it.
        file: PathBuf,
    },
    /// Random models, sizes, cancellations and errors on one device for long; the exit code is 1 if something was wrong.
    Soak(soak::Options),
    /// Stop work at many points, and tell how soon it ended.
    Stop(stop::Options),
    /// Read the files that standard input names, for a campaign.
    Work {
        /// The device that programs run on; without one, models are compiled only.
        #[arg(long)]
        device: Option<String>,
    },
}

#[derive(clap::Args)]
struct Options {
    /// Files to make, over all kinds.
    #[arg(long, default_value_t = 10_000)]
    cases: usize,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only kinds whose names begin so.
    #[arg(long)]
    kind: Option<String>,
    /// Most seconds of processor time for a file.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Most MiB of memory for a file.
    #[arg(long, default_value_t = 256)]
    memory: u64,
    /// The device that programs run on; without one, models are compiled only, and modules run on `local-sync`.
    #[arg(long)]
    device: Option<String>,
    /// Processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Notes there what each file came to. What it tells of already is not read again: a run that was ended goes on.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Only one of several equal parts of the files, such as 2/8: others are for other machines, and their journals behind each other
    /// are the journal of all.
    #[arg(long, default_value = "1/1", value_parser = part)]
    part: (usize, usize),
    /// Writes the report there, as JSON.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Further files, or folders of them.
    files: Vec<PathBuf>,
}

/// A part of several, as in "2/8".
fn part(text: &str) -> std::result::Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    let known = numbers.filter(|(part, of)| (1..=*of).contains(part));
    known.ok_or_else(|| "a part and how many there are, as in 2/8".to_owned())
}

/// Waits for a time; nobody wakes the thread before.
pub(crate) fn pause(time: Duration) {
    let end = std::time::Instant::now() + time;
    while let Some(left) =
        end.checked_duration_since(std::time::Instant::now()).filter(|left| !left.is_zero())
    {
        std::thread::park_timeout(left);
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Pipelines that take long are told at "info".
    halite_tools::logger::install("halite-attack");
    let ended = match &cli.what {
        What::Run(options) => run(&cli.root, options),
        What::Make { kind, seed, file } => make(&cli.root, kind, *seed, file).map(|()| true),
        What::Soak(options) => soak::run(&cli.root, options),
        What::Stop(options) => stop::run(options).map(|()| true),
        What::Work { device } => worker::serve(&cli.root, device.as_deref()).map(|()| true),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn make(root: &Path, kind: &str, seed: u64, file: &Path) -> Result<()> {
    let names = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    let kind =
        Kind::named(kind).with_context(|| format!("there is no kind '{kind}'; there are {}", names()))?;
    let bytes = kind.make(seed, &Sound::of_repository(root)).context("there is no sound file to damage")?;
    std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

/// Whether nothing did harm.
fn run(root: &Path, options: &Options) -> Result<bool> {
    let sound = Sound::of_repository(root);
    let wanted = |kind: &&Kind| options.kind.as_deref().is_none_or(|prefix| kind.name.starts_with(prefix));
    let (kinds, missing): (Vec<&Kind>, Vec<&Kind>) =
        KINDS.iter().filter(wanted).partition(|kind| kind.is_there(&sound));
    missing
        .iter()
        .for_each(|kind| println!("SKIPPED: {}: there is no sound .{} file here", kind.name, kind.extension));
    if kinds.is_empty() && options.files.is_empty() {
        bail!("there is nothing to read: no kind is called so, and no files are given");
    }
    let cases = if kinds.is_empty() { 0 } else { options.cases };
    let name = |index: usize| format!("{} {}", kinds[index % kinds.len()].name, options.seed + index as u64);
    let mut files: Vec<String> = (0..cases).map(name).collect();
    for path in &options.files {
        add_files(path, &mut files)?;
    }
    let (part, of) = options.part;
    let files: Vec<String> = files.into_iter().skip(part - 1).step_by(of).collect();
    let journal = options.journal.as_deref().map(Journal::open).transpose()?;
    let bounds = Bounds { time: Duration::from_secs_f64(options.seconds), memory: options.memory << 20 };
    let how = How { root: root.to_owned(), device: options.device.clone(), jobs: options.jobs, bounds };
    let report = campaign::run(&files, &how, journal.as_ref())?;
    if let Some(path) = &options.report {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    print(&report);
    Ok(report.findings.is_empty())
}

/// A file, or those in a folder whose form is known.
fn add_files(path: &Path, files: &mut Vec<String>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.display().to_string());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("listing {}", path.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() || KINDS.iter().any(|kind| kind.extension == extension) {
            add_files(&path, files)?;
        }
    }
    Ok(())
}

fn print(report: &Report) {
    println!(
        "{:<22} {:>7} {:>7} {:>11} {:>9} {:>9}",
        "kind", "files", "taken", "over budget", "most ms", "most MiB"
    );
    for (kind, tally) in &report.kinds {
        println!(
            "{kind:<22} {:>7} {:>7} {:>11} {:>9} {:>9}",
            tally.files,
            tally.taken,
            tally.over_budget,
            tally.most_milliseconds,
            tally.most_memory >> 20
        );
    }
    let files: usize = report.kinds.values().map(|tally| tally.files).sum();
    println!("{files} files, {} of them did harm", report.findings.len());
    for finding in &report.findings {
        println!("  {}: {}", finding.file, finding.what);
    }
}
