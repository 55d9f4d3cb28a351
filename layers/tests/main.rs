//! Tests of this crate, one program: each program is linked with all that it tests.

mod common;
mod execution;
mod hazards;
mod open;
mod peers;
mod queue_operations;
mod recording;
mod shared;
