//! Tests of this crate, one program: each program is linked with all that it tests.

mod answers;
mod beside;
mod files;
mod hostile;
mod metadata;
mod templates;
mod tokens;
