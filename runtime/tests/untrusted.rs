//! What a module may not do unless somebody asked for it: run machine code, and read and write the program's memory.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use halite_formats::vmfb::{WriteOptions, read_module, write_module};
use halite_hal::{Code, DriverRegistry, Options};
use halite_local::LocalDriver;
use halite_runtime::{Error, Session, SessionBuilder};

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
