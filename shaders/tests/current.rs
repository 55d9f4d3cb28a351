//! The compiled kernels are those of the templates, by hash; and each passes the checks that drivers' users rely on.

#![allow(dead_code, reason = "the generator uses all of the shared file, this test a part")]

#[path = "../generator/src/sources.rs"]
mod sources;

use sources::Library;

#[test]
fn kernels_are_made_from_the_templates() {
    let library = Library::open(env!("CARGO_MANIFEST_DIR").into()).unwrap();
    let mut stale = Vec::new();
    for (folder, build) in library.builds().unwrap() {
        let kept = std::fs::read_to_string(library.file(&build.name, "hash")).unwrap_or_default();
        if kept.trim() != library.hash(&folder, &build).unwrap() {
            stale.push(build.name);
        }
    }
    assert!(stale.is_empty(), "run `cargo xtask shaders` and commit the result; not current: {stale:?}");
}

#[test]
fn kernels_are_valid_spirv() {
    let library = Library::open(env!("CARGO_MANIFEST_DIR").into()).unwrap();
    for (_, build) in library.builds().unwrap() {
        let bytes = std::fs::read(library.file(&build.name, "spv")).unwrap();
        let words = halite_spirv::words_from_bytes(&bytes).unwrap();
        let facts = halite_spirv::analyze(&words).unwrap_or_else(|e| panic!("{}: {e}", build.name));
        assert_eq!(facts.entry_points.len(), 1, "{}", build.name);
    }
}
