//! The Vulkan driver of the Halite HAL, on ash. No type of a binding is in its interface.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! Planning is apart from doing: [`options`], [`workarounds`], [`plan`], [`memory_types`] and [`suballoc`] are
//! pure and run without a device; the private modules do what they decide.
//!
//! The driver registers itself under the name `vulkan`. A program that only uses it by name calls [`link`] once, so
//! that the linker keeps it.

mod allocator;
mod buffer;
mod command_buffer;
mod context;
mod describe;
mod descriptors;
mod device;
mod discovery;
mod driver;
mod enumerate;
mod error;
mod executable;
mod external;
mod fault;
mod forks;
mod history;
mod icd;
pub mod import;
mod instance;
mod loader;
mod lower;
pub mod memory_types;
pub mod options;
mod pipeline;
mod pipeline_cache;
pub mod plan;
mod probe;
mod profile;
mod queue;
mod recordings;
mod semaphore;
mod staging;
pub mod suballoc;
mod swiftshader;
mod target;
pub mod workarounds;

pub use discovery::capture_facts;
pub use driver::VulkanDriver;
pub use instance::validation_message_count;

/// Keeps the driver in a program that never names another item of this crate. Does nothing else.
pub fn link() {}
