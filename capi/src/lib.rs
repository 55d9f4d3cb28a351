//! The C interface of Halite, `libhalite`: `include/halite/halite.h` is generated from this crate (`cargo xtask header`), and
//! `include/halite/halite.hpp` wraps it for C++17. `cargo xtask c` builds and installs the libraries.
//!
//! # Contract
//! * **Handles.** What a function gives through an `out` parameter is yours: end it with the `_free` function of its type, once.
//!   Freeing NULL does nothing. Handles may be freed in any order: what depends on another object keeps that alive. On failure an
//!   `out` parameter is set to NULL.
//! * **Borrowed pointers.** A text, array or handle that a function returns, or writes into a structure, belongs to the handle it
//!   was asked of, and lives as long as that one. What you pass is borrowed for the call, unless a `release` function comes with
//!   it.
//! * **Errors.** A function that can fail returns NULL, or an error that is yours: ask it (`halite_error_get_kind`,
//!   `halite_error_message`), then `halite_error_free` it. Functions without an error take NULL handles and answer 0 or NULL.
//! * **Sizes.** Structures with a `struct_size` begin with their size in bytes; take their `_INIT` to begin with. Fields are only
//!   ever appended. A library takes structures of older and newer headers; it refuses what it does not know only where that is
//!   not zero. Structures without that field are frozen.
//! * **Texts** are UTF-8 and end with a zero byte. Paths are bytes as the system has them, on Windows UTF-8.
//! * **Threads.** Any function may be called on any thread. Handles may be used by several threads at the same time, except to
//!   free them; a builder, compiler or state that is busy lets other threads wait. A handle must not be freed while it is used.
//! * **Callbacks.** Progress is told one call at a time, on any thread, and never after the function has returned that was given
//!   the callback. A `release` function is called once, on any thread, also when the call fails that brought it. Callbacks
//!   return; they do not jump out or throw.
//! * **Panics.** None crosses: one is a fault of Halite, and comes as an error of the kind `HALITE_ERROR_OTHER`.
//! * **Processes.** The library has threads and open devices: a child of `fork` must not use it before `exec`. It is not
//!   unloaded.
//! * **Enumerations** are `uint32_t`. Numbers that are not known are refused, never guessed.
//!
//! # Owns
//! Handles, the checks of what C can pass wrongly, texts for C. Does not own anything that runs models: that is the crate
//! `halite`, of which each function here calls one or two.

#![allow(non_camel_case_types, reason = "types have the names that C has for them")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract above is the same for all functions: pointers are null or point to what their type says"
)]

#[cfg(panic = "abort")]
compile_error!(
    "build the C interface with panic=unwind: with panic=abort, a panic in it would end the program"
);

pub mod blob;
pub mod builder;
pub mod compile;
pub mod compiler;
pub mod device;
pub mod drivers;
pub mod embedder;
pub mod error;
pub mod failure;
pub mod function;
pub mod generator;
pub mod logging;
pub mod options;
pub mod pending;
pub mod profile;
mod raw;
pub mod sequence;
pub mod session;
pub mod signature;
pub mod source;
pub mod state;
pub mod steps;
pub mod tensor;
pub mod tokens;
pub mod value;
pub mod values;
pub mod version;
pub mod vulkan;
