//! The compiled kernels are those of the templates, by hash; and each passes the checks that drivers' users rely on.

#![allow(dead_code, reason = "the generator uses all of the shared file, this test a part")]

#[path = "../generator/src/sources.rs"]
mod sources;

use std::collections::BTreeSet;

use halite_shaders::expand;
use serde_json::Value;
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

#[test]
fn every_kept_kernel_is_of_a_build_and_every_build_of_a_variant_is_there() {
    let library = Library::open(env!("CARGO_MANIFEST_DIR").into()).unwrap();
    let builds = library.builds().unwrap();
    let names: BTreeSet<String> = builds.iter().map(|(_, build)| build.name.clone()).collect();
    for extension in ["spv", "hash"] {
        let files = std::fs::read_dir(library.root.join("spirv")).unwrap().map(|file| file.unwrap().path());
        let kept: BTreeSet<String> = files
            .filter(|path| path.extension().is_some_and(|own| own == extension))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(kept == names, "*.{extension}: {:?}", kept.symmetric_difference(&names).collect::<Vec<_>>());
    }
    assert!(library.variants(&builds).unwrap() > 0);
}

/// All objects under the key `defines`.
fn defines<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| match key.as_str() {
            "defines" => found.push(value),
            _ => defines(value, found),
        }),
        Value::Array(list) => list.iter().for_each(|value| defines(value, found)),
        _ => {}
    }
}

#[test]
fn no_line_of_a_list_repeats_the_definitions_of_another() {
    for folder in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/ops")).unwrap() {
        let list = folder.unwrap().path().join("builds.json");
        let Ok(text) = std::fs::read_to_string(&list) else { continue };
        let (list, value) = (list.display(), serde_json::from_str(&text).unwrap());
        let mut found = Vec::new();
        defines(&value, &mut found);
        for (index, one) in found.iter().enumerate() {
            assert!(!found[..index].contains(one), "{list} has {one} twice: make it a value of an axis");
        }
    }
}

/// A library whose includes are given, with one template, and the hash of that.
fn hash(includes: &[(&str, &str)], template: &str) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("kernel.comp"), template)?;
    let includes = includes.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    let library = Library { root: folder.path().to_owned(), includes };
    let build = serde_json::from_str(r#"{ "name": "kernel", "source": "kernel.comp" }"#)?;
    library.hash(folder.path(), &build)
}

#[test]
fn a_kernel_is_stale_by_the_includes_that_it_reaches() {
    let of = |far, other| {
        let near = "  #  include <far.glsl>\nint near;\n";
        let includes = [("near.glsl", near), ("far.glsl", far), ("other.glsl", other)];
        hash(&includes, "#version 450\n#include \"near.glsl\"\nvoid main() {}\n").unwrap()
    };
    assert_eq!(of("a", "a"), of("a", "b"), "a file that is not reached does not count");
    assert_ne!(of("a", "a"), of("b", "a"), "a file that an included file includes counts");
}

#[test]
fn includes_may_name_each_other_and_must_exist() {
    let ring = [("a.glsl", "#include \"b.glsl\""), ("b.glsl", "#include \"a.glsl\"")];
    hash(&ring, "#include \"a.glsl\"").unwrap();
    let missing = hash(&ring, "#include \"c.glsl\"").unwrap_err();
    assert!(format!("{missing:#}").contains("c.glsl"), "{missing:#}");
    hash(&ring, "#define FILE \"a.glsl\"\n#include FILE").unwrap_err();
}
