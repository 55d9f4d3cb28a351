//! The C interface of Halite, `libhalite`: `include/halite/halite.h` is generated from this crate (`cargo xtask header`), and
//! `include/halite/halite.hpp` wraps it for C++17. `cargo xtask c` builds and installs the libraries.
//!
//! # Contract
//! * **Handles.** A handle that a function gives through an `out` parameter is yours. Free it once, with the `_free`
//!   function of its type. Freeing NULL does nothing. You may free handles in any order: an object keeps alive what it
//!   depends on. On failure an `out` parameter is set to NULL.
//! * **Borrowed pointers.** A text, array or handle that a function returns, or writes into a structure, belongs to the
//!   handle that you asked. It lives as long as that handle. The library borrows what you pass for the duration of the
//!   call, unless a `release` function comes with it.
//! * **Errors.** A function that can fail returns NULL on success, and otherwise an error that is yours. Read it
//!   (`halite_error_get_kind`, `halite_error_message`), then free it (`halite_error_free`). Functions that return no error
//!   accept NULL handles, and return 0 or NULL for them.
//! * **Sizes.** A structure with a `struct_size` begins with its size in bytes; initialize it with its `_INIT` macro. New
//!   fields are only appended. So a library accepts structures of older and newer headers. It refuses a field that it does
//!   not know only if the field is not zero. Structures without `struct_size` never change.
//! * **Texts** are UTF-8 and end with a zero byte. Paths are the system's bytes, on Windows UTF-8.
//! * **Threads.** You may call any function on any thread. Several threads may use a handle at the same time, but nobody
//!   may free it while it is in use. A builder, compiler or state that is busy makes other threads wait.
//! * **Callbacks.** The library reports progress one call at a time, on any thread, and never after the function that was
//!   given the callback has returned. It calls a `release` function once, on any thread, also when the call that brought it
//!   fails. Callbacks must return; they must not jump out or throw.
//! * **Panics.** No panic crosses the interface. A panic is a fault of Halite, and arrives as an error of the kind
//!   `HALITE_ERROR_OTHER`.
//! * **Processes.** The library has threads and open devices. In a child of `fork` the objects of its parent give the error
//!   `HALITE_ERROR_INVALID_INPUT`, and freeing them gives nothing back. The child may open devices of its own as far as the driver
//!   lets it; `exec` has no such limit. The library cannot be unloaded.
//! * **Enumerations** are `uint32_t`. The library refuses numbers that it does not know.
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
pub mod shared;
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
