//! What tests of language models share.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ptr;

use halite_c::{builder::*, device::*, generator::*, sequence::*, tokens::*};

use super::{made, outcome, repo};

/// A builder of a model that lies in the repository.
pub fn builder(device: *const halite_device, name: &str) -> *mut halite_session_builder {
    builder_of(device, &format!("compiler/tests/data/gguf/{name}.gguf"))
}

pub fn builder_of(device: *const halite_device, model: &str) -> *mut halite_session_builder {
    let path = repo(model);
    // SAFETY: handles are ours, the path is copied.
    unsafe {
        let builder = halite_session_builder_create();
        halite_session_builder_model_path(builder, path.as_ptr());
        halite_session_builder_open_device(builder, device);
        halite_session_builder_no_cache(builder);
        builder
    }
}

/// Tokens that the library gave, which are freed.
pub fn owned(tokens: *mut halite_tokens) -> Vec<u32> {
    // SAFETY: the tokens are ours.
    unsafe {
        let all = match halite_tokens_count(tokens) {
            0 => Vec::new(),
            count => std::slice::from_raw_parts(halite_tokens_data(tokens), count).to_vec(),
        };
        halite_tokens_free(tokens);
        all
    }
}

pub fn sequence_of(generator: *const halite_generator, prompt: &[u32]) -> *mut halite_sequence {
    // SAFETY: the tokens are as many as is said.
    unsafe {
        let sequence = made(|out| halite_generator_sequence(generator, out)).unwrap();
        outcome(halite_sequence_prompt(
            sequence,
            prompt.as_ptr(),
            prompt.len(),
            ptr::null(),
            ptr::null_mut(),
        ))
        .unwrap();
        sequence
    }
}
