//! Driver libraries that are broken, each a real library: every one is told with a message that names it, and never takes
//! another driver down. What no program can survive, a library that ends the process, is in docs/reference/drivers.md.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

#[path = "../../layers/tests/common/mod.rs"]
mod common;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use common::{refused, submit};
use halite_hal::*;
use halite_layers::open;
use halite_plugin::{
    abi, discover,
    discovery::Discovery,
    manifest::{AbiVersion, Manifest, SUFFIX},
};
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plugins/broken.c");
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// Builds the C library with this fault, or a loud skip.
fn build(folder: &Path, fault: &str) -> Option<PathBuf> {
    let path = folder.join(format!("lib{fault}.so"));
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-shared", "-fPIC", "-I", INCLUDE, SOURCE, "-o"]).arg(&path);
    match command.arg(format!("-DFAULT={fault}")).output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(path)
        }
        Err(e) => {
            eprintln!("SKIPPED: no C compiler: {e}");
            None
        }
    }
}

/// A driver library in Rust: an example of this package, built with the profile of this test.
fn build_rust(folder: &Path, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let target = profile.parent().unwrap();
    let profile_name = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    // `cargo xtask test` has built all examples, with the features of the whole workspace.
    if std::env::var_os("HALITE_TEST_BUILT").is_none() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--package", "halite-plugin", "--example", name]);
        command.args(["--profile", profile_name]).env("CARGO_TARGET_DIR", target);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    // A copy each: a library is loaded once per process, and an object that panicked stays closed.
    let path = folder.join(&file);
    std::fs::copy(profile.join("examples").join(file), &path).unwrap();
    path
}

/// Installs a library under a driver's name and asks a registry for it.
fn with_manifest(library: &Path, name: &str) -> DriverRegistry {
    let folder = library.parent().unwrap();
    let file = library.file_name().unwrap().to_str().unwrap();
    let manifest = Manifest::for_this_machine(name, "", file, "1.0");
    let path = folder.join(format!("{file}{SUFFIX}"));
    std::fs::write(&path, serde_json::to_string(&manifest).unwrap()).unwrap();
    discover(&Discovery::none().given([path]))
}

/// The null driver, which is linked into this test, does work.
#[track_caller]
fn others_work(registry: &DriverRegistry) {
    let device = open(registry, "null", &Options::new()).unwrap();
    let buffer = common::buffer(&device, 16);
    let target = common::span(&buffer, 0, 16);
    submit(&device, QueueOp::Fill { target, pattern: 7, pattern_length: 1 }).unwrap();
    let mut bytes = [0; 16];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 16]);
}

/// Loads a library in both ways: by its manifest, where the driver's failure is told on use; and by itself, where it is
/// skipped with a reason.
#[track_caller]
fn cannot_be_loaded(library: &Path, code: Code, words: &[&str]) {
    let registry = with_manifest(library, "broken");
    others_work(&registry);
    let file = library.file_name().unwrap().to_str().unwrap();
    refused(registry.driver("broken"), code, &[words, &[file, "install it anew"][..]].concat());
    refused(open(&registry, "broken", &Options::new()), code, words);
    others_work(&registry);

    let registry = discover(&Discovery::none().given([library]));
    let [skipped] = registry.skipped() else { panic!("{:?}", registry.skipped()) };
    assert_eq!(skipped.path, library);
    for word in words {
        assert!(skipped.reason.contains(word), "'{}' lacks '{word}'", skipped.reason);
    }
    refused(registry.driver("broken"), Code::NotFound, &["no driver named 'broken'", file]);
    others_work(&registry);
}

#[test]
fn a_good_library_is_loaded() {
    let dir = TempDir::new().unwrap();
    let Some(library) = build(dir.path(), "NONE") else { return };
    let registry = with_manifest(&library, "broken");
    assert_eq!(registry.driver("broken").unwrap().enumerate(&Options::new()).unwrap(), []);
    refused(open(&registry, "broken", &Options::new()), Code::Unavailable, &["this driver has no device"]);
    let registry = discover(&Discovery::none().given([&library]));
    assert_eq!(registry.driver("broken").unwrap().description(), "for tests");
    assert!(registry.skipped().is_empty());
}

#[test]
fn files_that_are_no_driver_libraries() {
    let dir = TempDir::new().unwrap();
    let text = dir.path().join("libtext.so");
    std::fs::write(&text, "this is no library, whatever its name says\n").unwrap();
    cannot_be_loaded(&text, Code::Incompatible, &["no shared library"]);
    let empty = dir.path().join("libempty.so");
    std::fs::write(&empty, "").unwrap();
    cannot_be_loaded(&empty, Code::Incompatible, &[]);
    let Some(whole) = build(dir.path(), "NONE") else { return };
    let whole = std::fs::read(whole).unwrap();
    let mut foreign = whole.clone();
    // e_machine: 0xFFFF is no processor's number.
    foreign[18..20].fill(0xFF);
    let path = dir.path().join("libforeign.so");
    std::fs::write(&path, &foreign).unwrap();
    cannot_be_loaded(&path, Code::Unavailable, &["the system cannot load it"]);
    for (index, length) in [20, 64, 500, whole.len() / 2, whole.len() - 1].into_iter().enumerate() {
        let cut = dir.path().join(format!("libcut{index}.so"));
        std::fs::write(&cut, &whole[..length]).unwrap();
        cannot_be_loaded(&cut, Code::Incompatible, &["cut off"]);
    }
}

#[test]
fn libraries_without_the_query_function() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("other.c");
    std::fs::write(&source, "int other_function(void) { return 1; }\n").unwrap();
    let library = dir.path().join("libother.so");
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status() {
        Ok(status) => assert!(status.success()),
        Err(e) => return eprintln!("SKIPPED: no C compiler: {e}"),
    }
    cannot_be_loaded(&library, Code::Incompatible, &["halite_driver_query_v1"]);
}

/// Faults that show when the library is asked who it is.
#[test]
fn libraries_that_answer_wrongly() {
    use Code::*;
    let ours = (abi::HALITE_ABI_MAJOR, abi::HALITE_ABI_MINOR);
    let version = |minor| format!("{}.{minor}", ours.0);
    let (older, own, newer) = (version(ours.1 - 1), version(ours.1), version(ours.1 + 1));
    let faults: &[(&str, Code, &[&str])] = &[
        ("QUERY_FAILS", FailedPrecondition, &["the moon is in the wrong phase"]),
        ("QUERY_ANSWERS_NULL", Incompatible, &["0.0", &own]),
        ("OLDER_MINOR", Incompatible, &[&older, &own]),
        ("NEWER_MINOR", Incompatible, &[&newer, &own]),
        ("OTHER_MAJOR", Incompatible, &["7.0", &own]),
        ("NEEDS_NEWER", Incompatible, &["needs interface 0.9"]),
        ("NO_DRIVER", Internal, &["driver", "null"]),
        ("NO_TABLE", Incompatible, &["HaliteDriverVtable is null"]),
        ("SHORT_TABLE", Incompatible, &["HaliteDriverVtable"]),
        ("ZERO_TABLE", Incompatible, &["HaliteDriverVtable"]),
        ("NO_OPEN", Incompatible, &["open"]),
        ("NO_NAME", Internal, &["name"]),
        ("NOT_TEXT", Internal, &["UTF-8"]),
    ];
    for (fault, code, words) in faults {
        let dir = TempDir::new().unwrap();
        let Some(library) = build(dir.path(), fault) else { return };
        cannot_be_loaded(&library, *code, words);
    }
}

/// Faults that show when the driver is used.
#[test]
fn drivers_that_answer_wrongly() {
    use Code::*;
    let faults: &[(&str, Code, &[&str])] = &[
        ("NO_DEVICE", Internal, &["null"]),
        ("DEVICE_NO_TABLE", Incompatible, &["HaliteDeviceVtable is null"]),
        ("DEVICE_SHORT_TABLE", Incompatible, &["HaliteDeviceVtable"]),
        ("DEVICE_NO_SUBMIT", Incompatible, &["HaliteDeviceVtable"]),
    ];
    for (fault, code, words) in faults {
        let dir = TempDir::new().unwrap();
        let Some(library) = build(dir.path(), fault) else { return };
        let registry = with_manifest(&library, "broken");
        refused(open(&registry, "broken", &Options::new()), *code, &[words, &["broken"][..]].concat());
        others_work(&registry);
    }
    let dir = TempDir::new().unwrap();
    let Some(library) = build(dir.path(), "FOREIGN_CODE") else { return };
    let registry = with_manifest(&library, "broken");
    let error = registry.driver("broken").unwrap().enumerate(&Options::new()).unwrap_err();
    assert!(!error.message().is_empty(), "{error}");
    others_work(&registry);
}

#[test]
fn a_library_that_calls_itself_otherwise() {
    let dir = TempDir::new().unwrap();
    let Some(library) = build(dir.path(), "NONE") else { return };
    let registry = with_manifest(&library, "vulkan");
    refused(registry.driver("vulkan"), Code::FailedPrecondition, &["'broken'", "'vulkan'", "libNONE.so"]);
    others_work(&registry);
}

#[test]
fn manifests_that_lead_nowhere() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, manifest: &Manifest| {
        let path = dir.path().join(format!("{name}{SUFFIX}"));
        std::fs::write(path, serde_json::to_string(manifest).unwrap()).unwrap();
    };
    let manifest = |name: &str| Manifest::for_this_machine(name, "", "libnothing.so", "");
    write("missing", &manifest("missing"));
    write("other", &Manifest { arch: "pdp11".into(), ..manifest("other") });
    write("newer", &Manifest { abi: AbiVersion { major: 9, minor: 1 }, ..manifest("newer") });
    std::fs::write(dir.path().join(format!("bad{SUFFIX}")), "{\"format\": 1,").unwrap();
    let registry = discover(&Discovery::none().given([dir.path()]));
    let told: Vec<_> = registry.skipped().iter().map(ToString::to_string).collect();
    let words = ["is no driver manifest", "libnothing.so', which is not there", "interface 9.1", "pdp11"];
    assert_eq!(told.len(), words.len(), "{told:?}");
    for (told, words) in told.iter().zip(words) {
        assert!(told.contains(words), "'{told}' lacks '{words}'");
    }
    others_work(&registry);
}

#[test]
fn libraries_that_panic_when_asked() {
    let dir = TempDir::new().unwrap();
    let library = build_rust(dir.path(), "panicking_query");
    cannot_be_loaded(&library, Code::Internal, &["panicked", "cannot even be made"]);
}

#[test]
fn drivers_that_panic() {
    let option = |place: &str| Options::from([("where".to_owned(), place.to_owned())]);
    let registry = || {
        let dir = TempDir::new().unwrap();
        let library = build_rust(dir.path(), "panicking");
        (with_manifest(&library, "panicking"), dir)
    };
    let (works, _dir) = registry();
    let device = open(&works, "panicking", &Options::new()).unwrap();
    submit(&device, QueueOp::Barrier).unwrap();

    let (enumerating, _dir) = registry();
    let driver = enumerating.driver("panicking").unwrap();
    let words = ["panicked", "the enumerate of this driver always panics"];
    refused(driver.enumerate(&option("enumerate")), Code::Internal, &words);
    refused(driver.enumerate(&Options::new()), Code::FailedPrecondition, &[]);
    others_work(&enumerating);

    let (opening, _dir) = registry();
    let words = ["panicked", "the open of this driver always panics"];
    refused(open(&opening, "panicking", &option("open")), Code::Internal, &words);
    others_work(&opening);

    let (submitting, _dir) = registry();
    let device = open(&submitting, "panicking", &option("submit")).unwrap();
    let words = ["panicked", "the submit of this driver always panics"];
    refused(submit(&device, QueueOp::Barrier), Code::Internal, &words);
    refused(submit(&device, QueueOp::Barrier), Code::FailedPrecondition, &[]);
    drop(device);
    others_work(&submitting);
    // Another library of the same file contents is not affected.
    let device = open(&works, "panicking", &Options::new()).unwrap();
    submit(&device, QueueOp::Barrier).unwrap();
}
