//! What decides which module comes out of a model is part of the digest that names kept modules (`halite/build.rs`): a crate that
//! is missing there would leave modules of an older compiler in use.

use std::{collections::BTreeSet, fs};

use super::{packages, root};

#[test]
fn the_digest_of_the_compiler_has_all_its_crates() {
    let all = packages();
    let (mut open, mut seen) = (vec!["halite-compiler".to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        let Some(package) = all.iter().find(|package| package.name == name) else { continue };
        if seen.insert(package.folder.clone()) {
            open.extend(package.dependencies.iter().cloned());
        }
    }
    assert!(seen.len() > 5, "only {seen:?} were found: the search is broken");
    // Where files are kept does not change what is in them.
    seen.remove("cache");
    let listed = fs::read_to_string(root().join("halite/build.rs")).expect("it is there");
    let missing: Vec<_> =
        seen.iter().filter(|folder| !listed.contains(&format!("\"{folder}/src\""))).collect();
    assert!(missing.is_empty(), "halite/build.rs, SOURCES: {missing:?} are missing");
}
