//! Holds crates from outside to `deny.toml` (licences, bans, sources) and to the table of reasons in
//! `docs/reference/dependencies.md`. cargo-deny does the first better; this runs where it is not installed, and without a network.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;
use toml::Table;

use super::{list, root, sources::files, text};

const REASONS: &str = "docs/reference/dependencies.md";
/// Systems beside this one whose crates are looked at.
const SYSTEMS: [&str; 3] = ["aarch64-linux-android", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// A crate that somebody else wrote, or one of ours.
struct Crate {
    name: String,
    license: String,
    /// The registry; `None` for ours.
    source: Option<String>,
}

/// All crates that are built for a system; `None` when some of them were never downloaded here.
fn crates(system: &str) -> Option<Vec<Crate>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", system]);
    let output = cargo.current_dir(root()).output().expect("cargo starts");
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).lines().next_back().unwrap_or_default().to_owned();
        eprintln!("SKIPPED: crates for {system}: {why}");
        return None;
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let read = |package: &Value| Crate {
        name: text(&package["name"]),
        license: package["license"].as_str().unwrap_or_default().to_owned(),
        source: package["source"].as_str().map(str::to_owned),
    };
    Some(list(&metadata["packages"]).iter().map(read).collect())
}

/// This system, as Rust names it.
fn host() -> String {
    let output = Command::new(env!("CARGO")).args(["-vV"]).output().expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo tells its host").to_owned()
}

/// The rules.
struct Rules {
    licenses: BTreeSet<String>,
    banned: BTreeSet<String>,
    registries: Vec<String>,
}

fn rules(deny: &str) -> Rules {
    let deny: Table = deny.parse().expect("deny.toml is TOML");
    let strings = |value: &toml::Value| {
        let items = value.as_array().expect("deny.toml has a list here").iter();
        items.map(|item| item.as_str().expect("of texts").to_owned()).collect::<Vec<_>>()
    };
    let bans = deny["bans"]["deny"].as_array().expect("a list of bans");
    Rules {
        licenses: strings(&deny["licenses"]["allow"]).into_iter().collect(),
        banned: bans.iter().map(|ban| ban["crate"].as_str().expect("a name").to_owned()).collect(),
        registries: strings(&deny["sources"]["allow-registry"]),
    }
}

impl Rules {
    /// What is wrong with a crate.
    fn complaint(&self, package: &Crate) -> Option<String> {
        let name = &package.name;
        if self.banned.contains(name) {
            return Some(format!("{name} is banned"));
        }
        if !satisfied(&package.license, &self.licenses) {
            return Some(format!("{name}: the licence '{}' is not allowed", package.license));
        }
        let source = package.source.as_deref()?;
        let known = self.registries.iter().any(|registry| source.strip_prefix("registry+") == Some(registry));
        (!known).then(|| format!("{name} comes from {source}"))
    }
}

/// Whether a licence expression can be met with these licences: `A OR B`, `A AND B`, `A WITH E`, brackets, and the old `A/B`.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let Some(first) = words.next() else { return false };
    if first == "(" {
        return any(words, allowed) & (words.next() == Some(")"));
    }
    match words.next_if_eq(&"WITH") {
        Some(_) => allowed.contains(&format!("{first} WITH {}", words.next().unwrap_or_default())),
        None => allowed.contains(first),
    }
}

#[test]
fn licences_bans_and_sources_are_as_deny_toml_says() {
    let rules = rules(&std::fs::read_to_string(root().join("deny.toml")).expect("the rules are there"));
    let mut wrong = BTreeSet::new();
    for system in [&*host()].into_iter().chain(SYSTEMS) {
        let all = crates(system).unwrap_or_default();
        wrong.extend(all.iter().filter_map(|package| rules.complaint(package)));
    }
    assert!(wrong.is_empty(), "deny.toml:\n{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The crates of others that manifests name, with their names on the registry, and one manifest that does.
fn named() -> Option<BTreeMap<String, String>> {
    let mut named = BTreeMap::new();
    for (file, text) in files(&["toml"])?.into_iter().filter(|(file, _)| file.ends_with("Cargo.toml")) {
        let manifest: Table = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        let workspace = manifest.get("workspace").and_then(|w| w.as_table());
        let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
        let tables = [Some(&manifest), workspace].into_iter().flatten().flat_map(|table| {
            let systems = table.get("target").and_then(|t| t.as_table()).into_iter().flatten();
            let systems = systems.filter_map(|(_, table)| table.as_table());
            [table].into_iter().chain(systems).flat_map(|t| tables.map(|name| t.get(name)?.as_table()))
        });
        for (name, value) in tables.flatten().flatten() {
            let ours = value.get("path").is_some() || value.get("workspace").is_some();
            let name = value.get("package").and_then(|p| p.as_str()).unwrap_or(name);
            if !ours {
                let version = value.as_str().or_else(|| value.get("version")?.as_str());
                assert!(version.is_some_and(|v| v != "*"), "{file}: {name} has no version");
                named.insert(name.to_owned(), file.clone());
            }
        }
    }
    Some(named)
}

#[test]
fn crates_from_outside_have_their_reasons() {
    let Some(named) = named() else { return };
    let page = std::fs::read_to_string(root().join(REASONS)).expect("the page is there");
    let rows: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .map_while(|line| line.strip_prefix('|')?.split('|').next())
        .map(str::trim)
        .collect();
    let mut wrong = Vec::new();
    for (name, file) in &named {
        match rows.iter().filter(|row| *row == name).count() {
            1 => {}
            0 => wrong.push(format!("{name} ({file}) has no row")),
            _ => wrong.push(format!("{name} has several rows")),
        }
    }
    let gone = rows.iter().filter(|row| !named.contains_key(**row));
    wrong.extend(gone.map(|row| format!("nobody depends on {row}")));
    assert!(wrong.is_empty(), "{REASONS}:\n{}", wrong.join("\n"));
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for yes in [
        "MIT",
        "GPL-3.0 OR MIT",
        "X/MIT",
        "MIT AND (X OR Zlib)",
        "X AND Y OR MIT",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(satisfied(yes, &allowed), "{yes}");
    }
    for no in ["", "Apache-2.0", "MIT AND X", "(MIT OR Zlib) AND X", "MIT)", "(MIT", "MIT WITH X"] {
        assert!(!satisfied(no, &allowed), "{no}");
    }
}

#[test]
fn what_breaks_the_rules_is_found() {
    let text = "[licenses]\nallow = ['MIT']\n[bans]\ndeny = [{ crate = 'bad', reason = 'x' }]\n[sources]\nallow-registry = ['https://r']";
    let rules = rules(text);
    let package = |name: &str, license: &str, source: Option<&str>| Crate {
        name: name.to_owned(),
        license: license.to_owned(),
        source: source.map(str::to_owned),
    };
    for good in [package("a", "MIT", None), package("a", "MIT", Some("registry+https://r"))] {
        assert_eq!(rules.complaint(&good), None);
    }
    for (bad, told) in [
        (package("bad", "MIT", None), "banned"),
        (package("a", "GPL-3.0", None), "licence"),
        (package("a", "", None), "licence"),
        (package("a", "MIT", Some("registry+https://other")), "comes from"),
        (package("a", "MIT", Some("git+https://r")), "comes from"),
    ] {
        assert!(rules.complaint(&bad).is_some_and(|complaint| complaint.contains(told)), "{told}");
    }
}
