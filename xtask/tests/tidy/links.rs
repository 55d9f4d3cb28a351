//! Checks that links in the documentation lead to files and headings that are there.

use std::{
    collections::{HashMap, HashSet},
    path::{Component, Path, PathBuf},
};

use super::{root, sources::files};

/// Lines outside of code, which stands between fences or begins with four spaces.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence && !line.starts_with("    ")
    })
}

/// What GitHub makes of a heading: <https://docs.github.com/en/get-started/writing-on-github>.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The anchors of a page: a heading that is there again gets a number.
fn anchors(text: &str) -> HashSet<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let numbered = headings.map(|line| {
        let own = anchor(line.trim_start_matches('#'));
        let count = seen.entry(own.clone()).and_modify(|count| *count += 1).or_insert(0);
        if *count == 0 { own } else { format!("{own}-{count}") }
    });
    numbered.collect()
}

/// Where links of a text lead to, as it says it.
fn links(text: &str) -> Vec<String> {
    // A link may be in two lines, its text in one and its target in the next.
    let prose: String = prose(text).flat_map(|line| [without_code(line), "\n".to_owned()]).collect();
    let starts = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
    starts.filter_map(|rest| Some(rest[..rest.find(')')?].trim().to_owned())).collect()
}

/// A line without what stands in backticks.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // An odd quote at the end quotes nothing.
    let whole = if parts.len().is_multiple_of(2) { parts.len() - 1 } else { parts.len() };
    parts
        .iter()
        .enumerate()
        .filter(|(index, _)| index % 2 == 0 || *index >= whole)
        .map(|(_, part)| *part)
        .collect()
}

/// A path without `.` and `..`, below the root of the repository.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut made, part| {
        match part {
            Component::ParentDir => drop(made.pop()),
            Component::Normal(name) => made.push(name),
            _ => {}
        }
        made
    })
}

/// What is wrong with a link of a page.
fn fault(page: &str, link: &str, pages: &HashMap<String, HashSet<String>>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { PathBuf::from(page) } else { normal(&folder.join(file)) };
    if !root().join(&target).exists() {
        return Some(format!("{page}: {link}: there is no {}", target.display()));
    }
    let known = pages.get(&target.to_string_lossy().into_owned())?;
    let heading = heading.filter(|heading| !known.contains(*heading))?;
    Some(format!("{page}: {link}: {} has no heading '{heading}'", target.display()))
}

#[test]
fn links_lead_somewhere() {
    let Some(texts) = files(&["md"]) else { return };
    let pages: HashMap<String, HashSet<String>> =
        texts.iter().map(|(name, text)| (name.clone(), anchors(text))).collect();
    let all: Vec<(&String, String)> =
        texts.iter().flat_map(|(name, text)| links(text).into_iter().map(move |link| (name, link))).collect();
    assert!(all.len() > 100, "only {} links were found: the search is broken", all.len());
    let faults: Vec<String> = all.iter().filter_map(|(page, link)| fault(page, link, &pages)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "# One `two`, three\n## Again\n## Again\nSee [a](#one-two-three), [b](gone.md) and\n[c](\n#again-1) `[no](x)`\n\
                ```\n# no heading\n[no](y)\n```\n[d](../README.md#nothing)";
    let pages = HashMap::from([
        ("docs/README.md".to_owned(), anchors(text)),
        ("README.md".to_owned(), anchors("# Halite\n")),
    ]);
    let found = links(text);
    assert_eq!(found, ["#one-two-three", "gone.md", "#again-1", "../README.md#nothing"]);
    let faults: Vec<String> = found.iter().filter_map(|link| fault("docs/README.md", link, &pages)).collect();
    assert_eq!(
        faults,
        [
            "docs/README.md: gone.md: there is no docs/gone.md",
            "docs/README.md: ../README.md#nothing: README.md has no heading 'nothing'"
        ]
    );
}
