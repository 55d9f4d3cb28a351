//! Holds the number of circles of files in each crate to what `limits.txt` says.
//!
//! The rule: a file leads to another one of its crate when its code has a path that begins with `crate`, `self` or `super` and passes
//! through the other file's module; the longest part of the path that names a file counts. So a path to a name that a module
//! re-exports leads to that module's own file, and a module that names its children without a prefix (`mod x; use x::Y;`)
//! leads to none of them: it and they are one thing. Code that is for tests only is left out. A circle is a strongly connected component of
//! more than one file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    limits::{self, Found},
    packages, root,
    text::{closing, code_only, of_a_name, places, without_tests},
};

/// A module's names from the crate's root on.
type Module = Vec<String>;

/// A file of a crate.
struct File {
    path: PathBuf,
    code: String,
}

/// The files of the crate with this root, by module.
fn files(root: &Path) -> BTreeMap<Module, File> {
    let mut found = BTreeMap::new();
    let folder = root.parent().expect("a file lies in a folder").to_owned();
    let mut open = vec![(Module::new(), root.to_owned(), folder)];
    while let Some((module, path, folder)) = open.pop() {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let code = without_tests(&code_only(&text));
        for name in children(&code) {
            let candidates = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            if let Some(path) = candidates.into_iter().find(|path| path.is_file()) {
                open.push(([module.clone(), vec![name.to_owned()]].concat(), path, folder.join(name)));
            }
        }
        found.insert(module, File { path, code });
    }
    found
}

/// Names in `mod x;`.
fn children(code: &str) -> impl Iterator<Item = &str> {
    places(code, "mod").filter_map(|at| {
        let rest = code[at + 3..].trim_start();
        let name = &rest[..rest.find(|c| !of_a_name(c))?];
        rest[name.len()..].trim_start().starts_with(';').then_some(name)
    })
}

/// Paths in code that begin with `crate`, `self` or `super`, in parts; one for each name of a group.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for word in ["crate", "self", "super"] {
        for at in places(code, word) {
            let begins = !code[..at].ends_with("::") && !code[..at].ends_with('$');
            if begins && code[at + word.len()..].trim_start().starts_with("::") {
                branches(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads a path with groups; what comes behind it is left.
fn branches<'a>(code: &'a str, head: &mut Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) {
    let length = head.len();
    let mut rest = code.trim_start();
    loop {
        let end = rest.find(|c| !of_a_name(c)).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        head.push(&rest[..end]);
        let Some(behind) = rest[end..].trim_start().strip_prefix("::") else {
            rest = "";
            break;
        };
        rest = behind.trim_start();
    }
    if rest.starts_with('{') {
        let group = &rest[1..closing(rest, 0).saturating_sub(1).max(1)];
        parts(group).for_each(|part| branches(part, head, found));
    } else {
        found.push(head.clone());
    }
    head.truncate(length);
}

/// The parts of a group, which commas divide.
fn parts(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = group.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// The module whose file a path in a module leads to.
fn target(from: &Module, path: &[&str], files: &BTreeMap<Module, File>) -> Module {
    let (mut at, mut path) = (from.clone(), path);
    while let Some((first, rest)) = path.split_first() {
        match *first {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ => break,
        }
        path = rest;
    }
    for part in path {
        at.push((*part).to_owned());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
    }
    at
}

/// Circles in a graph: for each the nodes, in order.
fn circles<N: Ord + Clone>(edges: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    // Two nodes are in one circle when each is reached from the other. Crates have few hundred files.
    let reach: BTreeMap<&N, BTreeSet<&N>> = edges.keys().map(|node| (node, reached(node, edges))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (node, from) in &reach {
        let circle: Vec<N> = from
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(node)))
            .map(|other| (*other).clone())
            .collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            found.push(circle);
        }
    }
    found
}

/// What is reached from a node by one edge or more.
fn reached<'a, N: Ord>(node: &'a N, edges: &'a BTreeMap<N, BTreeSet<N>>) -> BTreeSet<&'a N> {
    let mut found = BTreeSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for next in edges.get(node).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// The circles of a crate, as lists of files.
fn circles_of(crate_root: &Path) -> Vec<String> {
    let files = files(&root().join(crate_root));
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, file) in &files {
        let targets = paths(&file.code).into_iter().map(|path| target(module, &path, &files));
        edges.entry(module.clone()).or_default().extend(targets.filter(|target| target != module));
    }
    let name = |module: &Module| {
        let path = &files[module].path;
        path.strip_prefix(root()).unwrap_or(path).display().to_string()
    };
    circles(&edges).iter().map(|circle| circle.iter().map(name).collect::<Vec<_>>().join(" ↔ ")).collect()
}

#[test]
fn circles_of_files_grow_fewer() {
    let mut found = Found::new();
    for package in packages() {
        let circles = package.roots.iter().flat_map(|root| circles_of(root));
        found.entry(package.folder).or_default().extend(circles);
    }
    limits::hold("circles of files", &found);
}

#[test]
fn circles_are_found() {
    let edges: BTreeMap<u8, BTreeSet<u8>> = [
        (1, BTreeSet::from([2])),
        (2, BTreeSet::from([3])),
        (3, BTreeSet::from([1, 4])),
        (4, BTreeSet::from([5])),
        (5, BTreeSet::from([6])),
        (6, BTreeSet::from([5])),
        (7, BTreeSet::from([1, 7])),
    ]
    .into();
    assert_eq!(circles(&edges), [vec![1, 2, 3], vec![5, 6]]);
}

#[test]
fn paths_are_read() {
    let code = "use crate::{a::{b, C as D}, e::*};\nfn f(x: super::super::G) -> $crate::h { self.i(other::crate_::j) }\nself::k::l();";
    let mut found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    found.sort();
    assert_eq!(found, ["crate::a::C", "crate::a::b", "crate::e", "self::k::l", "super::super::G"]);
}

#[test]
fn paths_lead_to_files() {
    let module =
        |text: &str| text.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Module>();
    let file = || File { path: PathBuf::new(), code: String::new() };
    let files: BTreeMap<_, _> = ["", "a", "a::b", "c"].map(|name| (module(name), file())).into();
    for (from, path, to) in [
        ("c", "crate::a::b::X", "a::b"),
        ("c", "crate::a::X::new", "a"),
        ("c", "super::X", ""),
        ("a::b", "super::X", "a"),
        ("a::b", "super::super::c::X", "c"),
        ("a", "self::b::X", "a::b"),
    ] {
        assert_eq!(
            target(&module(from), &path.split("::").collect::<Vec<_>>(), &files),
            module(to),
            "{from}: {path}"
        );
    }
    assert_eq!(children("mod a;\nmod b { }\npub(crate) mod c ;\nmodx;").collect::<Vec<_>>(), ["a", "c"]);
}
