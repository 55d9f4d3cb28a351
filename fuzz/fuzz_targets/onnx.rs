//! ONNX models, all the way to modules: reading, import for small sizes, passes, the plan for the baseline, emission.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| halite_fuzz::compile(Bytes::copy_from_slice(data), "onnx"));
