//! SPIR-V facts, structural checks, subgroup-width analysis and repair; pure, for untrusted input, no device.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! [`analyze`] validates a module and says what it declares (`halite-facts` says which features of a device that asks for),
//! [`subgroup::plan`] whether a kernel is right on a device whose subgroups have another width, and repairs it if not,
//! [`rebase`] makes a kernel of which parts can be dispatched, [`touch`] which bytes of its bindings a kernel touches.
//! Does not own: reading `.vmfb` files, or talking to Vulkan.
#![forbid(unsafe_code)]

mod cfg;
mod error;
mod facts;
mod grammar;
mod module;
mod normalize;
mod program;
mod rebase;
pub mod subgroup;
pub mod touch;
mod types;
mod validate;

pub use error::SpirvError;
pub use facts::{BindingFacts, EntryFacts, ModuleFacts, SpecConstant};
pub use normalize::normalize;
pub use rebase::{REBASE_BYTES, RebaseError, rebase};

/// Validates a module and collects its facts.
///
/// The checks are structural: header, instruction lengths, ids, dominance, block structure, and the types of the
/// instructions that kernels are made of. A module that passes does not crash a driver's parser; whether its
/// capabilities are allowed on a device is what the table of features in `halite-facts` says.
///
/// # Errors
/// [`SpirvError::Invalid`] names the word at which the first broken rule was found.
pub fn analyze(words: &[u32]) -> Result<ModuleFacts, SpirvError> {
    facts::collect(&program::Program::new(words)?)
}

/// Cuts little-endian bytes, as modules store them, into words.
///
/// # Errors
/// [`SpirvError::PartialWord`] if the length is no multiple of four.
pub fn words_from_bytes(bytes: &[u8]) -> Result<Vec<u32>, SpirvError> {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(words.iter().map(|w| u32::from_le_bytes(*w)).collect())
    } else {
        Err(SpirvError::PartialWord { bytes: bytes.len() })
    }
}
