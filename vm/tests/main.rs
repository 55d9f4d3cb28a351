//! Tests of this crate, one program: each program is linked with all that it tests.

mod common;
mod context;
mod corpus;
mod disasm;
mod objects;
mod scalars;
mod verifier;
mod vm_ops;
