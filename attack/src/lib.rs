//! What the program of hostile files asks the C library: the one part of it with unsafe code.

pub mod heap;
