//! Parameters: named bytes that programs load from outside of the module, and the native module `io_parameters`.

mod archive;
mod index;
mod module;
mod results;
mod shared;
mod table;
mod transfer;

pub use index::{Parameter, ParameterIndex};
pub use module::ParameterModule;
pub use shared::SharedParameters;

#[cfg(test)]
mod tests;
