//! Checks that crates depend on each other as the table of ARCHITECTURE.md says, and not otherwise.

use std::collections::{BTreeMap, BTreeSet};

use super::{Package, packages, root};

const HEAD: &str = "| folder | crate | owns | depends on |";

/// A row of the table.
struct Row<'a> {
    /// `drivers/vulkan`; with `*` for several.
    folder: &'a str,
    /// What it depends on, in the table's words.
    arrows: Vec<&'a str>,
}

/// The rows of the table.
fn rows(text: &str) -> Vec<Row<'_>> {
    let table =
        text.lines().skip_while(|line| *line != HEAD).skip(2).map_while(|line| line.strip_prefix('|'));
    table.filter_map(row).collect()
}

/// A row; `None` for a folder without a crate.
fn row<'a>(line: &'a str) -> Option<Row<'a>> {
    let mut cells = line.trim_end_matches('|').split('|').map(str::trim);
    let folder = cells.next()?.trim_matches('`').trim_end_matches('/');
    let name = cells.next()?;
    let arrows = cells.next_back()?;
    // What stands in brackets says what for, and may have commas.
    let outside =
        |(n, part): (usize, &'a str)| if n == 0 { Some(part) } else { Some(part.split_once(')')?.1) };
    let pieces = arrows.split('(').enumerate().filter_map(outside);
    let arrows = pieces.flat_map(|piece| piece.split(',')).map(|arrow| arrow.trim().trim_matches('`'));
    (name != "–")
        .then(|| Row { folder, arrows: arrows.filter(|arrow| !["–", ""].contains(arrow)).collect() })
}

/// Whether a folder is one that a row is about: parts that end with `*` stand for all that begin so.
fn fits(pattern: &str, folder: &str) -> bool {
    let (pattern, folder): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), folder.split('/').collect());
    let part = |(pattern, part): (&&str, &&str)| match pattern.strip_suffix('*') {
        Some(begin) => part.starts_with(begin),
        None => pattern == part,
    };
    pattern.len() == folder.len() && pattern.iter().zip(&folder).all(part)
}

/// The crates that an arrow of a crate leads to.
fn targets<'a>(arrow: &str, from: &Package, all: &'a [Package]) -> Vec<&'a Package> {
    let is_driver = |p: &&Package| fits("drivers/*", &p.folder);
    let meant = |p: &&Package| match arrow {
        "drivers" => is_driver(p),
        "the driver" => is_driver(p) && from.folder.starts_with(&format!("{}/", p.folder)),
        name => p.name == name || p.name == format!("halite-{name}"),
    };
    all.iter().filter(meant).collect()
}

/// What is wrong with the table, or with the crates.
fn complaints(text: &str, all: &[Package]) -> Vec<String> {
    let rows = rows(text);
    let mut wrong = Vec::new();
    let names: BTreeSet<&str> = all.iter().map(|p| p.name.as_str()).collect();
    // Crates that only tests of another one use are its own business.
    for package in all.iter().filter(|p| !p.folder.contains("/tests/")) {
        let Some(row) = rows.iter().find(|row| fits(row.folder, &package.folder)) else {
            wrong.push(format!("{} in {}/ has no row", package.name, package.folder));
            continue;
        };
        let mut told = BTreeMap::new();
        for arrow in &row.arrows {
            let targets = targets(arrow, package, all);
            if targets.is_empty() {
                wrong.push(format!("{}: '{arrow}' is no crate", package.name));
            }
            told.extend(targets.iter().map(|target| (target.name.as_str(), *arrow)));
        }
        let real: BTreeSet<&str> =
            package.dependencies.iter().map(String::as_str).filter(|name| names.contains(name)).collect();
        let unknown = real.iter().filter(|name| !told.contains_key(*name));
        wrong.extend(
            unknown.map(|name| format!("{} depends on {name}; the table does not say so", package.name)),
        );
        let gone = told.keys().filter(|name| !real.contains(*name));
        wrong.extend(
            gone.map(|name| format!("{} does not depend on {name}; the table says it does", package.name)),
        );
    }
    for row in &rows {
        let there = all.iter().any(|package| fits(row.folder, &package.folder));
        if !there {
            wrong.push(format!("the row of {}/ is about no crate", row.folder));
        }
    }
    wrong
}

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map is there");
    let wrong = complaints(&text, &packages());
    assert!(wrong.is_empty(), "ARCHITECTURE.md, the table under \"Crates\":\n{}", wrong.join("\n"));
}

/// What the tools may use beside the public crate: readers of files, and what they show and list.
const TOOLS: [&str; 9] = [
    "halite",
    "halite-abi",
    "halite-facts",
    "halite-formats",
    "halite-ops",
    "halite-shaders",
    "halite-spirv",
    "halite-targets",
    "halite-vm",
];

#[test]
fn the_tools_are_users_of_the_public_crate() {
    let all = packages();
    let tools = all.iter().find(|p| p.name == "halite-tools").expect("the tools are a crate");
    let names: BTreeSet<&str> = all.iter().map(|p| p.name.as_str()).collect();
    let inner =
        tools.dependencies.iter().filter(|d| names.contains(d.as_str()) && !TOOLS.contains(&d.as_str()));
    let inner: Vec<_> = inner.collect();
    assert!(
        inner.is_empty(),
        "what the tools need of {inner:?}, the crate `halite` has to offer to all programs"
    );
}

#[test]
fn every_difference_is_told() {
    let package = |name: &str, folder: &str, dependencies: &[&str]| Package {
        name: name.to_owned(),
        folder: folder.to_owned(),
        dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
        roots: Vec::new(),
    };
    let all = [
        package("halite-hal", "hal", &["serde"]),
        package("halite-vulkan", "drivers/vulkan", &["halite-hal", "ash"]),
        package("halite-vulkan-plugin", "drivers/vulkan/plugin", &["halite-hal", "halite-vulkan"]),
        package("halite-shim", "drivers/vulkan/tests/shim", &["halite-hal"]),
        package("halite", "halite", &["halite-hal", "halite-vulkan"]),
    ];
    let table = |rows: &str| format!("# Map\n\n{HEAD}\n|---|---|---|---|\n{rows}\nText | with | bars |\n");
    let right = "| `hal/` | halite-hal | traits, not drivers | – |\n\
                 | `drivers/vulkan/` | halite-vulkan | the driver | hal |\n\
                 | `drivers/*/plugin*/` | halite-*-plugin | one driver each | hal, the driver |\n\
                 | `halite/` | halite | what people use | hal (types, traits), drivers |\n\
                 | `docs/` | – | the rest | – |";
    assert_eq!(complaints(&table(right), &all), Vec::<String>::new());
    for (from, to, told) in [
        (
            "| hal (types, traits), drivers |",
            "| drivers |",
            "halite depends on halite-hal; the table does not say so",
        ),
        ("| what people use | hal", "| what people use | vulkan, hal", ""),
        (
            "the driver | hal |",
            "the driver | hal, halite |",
            "halite-vulkan does not depend on halite; the table says it does",
        ),
        ("the driver | hal |", "the driver | hal, nobody |", "halite-vulkan: 'nobody' is no crate"),
        ("`hal/`", "`hat/`", "halite-hal in hal/ has no row"),
        ("`hal/`", "`hat/`", "the row of hat/ is about no crate"),
    ] {
        assert!(right.contains(from), "{from}");
        let wrong = complaints(&table(&right.replacen(from, to, 1)), &all);
        assert!(
            told.is_empty() == wrong.is_empty() && told.is_empty() || wrong.contains(&told.to_owned()),
            "{wrong:?}"
        );
    }
    assert!(complaints("no table", &all).len() >= 4);
}
