//! The command `replay`: a corpus of compiled modules on a device, and what differs from the expectations.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use halite_conformance::{corpus, expectations::Expectations, replay};
use halite_testing::flags::DeviceFlags;

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// Folder of the corpus; by default the shared one beside the checkout.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Sets to replay; `.` for a corpus whose manifest lies at its root.
    #[arg(long, value_delimiter = ',', default_value = "small,models,vm_ops,bad")]
    sets: Vec<String>,
    /// Only programs whose name contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
    #[command(flatten)]
    device: DeviceFlags,
    /// Folder of expectation files; without it every failure counts.
    #[arg(long)]
    expectations: Option<PathBuf>,
    /// Print every program, not only surprises.
    #[arg(long)]
    all: bool,
}

/// What was counted so far.
#[derive(Default)]
struct Counts {
    programs: usize,
    calls: usize,
    passed: usize,
    surprises: usize,
}

/// Replays and prints; whether there was no surprise.
pub fn run(flags: &Flags) -> Result<bool> {
    let root = flags.corpus.clone().or_else(corpus::shared).context("no corpus: give --corpus=FOLDER")?;
    let device = flags.device.opener()()?;
    println!("{}", flags.device.headline(device.info()));
    let expectations = match &flags.expectations {
        Some(folder) => {
            Expectations::for_device(folder, &format!("{} {}", device.info().driver, device.info().name))?
        }
        None => Expectations::default(),
    };
    let mut counts = Counts::default();
    for set in &flags.sets {
        for program in corpus::programs(&root, set)?.iter().filter(|p| p.name.contains(&flags.filter)) {
            let verdicts = replay::run(&root, program, &device);
            let complaint = expectations.complaint(&program.name, &verdicts).filter(|_| set != "bad");
            counts.add(&verdicts, complaint.is_some());
            if let Some(complaint) = complaint {
                println!("{}: {complaint}", program.name);
            } else if flags.all {
                let worst = verdicts.iter().find(|v| !v.passed());
                println!("{}: {}", program.name, worst.map_or("pass".to_owned(), ToString::to_string));
            }
        }
    }
    let Counts { programs, calls, passed, surprises } = counts;
    println!(
        "{programs} programs, {calls} calls: {passed} passed, {} failed; {surprises} surprises",
        calls - passed
    );
    Ok(surprises == 0)
}

impl Counts {
    fn add(&mut self, verdicts: &[replay::Verdict], surprise: bool) {
        self.programs += 1;
        self.calls += verdicts.len();
        self.passed += verdicts.iter().filter(|v| v.passed()).count();
        self.surprises += usize::from(surprise);
    }
}
