//! The hardware abstraction layer: the traits that a driver implements, the types they speak, and the registry that finds
//! drivers by name. A driver needs this crate and nothing above it.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # The shape
//! [`Driver`] → [`Driver::enumerate`] → [`DeviceInfo`] → [`Driver::open`] → [`Device`]. A device allocates
//! [`Buffer`]s, creates [`Executable`]s and [`Semaphore`]s, turns a recorded [`CommandList`] into a
//! [`CommandBuffer`], and executes [`QueueOp`]s that are ordered only by timeline semaphores.
//!
//! # Contract between callers and drivers
//! Callers open devices through the layers (`halite_layers::open`): everything a caller can foresee (ranges, usage bits,
//! foreign objects, unfinished recordings) is checked there, once. A driver may rely on those checks and returns only what nobody could foresee: out of memory, device
//! lost, a missing feature. Sizes, offsets and dimensions are `u64`, in bytes unless named otherwise.
//! All objects are `Send + Sync` and reference-counted; children keep their parents alive.

#![forbid(unsafe_code)]

mod buffer;
pub mod choice;
mod command;
mod deadline;
mod device;
mod driver;
mod executable;
pub mod external;
mod file;
mod footprint;
pub mod host_memory;
mod pattern;
mod process;
pub mod profile;
mod registry;
mod semaphore;
pub mod sync;
pub mod uri;

pub use buffer::{Buffer, BufferParams, BufferSpan, WHOLE_BUFFER, read_all};
pub use command::{
    Binding, BindingTable, BufferRef, Command, CommandBuffer, CommandList, CommandTarget, DispatchCounts,
};
pub use deadline::Deadline;
pub use device::{
    Device, MemoryStats, QueueOp, RecordingStats, count_devices_with, foreign_object, next_device_id,
};
pub use driver::{
    DeviceInfo, DeviceKind, Driver, InfoGroup, MEMORY_LIMIT, Options, ScoreItem, UNTRUSTED, UnconfinedCode,
};
pub use executable::{Executable, ExecutableDesc, FunctionInfo};
pub use external::{ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport};
pub use file::{File, FileAccess, FileSource};
pub use footprint::{ByteRuns, Footprint};
// What the signatures of this crate name, so that drivers need no other.
pub use halite_abi::{
    BufferUsage, Code, CommandBufferMode, CommandCategory, DispatchFlags, ElementKind, ElementType, Encoding,
    MemoryAccess, MemoryType, QueueAffinity, Result, ResultExt, Status, bail, status,
};
pub use inventory;
pub use pattern::matches_pattern;
pub use process::{Opener, PerProcess};
pub use profile::{CommandTime, DeviceProfile, ProfileLog, RawTime, TimedCommand, WorkKind};
pub use registry::{
    DeviceRequest, DriverEntry, DriverRegistry, DriverSource, ExpectedDriver, Shadowed, Skipped,
    StaticDriver, verify_linked,
};
pub use semaphore::{Fence, Semaphore, SemaphorePoint, SoftSemaphore, Timepoint};
