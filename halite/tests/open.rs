//! Models with sizes that are known late, one program of tests: each program links the whole engine.

mod common;
mod lists;
mod open_codes;
mod open_joined;
mod open_lists;
mod open_pixels;
mod open_ragged;
mod open_recurrent;
mod open_sizes;
mod open_uneven;
mod open_values;
mod open_weights;
