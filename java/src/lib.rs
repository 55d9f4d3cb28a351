//! The native half of the Java package `org.halite`: the public crate `halite` as a Java virtual machine or Android's runtime sees it.
//! Java's half lies in `api/`. The shared library that is made of this crate exports the C interface too, so that an app that has both
//! Java and C carries the engine once.
//!
//! # Contract
//! * **Handles** are numbers that are given once (`held`). A number that was freed, or never given, is an error, whatever thread uses
//!   it; so Java code cannot cause undefined behaviour by closing what another thread uses.
//! * **Errors and panics** become exceptions of the class `org.halite.HaliteException` (`failure`). None crosses.
//! * **Memory of Java** is used for the time of a call only. Bytes of direct buffers must not be written to by others meanwhile.
//!
//! # Owns
//! Handles, conversions, exceptions. Does not own anything that runs models, nor defaults: those are the crate's and Java's.
#![allow(
    non_snake_case,
    reason = "functions have the names that the Java Native Interface looks for: Java_, package, class, method"
)]
#![allow(
    clippy::too_many_arguments,
    reason = "native methods of Java take numbers and texts, not structures"
)]

// The C interface is in the same library.
use halite_c as _;

mod builder;
mod bytes;
mod calls;
mod convert;
mod device;
mod embedder;
mod failure;
mod generator;
mod handles;
mod held;
mod progress;
mod sequence;
mod session;
mod shared;
mod state;
mod steps;
mod tensor;
mod writing;
