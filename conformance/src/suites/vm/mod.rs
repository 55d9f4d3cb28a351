//! The VM suite: every operation of the instruction set from assembled programs, and functions of the original's compiler
//! with what the original computed.
//!
//! | area | file | about |
//! |---|---|---|
//! | `scalar` | `scalar.rs`, `integers.rs`, `floats.rs` | operations on numbers, against formulas, over edges and random values |
//! | `buffer` | `buffers.rs` | loads, stores, fills, copies, against slices |
//! | `list`, `global`, `ref` | `objects.rs` | lists, globals and references |
//! | `control` | `control.rs` | branches, switches, calls, failures |
//! | `recorded` | `recorded.rs` | functions of the module corpus, with the original's results |
//!
//! Names of cases are `vm.area.operation:…`; a test looks that every operation has one.

mod buffers;
mod control;
mod floats;
mod integers;
mod objects;
mod program;
mod recorded;
mod scalar;

use std::path::Path;

use anyhow::Result;

use super::{Case, Cases};

/// The cases that need no files. `seed` is where random numbers begin.
pub fn cases(seed: u64) -> Vec<Case> {
    let mut cases = Cases::new("vm");
    scalar::add(&mut cases, seed);
    buffers::add(&mut cases, seed);
    objects::add(&mut cases);
    control::add(&mut cases, seed);
    cases.finish()
}

/// A case for each function of a module corpus' set `vm_ops`.
///
/// # Errors
/// The corpus is malformed.
pub fn recorded_cases(corpus: &Path) -> Result<Vec<Case>> {
    recorded::cases(corpus)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use halite_vm::isa::table;

    #[test]
    fn every_operation_has_a_case() {
        let cases = super::cases(1);
        let named: BTreeSet<&str> =
            cases.iter().filter_map(|case| case.name.split(':').next()?.splitn(3, '.').nth(2)).collect();
        let missing: Vec<_> =
            table().iter().map(|row| row.mnemonic).filter(|mnemonic| !named.contains(mnemonic)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
    }
}
