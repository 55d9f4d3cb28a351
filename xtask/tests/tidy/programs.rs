//! Every file of tests belongs to a program. Many are modules of one, as each program is linked with all that it tests; cargo, which
//! is told of the programs then, says nothing of a file that none of them has.

use std::{collections::BTreeSet, fs, path::Path};

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

#[test]
fn a_file_that_nobody_names_is_found() {
    let files = ["a.rs", "b.rs", "main.rs"].map(str::to_owned).into();
    let main = |text: &str| [("main.rs".to_owned(), text.to_owned())];
    assert_eq!(left_out(&files, &main("//! mod b;\nmod a;\n")), ["b.rs"]);
    assert!(left_out(&files, &main("mod a;\nmod b;\n")).is_empty());
}
