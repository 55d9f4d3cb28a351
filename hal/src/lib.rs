//! The hardware abstraction layer: the traits a driver implements, the types they speak, one validation layer
//! above all drivers, and the registry that finds drivers by name. Does not own: any driver, any model format.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # The shape
//! [`Driver`] → [`Driver::enumerate`] → [`DeviceInfo`] → [`Driver::open`] → [`Device`]. A device allocates
//! [`Buffer`]s, creates [`Executable`]s and [`Semaphore`]s, turns a recorded [`CommandList`] into a
//! [`CommandBuffer`], and executes [`QueueOp`]s that are ordered only by timeline semaphores.
//!
//! # Contract between callers and drivers
//! Callers reach devices through [`DriverRegistry::open`], which wraps them in [`validation::ValidatedDevice`]:
//! everything a caller can foresee (ranges, usage bits, foreign objects, unfinished recordings) is checked there,
//! once. A driver may rely on those checks and returns only what nobody could foresee: out of memory, device
//! lost, a missing feature. Sizes, offsets and dimensions are `u64`, in bytes unless named otherwise.
//! All objects are `Send + Sync` and reference-counted; children keep their parents alive.

#![deny(unsafe_code)]

mod buffer;
pub mod choice;
mod command;
mod deadline;
mod device;
mod driver;
mod dump;
mod executable;
mod file;
mod footprint;
pub mod hazards;
mod pattern;
pub mod peer;
pub mod plugin;
mod registry;
mod semaphore;
pub mod uri;
pub mod validation;

pub use buffer::{Buffer, BufferParams, BufferSpan, WHOLE_BUFFER};
pub use command::{
    Binding, BindingTable, BufferRef, Command, CommandBuffer, CommandList, CommandTarget, DispatchCounts,
};
pub use deadline::Deadline;
pub use device::{Device, MemoryStats, QueueOp, foreign_object, next_device_id};
pub use driver::{DeviceInfo, DeviceKind, Driver, InfoGroup, Options, ScoreItem, UnconfinedCode};
pub use dump::CommandDump;
pub use executable::{Executable, ExecutableDesc, FunctionInfo};
pub use file::{File, FileAccess, FileSource};
pub use footprint::{ByteRuns, Footprint};
// What the signatures of this crate name, so that drivers need no other.
pub use halite_abi::{
    BufferUsage, Code, CommandBufferMode, CommandCategory, DispatchFlags, ElementKind, ElementType, Encoding,
    MemoryAccess, MemoryType, QueueAffinity, Result, ResultExt, Status, bail, status,
};
pub use inventory;
pub use pattern::matches_pattern;
pub use registry::{
    DriverEntry, DriverRegistry, DriverSource, ExpectedDriver, LibrarySource, Shadowed, StaticDriver,
    verify_linked,
};
pub use semaphore::{Fence, Semaphore, SemaphorePoint, SoftSemaphore, Timepoint};
