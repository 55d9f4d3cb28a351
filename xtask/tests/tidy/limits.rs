//! Reads `limits.txt`: how much there is of what should not be, in each crate. A number can only shrink: a check fails with more,
//! and with less until the number is lowered.

use std::collections::BTreeMap;

/// What was found in each crate.
pub type Found = BTreeMap<String, Vec<String>>;

const LIMITS: &str = include_str!("limits.txt");

/// The limits of one kind: `kind | crate | number`.
fn limits<'a>(kind: &str, text: &'a str) -> BTreeMap<&'a str, usize> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let cells = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let wanted = cells.filter(|cells| cells[0] == kind);
    let limit = |cells: Vec<&'a str>| match cells[..] {
        [_, name, number] => {
            (name, number.parse().unwrap_or_else(|_| panic!("{name}: '{number}' is no number")))
        }
        _ => panic!("limits.txt: {cells:?} has not three parts"),
    };
    wanted.map(limit).collect()
}

/// What differs between limits and what was found.
fn differences(kind: &str, limits: &BTreeMap<&str, usize>, found: &Found) -> Vec<String> {
    let mut told = Vec::new();
    for (name, list) in found {
        let limit = limits.get(name.as_str()).copied().unwrap_or(0);
        if list.len() > limit {
            told.push(format!(
                "{name}: {limit} {kind} are allowed, {} are there:\n  {}",
                list.len(),
                list.join("\n  ")
            ));
        } else if list.len() < limit {
            told.push(format!(
                "{name}: only {} {kind} are left: write '{kind} | {name} | {}'",
                list.len(),
                list.len()
            ));
        }
    }
    let gone = limits.keys().filter(|name| !found.contains_key(**name));
    told.extend(gone.map(|name| format!("{name}: there is no such crate: remove its line of {kind}")));
    told.extend(
        limits
            .iter()
            .filter(|(_, limit)| **limit == 0)
            .map(|(name, _)| format!("{name}: a line of 0 says nothing: remove it")),
    );
    told
}

/// Fails unless as much was found as `limits.txt` says.
pub fn hold(kind: &str, found: &Found) {
    assert!(found.len() > 10, "only {} crates were looked at: the search is broken", found.len());
    let told = differences(kind, &limits(kind, LIMITS), found);
    assert!(told.is_empty(), "xtask/tests/tidy/limits.txt:\n{}", told.join("\n"));
}

#[test]
fn limits_hold_both_ways() {
    let text = "# a comment\n\nlong files | hal | 2\nlong files | vm | 1\nlong files | gone | 1\ncircles | hal | 7\n";
    let limits = limits("long files", text);
    assert_eq!(limits, BTreeMap::from([("hal", 2), ("vm", 1), ("gone", 1)]));
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut found: Found = [("hal".to_owned(), list(&["a", "b"])), ("vm".to_owned(), list(&["c"]))].into();
    found.insert("gone".to_owned(), list(&["d"]));
    assert_eq!(differences("long files", &limits, &found), Vec::<String>::new());
    found.remove("gone");
    found.insert("hal".to_owned(), list(&["a"]));
    found.insert("vm".to_owned(), list(&["c", "e"]));
    found.insert("new".to_owned(), list(&["f"]));
    let told = differences("long files", &limits, &found).join("\n");
    for part in [
        "write 'long files | hal | 1'",
        "vm: 1 long files are allowed, 2",
        "new: 0 long",
        "gone: there is no",
    ] {
        assert!(told.contains(part), "'{part}' is missing from: {told}");
    }
}
