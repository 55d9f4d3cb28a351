//! Parameter archives: every input is tried as every kind; ranges lie within the file.
#![no_main]

use bytes::Bytes;
use halite_formats::params::{Kind, Storage, read_as};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = Bytes::copy_from_slice(data);
    for kind in [Kind::Irpa, Kind::Safetensors, Kind::Gguf] {
        let Ok(archive) = read_as(kind, file.clone()) else { continue };
        for entry in &archive.entries {
            match &entry.storage {
                Storage::Range { offset, length } => assert!(offset + length <= data.len() as u64),
                Storage::Splat { pattern, length } => assert_eq!(length % pattern.len() as u64, 0),
            }
        }
    }
});
