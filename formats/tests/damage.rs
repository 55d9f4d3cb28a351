//! Damaged modules and executables: an error or a sound module, never a panic, a hang, or a huge allocation.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use crate::common::{Noise, corpus, modules};
use bytes::Bytes;
use halite_formats::vmfb::{ModuleDef, read_module, read_vulkan_executable};

/// What a module that was accepted must keep to, so that nothing behind the reader has to check it again.
fn check(module: &ModuleDef) {
    let functions = module.functions.len() as u32;
    assert!(module.exports.iter().all(|e| e.ordinal < functions));
    assert!((0..functions).all(|i| module.function_code(i).is_some_and(|c| !c.is_empty())));
    for data in module.rodata.iter().filter(|d| d.starts_with(b"VKE1")) {
        if let Ok(executable) = read_vulkan_executable(data.clone()) {
            let layouts = executable.pipeline_layouts.len();
            let modules = executable.shader_modules.len();
            let fits = |p: &halite_formats::vmfb::Pipeline| {
                (p.layout as usize) < layouts && (p.shader_module as usize) < modules
            };
            assert!(executable.pipelines.iter().all(fits));
        }
    }
}

fn try_read(file: Vec<u8>) -> bool {
    let module = read_module(Bytes::from(file));
    if let Ok(module) = &module {
        check(module);
    }
    module.is_ok()
}

/// Small real modules of different make-up.
fn samples() -> Vec<Vec<u8>> {
    let names =
        ["add_f32", "scalar_loop_fib", "abi_descriptors_and_bda", "no_polyglot_zip", "async_external"];
    let Some(corpus) = corpus() else { return Vec::new() };
    let path = |name| corpus.join("small").join(name).join("module.vmfb");
    names.iter().map(|n| std::fs::read(path(n)).expect("the corpus is readable")).collect()
}

#[test]
fn the_bad_modules_of_the_corpus() {
    let Some(corpus) = corpus() else { return };
    // Those whose damage is behind the reader: in bytecode, SPIR-V, names, or bytes that nobody reads.
    let deeper = [
        "bytecode_",
        "spirv_",
        "renamed_",
        "trailing_garbage",
        "trunc_99pct",
        "garble",
        "bitflip3_",
        "byteflip_",
    ];
    let (mut refused, mut total) = (0, 0);
    for path in modules(&corpus.join("bad")) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let accepted = try_read(std::fs::read(&path).unwrap());
        assert!(!accepted || deeper.iter().any(|d| name.starts_with(d)), "{name} was accepted");
        refused += usize::from(!accepted);
        total += 1;
    }
    assert!(total > 40 && refused > 15, "{refused} of {total} refused");
}

#[test]
fn cut_anywhere() {
    for file in samples() {
        for length in (0..file.len()).step_by(7) {
            try_read(file[..length].to_vec());
        }
    }
}

#[test]
fn bytes_changed_anywhere() {
    let mut noise = Noise(20_261_120);
    let (mut refused, mut total) = (0, 0);
    for file in samples() {
        for _ in 0..400 {
            let mut file = file.clone();
            for _ in 0..=noise.below(4) {
                let at = noise.below(file.len());
                file[at] = match noise.below(4) {
                    0 => 0xFF,
                    1 => 0,
                    2 => file[at] ^ (1 << noise.below(8)),
                    _ => noise.next() as u8,
                };
            }
            refused += usize::from(!try_read(file));
            total += 1;
        }
    }
    assert!(total == 0 || refused > total / 20, "{refused} of {total} refused: the damage misses the reader");
}

#[test]
fn executables_changed_anywhere() {
    let mut noise = Noise(7);
    for file in samples() {
        let module = read_module(Bytes::from(file)).unwrap();
        for data in module.rodata.iter().filter(|d| d.starts_with(b"VKE1")) {
            for length in (0..data.len()).step_by(7) {
                assert!(read_vulkan_executable(data.slice(..length)).is_err());
            }
            for _ in 0..1000 {
                let mut changed = data.to_vec();
                // Metadata sits at both ends, shaders between.
                let at = noise.below(300);
                let at = if noise.below(2) == 0 { at } else { changed.len() - 1 - at };
                changed[at] = noise.next() as u8;
                drop(read_vulkan_executable(Bytes::from(changed)));
            }
        }
    }
}
