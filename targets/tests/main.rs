//! Tests of this crate, one program: each program is linked with all that it tests.

mod detect;
mod docs;
mod parse;
mod rank;
mod reports;
