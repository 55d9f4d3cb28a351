//! The device suite: what every HAL device must do, as cases over an open device.
//!
//! | area | file | about |
//! |---|---|---|
//! | `device` | `device.rs` | facts, queries, idleness |
//! | `memory` | `memory.rs` | allocation, memory types, accounts |
//! | `host` | `host.rs` | reads and writes of the host |
//! | `transfer` | `transfer.rs` | fills, updates and copies on queues |
//! | `commands` | `commands.rs` | recordings: order, reuse, one-shot, debug groups |
//! | `slots` | `slots.rs` | recordings through binding tables |
//! | `executable`, `dispatch` | `dispatch.rs`, `grids.rs` | executables and what dispatches compute |
//! | `semaphore` | `semaphores.rs` | timelines: signals, waits, failures, callbacks |
//! | `queue` | `queues.rs` | fences order work and nothing else does; failures travel |
//! | `alloca` | `alloca.rs` | queue-ordered memory |
//! | `file` | `files.rs` | queue reads and writes of files |
//! | `profile` | `profile.rs` | what is measured of commands, and that results stay the same |
//! | `shared` | `shared.rs` | memory that is shared with others |
//! | `life` | `life.rs` | handles dropped in any order |
//! | `stress` | `stress.rs`, `graphs.rs` | threads, and random graphs of operations against a model |

mod alloca;
mod commands;
mod device;
mod dispatch;
mod files;
mod graphs;
mod grids;
mod host;
mod life;
mod memory;
mod profile;
mod queues;
mod semaphores;
mod shared;
mod slots;
mod stress;
mod transfer;

use super::{Case, Cases};

/// All cases. `rounds` scales the random ones, `seed` is where their numbers begin.
pub fn cases(seed: u64, rounds: u64) -> Vec<Case> {
    let mut cases = Cases::new("hal");
    device::add(&mut cases);
    memory::add(&mut cases);
    host::add(&mut cases);
    transfer::add(&mut cases);
    commands::add(&mut cases);
    slots::add(&mut cases);
    dispatch::add(&mut cases);
    grids::add(&mut cases);
    semaphores::add(&mut cases);
    queues::add(&mut cases);
    alloca::add(&mut cases);
    files::add(&mut cases);
    profile::add(&mut cases);
    shared::add(&mut cases);
    life::add(&mut cases, seed);
    stress::add(&mut cases, seed);
    graphs::add(&mut cases, seed, rounds);
    cases.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_well_formed() {
        let cases = super::cases(1, 2);
        let names: BTreeSet<_> = cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for name in names {
            let (path, parameters) = name.split_once(':').unwrap_or((name, ""));
            let parts: Vec<_> = path.split('.').collect();
            assert!(
                matches!(parts[..], ["hal", area, case] if !area.is_empty() && !case.is_empty()),
                "{name}"
            );
            assert!(parameters.split(';').all(|p| p.is_empty() || p.contains('=')), "{name}");
        }
    }
}
