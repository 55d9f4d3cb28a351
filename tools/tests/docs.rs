//! Documents for users against the tools they describe: flags and options that are named exist, and all options of
//! the Vulkan driver are in its table.

use std::{fs, path::PathBuf, process::Command};

const DOCUMENTS: &[&str] = &[
    "getting-started.md",
    "getting-started-library.md",
    "run-module.md",
    "benchmark-module.md",
    "compile-module.md",
    "dump-module.md",
    "list-devices.md",
    "parameters.md",
    "vulkan-driver.md",
    "cpu-driver.md",
    "drivers.md",
    "several-devices.md",
    "subgroups.md",
    "embedding.md",
    "kernels.md",
];
const TOOLS: &[&str] = &[
    env!("CARGO_BIN_EXE_run-module"),
    env!("CARGO_BIN_EXE_benchmark-module"),
    env!("CARGO_BIN_EXE_compile-module"),
    env!("CARGO_BIN_EXE_dump-module"),
    env!("CARGO_BIN_EXE_kernels"),
    env!("CARGO_BIN_EXE_list-devices"),
];
/// Flags of other programs and of cargo, and of IREE's tools in examples of what is refused or ignored.
const FOREIGN: &[&str] = &[
    "--against-iree",
    "--clock",
    "--iree-",
    "--example",
    "--budget",
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
    "--open",
    "--path",
    "--proto",
    "--scope",
    "--tlsv1",
    "--user",
];

fn document(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
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
    let helps: Vec<String> = TOOLS
        .iter()
        .map(|tool| Command::new(tool).arg("--help").output().expect("the tool can be started").stdout)
        .map(|text| String::from_utf8(text).expect("help is text").replace('-', "_"))
        .collect();
    let mut checked = 0;
    for name in DOCUMENTS {
        for flag in flags(&document(name)) {
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
    use halite_hal::Driver as _;
    check_options("vulkan-driver.md", halite_vulkan::options::OPTIONS);
    check_options("cpu-driver.md", halite_local::LocalDriver::TASK.options());
    check_options("cpu-driver.md", halite_local::LocalDriver::SYNC.options());
}

#[test]
fn the_index_names_every_document() {
    let index = document("README.md");
    for name in DOCUMENTS {
        assert!(index.contains(&format!("]({name})")), "{name} is not in the index");
    }
}
