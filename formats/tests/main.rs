//! Tests of this crate, one program: each program is linked with all that it tests.

mod common;
mod corpus;
mod damage;
mod errors;
mod gguf;
mod params;
mod pte;
mod real_tools;
