//! Internal to Halite: files that are kept for one user, and never anybody else's. Programs use the crate `halite`.
//!
//! * [`user_cache`] says where a user's caches are.
//! * A [`Folder`] is private: owned by the user, closed to everybody else, and marked as Halite's.
//! * A [`Store`] keeps entries in a folder. It checks each one when it is read, and deletes nothing but its own.
//! * An [`InputFile`] is a file that somebody else may change: it is known by its content.
//! * [`abandon_unfinished`] is for a process that has to end while its threads write.
//! * [`check_trusted`] and [`replace_file`] apply the same rules to single files outside of such folders.
//!
//! ```
//! use std::path::Path;
//!
//! use halite_cache::{CacheError, Digest, Folder, InputFile, Key, Kind, Store};
//!
//! const MODULE: Kind = Kind::new("vmfb");
//!
//! /// The module of a model: the one that is kept, or a new one.
//! fn module(store: &Store, model: &Path) -> Result<Vec<u8>, CacheError> {
//!     let input = InputFile::open(model)?;
//!     let digest = input.digest(Some(store))?;
//!     let key = Key::of(&[digest.as_bytes(), b"the device and the options"]);
//!     if let Some(module) = store.get(key, MODULE) {
//!         return Ok(module);
//!     }
//!     let module = compile(&input);
//!     // What was compiled is what was digested, or it is not kept.
//!     input.check_unchanged()?;
//!     store.put(key, MODULE, "model.onnx", &[&module])?;
//!     Ok(module)
//! }
//! # fn compile(input: &InputFile) -> Vec<u8> {
//! #     use std::io::Read;
//! #     let mut text = Vec::new();
//! #     input.file().read_to_end(&mut text).expect("the example's file can be read");
//! #     text
//! # }
//! # let folder = tempfile::tempdir()?;
//! # let model = folder.path().join("model.onnx");
//! # std::fs::write(&model, "a model")?;
//! let store = Store::new(Folder::open(&folder.path().join("modules"))?, 4 << 30);
//! let made = module(&store, &model)?;
//! assert_eq!(Digest::of(&made), Digest::of(&module(&store, &model)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything here may be used by several threads and several processes at once. Systems that are no Unix have neither
//! owners nor modes in this sense; there, the checks of them are left out.
#![forbid(unsafe_code)]

mod digest;
mod error;
mod folder;
mod identity;
mod place;
mod single;
mod store;
mod sys;
mod temporary;

pub use digest::{Digest, Hasher};
pub use error::{CacheError, Distrust};
pub use folder::Folder;
pub use identity::{InputFile, Stamp};
pub use place::{Os, user_cache, user_cache_here};
pub use single::{check_trusted, replace_file};
pub use store::{Cleared, Entry, Key, Kind, Store};
pub use temporary::abandon_unfinished;

#[cfg(test)]
mod tests;
