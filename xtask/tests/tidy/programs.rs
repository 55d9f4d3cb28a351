//! Every file of tests belongs to a program. Many are modules of one, as each program is linked with all that it tests; cargo, which
//! is told of the programs then, says nothing of a file that none of them has.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{below, list, metadata, root};

/// Files of a folder of tests of which no root of a program is one or names one as its module.
fn left_out<'a>(files: &'a BTreeSet<String>, roots: &[(String, String)]) -> Vec<&'a str> {
    let is_there = |file: &str| {
        let name = file.trim_end_matches(".rs");
        let is_module = |text: &str| text.lines().any(|line| line == format!("mod {name};"));
        roots.iter().any(|(root, text)| root == file || is_module(text))
    };
    files.iter().map(String::as_str).filter(|file| !is_there(file)).collect()
}

/// Names of the sources in a folder.
fn sources(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".rs")).collect()
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let (mut files, mut faults) = (0, Vec::new());
    for package in list(&metadata()["packages"]) {
        let manifest = below(&package["manifest_path"]);
        let folder = manifest.parent().expect("a manifest lies in a folder").join("tests");
        let targets = list(&package["targets"]).iter().filter(|target| target["kind"][0] == "test");
        let paths = targets.map(|target| below(&target["src_path"]));
        let roots: Vec<_> = paths
            .filter_map(|path| {
                let name = path.strip_prefix(&folder).ok()?.display().to_string();
                Some((
                    name,
                    fs::read_to_string(root().join(&path)).expect("cargo names sources that are there"),
                ))
            })
            .collect();
        let found = sources(&root().join(&folder));
        files += found.len();
        faults
            .extend(left_out(&found, &roots).into_iter().map(|file| folder.join(file).display().to_string()));
    }
    assert!(files > 80, "only {files} files of tests were found: the search is broken");
    assert!(
        faults.is_empty(),
        "no program has these tests; name them in the root of one, or in Cargo.toml: {faults:?}"
    );
}

/// Files of a library or a program: those beside its root and below, but where a library has the folder, a program's root alone.
fn files_of(target: &Value, others: &[Value]) -> Vec<PathBuf> {
    let path = root().join(below(&target["src_path"]));
    let folder = path.parent().expect("a source lies in a folder");
    let is_shared = others.iter().any(|other| {
        let other = root().join(below(&other["src_path"]));
        other != path && other.parent() == Some(folder)
    });
    if is_shared { vec![path] } else { rust_files(folder) }
}

/// Sources in a folder and those below it.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("cargo names folders that are there").flatten();
    let (folders, files): (Vec<_>, Vec<_>) =
        entries.map(|entry| entry.path()).partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| rust_files(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).chain(below).collect()
}

/// Whether a source has tests.
fn has_tests(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("#[test]") || line.contains("cfg(test)"))
}

#[test]
fn targets_that_are_not_tested_have_no_tests() {
    let (mut count, mut faults) = (0, Vec::new());
    for package in list(&metadata()["packages"]) {
        let targets = list(&package["targets"]);
        for target in targets.iter().filter(|target| target["test"] == false) {
            // Examples and build scripts are never tested.
            if ["example", "custom-build"].iter().any(|kind| target["kind"][0] == *kind) {
                continue;
            }
            count += 1;
            let tested = |file: &PathBuf| has_tests(&fs::read_to_string(file).expect("it is there"));
            faults.extend(files_of(target, targets).into_iter().filter(tested));
        }
    }
    assert!(count >= 9, "only {count} targets without tests were found: the search is broken");
    assert!(faults.is_empty(), "nobody runs these tests, as Cargo.toml has `test = false`: {faults:?}");
}

#[test]
fn tests_are_seen_in_sources() {
    assert!(has_tests("mod a {\n    #[test]\n    fn b() {}\n}\n") && has_tests("#[cfg(test)]\nmod tests;\n"));
    assert!(!has_tests("/// The tests of #[test].\nfn tests() {}\n"));
}

#[test]
fn a_file_that_nobody_names_is_found() {
    let files = ["a.rs", "b.rs", "main.rs"].map(str::to_owned).into();
    let main = |text: &str| [("main.rs".to_owned(), text.to_owned())];
    assert_eq!(left_out(&files, &main("//! mod b;\nmod a;\n")), ["b.rs"]);
    assert!(left_out(&files, &main("mod a;\nmod b;\n")).is_empty());
}
