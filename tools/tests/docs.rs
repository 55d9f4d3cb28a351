//! Documents for users against the tools they describe: flags and options that are named exist, and all options of
//! the Vulkan driver are in its table.

use crate::common;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Pages about other programs: the runner of conformance, chores.
const OF_OTHERS: &[&str] = &[
    "tutorials/getting-started-c.md",
    "tutorials/python.md",
    "reference/c-packages.md",
    "how-to/android.md",
    "how-to/other-systems.md",
    "how-to/testing.md",
    "how-to/packages.md",
    "how-to/test-a-device.md",
    "reference/conformance.md",
    "reference/conformance-report.md",
    "reference/trust.md",
    // The tool that it is about is built with the feature `serve`.
    #[cfg(not(feature = "serve"))]
    "reference/serve.md",
];
const TOOLS: &[&str] = &[
    "run",
    "generate",
    #[cfg(feature = "serve")]
    "serve",
    "embed",
    "perplexity",
    "bench",
    "check",
    "compile",
    "dump",
    "kernels",
    "devices",
    "cache",
    "links",
    "man",
    "completions",
];
/// Flags of other programs and of cargo, and of IREE's tools in examples of what is refused or ignored.
const FOREIGN: &[&str] = &[
    "--plugins",
    "--share",
    "--within",
    "--against-iree",
    "--only",
    "--check",
    "--bin",
    "--features",
    "--lib",
    "--host",
    "--tests",
    "--keep",
    "--no-deps",
    "--drivers",
    "--clock",
    "--iree-",
    "--example",
    "--budget",
    "--folds",
    "--force",
    "--patience",
    "--random",
    "--registers",
    "--dry-run",
    "--match",
    "--op",
    "--option",
    "--flagfile",
    "--trace_execution",
    "--task_topology_group_count",
    "--no-default-features",
    "--release",
    "--suite",
    "--validate",
    "--filter",
    "--to",
    "--types",
    "--open",
    "--path",
    "--proto",
    "--scope",
    "--tlsv1",
    "--jobs",
    "--seconds",
    "--caches",
    "--set",
    "--user",
    "--variant",
];

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn document(name: &str) -> String {
    let path = docs().join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Pages of one kind, as `how-to/embedding.md`.
fn pages(kind: &str) -> Vec<String> {
    let entries = fs::read_dir(docs().join(kind)).expect("docs has a folder for each kind of page");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    names.map(|name| format!("{kind}/{}", name.to_string_lossy())).collect()
}

/// Everything that begins like a long flag.
fn flags(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let starts =
        text.match_indices("--").filter(|(at, _)| !text[..*at].ends_with(|c: char| is_name(c) || c == '|'));
    let names = starts.map(|(at, _)| text[at..].chars().take_while(|c| is_name(*c)).collect::<String>());
    names.filter(|name| name.len() > 2 && !name.starts_with("---")).collect()
}

#[test]
fn flags_in_documents_exist() {
    let helps: Vec<String> =
        TOOLS.iter().map(|tool| common::run("halite", &[tool, "--help"]).stdout.replace('-', "_")).collect();
    let mut checked = 0;
    let pages = ["tutorials", "how-to", "reference"].iter().flat_map(|kind| pages(kind));
    for name in pages.filter(|name| !OF_OTHERS.contains(&name.as_str())) {
        for flag in flags(&document(&name)) {
            if FOREIGN.iter().any(|f| flag.starts_with(f)) {
                continue;
            }
            let canonical = flag.replace('-', "_");
            let known = helps.iter().any(|help| {
                help.match_indices(&canonical).any(|(at, _)| {
                    !help[at + canonical.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                })
            });
            assert!(known, "{name} names {flag}, which no tool has");
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} flags were found: the search is broken");
}

/// The table of a document says what the driver says of its options, and has no others.
#[cfg(feature = "static-drivers")]
fn check_options(name: &str, options: &[(&str, &str)]) {
    let text = document(name);
    for (option, meaning) in options {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{option}` |")));
        let row = row.unwrap_or_else(|| panic!("option {option} is missing in {name}"));
        let meaning = meaning.rsplit_once("): ").map_or(*meaning, |(_, rest)| rest);
        let meaning = meaning.split_once(": ").map_or(meaning, |(_, rest)| rest);
        assert!(row.contains(meaning), "option {option} is now: {meaning}; the table says: {row}");
    }
    let rows = text.lines().filter(|l| l.starts_with("| `") && l.matches('|').count() >= 5).count();
    assert!(rows >= options.len());
}

#[cfg(feature = "static-drivers")]
#[test]
fn every_option_of_a_driver_is_in_its_table() {
    let drivers = halite::Drivers::linked();
    let options = |name: &str| drivers.registry().driver(name).expect("it is linked").options().to_vec();
    check_options("reference/vulkan-driver.md", &options("vulkan"));
    check_options("reference/cpu-driver.md", &options("local-task"));
    check_options("reference/cpu-driver.md", &options("local-sync"));
}

#[test]
fn the_index_names_every_document() {
    let index = document("README.md");
    let pages: Vec<_> =
        ["tutorials", "how-to", "reference", "results"].iter().flat_map(|kind| pages(kind)).collect();
    assert!(pages.len() > 20, "only {} pages were found: the search is broken", pages.len());
    for name in pages {
        assert!(index.contains(&format!("]({name})")), "{name} is not in the index");
    }
}

/// The tests that the page on trust names are there.
#[test]
fn tests_that_hold_findings_exist() {
    let text = document("reference/trust.md");
    let (mut file, mut tests) = (String::new(), 0);
    // Every second part stands between backticks: a file, then tests in it.
    let rows = text.lines().filter(|line| line.starts_with("| ")).filter_map(|row| row.rsplit('|').nth(1));
    for name in rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        if name.ends_with(".rs") || name.ends_with(".py") {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
            file = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        } else {
            assert!(file.contains(&format!("fn {name}()")), "the test {name} is not there");
            tests += 1;
        }
    }
    assert!(tests > 25, "only {tests} tests were found: the search is broken");
}
