//! SPIR-V: a reader, an editor and an assembler of modules, and what is done with them: facts, checks, repair of kernels for
//! other subgroup widths, and the memory that kernels access. Pure, for untrusted input, without a device.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # The toolkit
//! [`Module`] cuts words into instructions, [`Editor`] makes changes to one, [`Assembler`] makes one from nothing. Whoever
//! looks at or changes SPIR-V in this repository does it with these three.
//!
//! # What is made of it
//! [`analyze`] validates a module and says what it declares (`halite-facts` says which features of a device that asks for),
//! [`subgroup::plan`] whether a kernel is right on a device whose subgroups have another width, and repairs it if not,
//! and [`access`] which bytes of its bindings a kernel accesses. [`graph::read`] takes neural graphs apart. [`rebase`] makes a kernel of which parts can be dispatched,
//! [`rebind`] moves what it binds ([`move_bindings`] between sets), [`modern_buffers`] declares storage buffers as today,
//! [`opaque::buffers_for`] makes buffers of images and tensors, [`push_constants_as_buffer`] of push constants,
//! [`rename_entry`] gives it a name, [`normalize`] removes what its version does not know.
#![forbid(unsafe_code)]

pub mod access;
mod assembler;
mod buffers;
mod cfg;
mod decorations;
mod edit;
mod entry;
mod error;
mod facts;
mod grammar;
pub mod graph;
mod module;
mod normalize;
pub mod opaque;
mod pointers;
mod program;
mod pushes;
mod rebase;
mod rebind;
mod relocate;
mod rename;
mod sections;
pub mod subgroup;

mod types;
mod validate;
mod words;

pub use assembler::{Assembler, Counter, Id, If, Repeat};
pub use buffers::modern_buffers;
pub use edit::Editor;
pub use error::{ChangeError, SpirvError};
pub use facts::{BindingFacts, EntryFacts, ModuleFacts, SpecConstant, analyze};
pub use module::{EntryPoint, IdUse, Inst, Module};
pub use normalize::normalize;
pub use pushes::push_constants_as_buffer;
pub use rebase::{REBASE_BYTES, rebase};
pub use rebind::{NewBinding, rebind};
pub use relocate::move_bindings;
pub use rename::rename_entry;
pub use words::{instruction, literal, literal_text, words_from_bytes, words_to_bytes};
