//! SPIR-V modules: validation, facts, what is accessed, and the plan for a narrow device; what is repaired must be valid again.
#![no_main]

use halite_spirv::{
    access::{AccessPlan, Launch},
    analyze,
    subgroup::{Decision, Policy, SubgroupSupport, plan},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let words: Vec<u32> =
        data.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let Ok(facts) = analyze(&words) else { return };
    let device = SubgroupSupport {
        default_size: 8,
        min_size: 8,
        max_size: 8,
        size_control: false,
        require_full: false,
        compute_stage: false,
    };
    let policy = Policy { repair: true, allow_mismatch: false };
    for entry in &facts.entry_points {
        let accesses = AccessPlan::new(&words, &entry.name).expect("the module was accepted");
        accesses.of(&Launch { push_constants: &[3; 16], workgroups: Some([2; 3]) });
        let decision =
            plan(&words, &entry.name, &[32], 0, &device, &policy).expect("the module was accepted");
        if let Decision::Repaired { words, .. } = decision {
            assert!(analyze(&words).is_ok());
        }
    }
});
