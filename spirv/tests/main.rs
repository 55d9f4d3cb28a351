//! Tests of this crate, one program: each program is linked with all that it tests.

mod access;
mod common;
mod kernels;
mod rebase;
mod robustness;
mod rules;
mod toolkit;
