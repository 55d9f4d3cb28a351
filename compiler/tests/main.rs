//! Tests of this crate, one program: each program is linked with all that it tests.

mod common;
mod foreign;
mod gguf;
mod gguf_drawn;
mod gguf_names;
mod gguf_swin;
mod gguf_t5;
mod limits;
mod onnx;
mod open;
mod pte;
