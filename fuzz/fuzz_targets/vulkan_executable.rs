//! Vulkan executables. A module file serves as input too: the first executable in it is used.
#![no_main]

use bytes::Bytes;
use halite_formats::vmfb::{read_vulkan_executable, write_vulkan_executable};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The header: magic and version 0. The FlatBuffer inside has the same magic, but no version behind it.
    let start = data.windows(8).position(|w| w == b"VKE1\0\0\0\0").unwrap_or(0);
    let Ok(executable) = read_vulkan_executable(Bytes::copy_from_slice(&data[start..])) else { return };
    for pipeline in &executable.pipelines {
        assert!((pipeline.shader_module as usize) < executable.shader_modules.len());
        let layout = &executable.pipeline_layouts[pipeline.layout as usize];
        assert!(layout.set_layouts.iter().all(|s| (*s as usize) < executable.set_layouts.len()));
    }
    let written = write_vulkan_executable(&executable).expect("what was read can be written");
    let again = read_vulkan_executable(Bytes::from(written)).expect("what was written can be read");
    assert_eq!(again, executable);
});
