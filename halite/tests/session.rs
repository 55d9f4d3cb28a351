//! Sessions and what they give, one program of tests: each program links the whole engine.

mod caches;
mod codes;
mod common;
#[cfg(feature = "compiler")]
mod examples;
mod growing;
mod limits;
mod processors;
mod results;
mod sessions;
mod shared_memory;
mod states;
mod untrusted;
mod windows;
