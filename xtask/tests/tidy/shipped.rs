//! Checks that pages name what is shipped as `cargo xtask dist` and `cargo xtask c` call it: with the version of this workspace, and that
//! of the C interface.

use std::fs;

use super::{metadata, root, sources::files};

/// What pages call files before a version: of the workspace, or of the C interface.
const OF_WORKSPACE: [&str; 4] = ["halite-", "halite_", "halite-java-", "libhalite-"];
const OF_INTERFACE: [&str; 3] = ["libhalite", "libhalite.so.", "libhalite."];

/// The version that a text begins with: numbers with dots between them, at least two.
fn version(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let found = text[..end].trim_end_matches('.');
    (found.contains('.') && !found.starts_with('.')).then_some(found)
}

/// The versions behind a name, where it is not the end of a longer one.
fn versions<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let begins = before.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
        begins.then(|| version(&text[at + name.len()..])).flatten()
    })
}

/// The version of the C interface: `0.9`.
fn interface() -> String {
    let source =
        fs::read_to_string(root().join("capi/src/version.rs")).expect("the C interface has a version");
    let number = |name: &str| {
        let (_, rest) = source.split_once(name).unwrap_or_else(|| panic!("{name} is not there"));
        let digits: String = rest.chars().skip_while(|c| !c.is_ascii_digit()).collect();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].to_owned()
    };
    format!("{}.{}", number("HALITE_C_ABI_MAJOR: u32 ="), number("HALITE_C_ABI_MINOR: u32 ="))
}

/// The version of the program.
fn workspace() -> String {
    let metadata = metadata();
    let packages = super::list(&metadata["packages"]);
    let tools = packages.iter().find(|package| package["name"] == "halite-tools");
    super::text(&tools.expect("there are tools")["version"])
}

#[test]
fn pages_name_packages_by_their_versions() {
    let (workspace, interface) = (workspace(), interface());
    let Some(pages) = files(&["md"]) else { return };
    // Results and the log of changes say what was so on a day.
    let now = |name: &str| !name.starts_with("docs/results/") && name != "CHANGELOG.md";
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages.iter().filter(|(page, _)| now(page)) {
        let of_workspace = OF_WORKSPACE.map(|name| (name, &workspace));
        let of_interface = OF_INTERFACE.map(|name| (name, &interface));
        for (name, wanted) in of_workspace.into_iter().chain(of_interface) {
            let found = versions(text, name).inspect(|_| seen += 1).filter(|found| found != wanted);
            wrong.extend(found.map(|found| format!("{page}: {name}{found} is {wanted} now")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 8, "only {seen} names of packages were found: the search is broken");
}

#[test]
fn versions_are_told_from_names() {
    let text = "`libhalite0.8_….deb`, halite-0.1.0.aar, libhalite-0.1.0-linux, halite-java-0.1.0-x, libhalite.so.0.9, libhalite-dev_1";
    let of = |name| versions(text, name).collect::<Vec<_>>();
    assert_eq!(
        (of("libhalite"), of("halite-"), of("libhalite-")),
        (vec!["0.8"], vec!["0.1.0"], vec!["0.1.0"])
    );
    assert_eq!(
        (of("libhalite.so."), of("halite-java-"), of("halite_")),
        (vec!["0.9"], vec!["0.1.0"], vec![])
    );
}
