//! The decisions about real and hand-made kernels: each fixture has the answer that its README gives.

use std::process::Command;

use crate::common::fixture;
use halite_spirv::{
    Module, analyze,
    subgroup::{Decision, Policy, SubgroupSupport, SubgroupUse, plan, subgroup_use},
};
use spirv::Op;

const REPAIR: Policy = Policy { repair: true, allow_mismatch: false };

fn fixed(size: u32) -> SubgroupSupport {
    SubgroupSupport {
        default_size: size,
        min_size: size,
        max_size: size,
        size_control: false,
        require_full: false,
        compute_stage: false,
    }
}

fn range(default_size: u32, min_size: u32, max_size: u32) -> SubgroupSupport {
    SubgroupSupport {
        default_size,
        min_size,
        max_size,
        size_control: true,
        require_full: true,
        compute_stage: true,
    }
}

fn entry_of(words: &[u32]) -> String {
    analyze(words).expect("valid").entry_points[0].name.clone()
}

fn decide(words: &[u32], assumed: &[u32], device: &SubgroupSupport, policy: &Policy) -> Decision {
    plan(words, &entry_of(words), assumed, 0, device, policy).expect("valid")
}

fn barriers(words: &[u32]) -> usize {
    let module = Module::parse(words).expect("valid");
    module.insts().iter().filter(|inst| inst.op == Op::ControlBarrier).count()
}

fn local_size(words: &[u32]) -> [u32; 3] {
    analyze(words).expect("valid").entry_points[0].local_size
}

/// Asks the real validator, if it is installed.
fn accepted_by_spirv_val(name: &str, words: &[u32]) {
    let path = std::env::temp_dir().join(format!("halite-spirv-{}-{name}", std::process::id()));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::write(&path, bytes).expect("temporary file");
    match Command::new("spirv-val").arg("--target-env").arg("vulkan1.3").arg(&path).output() {
        Ok(out) => assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => eprintln!("SKIPPED: spirv-val is not installed, {name} was not checked with it"),
    }
    std::fs::remove_file(&path).expect("it was just written");
}

#[test]
fn lockstep_kernels_are_repaired_with_the_fewest_barriers() {
    // (fixture, barriers that are needed on top of those it has)
    let cases = [
        ("depthwise_conv.spv", 2),
        ("distinct_results.spv", 3),
        ("counted.spv", 3),
        ("sized.spv", 3),
        ("unguarded.spv", 1),
        ("loop_carried.spv", 1),
        ("loop_carried_locals.spv", 1),
        ("buffer_exchange.spv", 1),
    ];
    for (name, needed) in cases {
        let words = fixture(name);
        let entry = entry_of(&words);
        let used = subgroup_use(&words, &entry).expect("valid");
        assert!(matches!(used, SubgroupUse::LockstepWorkgroup { .. }), "{name}: {used:?}");
        for device in [fixed(4), fixed(8), fixed(32), fixed(64), range(32, 8, 64)] {
            let Decision::Repaired { words: repaired, note } = decide(&words, &[64], &device, &REPAIR) else {
                panic!("{name} was not repaired");
            };
            assert!(note.contains(&entry), "{note}");
            assert_eq!(barriers(&repaired), barriers(&words) + needed, "{name}");
            assert_eq!(local_size(&repaired), local_size(&words), "{name}");
            assert_eq!(subgroup_use(&repaired, &entry).expect("valid"), SubgroupUse::None, "{name}");
            let again = decide(&repaired, &[64], &device, &REPAIR);
            assert_eq!(again, Decision::Run { required_size: None }, "{name}");
            accepted_by_spirv_val(name, &repaired);
        }
    }
}

#[test]
fn invocations_that_repeat_the_work_of_others_are_left_out() {
    // (fixture, workgroup without them, barriers that are needed on top of those it has)
    let cases = [("batch_matmul.spv", [16, 1, 1], 0), ("replicated.spv", [16, 1, 1], 1)];
    for (name, smaller, needed) in cases {
        let words = fixture(name);
        let entry = entry_of(&words);
        for device in [fixed(4), fixed(32), range(32, 8, 64)] {
            let Decision::Repaired { words: repaired, note } = decide(&words, &[64], &device, &REPAIR) else {
                panic!("{name} was not repaired");
            };
            assert!(
                note.contains("16x1x1") && note.contains("1 barrier inserted") == (needed == 1),
                "{note}"
            );
            assert_eq!(local_size(&repaired), smaller, "{name}");
            assert_eq!(barriers(&repaired), barriers(&words) + needed, "{name}");
            assert_eq!(repaired.len() > words.len(), needed > 0, "{name}");
            assert_eq!(subgroup_use(&repaired, &entry).expect("valid"), SubgroupUse::None, "{name}");
            accepted_by_spirv_val(name, &repaired);
        }
        let keep = Policy { repair: false, allow_mismatch: false };
        assert!(matches!(decide(&words, &[64], &fixed(4), &keep), Decision::Refuse { .. }), "{name}");
    }
}

#[test]
fn kernels_without_an_exchange_run_unchanged() {
    for name in ["softmax.spv", "synced.spv", "synced_locals.spv", "reduction.spv", "guarded.spv"] {
        let words = fixture(name);
        assert_eq!(subgroup_use(&words, &entry_of(&words)).expect("valid"), SubgroupUse::None, "{name}");
        assert_eq!(
            decide(&words, &[64], &fixed(4), &REPAIR),
            Decision::Run { required_size: None },
            "{name}"
        );
    }
}

#[test]
fn an_exchange_in_a_divergent_loop_is_refused_or_run_as_it_was_meant() {
    let words = fixture("divergent_loop.spv");
    let Decision::Refuse { message } = decide(&words, &[], &fixed(8), &REPAIR) else {
        panic!("must be refused")
    };
    for part in ["`main`", "64", "have 8", "--iree-vulkan-target=llvmpipe", "--allow-subgroup-mismatch"] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    assert_eq!(decide(&words, &[], &fixed(64), &REPAIR), Decision::Run { required_size: None });
    assert_eq!(decide(&words, &[], &range(32, 16, 64), &REPAIR), Decision::Run { required_size: Some(64) });
    // The width that the compiler was told is as good, even if the workgroup has several subgroups.
    assert_eq!(decide(&words, &[8], &fixed(8), &REPAIR), Decision::Run { required_size: None });
    assert_eq!(decide(&words, &[16], &range(32, 16, 32), &REPAIR), Decision::Run { required_size: Some(16) });
    assert!(matches!(decide(&words, &[16], &fixed(8), &REPAIR), Decision::Refuse { .. }));
    let allow = Policy { repair: true, allow_mismatch: true };
    assert!(matches!(decide(&words, &[], &fixed(8), &allow), Decision::RunMismatched { .. }));
}

#[test]
fn branches_are_taken_apart_where_a_barrier_needs_a_place() {
    for name in ["divergent.spv", "handed_over.spv", "phases_in_branch.spv"] {
        let words = fixture(name);
        let entry = entry_of(&words);
        for device in [fixed(4), fixed(8), range(32, 8, 32)] {
            let Decision::Repaired { words: repaired, note } = decide(&words, &[8], &device, &REPAIR) else {
                panic!("{name} was not repaired");
            };
            assert!(note.contains("1 branch taken apart, 1 barrier inserted"), "{note}");
            assert_eq!(barriers(&repaired), barriers(&words) + 1, "{name}");
            assert_eq!(subgroup_use(&repaired, &entry).expect("valid"), SubgroupUse::None, "{name}");
            accepted_by_spirv_val(name, &repaired);
        }
    }
}

#[test]
fn values_that_share_a_word_are_told_apart() {
    let used = |name| {
        let words = fixture(name);
        subgroup_use(&words, &entry_of(&words)).expect("valid")
    };
    assert_eq!(used("packed.spv"), SubgroupUse::None);
    let neighbour = used("packed_neighbour.spv");
    assert!(matches!(neighbour, SubgroupUse::LockstepWorkgroup { .. }), "{neighbour:?}");
}

#[test]
fn several_may_store_one_value_but_not_their_own() {
    let words = fixture("repeated.spv");
    for device in [fixed(4), fixed(8)] {
        let Decision::Repaired { words: repaired, note } = decide(&words, &[64], &device, &REPAIR) else {
            panic!("not repaired");
        };
        assert!(note.contains("1 barrier inserted"), "{note}");
        accepted_by_spirv_val("repeated.spv", &repaired);
    }
    let words = fixture("repeated_own.spv");
    assert!(matches!(decide(&words, &[64], &fixed(8), &REPAIR), Decision::Refuse { .. }));
}

#[test]
fn without_repair_lockstep_needs_one_subgroup_for_the_workgroup() {
    let words = fixture("depthwise_conv.spv");
    let policy = Policy { repair: false, allow_mismatch: false };
    assert!(matches!(decide(&words, &[64], &fixed(32), &policy), Decision::Refuse { .. }));
    assert_eq!(decide(&words, &[64], &fixed(64), &policy), Decision::Run { required_size: None });
    assert_eq!(decide(&words, &[64], &range(32, 32, 64), &policy), Decision::Run { required_size: Some(64) });
}

#[test]
fn subgroup_instructions_run_at_the_size_they_were_compiled_for() {
    let words = fixture("reduction_ampere.spv");
    let used = subgroup_use(&words, &entry_of(&words)).expect("valid");
    let SubgroupUse::SubgroupOps { ops, implied_sizes } = used else { panic!("{used:?}") };
    assert_eq!(implied_sizes, [32]);
    assert!(ops.contains(&"GroupNonUniformFAdd".to_owned()), "{ops:?}");
    let keep = Policy { repair: false, allow_mismatch: false };
    for assumed in [&[][..], &[32]] {
        assert_eq!(decide(&words, assumed, &fixed(32), &keep), Decision::Run { required_size: None });
        assert_eq!(
            decide(&words, assumed, &range(64, 32, 64), &keep),
            Decision::Run { required_size: Some(32) }
        );
        for wrong in [fixed(4), fixed(8), fixed(64), range(8, 8, 16)] {
            assert!(matches!(decide(&words, assumed, &wrong, &keep), Decision::Refuse { .. }));
        }
    }
}

#[test]
fn at_another_width_subgroup_instructions_go_through_workgroup_memory() {
    let words = fixture("reduction_ampere.spv");
    let entry = entry_of(&words);
    for device in [fixed(4), fixed(8), fixed(64), range(8, 8, 16)] {
        let Decision::Repaired { words: repaired, note } = decide(&words, &[32], &device, &REPAIR) else {
            panic!("not repaired for {device:?}");
        };
        assert!(note.contains(&entry) && note.contains("32"), "{note}");
        let facts = analyze(&repaired).expect("valid");
        assert!(facts.entry_points[0].subgroup_ops.is_empty());
        assert!(
            !facts.capabilities.iter().any(|c| c.starts_with("GroupNonUniform")),
            "{:?}",
            facts.capabilities
        );
        // The sums of 8 subgroups, and one value for each of the 256 invocations.
        assert_eq!(facts.entry_points[0].workgroup_memory_bytes, 32 + 4 * 256);
        assert_eq!(subgroup_use(&repaired, &entry).expect("valid"), SubgroupUse::None);
        // The compiler's module claims version 1.3 but keeps the rules of 1.4 and later.
        let mut claimed = repaired;
        claimed[1] = 0x0001_0600;
        accepted_by_spirv_val("reduction_ampere.spv", &claimed);
    }
}

#[test]
fn a_declared_size_is_required_or_refused() {
    let words = fixture("reduction.spv");
    let entry = entry_of(&words);
    let ask = |device| plan(&words, &entry, &[], 32, &device, &REPAIR).expect("valid");
    assert_eq!(ask(range(64, 32, 64)), Decision::Run { required_size: Some(32) });
    assert_eq!(ask(fixed(32)), Decision::Run { required_size: None });
    assert!(matches!(ask(fixed(8)), Decision::Refuse { .. }));
}

#[test]
fn facts_and_features_of_a_real_kernel() {
    let facts = analyze(&fixture("reduction_ampere.spv")).expect("valid");
    assert_eq!(facts.version, (1, 3));
    assert_eq!((facts.addressing_model.as_str(), facts.memory_model.as_str()), ("Logical", "GLSL450"));
    let entry = &facts.entry_points[0];
    assert_eq!(entry.local_size, [256, 1, 1]);
    assert_eq!(entry.workgroup_memory_bytes, 32);
    assert_eq!(entry.push_constant_bytes, 0);
    assert!(entry.uses_control_barrier);
    let bindings: Vec<_> = entry.bindings.iter().map(|b| (b.set, b.binding, b.class.as_str())).collect();
    assert_eq!(bindings, [(0, 0, "StorageBuffer"), (0, 1, "StorageBuffer")]);
    for capability in ["GroupNonUniform", "GroupNonUniformArithmetic", "GroupNonUniformShuffle"] {
        assert!(facts.capabilities.iter().any(|name| name == capability), "{:?}", facts.capabilities);
    }
    assert_eq!(analyze(&fixture("synced.spv")).expect("valid").entry_points[0].push_constant_bytes, 4);
}

#[test]
fn halves_are_seen_in_types_and_in_words() {
    let has = |name| analyze(&fixture(name)).expect("valid").has_halves;
    assert!(has("halves_stored.spv") && has("halves_in_words.spv"));
    assert!(!has("reduction_ampere.spv") && !has("packed.spv"));
}

#[test]
fn an_unknown_entry_point_is_named_with_those_that_exist() {
    let error = subgroup_use(&fixture("synced.spv"), "nope").expect_err("there is none");
    assert!(error.to_string().contains("`nope`") && error.to_string().contains("main"), "{error}");
}
