//! Internal to Halite: folders of files that are kept for one user. Programs use the crate `halite`.
#![forbid(unsafe_code)]
