//! Drivers as shared libraries: finding them, loading them, and both sides of their C interface. A driver is written once,
//! against the traits of `halite-hal`; [`export_driver!`](crate::export_driver) makes a library of it, and [`load`] turns
//! such a library back into a [`Driver`](halite_hal::Driver) that callers cannot tell from a linked one. [`discover`] adds
//! all that are installed to the linked drivers.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # How objects cross
//! Each kind of object has a file with both ways. Out: an object of ours becomes a handle to `object::Exported`, whose
//! functions call the trait behind panic guards. In: a handle becomes a proxy that implements the trait. On its way back an
//! object is itself again: a proxy goes out as the handle it holds, and a handle of ours comes in as the object behind
//! it. So drivers can downcast their own buffers, and semaphores of all sides mix in fences.
//!
//! # Trust
//! A plug-in is native code in this process; nothing here protects from a hostile one. A faulty one is another matter:
//! whatever can be checked is checked (sizes, nulls, text, codes, results that are missing), and becomes a failure that
//! names the driver.
#![allow(unsafe_code, reason = "a C interface is spoken here; each block says why it is sound")]

pub mod abi;
mod buffer;
mod command;
mod command_buffer;
mod device;
pub mod digest;
pub mod discovery;
mod driver;
#[cfg(all(unix, not(target_vendor = "apple")))]
mod elf;
mod executable;
mod export;
mod external;
#[cfg(test)]
mod faulty;
mod file;
mod guard;
mod host;
mod info;
#[cfg(target_pointer_width = "64")]
mod layout;
mod library;
mod loopback;
pub mod manifest;
mod object;
mod once;
mod panics;
mod peer;
mod profile;
mod queue;
mod raw;
mod semaphore;
mod source;
mod status;
mod time;
mod tried;
mod version;

pub use export::Plugin;
pub use library::{DriverLibrary, load};
pub use loopback::loopback;
pub use source::{LibrarySource, Trial, discover, discover_tried};
