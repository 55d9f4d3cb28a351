//! Damaged modules against the whole stack: hundreds of broken variants of sound modules, each run by `run-module` in
//! a process of its own. Whatever is in a file, the tool works or says in words what is wrong; it does not crash, does
//! not hang, and does not take memory that the file does not justify.
//!
//! `HALITE_MALFORMED_CASES` sets the number of cases, `HALITE_MALFORMED_SEED` gives other ones,
//! `HALITE_MALFORMED_KIND` keeps one kind of damage, `HALITE_MALFORMED_DEVICE` names the device,
//! `HALITE_MALFORMED_MODULE` keeps one module, `HALITE_MALFORMED_TOOL` names another run-module, `HALITE_MALFORMED_VERBOSE` prints each refusal. Modules that end
//! badly stay in the test's folder, and the output says how to run them.

mod base;
mod child;
#[allow(dead_code, reason = "each test crate uses a part of what tests share")]
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod noise;
mod structure;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use base::Base;
use child::Outcome;
use damage::Kind;
use noise::Noise;

/// Cases unless the environment says otherwise: under a minute on two cores.
const THOROUGH_CASES: u64 = 432;
/// In the short form, which `HALITE_TEST_PART` deals out to several drivers.
const SHORT_CASES: u64 = 144;
/// Processes at a time; each compiles its kernels on threads of its own.
const PARALLEL: usize = 2;

/// One damaged module.
struct Case {
    kind: Kind,
    base: usize,
    seed: u64,
}

/// Counts of one kind of damage.
#[derive(Default)]
struct Tally {
    ran: usize,
    refused: usize,
    out_of_time: usize,
    bad: usize,
}

#[derive(Default)]
struct Results {
    tallies: BTreeMap<Kind, Tally>,
    bad: Vec<String>,
}

#[test]
fn damaged_modules_are_refused_in_words() {
    if !has_device() {
        eprintln!("SKIPPED: damaged modules on a device: there is no Vulkan device");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("malformed");
    fs::create_dir_all(&folder).expect("the test folder can be made");
    let only = std::env::var("HALITE_MALFORMED_MODULE").ok();
    let wanted = base::all().into_iter().filter(|base| only.as_ref().is_none_or(|name| *name == base.name));
    let bases: Vec<Base> = wanted.filter(|base| runs(base, &folder)).collect();
    assert!(!bases.is_empty(), "no module is left to damage");
    let results = run_all(&bases, &cases(bases.len()), &folder);
    report(&results);
    assert!(
        results.bad.is_empty(),
        "{} damaged modules end badly:\n{}",
        results.bad.len(),
        results.bad.join("\n")
    );
}

/// Whether a sound module runs here. It may ask for what the device lacks, but it must not end badly.
fn runs(base: &Base, folder: &Path) -> bool {
    let path = folder.join(format!("{}-sound-{}.vmfb", base.name, std::process::id()));
    fs::write(&path, &base.file).expect("the test folder can be written");
    let outcome = child::run(&path, &base.args, child::SOUND);
    fs::remove_file(&path).expect("it was just written");
    match outcome {
        Outcome::Ran => true,
        Outcome::Refused(why) if base.demanding => {
            eprintln!("SKIPPED: module {}: this device does not run it: {why}", base.name);
            false
        }
        other => panic!("{} must run before it is damaged, but {other:?}", base.name),
    }
}

fn has_device() -> bool {
    let list =
        Command::new(child::tool()).arg("--list_devices=vulkan").output().expect("run-module can be started");
    list.stdout.iter().any(|b| !b.is_ascii_whitespace())
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok().map(|v| v.parse().expect("the variable holds a number"));
    value.unwrap_or(default)
}

/// Cases in turn over kinds and modules.
fn cases(bases: usize) -> Vec<Case> {
    let only = std::env::var("HALITE_MALFORMED_KIND").ok();
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|k| only.as_ref().is_none_or(|name| format!("{k:?}").eq_ignore_ascii_case(name)))
        .collect();
    assert!(!kinds.is_empty(), "no kind of damage has that name; there are {:?}", Kind::ALL);
    let mut noise = Noise::new(number("HALITE_MALFORMED_SEED", 1));
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let usual = if is_thorough { THOROUGH_CASES } else { SHORT_CASES };
    let count = number("HALITE_MALFORMED_CASES", usual) as usize;
    let all: Vec<_> = (0..count)
        .map(|n| Case { kind: kinds[n % kinds.len()], base: noise.below(bases), seed: noise.next() })
        .collect();
    let (place, of) = part();
    all.into_iter().enumerate().filter(|(n, _)| n / kinds.len() % of == place).map(|(_, case)| case).collect()
}

/// Which of how many parts of the cases is to run: `HALITE_TEST_PART=2/3` is the second of three.
fn part() -> (usize, usize) {
    let Ok(text) = std::env::var("HALITE_TEST_PART") else { return (0, 1) };
    let numbers = text.split_once('/').and_then(|(place, of)| Some((place.parse().ok()?, of.parse().ok()?)));
    let (place, of): (usize, usize) = numbers.expect("HALITE_TEST_PART is told as 2/3");
    assert!((1..=of).contains(&place), "there is no part {text}");
    (place - 1, of)
}

fn run_all(bases: &[Base], cases: &[Case], folder: &Path) -> Results {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::default()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (name, outcome, path) = run_case(bases, case, folder);
                    results.lock().expect("no case panics").add(case.kind, &name, &outcome, &path);
                }
            });
        }
    });
    results.into_inner().expect("no case panics")
}

/// Damages and runs. The file stays when it ends badly.
fn run_case(bases: &[Base], case: &Case, folder: &Path) -> (String, Outcome, PathBuf) {
    let mut noise = Noise::new(case.seed);
    // Not every module has every part; the next one that can be damaged this way is taken.
    let (base, file) = (0..bases.len() * 4)
        .map(|n| &bases[(case.base + n) % bases.len()])
        .find_map(|base| damage::apply(case.kind, base, &mut noise).map(|file| (base, file)))
        .expect("a module with such a part is among those that are left");
    let name = format!("{:?}-{}-{:016x}", case.kind, base.name, case.seed);
    let path = folder.join(format!("{name}-{}.vmfb", std::process::id()));
    fs::write(&path, file).expect("the test folder can be written");
    let outcome = child::run(&path, &base.args, child::DAMAGED);
    if matches!(outcome, Outcome::Ran | Outcome::Refused(_) | Outcome::OutOfTime) {
        fs::remove_file(&path).expect("it was just written");
    }
    (name, outcome, path)
}

impl Results {
    fn add(&mut self, kind: Kind, name: &str, outcome: &Outcome, path: &Path) {
        let tally = self.tallies.entry(kind).or_default();
        match outcome {
            Outcome::Ran => tally.ran += 1,
            Outcome::Refused(message) => {
                tally.refused += 1;
                if std::env::var_os("HALITE_MALFORMED_VERBOSE").is_some() {
                    println!("{name}: {message}");
                }
            }
            Outcome::OutOfTime => tally.out_of_time += 1,
            bad => {
                tally.bad += 1;
                self.bad.push(format!("{name}: {bad:?}\n    run-module --module={}", path.display()));
            }
        }
    }
}

fn report(results: &Results) {
    println!("{:<22}{:>6}{:>9}{:>13}{:>5}", "damage", "ran", "refused", "out of time", "bad");
    for (kind, t) in &results.tallies {
        println!("{:<22}{:>6}{:>9}{:>13}{:>5}", format!("{kind:?}"), t.ran, t.refused, t.out_of_time, t.bad);
    }
}
