//! Text for language models: tokenizers and chat templates from the metadata of GGUF files, and the choice of the next token.
//!
//! Internal to Halite; programs use the crate `halite`. Knows neither devices nor graphs.
#![forbid(unsafe_code)]

mod chat;
mod error;
mod merges;
mod pieces;
mod sample;
mod scores;
mod special;
mod split;
mod stops;
mod tokenizer;
mod vocabulary;

pub use chat::{ChatTemplate, Message};
pub use error::TextError;
pub use sample::{Sampler, Sampling};
pub use stops::StopTexts;
pub use tokenizer::{Decoder, Tokenizer};
pub use vocabulary::{TokenKind, Vocabulary};
