//! ExecuTorch programs, decoders and profiles, one program of tests: each program links the whole engine.

mod common;
mod decoders;
mod profile;
mod program_folder;
mod program_state;
