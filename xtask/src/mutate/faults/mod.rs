//! The faults, by where they are.

mod bounds;
mod code;
mod devices;
mod findings;
mod queues;
mod strangers;

use super::{Check, Fault};

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Fault> {
    devices::FAULTS
        .iter()
        .chain(code::FAULTS)
        .chain(strangers::FAULTS)
        .chain(bounds::FAULTS)
        .chain(queues::FAULTS)
        .chain(findings::FAULTS)
}

/// Unit tests of a package.
const fn unit(package: &'static str, filter: &'static str) -> Check {
    Check::Tests { package, program: None, filter }
}

/// A test program of a package.
const fn program(package: &'static str, program: &'static str) -> Check {
    Check::Tests { package, program: Some(program), filter: "" }
}

/// Tests of one module of a test program.
const fn module(package: &'static str, program: &'static str, filter: &'static str) -> Check {
    Check::Tests { package, program: Some(program), filter }
}
