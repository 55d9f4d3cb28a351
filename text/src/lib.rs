//! Text for language models: tokenizers and chat templates, from the metadata of GGUF files and from the files that people have
//! beside other models, and the choice of the next token.
//!
//! Internal to Halite; programs use the crate `halite`. Knows neither devices nor graphs.
#![forbid(unsafe_code)]

mod calls;
mod channels;
mod charsmap;
mod chat;
mod cheapest;
mod constrained;
mod decode;
mod divided;
mod error;
mod families;
mod joined;
mod longest;
mod merges;
mod missing;
mod model;
mod normalize;
mod pattern;
mod pieces;
mod prefixes;
mod read;
mod sample;
mod schema;
mod scores;
mod special;
mod split;
mod stops;
mod thoughts;
mod tokenizer;
mod unigram;
mod vocabulary;

pub use calls::{CallScanner, Callable, ToolCall};
pub use chat::{ChatTemplate, Message, Told};
pub use constrained::TokenTexts;
pub use decode::Decoder;
pub use divided::Divided;
pub use error::TextError;
pub use read::TextFiles;
pub use sample::{Likely, Sampler, Sampling};
pub use schema::{Schema, SchemaText};
pub use stops::StopTexts;
pub use thoughts::Thoughts;
pub use tokenizer::Tokenizer;
pub use vocabulary::{TokenKind, Vocabulary};
