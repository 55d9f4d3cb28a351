//! The comparison of the disassembler with the official one, when that is installed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::{collections::BTreeMap, env, process::Command};

use halite_vm::disassemble;

/// (offset, mnemonic, text) of every instruction of every function, in the order of the official listing.
fn official(tool: &str, file: &str) -> Vec<(u32, String, String)> {
    let output =
        Command::new(tool).args(["--output=disassembly", "--bytecode_offsets", file]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().filter_map(|line| {
        let (offset, text) = line.strip_prefix('[')?.split_once(']')?;
        let offset = u32::from_str_radix(offset, 16).ok()?;
        let text = text.trim();
        let mnemonic = match text.starts_with('^') {
            true => "block",
            false => text.split_whitespace().find_map(|w| w.strip_prefix("vm."))?,
        };
        Some((offset, mnemonic.to_owned(), text.to_owned()))
    });
    rows.collect()
}

#[test]
fn offsets_and_mnemonics_are_those_of_the_official_tool() {
    let Ok(tool) = env::var("HALITE_IREE_DUMP_MODULE") else {
        eprintln!("SKIPPED: set HALITE_IREE_DUMP_MODULE to the path of iree-dump-module 3.13.0");
        return;
    };
    let (mut same, mut lines, mut files, mut examples) = (0, 0, 0, BTreeMap::new());
    for (name, def) in common::good_modules() {
        let theirs = official(&tool, &name);
        let ours = (0..def.functions.len() as u32).flat_map(|f| disassemble(&def, f).unwrap());
        let ours: Vec<_> = ours.collect();
        // The official disassembler stops before a function with an operation it does not know.
        for (a, b) in ours.iter().zip(&theirs) {
            assert_eq!((a.offset, a.mnemonic), (b.0, b.1.as_str()), "{name}: {} / {}", a.text, b.2);
            same += usize::from(a.text == b.2);
            if a.text != b.2 {
                examples.entry(a.mnemonic).or_insert_with(|| format!("{}\n    {}", a.text, b.2));
            }
            lines += 1;
        }
        let cut = ours[theirs.len().min(ours.len())..].iter().any(|l| l.mnemonic == "cast.ui64.f32");
        assert!(cut || ours.len() == theirs.len(), "{name}: {} lines / {}", ours.len(), theirs.len());
        files += 1;
    }
    examples.iter().for_each(|(_, e)| eprintln!("differs: {e}"));
    eprintln!("{files} files, {lines} lines, {same} of them equal in text");
    assert!(lines > 5000);
}
