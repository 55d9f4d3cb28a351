//! Hostile files, broken plug-ins and faults as one run: the campaign of `attack/`, then the tests that attack what is no file.

use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    shell::{self, cargo, repo, root, say},
    test::EVERYTHING,
};

/// Tests that attack: a package, and the tests in it.
const TESTS: [(&str, &[&str]); 5] = [
    ("halite-runtime", &["untrusted"]),
    ("halite", &["sessions", "faults"]),
    ("halite-vulkan", &["parts", "loss", "shortage"]),
    ("halite-plugin", &["bad_plugins", "plugin_faults"]),
    ("halite-tools", &["plugins", "malformed", "faults"]),
];
/// Files of the short form.
const SHORT: usize = 240;
/// How much longer a file may take in code that is not optimized.
const UNOPTIMIZED: f64 = 8.0;
/// Seconds of processor time, and MiB of memory, that a file may take.
const BOUNDS: (f64, u64) = (2.0, 256);

/// What to attack.
#[derive(Args)]
pub struct Options {
    /// Files to make.
    #[arg(long, default_value_t = 10_000)]
    cases: usize,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A few hundred files, and no tests: what continuous integration takes.
    #[arg(long)]
    short: bool,
    /// Devices to run what was compiled on; may be given several times. The first run is without one.
    #[arg(long)]
    device: Vec<String>,
    /// Builds without optimization, and allows eight times as long.
    #[arg(long)]
    debug: bool,
    /// Goes on with a run that was ended, with the same options: what it told of is not read again.
    #[arg(long)]
    resume: bool,
    /// A folder for the reports.
    #[arg(long, default_value = "target/attack")]
    reports: std::path::PathBuf,
}

/// The short form.
pub fn short() -> Result<()> {
    let reports = "target/attack".into();
    run(&Options { cases: 0, seed: 1, short: true, device: Vec::new(), debug: true, resume: false, reports })
}

/// Unpacks sound files that are damaged then; those that the repository has itself need nothing.
fn unpack_seeds() -> Result<()> {
    let (archive, to) =
        (root().join("../shared/corpus/vgf/ops.tar.xz"), root().join("target/attack/seeds/vgf"));
    if to.is_dir() {
        return Ok(());
    }
    if !archive.is_file() {
        say(&format!("SKIPPED: VGF files are not damaged: {} is not here", archive.display()));
        return Ok(());
    }
    std::fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
    let (archive, folder) = (archive.display().to_string(), to.display().to_string());
    shell::run(&mut shell::command("tar", &["-xJf", &archive, "-C", &folder])).inspect_err(|_| {
        // Half of them would be taken for all the next time.
        _ = std::fs::remove_dir_all(&to);
    })
}

/// The program that attacks. For the short form it is built as the tests are, with which it is there already: by itself it has other
/// features, and so all of the engine is compiled once more.
fn attacker(options: &Options, debug: bool) -> Result<Command> {
    const PROGRAM: &str = "halite-attack";
    if options.short {
        shell::run(&mut cargo(&EVERYTHING))?;
        let path = repo("target/debug").join(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
        return Ok(Command::new(path));
    }
    let mut command = cargo(&["run", "--package", PROGRAM]);
    if !debug {
        command.arg("--release");
    }
    command.arg("--");
    Ok(command)
}

/// Attacks: all devices and tests, also behind one that failed. Fails if anything did harm.
pub fn run(options: &Options) -> Result<()> {
    let mut harm = campaign(options)?;
    for (package, tests) in TESTS.iter().filter(|_| !options.short) {
        say(&format!("tests that attack: {package}"));
        let tests = tests.iter().flat_map(|test| ["--test", test]);
        let mut command = cargo(&["test", "--package", package, "--no-fail-fast"]);
        if let Err(error) = shell::run(command.env("HALITE_TEST_THOROUGH", "1").args(tests)) {
            say(&format!("{error}"));
            harm.push(format!("tests of {package}"));
        }
    }
    if harm.is_empty() {
        return Ok(());
    }
    bail!("these failed: {}", harm.join("; "))
}

/// The hostile files, without a device and on each: where some did harm.
fn campaign(options: &Options) -> Result<Vec<String>> {
    let debug = options.debug || options.short;
    let mut harm = Vec::new();
    let reports = root().join(&options.reports);
    std::fs::create_dir_all(&reports).with_context(|| format!("making {}", reports.display()))?;
    let corpus = root().join("../shared/corpus/attacks");
    unpack_seeds()?;
    let runs = std::iter::once(None).chain(options.device.iter().map(Some));
    for (index, device) in runs.enumerate() {
        say(&format!("hostile files, {}", device.map_or("compiled only", |device| device)));
        let mut command = attacker(options, debug)?;
        let (seconds, memory) = BOUNDS;
        let seconds = if debug { seconds * UNOPTIMIZED } else { seconds };
        let cases = if options.short { SHORT } else { options.cases };
        command.arg("run");
        command.args([format!("--cases={cases}"), format!("--seed={}", options.seed)]);
        command.args([format!("--seconds={seconds}"), format!("--memory={memory}")]);
        command.arg(format!("--report={}", reports.join(format!("run-{index}.json")).display()));
        let journal = reports.join(format!("run-{index}.jsonl"));
        if !options.resume && journal.exists() {
            std::fs::remove_file(&journal).with_context(|| format!("removing {}", journal.display()))?;
        }
        command.arg(format!("--journal={}", journal.display()));
        command.args(device.map(|device| format!("--device={device}")));
        if corpus.is_dir() {
            command.arg(&corpus);
        } else {
            say(&format!("SKIPPED: the files of {}: they are not here", corpus.display()));
        }
        if let Err(error) = shell::run(&mut command) {
            say(&format!("{error}"));
            let place = device.map_or("compiled only", |device| device);
            let write = "write one with 'halite-attack make'";
            harm.push(format!("files, {place} (see {}; {write})", reports.display()));
        }
    }
    Ok(harm)
}
