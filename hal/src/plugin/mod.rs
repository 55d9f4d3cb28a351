//! Drivers as shared libraries: the C interface and both of its sides. A driver is written once, against the traits of
//! this crate; [`export_driver!`](crate::export_driver) makes a library of it, and [`load`] turns such a library back into
//! a [`Driver`](crate::Driver) that callers cannot tell from a linked one.
//!
//! Does not own: which of several drivers of one name is used (the registry does).
#![allow(unsafe_code, reason = "a C interface is spoken here; each block says why it is sound")]

pub mod abi;
pub mod digest;
pub mod discovery;
pub mod manifest;
