//! What a module may not do unless somebody asked for it: run machine code, and read and write the program's memory.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use halite_formats::vmfb::{WriteOptions, read_module, write_module};
use halite_hal::{Code, DriverRegistry, Options};
use halite_local::LocalDriver;
use halite_runtime::{Error, LoadMode, Session, SessionBuilder};

/// The drivers for the processor, and no other.
fn processor() -> DriverRegistry {
    let mut registry = DriverRegistry::empty();
    registry.register(Arc::new(LocalDriver::SYNC));
    registry.register(Arc::new(LocalDriver::TASK));
    registry
}

fn builder(module: impl Into<Bytes>) -> SessionBuilder {
    Session::builder().registry(processor()).module_bytes(module)
}

/// A module whose only code is machine code for this kind of processor.
fn machine_code() -> Vec<u8> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/local/tests/data/add_x86_64.vmfb");
    std::fs::read(file).unwrap()
}

fn options(options: &[(&str, &str)]) -> Options {
    options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn assert_says(error: &Error, code: Code, parts: &[&str]) {
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "'{part}' is missing from: {error}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn machine_code_runs_only_where_somebody_asked_for_it() {
    let module = machine_code();
    let refused = builder(module.clone()).build().unwrap_err();
    assert_says(
        &refused,
        Code::PermissionDenied,
        &["machine code for this processor", "--device='local-task'", ".device(\"local-task\")"],
    );
    builder(module.clone()).device("local-task").build().unwrap();
    builder(module.clone()).device("local-sync").build().unwrap();
    builder(module.clone()).device_options(options(&[("native_code", "on")])).build().unwrap();
    // Who refuses it by name is told which option that was.
    let refused = builder(module).device("local-task?native_code=off").build().unwrap_err();
    assert_says(&refused, Code::Incompatible, &["only with native_code=on", "machine code"]);
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn machine_code_does_not_run_under_the_name_of_another_format() {
    // A module that says it has bytecode too is let in, and its machine code is refused when it is loaded.
    let mut def = read_module(machine_code().into()).unwrap();
    def.rodata.push(Bytes::from_static(b"vmvx-bytecode-fb"));
    let module = write_module(&def, &WriteOptions::default()).unwrap();
    let refused = builder(module).build().unwrap_err();
    assert_says(&refused, Code::Incompatible, &["native_code=on", "machine code"]);
}

/// A mapped module that is cut before or after its length was seen fails its load, and the process goes on.
#[test]
#[cfg(unix)]
fn files_that_are_cut_while_they_are_used_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.vmfb");
    let whole = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/local/tests/data/add_vmvx.vmfb");
    for length in [0, 4096] {
        std::fs::copy(whole, &path).unwrap();
        let mapped = LoadMode::Map.load(&path).unwrap();
        builder(mapped.clone()).device("local-sync").build().unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let refused = builder(mapped).device("local-sync").build().unwrap_err();
        assert_says(&refused, Code::DataLoss, &["was cut short", "LoadMode::Preload"]);
    }
}

/// Code for a processor with features that this one lacks would end the process.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn machine_code_for_another_processor_is_refused() {
    let module = machine_code();
    let (generic, needed) = (r#"cpu_features = """#, r#"cpu_features = "+sse2,+avx512bf16""#);
    let mut def = read_module(module.into()).unwrap();
    // The text is in the bytecode, behind its length; the words that follow it make room for the features.
    let mut code = def.bytecode.to_vec();
    let at = code.windows(generic.len()).position(|w| w == generic.as_bytes()).unwrap();
    let rest = r#", data_layout = ""#;
    assert!(code[at + generic.len()..].starts_with(rest.as_bytes()));
    code[at..at + needed.len()].copy_from_slice(needed.as_bytes());
    def.bytecode = code.into();
    let module = write_module(&def, &WriteOptions::default()).unwrap();
    let built = builder(module).device("local-sync").build();
    if std::arch::is_x86_feature_detected!("avx512bf16") {
        built.unwrap();
        return;
    }
    assert_says(&built.unwrap_err(), Code::Incompatible, &["lacks: avx512bf16", "target-cpu=generic"]);
}

fn shared(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus")).join(path);
    if full.exists() {
        return Some(full);
    }
    eprintln!("SKIPPED: no {}", full.display());
    None
}

/// Vulkan devices that are the processor.
fn vulkan_on_the_processor() -> Vec<String> {
    let registry = DriverRegistry::with_static_drivers();
    let found = registry.driver("vulkan").unwrap().enumerate(&Options::new()).unwrap_or_default();
    let usable = found.iter().filter(|info| info.unusable.is_none() && !info.unconfined.is_empty());
    let uris: Vec<_> = usable.map(halite_hal::DeviceInfo::uri).collect();
    if uris.is_empty() {
        eprintln!("SKIPPED: no Vulkan device here runs on the processor and takes device addresses");
    }
    uris
}

use halite_vulkan as _;

#[test]
fn kernels_with_addresses_do_not_run_on_the_processor_unless_asked_for() {
    for uri in vulkan_on_the_processor() {
        for name in ["read_64", "read_evil", "write_evil"] {
            let Some(module) = shared(&format!("attacks/vmfb/{name}.vmfb")) else { continue };
            let refused = Session::builder().module_file(module).device(&uri).build().unwrap_err();
            assert_says(&refused, Code::Incompatible, &["dispatch_abi=all", "device addresses"]);
        }
        let Some(module) = shared("vmfb/small/abi_bda_only/module.vmfb") else { continue };
        let builder = || Session::builder().module_file(&module);
        assert!(builder().device(&uri).build().is_err());
        builder().device(format!("{uri}?dispatch_abi=all")).build().unwrap();
        // A module with descriptors as well runs without a word.
        let Some(module) = shared("vmfb/small/abi_descriptors_and_bda/module.vmfb") else { continue };
        Session::builder().module_file(module).device(&uri).build().unwrap();
    }
}
