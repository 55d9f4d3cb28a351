//! The tests of the layers once more, over a null driver that is reached through the plug-in interface (`common` chooses
//! it by the name of this program).

#[path = "../../layers/tests/common/mod.rs"]
mod common;
#[path = "../../layers/tests/execution.rs"]
mod execution;
#[path = "../../layers/tests/peers.rs"]
mod peers;
#[path = "../../layers/tests/queue_operations.rs"]
mod queue_operations;
#[path = "../../layers/tests/recording.rs"]
mod recording;
#[path = "../../layers/tests/shared.rs"]
mod shared;
