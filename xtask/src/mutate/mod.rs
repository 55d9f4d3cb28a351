//! The check of the tests: faults are put into the code one at a time, and some test has to notice each.
//!
//! Faults are applied in a worktree of the current commit beside the checkout (where tests find what lies beside it, too), with
//! a target folder of their own.

mod faults;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::shell::{self, root, say};

/// Longest time that tests may take; a fault may make them hang.
const LIMIT: Duration = Duration::from_secs(420);
/// Longest time that a build may take.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// What `timeout` ends with when it had to end the program.
const TIMED_OUT: i32 = 124;

/// What to break.
#[derive(Args)]
pub struct Options {
    /// Only faults whose name or file contains one of these.
    #[arg(long = "match", value_delimiter = ',')]
    filter: Vec<String>,
    /// Print the faults and do nothing.
    #[arg(long)]
    list: bool,
    /// Do not run the tests without a fault first.
    #[arg(long)]
    no_baseline: bool,
    /// Target folder of the builds.
    #[arg(long, default_value = "target/mutants")]
    target_dir: PathBuf,
}

/// A fault, and the tests that should notice it: cheap ones first, the rest are not run once one has.
struct Fault {
    /// Its name: where it is, and what.
    name: &'static str,
    /// What goes wrong, in words.
    what: &'static str,
    /// The file that it is put into.
    file: &'static str,
    /// What stands there once.
    from: &'static str,
    /// What is put in its place.
    to: &'static str,
    checks: &'static [Check],
}

/// Something that passes without faults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Tests of a package: its unit tests, or those of one of its test programs, with this in their name.
    Tests { package: &'static str, program: Option<&'static str>, filter: &'static str },
    /// Cases of the conformance program, with these arguments.
    Cases(&'static [&'static str]),
}

impl Fault {
    /// Its file in a checkout, without it and with it.
    fn apply(&self, tree: &Path) -> Result<(String, String)> {
        let sound = fs::read_to_string(tree.join(self.file))
            .with_context(|| format!("fault '{}': {}", self.name, self.file))?;
        let (count, name, file) = (sound.matches(self.from).count(), self.name, self.file);
        ensure!(count == 1, "fault '{name}': what it replaces stands {count} times in {file}; say it anew");
        let broken = sound.replace(self.from, self.to);
        Ok((sound, broken))
    }
}

enum Verdict {
    /// By this check, and the test or case that failed first.
    Caught {
        check: String,
        by: String,
    },
    Missed,
}

/// Runs the checks on each fault; an error when one is not noticed.
pub fn run(options: &Options) -> Result<()> {
    let wanted = |fault: &&Fault| {
        let hit = |text: &String| fault.name.contains(text.as_str()) || fault.file.contains(text.as_str());
        options.filter.is_empty() || options.filter.iter().any(hit)
    };
    let faults: Vec<&Fault> = faults::all().filter(wanted).collect();
    ensure!(!faults.is_empty(), "no fault has such a name; --list shows them");
    if options.list {
        faults.iter().for_each(|fault| println!("{}: {} ({})", fault.name, fault.what, fault.file));
    }
    // A stale fault is told before hours of builds, not after them.
    let stale: Vec<String> =
        faults.iter().filter_map(|fault| fault.apply(root()).err()).map(|e| format!("{e:#}")).collect();
    ensure!(stale.is_empty(), "{}", stale.join("\n"));
    if options.list {
        return Ok(());
    }
    let bench = Bench::new(&root().join(&options.target_dir))?;
    if !options.no_baseline {
        bench.baseline(&faults)?;
    }
    let mut missed = Vec::new();
    println!("\n| fault | what is wrong | noticed by |\n|---|---|---|");
    for fault in &faults {
        let begin = Instant::now();
        let verdict = bench.judge(fault).with_context(|| format!("fault '{}'", fault.name))?;
        let noticed = match verdict {
            Verdict::Caught { check, by } => format!("{check}: `{by}`"),
            Verdict::Missed => {
                missed.push(fault.name);
                "**nothing**".to_owned()
            }
        };
        println!("| {} | {} | {noticed} |", fault.name, fault.what);
        eprintln!("{}: {} s", fault.name, begin.elapsed().as_secs());
    }
    println!("\n{} of {} faults were noticed", faults.len() - missed.len(), faults.len());
    ensure!(missed.is_empty(), "no test noticed: {}", missed.join(", "));
    Ok(())
}

/// A worktree to break.
struct Bench {
    tree: PathBuf,
    target: PathBuf,
}

impl Bench {
    fn new(target: &Path) -> Result<Self> {
        let name = root().file_name().context("the checkout has no name")?.to_string_lossy();
        // Two runs with target folders of their own do not meet.
        let target_name = target.file_name().context("the target folder has no name")?.to_string_lossy();
        let tree = root().with_file_name(format!("{name}-{target_name}"));
        let text = tree.to_string_lossy().into_owned();
        if tree.exists() {
            shell::run(&mut shell::command("git", &["worktree", "remove", "--force", &text]))?;
        }
        shell::run(&mut shell::command("git", &["worktree", "add", "--quiet", "--detach", &text, "HEAD"]))?;
        Ok(Bench { tree, target: target.to_owned() })
    }

    /// All checks of these faults pass as things are.
    fn baseline(&self, faults: &[&Fault]) -> Result<()> {
        say("without a fault");
        let mut done: Vec<Check> = Vec::new();
        for check in faults.iter().flat_map(|fault| fault.checks) {
            if done.contains(check) {
                continue;
            }
            if let Some(by) = self.check(check)? {
                bail!("{} fails without a fault: {by}", check.name());
            }
            done.push(*check);
        }
        Ok(())
    }

    fn judge(&self, fault: &Fault) -> Result<Verdict> {
        let path = self.tree.join(fault.file);
        let (sound, broken) = fault.apply(&self.tree)?;
        fs::write(&path, broken)?;
        let verdict = self.first_failure(fault);
        fs::write(&path, sound)?;
        verdict
    }

    fn first_failure(&self, fault: &Fault) -> Result<Verdict> {
        for check in fault.checks {
            if let Some(by) = self.check(check)? {
                return Ok(Verdict::Caught { check: check.name(), by });
            }
        }
        Ok(Verdict::Missed)
    }

    /// Builds and runs; what failed, if anything did.
    fn check(&self, check: &Check) -> Result<Option<String>> {
        let built = self.cargo(&check.build(), BUILD_LIMIT)?;
        ensure!(built.status.success(), "it does not build:\n{}", String::from_utf8_lossy(&built.stderr));
        let output = self.cargo(&check.run(), LIMIT)?;
        if output.status.success() {
            return Ok(None);
        }
        if output.status.code() == Some(TIMED_OUT) {
            return Ok(Some(format!("no end within {} s", LIMIT.as_secs())));
        }
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Ok(Some(first_failed(&text)))
    }

    fn cargo(&self, args: &[String], limit: Duration) -> Result<Output> {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg(limit.as_secs().to_string());
        command.arg(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())).args(args);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).env("RUST_BACKTRACE", "0");
        command.output().context("cannot start 'timeout', which GNU coreutils have")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let text = self.tree.to_string_lossy().into_owned();
        if let Err(e) = shell::run(&mut shell::command("git", &["worktree", "remove", "--force", &text])) {
            eprintln!("'{text}' is left behind: {e}");
        }
    }
}

impl Check {
    fn name(&self) -> String {
        match self {
            Check::Tests { package, program: Some(program), filter } => {
                let place = format!("{package}, tests/{program} {filter}");
                place.trim_end().to_owned()
            }
            Check::Tests { package, .. } => format!("{package}, unit tests"),
            Check::Cases(args) => format!("conformance {}", args.join(" ")),
        }
    }

    fn build(&self) -> Vec<String> {
        match self {
            Check::Tests { .. } => [self.selection(), owned(&["--no-run"])].concat(),
            Check::Cases(_) => {
                owned(&["build", "--quiet", "-p", "halite-conformance", "--bin", "conformance"])
            }
        }
    }

    fn run(&self) -> Vec<String> {
        match self {
            Check::Tests { filter, .. } => [self.selection(), owned(&["--", filter])].concat(),
            Check::Cases(args) => {
                let run = ["run", "--quiet", "-p", "halite-conformance", "--bin", "conformance", "--"];
                [owned(&run), owned(args)].concat()
            }
        }
    }

    fn selection(&self) -> Vec<String> {
        match self {
            Check::Tests { package, program: Some(program), .. } => {
                owned(&["test", "--quiet", "-p", package, "--test", program])
            }
            Check::Tests { package, .. } => owned(&["test", "--quiet", "-p", package, "--lib"]),
            Check::Cases(_) => Vec::new(),
        }
    }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// The first test or case that failed, as programs tell it.
fn first_failed(text: &str) -> String {
    let test = |line: &str| Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned());
    let case = |line: &str| {
        let (verdict, rest) = line.split_once(' ')?;
        let failed = ["fail", "FAIL", "crash", "timeout", "surprise-pass"].contains(&verdict);
        failed.then(|| rest.split([':', ' ']).next().unwrap_or(rest).to_owned())
    };
    let told = text.lines().find_map(|line| test(line).or_else(|| case(line)));
    let last = || text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output").to_owned();
    told.unwrap_or_else(last)
}
