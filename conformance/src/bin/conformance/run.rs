//! The command `run`: suites of cases on devices, and reports of what came of them.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use halite_conformance::{
    reports::{self, CaseReport, DeviceReport, Holding, Page, RunReport, SCHEMA, Tool},
    run::{Isolation, Journal, Manner, Pattern, Plan, Prepared, Progress, Shard},
    suites::Settings,
};
use halite_tools::logger;

use crate::worker::CaseFlags;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// Device URI; one flag for each device.
    #[arg(long = "device", value_name = "URI", default_value = "vulkan")]
    devices: Vec<String>,
    #[command(flatten)]
    cases: CaseFlags,
    /// Only cases with this in their name; with `*` in it, names that fit as a whole.
    #[arg(long = "filter", visible_alias = "match", value_name = "PATTERN")]
    filter: Vec<String>,
    /// Only the case of this name.
    #[arg(long = "case", value_name = "NAME")]
    names: Vec<String>,
    /// Only the i-th of n parts of these cases.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Processes that run cases at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Run cases in processes of their own, so that a crash costs one case: many in one until one kills it, or each in one.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "shared")]
    isolate: Option<Isolate>,
    /// Begin no further case after so many seconds; what was not run is missing in the report.
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Keep results in this file as they come, and do not run again what is in it.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Folder of expectation files; by default those that are built in.
    #[arg(long, value_name = "DIR")]
    expectations: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
    /// Print the names of the cases and run none.
    #[arg(long)]
    list: bool,
    /// Print every case, not only those that are wrong.
    #[arg(long)]
    all: bool,
}

/// Which processes run cases.
#[derive(Clone, Copy, ValueEnum)]
enum Isolate {
    /// One for many cases, until one kills it.
    Shared,
    /// One for each case.
    Each,
}

/// Runs and prints; whether nothing is wrong.
pub fn run(flags: &Flags) -> Result<bool> {
    let sources = flags.cases.sources()?;
    if flags.list {
        return list(flags, &sources.settings);
    }
    let mut journal = match &flags.resume {
        Some(path) => {
            let cases = &flags.cases;
            Some(Journal::open(path, cases.seed, cases.rounds, cases.validate())?)
        }
        None => None,
    };
    let end = flags.budget.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let mut devices = Vec::new();
    for uri in &flags.devices {
        let plan = plan(flags, uri, &sources.settings);
        let prepared = plan.prepare()?;
        devices.push(device(flags, &prepared, journal.as_mut(), end)?);
    }
    let report = RunReport { schema: SCHEMA.to_owned(), tool: Tool::this(), devices };
    flags.files.write(&report)?;
    Ok(report.devices.iter().all(DeviceReport::is_good))
}

fn list(flags: &Flags, settings: &Settings) -> Result<bool> {
    for uri in &flags.devices {
        let plan = plan(flags, uri, settings);
        for case in plan.prepare()?.cases() {
            println!("{}", case.name);
        }
    }
    Ok(true)
}

fn plan(flags: &Flags, uri: &str, settings: &Settings) -> Plan {
    let parts = flags.filter.iter().map(|text| Pattern::part(text));
    let names = flags.names.iter().map(|name| Pattern::name(name));
    Plan {
        target: flags.cases.target(uri),
        suites: flags.cases.suites.clone(),
        settings: settings.clone(),
        filter: parts.chain(names).collect(),
        shard: flags.shard,
        expectations: flags.expectations.clone(),
    }
}

/// Runs the cases on one device.
fn device(
    flags: &Flags,
    prepared: &Prepared<'_>,
    journal: Option<&mut Journal>,
    end: Option<Instant>,
) -> Result<DeviceReport> {
    let device = prepared.device();
    let cases = prepared.cases();
    println!("# {} ({}): {} cases", device.uri, device.name, cases.len());
    for (suite, why) in prepared.left_out() {
        println!("SKIPPED: {suite}: {why}");
    }
    let isolation = match flags.isolate {
        None => Isolation::None,
        Some(Isolate::Shared) => Isolation::Shared,
        Some(Isolate::Each) => Isolation::Each,
    };
    let manner = Manner {
        limit: flags.cases.limit(),
        end,
        jobs: flags.jobs,
        isolation,
        program: std::env::current_exe().context("finding this program, to start it again")?,
        watch: Some(Arc::new(logger::take_validation_texts)),
    };
    let mut progress = Progress::new(cases.len());
    let report = prepared.run(&manner, journal, &mut |case| {
        if flags.all || case.status.is_bad() {
            progress.clear();
            println!("{}", line(case));
        }
        progress.step(case.status.is_bad());
    })?;
    progress.clear();
    if report.cases.len() < cases.len() {
        println!("note: the time is over: {} of {} cases were run", report.cases.len(), cases.len());
    }
    tell(&report);
    Ok(report)
}

fn line(case: &CaseReport) -> String {
    let head = format!("{} {}", case.status, case.name);
    match &case.reason {
        Some(reason) => format!("{head}: {reason}"),
        None => format!("{head} ({:.1} ms)", case.seconds * 1e3),
    }
}

/// What came of a device, in a few lines.
fn tell(report: &DeviceReport) {
    for suite in report.suites.iter().filter(|suite| suite.selected > 0) {
        let cases = report.cases.iter().filter(|case| case.suite() == suite.name);
        println!("{}: {}", suite.name, reports::Counts::of(cases));
    }
    for expectation in &report.unused_expectations {
        println!("note: no case has the name of the expectation '{expectation}'");
    }
    for level in &report.levels {
        match level.holding {
            Holding::Holds => println!("level {}: holds ({} cases)", level.name, level.cases),
            Holding::Unknown => {}
            Holding::Lacks => {
                println!("level {}: no: {}", level.name, level.why.first().map_or("", String::as_str));
            }
        }
    }
    let known = report.cases.iter().find(|case| case.status.is_bad());
    if let Some(case) = known {
        println!("again: {}", report.repeat(case));
    }
    println!("{} in {:.1} s", report.counts, report.seconds);
}

/// The files that reports are written to.
#[derive(Args)]
pub struct Files {
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write it as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write it as one HTML page, which compares the devices.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measurements of `bench kernels --json`, which the HTML page plots.
    #[arg(long, value_name = "FILE")]
    bench: Vec<PathBuf>,
    /// Write it as tables for a text document.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Files {
    /// Writes them.
    pub fn write(&self, report: &RunReport) -> Result<()> {
        let save = |path: &Option<PathBuf>, text: &dyn Fn() -> Result<String>| match path {
            Some(path) => fs::write(path, text()?).with_context(|| format!("writing {}", path.display())),
            None => Ok(()),
        };
        save(&self.json, &|| Ok(serde_json::to_string(report)? + "\n"))?;
        save(&self.junit, &|| Ok(reports::junit(report)))?;
        save(&self.markdown, &|| Ok(reports::markdown(report)))?;
        save(&self.html, &|| {
            let mut page = Page::default();
            for path in &self.bench {
                let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
                page.add_bench(&text).with_context(|| format!("in {}", path.display()))?;
            }
            Ok(reports::html(report, &page))
        })
    }
}
