//! Module files: whatever is accepted keeps its promises, and reads the same after being written again.
#![no_main]

use bytes::Bytes;
use halite_formats::vmfb::{RecordingNotes, WriteOptions, read_module, write_module};
use libfuzzer_sys::fuzz_target;

/// Readers allow this much global state to any file; beyond, the limit depends on the file's size, which changes.
const ALWAYS_ALLOWED: u32 = 64 << 10;

fuzz_target!(|data: &[u8]| {
    let Ok(module) = read_module(Bytes::copy_from_slice(data)) else { return };
    for ordinal in 0..module.functions.len() as u32 {
        assert!(module.function_code(ordinal).is_some());
        let _ = module.function_name(ordinal);
        let _ = RecordingNotes::of(&module.functions[ordinal as usize].signature);
    }
    assert!(module.exports.iter().all(|e| (e.ordinal as usize) < module.functions.len()));
    if module.global_bytes_capacity > ALWAYS_ALLOWED || module.global_ref_count > ALWAYS_ALLOWED {
        return;
    }
    let options = WriteOptions { polyglot_zip: data.len() % 2 == 0 };
    let written = write_module(&module, &options).expect("what was read can be written");
    let again = read_module(Bytes::from(written)).expect("what was written can be read");
    assert_eq!(again, module);
});
