//! The front end for GGUF files: decoders and encoders of text as llama.cpp runs them, made of their metadata and tensors.
//!
//! A file holds no graph: its metadata name an architecture and its sizes. `hyper` reads them, `graph` builds the step of
//! a decoder: any number of tokens at any place of the sequence, with caches of keys and values as state; and what becomes of a
//! text as a whole.

mod adapters;
mod alternating;
mod attention;
mod block_sparse;
mod condensed;
mod condensed_attention;
mod condensed_rows;
mod connections;
mod crossed;
mod decayed;
mod delta_net;
mod embed;
mod errors;
mod experts;
mod factors;
mod families;
mod families_base;
mod families_latent;
mod family;
mod feed;
mod file;
mod folds;
mod gaps;
mod gated;
mod graph;
mod groups;
mod heads;
mod hyper;
mod indexer;
mod keys;
mod latent;
mod latent_attention;
mod layer;
mod layer_inputs;
mod lightning;
mod limits;
mod loops;
mod masks;
mod mixture;
mod model;
mod ngrams;
mod paths;
mod pieces;
mod pooled;
mod read_by;
mod recurrent;
mod relative;
mod residues;
mod rope;
mod ropes;
mod rwkv;
mod scores;
mod selective;
mod sparse;
mod spread;
mod stacks;
mod state_space;
mod states;
mod steps;
mod streams;
mod switched;
mod tokens;
mod trunk;
mod turned;
mod unknown;
mod xielu;

pub use model::{BATCH, BATCH_SAMPLE, ENCODE, Gguf, VERIFY};

type Result<T, E = crate::CompileError> = std::result::Result<T, E>;
