//! Runs suites of cases on a device: choosing cases, running them here or in other processes, keeping results as they come,
//! and judging them.

mod child;
mod journal;
mod pattern;
mod plan;
mod pool;
mod progress;
mod protocol;
mod serve;
mod shard;
mod target;

pub use child::Recipe;
pub use journal::Journal;
pub use pattern::Pattern;
pub use plan::{Manner, Plan, Prepared};
pub use pool::Isolation;
pub use progress::Progress;
pub use serve::serve;
pub use shard::Shard;
pub use target::{Target, setting_flags};
