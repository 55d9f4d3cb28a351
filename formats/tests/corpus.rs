//! Real modules: all decode, and survive being written again.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use crate::common::{corpus, good_modules};
use bytes::Bytes;
use halite_formats::vmfb::{
    DispatchAbi, ModuleDef, WriteOptions, read_module, read_vulkan_executable, write_module,
    write_vulkan_executable,
};

fn executables(module: &ModuleDef) -> Vec<Bytes> {
    module.rodata.iter().filter(|d| d.starts_with(b"VKE1")).cloned().collect()
}

#[test]
fn every_module_decodes_and_round_trips() {
    let Some(corpus) = corpus() else { return };
    let files = good_modules(&corpus);
    assert!(files.len() > 100, "only {} modules found", files.len());
    for path in files {
        let file = Bytes::from(std::fs::read(&path).unwrap());
        let module = read_module(file.clone()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!module.functions.is_empty() && !module.name.is_empty());
        for polyglot_zip in [true, false] {
            let options = WriteOptions { polyglot_zip };
            let written = write_module(&module, &options).unwrap();
            assert_eq!(written.starts_with(b"PK\x03\x04"), polyglot_zip);
            assert_eq!(written, write_module(&module, &options).unwrap(), "not deterministic");
            let again =
                read_module(Bytes::from(written)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert!(again == module, "{} changes when written again", path.display());
        }
    }
}

#[test]
fn every_executable_decodes_and_round_trips() {
    let Some(corpus) = corpus() else { return };
    let (mut count, mut bda) = (0, 0);
    for path in good_modules(&corpus) {
        let module = read_module(Bytes::from(std::fs::read(&path).unwrap())).unwrap();
        for data in executables(&module) {
            let at = path.display();
            let executable = read_vulkan_executable(data.clone()).unwrap_or_else(|e| panic!("{at}: {e}"));
            assert!(executable.shader_modules.iter().all(|m| m[..4] == [3, 2, 0x23, 7]), "{at}");
            let written = write_vulkan_executable(&executable).unwrap();
            let again = read_vulkan_executable(Bytes::from(written)).unwrap_or_else(|e| panic!("{at}: {e}"));
            assert!(again == executable, "{at}: an executable changes when written again");
            count += 1;
            bda += usize::from(executable.pipelines[0].abi == DispatchAbi::BufferDeviceAddress);
        }
    }
    assert!(count > 100 && bda > 0, "{count} executables, {bda} of them BDA");
}

#[test]
fn rodata_shares_memory_with_the_file() {
    let Some(corpus) = corpus() else { return };
    let file = Bytes::from(std::fs::read(corpus.join("small/large_constant/module.vmfb")).unwrap());
    let module = read_module(file.clone()).unwrap();
    let within = file.as_ptr_range();
    for part in module.rodata.iter().chain([&module.bytecode]).filter(|d| !d.is_empty()) {
        assert!(within.contains(&part.as_ptr()));
    }
}

#[test]
fn external_segments_are_aligned_from_the_file_start() {
    let Some(corpus) = corpus() else { return };
    let file = std::fs::read(corpus.join("small/multi_variant_executables/module.vmfb")).unwrap();
    let module = read_module(Bytes::from(file)).unwrap();
    for polyglot_zip in [true, false] {
        let written = Bytes::from(write_module(&module, &WriteOptions { polyglot_zip }).unwrap());
        for data in executables(&read_module(written.clone()).unwrap()) {
            let offset = data.as_ptr() as usize - written.as_ptr() as usize;
            assert_eq!(offset % 64, 0);
        }
    }
}
