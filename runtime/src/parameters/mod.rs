//! Owns parameters: named bytes that programs load from outside of the module, and the native module
//! `io_parameters`. Does not own: archive formats (`halite_formats::params`) or transfers (devices do them).

mod archive;
mod index;
mod module;
mod table;
mod transfer;

pub use index::{Parameter, ParameterIndex};
pub use module::ParameterModule;

#[cfg(test)]
mod tests;
