//! What compiled modules and the runtimes that run them have to agree on: status codes and the error value, the numbers of
//! the HAL interface, the functions that modules import, and names. Each is written once, here: the compiler writes modules
//! with it, and the runtime reads them with it. Numbers and names are IREE's, except those that begin with `halite`.
//!
//! Internal to Halite; programs use the crate `halite`.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod descriptor;
mod element;
pub mod export;
pub mod format;
mod hal;
pub mod import;
pub mod object;
pub mod parameters;
pub mod query;
pub mod room;
mod status;

pub use element::{ElementKind, ElementType, Encoding};
pub use hal::{
    BINDING_ALIGNMENT, BUFFER_PADDING, BufferUsage, CommandBufferMode, CommandCategory, DispatchFlags,
    ExecutionStage, MemoryAccess, MemoryType, QueueAffinity, REST_OF_BUFFER, WAIT_FOREVER,
};
pub use import::Import;
pub use status::{Code, Result, ResultExt, Status};
