//! The VM: verifies bytecode modules once at load, pre-decodes them, and interprets them; defines refs, lists,
//! buffers and the interface of native modules. Does not own: HAL objects (they are opaque refs here), files, tools.
//!
//! Order of use: [`Module::load`] → [`Context::new`] (resolves imports, runs `__init`) → [`Context::function`] →
//! [`Context::invoke`].
#![forbid(unsafe_code)]

mod native;
mod value;

pub use native::{Arguments, NativeFunction, NativeModule, Results};
pub use value::{Object, Ref, Value};
