//! Sessions and what they give, one program of tests: each program links the whole engine.

mod codes;
mod common;
mod processors;
mod results;
mod sessions;
mod states;
