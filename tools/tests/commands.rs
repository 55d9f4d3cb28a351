//! What the commands do, one program of tests: each program links the whole engine.

mod bench;
#[allow(dead_code, reason = "each test program uses a part of what tests share")]
mod common;
mod compile;
mod docs;
mod generate;
mod kernels;
mod media;
mod points;
mod serve;
mod signals;
mod starved;
mod transcripts;
