//! The target decides which variant is chosen: for the documented triples and Hopper, and for operations of several kinds.

use std::collections::BTreeSet;

use halite_ops::{DType, Operation};
use halite_shaders::{Tuning, rank};
use halite_targets::{Capabilities, Target};

const TRIPLES: [&str; 6] = [
    "valhall-g78-android30",
    "adreno-unknown-android30",
    "rdna1-5700xt-linux",
    "ampere-rtx3080-windows",
    "cpu-swiftshader-unknown",
    "hopper-h200-linux",
];

const OPERATIONS: [&str; 6] = [
    "matmul:m=4096,n=4096,k=4096,lhs=f16,rhs=f16",
    "matmul:m=4096,n=4096,k=4096,lhs=i8,rhs=i8,out=i32",
    "matmul:m=1024,n=1024,k=1024,lhs=bf16,rhs=bf16",
    "conv2d:input=1x64x56x56,filter=64x64x3x3",
    "conv2d:input=1x64x56x56,filter=64x64x3x3,dtype=f16",
    "attention:batch=1,heads=32,q_len=1024,kv_len=1024,head_dim=128,dtype=f16",
];

fn target(triple: &str) -> Capabilities {
    Capabilities::of(Target::parse(triple).expect("the triple is known"))
}

fn chosen(operation: &str, triple: &str) -> &'static str {
    let operation = Operation::parse(operation).expect("it is an operation");
    let ranked = rank(&operation, &target(triple), Tuning::shipped());
    let first = ranked.first().expect("there are variants");
    assert!(first.plan().is_some(), "nothing computes {operation} on {triple}");
    &first.variant.name
}

#[test]
fn each_target_has_choices_of_its_own() {
    let profiles: BTreeSet<Vec<&str>> = TRIPLES
        .iter()
        .map(|triple| OPERATIONS.iter().map(|operation| chosen(operation, triple)).collect())
        .collect();
    assert_eq!(profiles.len(), TRIPLES.len(), "{profiles:#?}");
}

#[test]
fn matrix_units_are_used_where_there_are_any() {
    let matmul = |triple| chosen(OPERATIONS[0], triple);
    for triple in ["ampere-rtx3080-windows", "hopper-h200-linux"] {
        assert!(matmul(triple).starts_with("matmul.f16_f32.coop"), "{triple}: {}", matmul(triple));
    }
    for triple in ["valhall-g78-android30", "rdna1-5700xt-linux", "cpu-swiftshader-unknown"] {
        assert!(!matmul(triple).contains("coop"), "{triple}: {}", matmul(triple));
    }
}

#[test]
fn devices_without_16_bit_storage_get_packed_kernels() {
    assert!(chosen(OPERATIONS[4], "cpu-swiftshader-unknown").contains("packed"));
    assert!(!chosen(OPERATIONS[4], "hopper-h200-linux").contains("packed"));
}

#[test]
fn valhall_uses_no_shared_memory_for_convolutions() {
    assert_eq!(chosen(OPERATIONS[3], "valhall-g78-android30"), "conv2d.f32.strips3x3");
    assert_eq!(
        chosen("conv2d:input=1x32x112x112,filter=32x1x3x3,groups=32", "valhall-g78-android30"),
        "conv2d.f32.depthwise3x3s1"
    );
}

#[test]
fn every_sample_runs_on_every_target() {
    // In the short form each sample on every third target.
    let step = if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 1 } else { 3 };
    for name in Operation::NAMES {
        for (place, sample) in Operation::samples(name).into_iter().enumerate() {
            for triple in TRIPLES.iter().skip(place % step).step_by(step) {
                let ranked = rank(&sample, &target(triple), Tuning::shipped());
                assert!(ranked.first().is_some_and(|c| c.plan().is_some()), "{sample} on {triple}");
            }
        }
    }
}

/// Operations that only move elements take all types by their size.
#[test]
fn elements_of_every_type_can_be_moved() {
    let names =
        ["copy", "concat", "pad", "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd"];
    for name in names {
        // Of a type that is written out, as it is not the default one.
        let samples = Operation::samples(name);
        let text = samples.iter().map(ToString::to_string).find(|text| text.contains("dtype=i64"));
        let text = text.unwrap_or_else(|| panic!("{name} has a sample of i64"));
        for dtype in DType::ALL {
            let text = text.replace("dtype=i64", &format!("dtype={dtype}"));
            for triple in TRIPLES {
                chosen(&text, triple);
            }
        }
    }
}
