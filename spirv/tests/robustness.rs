//! No input makes the checks and analyses of this crate panic, and damage is found. What they decide on sound kernels is
//! tested in `kernels.rs`.

use std::path::{Path, PathBuf};

use crate::common::{Random, damaged, fixtures};
use halite_spirv::{
    Module,
    access::{AccessPlan, Launch},
    analyze,
    subgroup::{Policy, SubgroupSupport, plan},
    words_from_bytes,
};

const DEVICE: SubgroupSupport = SubgroupSupport {
    default_size: 8,
    min_size: 8,
    max_size: 8,
    size_control: false,
    require_full: false,
    compute_stage: false,
};

/// What a valid module accesses, in launches with and without numbers.
fn access(words: &[u32], entry: &str) {
    let accesses = AccessPlan::new(words, entry).expect("a valid module has an answer");
    for (push_constants, workgroups) in [(&[][..], None), (&[u32::MAX; 32][..], Some([u32::MAX; 3]))] {
        accesses.of(&Launch { push_constants, workgroups });
    }
}

fn exercise(words: &[u32]) -> bool {
    let Ok(facts) = analyze(words) else { return false };
    for entry in &facts.entry_points {
        let policy = Policy { repair: true, allow_mismatch: false };
        plan(words, &entry.name, &[], 0, &DEVICE, &policy).expect("a valid module has an answer");
        access(words, &entry.name);
    }
    true
}

#[test]
fn flipped_bytes_never_panic_and_are_mostly_found() {
    let mut random = Random(0x5EED_2026);
    let fixtures = fixtures();
    let (mut found, cases) = (0, 3000);
    for _ in 0..cases {
        found += usize::from(!exercise(&damaged(&fixtures, &mut random)));
    }
    // Flips in literals and names are legal changes.
    assert!(found > cases / 3, "only {found} of {cases} damaged modules were refused");
}

#[test]
fn cut_and_spliced_modules_never_panic() {
    let mut random = Random(77);
    for words in fixtures() {
        for _ in 0..100 {
            let cut = random.below(words.len());
            assert!(!exercise(&words[..cut]), "a module cut at word {cut} was accepted");
            let (from, to) = (5 + random.below(words.len() - 5), 5 + random.below(words.len() - 5));
            let mut spliced = words.clone();
            spliced.splice(to..to, words[from..words.len().min(from + 8)].iter().copied());
            exercise(&spliced);
        }
    }
}

#[test]
fn word_counts_of_zero_and_beyond_the_end_are_refused() {
    for words in fixtures() {
        for inst in Module::parse(&words).expect("sound").insts() {
            for wrong in [0u32, 0xFFFF] {
                let mut damaged = words.clone();
                damaged[inst.at] = damaged[inst.at] & 0xFFFF | wrong << 16;
                assert!(analyze(&damaged).is_err(), "word {}", inst.at);
            }
        }
    }
}

#[test]
fn header_lies_are_refused() {
    let words = fixtures().remove(0);
    for (word, value) in [(0, 0x0302_2307), (1, 0x0002_0000), (3, 0), (3, 1), (3, u32::MAX), (4, 1)] {
        let mut damaged = words.clone();
        damaged[word] = value;
        assert!(analyze(&damaged).is_err(), "word {word} = {value}");
    }
    assert!(words_from_bytes(&[1, 2, 3]).is_err());
    assert!(analyze(&[]).is_err());
}

/// SPIR-V modules inside the real `.vmfb` files, found by their magic number and the length word before it.
fn modules_in(path: &Path) -> Vec<Vec<u32>> {
    let bytes = std::fs::read(path).expect("readable");
    let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let starts = (4..bytes.len()).step_by(4).filter(|at| word(*at) == Some(0x0723_0203));
    let module = |at: usize| {
        let len = word(at - 4)? as usize;
        let body = bytes.get(at..at.checked_add(len.checked_mul(4)?)?)?;
        words_from_bytes(body).ok().filter(|w| w.len() > 5)
    };
    starts.filter_map(module).collect()
}

#[test]
fn every_real_kernel_of_the_corpus_is_accepted() {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb"));
    if !corpus.is_dir() {
        eprintln!("SKIPPED: no corpus of real modules beside the repository");
        return;
    }
    let mut count = 0;
    for (set, file) in [("small", "module.vmfb"), ("models", "vulkan.vmfb")] {
        let folder = std::fs::read_dir(corpus.join(set)).expect("corpus folder");
        let files = folder.map(|e| e.expect("entry").path().join(file)).filter(|p| p.is_file());
        for path in files {
            for words in modules_in(&path) {
                let facts = analyze(&words).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let entry = &facts.entry_points[0].name;
                let policy = Policy { repair: true, allow_mismatch: false };
                plan(&words, entry, &[], 0, &DEVICE, &policy).expect("valid");
                access(&words, entry);
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} kernels found");
}
