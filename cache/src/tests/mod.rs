//! The rules of the crate, each broken on purpose.
