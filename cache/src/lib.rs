//! Internal to Halite: files that are kept for one user, and never anybody else's. Programs use the crate `halite`.
//!
//! * [`user_cache`] says where a user's caches are.
//! * A [`Folder`] is private: owned by the user, closed to everybody else, and marked as Halite's.
//! * A [`Store`] keeps entries in a folder. It checks each one when it is read, and deletes nothing but its own.
//! * An [`InputFile`] is a file that somebody else may change: it is known by its content.
//! * [`check_trusted`] and [`replace_file`] apply the same rules to single files outside of such folders.
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

#[cfg(test)]
mod tests;
