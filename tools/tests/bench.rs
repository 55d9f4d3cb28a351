//! The tool `halite bench`: where the inputs lie, and profiles of functions with state.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::run;
use serde_json::Value;

/// A place in the repository.
macro_rules! place {
    ($path:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../", $path)
    };
}

const DIGITS: &str = place!("demo/digits/digits.onnx");
const DECODER: &str = place!("compiler/tests/data/gguf/llama.gguf");
const SHORT: [&str; 3] = ["--device=vulkan", "--warmup=0", "--benchmark_min_time=0.01s"];

#[test]
fn inputs_lie_in_pinned_memory_where_that_is_asked_for() {
    let flags = ["bench", DIGITS, "--input=1x1x16x16xf32=0.5", "--json"];
    let told = |more: &[&str]| run("halite", &[&flags[..], &SHORT, more].concat());
    let alone = told(&["--pinned-inputs"]);
    assert!(alone.code == 2 && alone.stdout.contains("with-transfers"), "{}{}", alone.stdout, alone.stderr);
    let both = told(&["--with-transfers", "--pinned-inputs"]);
    if both.stdout.contains("NOT_FOUND") || both.stdout.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", both.stdout);
        return;
    }
    assert_eq!(both.code, 0, "{}{}", both.stdout, both.stderr);
    let made: Value = serde_json::from_str(&both.stdout).unwrap();
    assert!(made["benchmarks"][0]["real_time"].as_f64().unwrap() > 0.0, "{made}");
}

#[test]
fn a_token_of_a_decoder_is_profiled_behind_others() {
    let flags = ["bench", DECODER, "--in-sequence", "--ops", "--dim", "context=64", "--function=main"];
    let inputs = ["--input=tokens=1xi32=5", "--input=positions=1xi64=3", "--input=rows=1xi32=0"];
    let told = run("halite", &[&flags[..], &SHORT, &inputs].concat());
    if told.stderr.contains("NOT_FOUND") || told.stderr.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", told.stderr);
        return;
    }
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("by kernel") && told.stdout.contains("kv_append"), "{}", told.stdout);
}

#[test]
fn inputs_are_made_up_where_none_is_given_and_all_sizes_are_known() {
    let told = run("halite", &[&["bench", DIGITS, "--json"], &SHORT[..]].concat());
    if told.stdout.contains("NOT_FOUND") || told.stdout.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", told.stdout);
        return;
    }
    assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("made up: 'picture' f32[1,1,16,16]"), "{}", told.stderr);
    let made: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(made["benchmarks"][0]["real_time"].as_f64().unwrap() > 0.0, "{made}");
    let checked = run("halite", &["check", DIGITS]);
    assert!(checked.code == 0 && checked.stderr.contains("made up"), "{}{}", checked.stdout, checked.stderr);
    // Of open sizes nobody knows how many there should be.
    let open = run("halite", &[&["bench", DECODER], &SHORT[..]].concat());
    assert!(open.code == 2 && open.stderr.contains("open sizes"), "{}", open.stderr);
}
