//! What the commands do, one program of tests: each program links the whole engine.

mod bench;
#[allow(dead_code, reason = "each test program uses a part of what tests share")]
mod common;
mod compile;
mod docs;
mod generate;
mod kernels;
mod lists;
mod media;
#[path = "../../halite/tests/common/mod.rs"]
mod models;
mod points;
mod serve;
mod serve_answers;
mod signals;
mod starved;
mod transcripts;
