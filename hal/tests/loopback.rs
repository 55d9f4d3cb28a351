//! The tests of this crate once more, over a null driver that is reached through the plug-in interface (`common` chooses
//! it by the name of this program).
#![allow(
    clippy::duplicate_mod,
    reason = "each of the files has its own `common`, as it has when it is a program"
)]

#[path = "execution.rs"]
mod execution;
#[path = "peers.rs"]
mod peers;
#[path = "queue_operations.rs"]
mod queue_operations;
#[path = "recording.rs"]
mod recording;
