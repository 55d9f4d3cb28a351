//! Kernels that are dispatched in parts: what they declare then, and what is refused. What they
//! compute is tested where there are devices, in the Vulkan driver.

use std::{path::Path, process::Command};

use crate::common::fixture;
use halite_spirv::{
    ChangeError, Module, REBASE_BYTES, analyze, normalize, rebase, words_from_bytes, words_to_bytes,
};
use spirv::Op;

/// Runs spirv-val on words; false if it is not installed.
fn spirv_val(words: &[u32], what: &str) -> bool {
    let path = std::env::temp_dir().join(format!("halite-rebase-{}-{what}", std::process::id()));
    std::fs::write(&path, words_to_bytes(words)).expect("a temp file");
    let result = Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&path).output();
    std::fs::remove_file(&path).expect("the file just written");
    let Ok(output) = result else {
        eprintln!("SKIPPED: no spirv-val here");
        return false;
    };
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Instructions with this opcode.
fn count_of(words: &[u32], op: Op) -> usize {
    Module::parse(words).expect("sound").insts().iter().filter(|inst| inst.op == op).count()
}

#[test]
fn a_kernel_without_push_constants_gets_some() {
    let words = fixture("elementwise.spv");
    let facts = analyze(&words).expect("valid");
    assert_eq!(facts.entry_points[0].push_constant_bytes, 0);
    let changed = rebase(&words, &facts.entry_points[0].name, 0).expect("a kernel of iree-compile");
    let after = analyze(&changed).expect("valid");
    assert_eq!(after.entry_points[0].push_constant_bytes, u64::from(REBASE_BYTES));
    assert_eq!(after.entry_points[0].bindings, facts.entry_points[0].bindings);
    assert_eq!(after.capabilities, facts.capabilities, "no new features");
    assert_eq!(
        count_of(&changed, Op::IAdd),
        count_of(&words, Op::IAdd) + 1,
        "one read of the workgroup's id"
    );
    assert_eq!(count_of(&changed, Op::Variable), count_of(&words, Op::Variable) + 1);
    spirv_val(&changed, "elementwise");
    // A layout may have push constants that the kernel does not read.
    let behind = analyze(&rebase(&words, &facts.entry_points[0].name, 16).expect("fits")).expect("valid");
    assert_eq!(behind.entry_points[0].push_constant_bytes, u64::from(16 + REBASE_BYTES));
}

#[test]
fn push_constants_stay_where_they_are() {
    let words = fixture("workgroup_ids.spv");
    let before = analyze(&words).expect("valid");
    assert_eq!(before.entry_points[0].push_constant_bytes, 8);
    for offset in [8, 24] {
        let changed = rebase(&words, "main", offset).expect("all kinds of reads");
        let after = analyze(&changed).expect("valid");
        assert_eq!(after.entry_points[0].push_constant_bytes, u64::from(offset + REBASE_BYTES));
        assert_eq!(count_of(&changed, Op::Variable), count_of(&words, Op::Variable), "one block, not two");
        assert_eq!(count_of(&changed, Op::VectorExtractDynamic), 1, "a component chosen at run time");
        spirv_val(&changed, "workgroup_ids");
    }
    let overlap = rebase(&words, "main", 4).expect_err("the block has 8 bytes");
    assert_eq!(overlap.to_string(), "its push constants end at byte 8, its layout at byte 4");
}

#[test]
fn a_kernel_that_reads_no_ids_is_left_alone() {
    let mut words = fixture("elementwise.spv");
    let name = analyze(&words).expect("valid").entry_points[0].name.clone();
    // The workgroup's id becomes the invocation's, of which there is one already: another id for the same.
    let builtin = words.windows(4).position(|w| w[0] == 4 << 16 | 71 && w[2..] == [11, 26]);
    words[builtin.expect("WorkgroupId is decorated") + 3] = 27;
    assert_eq!(rebase(&words, &name, 0).expect("valid"), words);
}

#[test]
fn what_is_not_understood_is_refused() {
    let words = fixture("workgroup_ids.spv");
    assert!(matches!(rebase(&words, "other", 8), Err(ChangeError::Spirv(_))));
    assert!(matches!(rebase(&words[..words.len() - 2], "main", 8), Err(ChangeError::Spirv(_))));
    assert!(rebase(&words, "main", u32::MAX - 3).is_err(), "no room behind the last byte");
    assert!(rebase(&words, "main", 9).is_err(), "no multiple of four");
    let mut signed = fixture("elementwise.spv");
    let name = analyze(&signed).expect("valid").entry_points[0].name.clone();
    let once = rebase(&signed, &name, 0).expect("valid");
    let again = rebase(&once, &name, 0).expect_err("the added block is in the way");
    assert!(again.to_string().contains("end at byte 24"), "{again}");
    let int = signed.windows(4).position(|w| w[0] == 4 << 16 | 21 && w[2..] == [32, 0]);
    signed[int.expect("a 32-bit type") + 3] = 1;
    let error = rebase(&signed, &name, 0).expect_err("the only integers are signed");
    assert_eq!(error.to_string(), "it reads WorkgroupId as signed numbers");
}

/// Damaged modules give an error or a valid module.
#[test]
fn damage_is_survived() {
    let (mut refused, mut changed) = (0, 0);
    for (name, offset) in [("elementwise.spv", 0), ("workgroup_ids.spv", 8)] {
        let words = fixture(name);
        let entry = analyze(&words).expect("valid").entry_points[0].name.clone();
        for at in 5..words.len() {
            for damage in [words[at] ^ 1, words[at] ^ 4, words[at] + 1, words[at - 1], 0, u32::MAX] {
                let mut words = words.clone();
                words[at] = damage;
                match rebase(&words, &entry, offset) {
                    Ok(words) => {
                        changed += 1;
                        analyze(&words).expect("what is given out is valid");
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 1000 && changed > 100, "{refused} refused, {changed} changed");
}

/// Every kernel of the corpus: what is changed is valid.
#[test]
fn kernels_of_the_corpus() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus/vmfb/small"));
    let other = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb/small"));
    let Some(root) = [root, other].into_iter().find(|r| r.exists()) else {
        eprintln!("SKIPPED: no corpus here");
        return;
    };
    let (mut kernels, mut changed, mut checked) = (0, 0, 0);
    let entries = std::fs::read_dir(root).expect("the corpus").flatten();
    for path in entries.map(|e| e.path().join("module.vmfb")).filter(|p| p.exists()) {
        for words in shaders_of(&std::fs::read(path).expect("a module")) {
            let Ok(facts) = analyze(&words) else { continue };
            let words = normalize(&words).expect("valid").unwrap_or(words);
            let entry = &facts.entry_points[0];
            let offset = entry.push_constant_bytes as u32;
            let after = rebase(&words, &entry.name, offset).expect("what iree-compile emits is supported");
            kernels += 1;
            if after != words {
                changed += 1;
                let facts = analyze(&after).expect("valid").entry_points.remove(0);
                assert_eq!(facts.push_constant_bytes, u64::from(offset + REBASE_BYTES));
                if spirv_val(&after, "corpus") {
                    checked += 1;
                }
            }
        }
    }
    eprintln!("{changed} of {kernels} kernels changed, {checked} given to spirv-val");
    assert!(changed > 20, "{changed} of {kernels}");
}

/// Cuts the SPIR-V modules out of a file: from each magic number, as far as the words are instructions.
fn shaders_of(file: &[u8]) -> Vec<Vec<u32>> {
    let magic = 0x0723_0203u32.to_le_bytes();
    let starts = (0..file.len().saturating_sub(20)).step_by(4).filter(|at| file[*at..*at + 4] == magic);
    starts
        .filter_map(|at| {
            // The length of a vector precedes it.
            let length = u32::from_le_bytes(*file.get(at.checked_sub(4)?..at)?.first_chunk()?) as usize;
            let bytes = file.get(at..at.checked_add(length.checked_mul(4)?)?)?;
            words_from_bytes(bytes).ok()
        })
        .collect()
}
