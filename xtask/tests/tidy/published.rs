//! Crates that are published bring what people look for in them: the texts of both licences and a page that says what they are for.

use std::fs;

use super::{below, list, metadata, root, text};

/// The texts of the licences, as they lie beside the workspace's manifest.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[test]
fn crates_that_are_published_have_licences_and_a_page() {
    let (mut published, mut faults) = (0, Vec::new());
    for package in list(&metadata()["packages"]) {
        // Cargo writes an empty list of registries for what is never published.
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        published += 1;
        let name = text(&package["name"]);
        let manifest = below(&package["manifest_path"]);
        let folder = root().join(manifest.parent().expect("a manifest lies in a folder"));
        for licence in LICENCES {
            let whole = fs::read(root().join(licence)).expect("the licences lie at the root");
            if fs::read(folder.join(licence)).ok() != Some(whole) {
                faults.push(format!("{name}: {licence} is not that of the workspace"));
            }
        }
        let page = package["readme"].as_str().map(|page| folder.join(page));
        if !page.is_some_and(|page| page.is_file()) {
            faults.push(format!("{name}: no README; the manifest can take `readme.workspace = true`"));
        }
        if package["description"].is_null() || package["license"].is_null() {
            faults.push(format!("{name}: no description or no licence in its manifest"));
        }
    }
    assert!(published > 10, "only {published} crates are published: the search is broken");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
