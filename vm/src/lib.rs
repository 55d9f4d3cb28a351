//! The VM: verifies bytecode modules once at load, pre-decodes them, and interprets them; defines refs, lists,
//! buffers and the interface of native modules. HAL objects are opaque references here.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! Order of use: [`Module::load`] → [`Context::new`] (resolves imports, runs `__init`) → [`Context::lookup`] →
//! [`Context::invoke`].
#![forbid(unsafe_code)]

pub mod asm;
mod buffer;
mod code;
mod context;
mod cycles;
mod decode;
mod disasm;
mod exec;
mod invocation;
pub mod isa;
mod link;
mod list;
mod memory;
mod module;
mod native;
mod signature;
mod types;
mod value;
mod verify;

pub use buffer::{Buffer, HostMemory};
pub use context::{Context, ContextOptions, Entered, FunctionHandle, Limits};
pub use disasm::{Line, disassemble};
pub use invocation::Invocation;
pub use list::List;
pub use module::Module;
pub use native::{Arguments, NativeFunction, NativeModule, Results};
pub use signature::{Kind, Param, Signature};
pub use types::{Scalar, Type};
pub use value::{Object, Ref, Value};
