//! Placeholder.

pub mod caps;
mod context;
mod error;
mod instance;
mod loader;
pub mod memory_types;
pub mod options;
mod pipeline_cache;
pub mod plan;
mod probe;
pub mod suballoc;
pub mod workarounds;

pub use instance::validation_message_count;
pub use probe::capture_caps;
