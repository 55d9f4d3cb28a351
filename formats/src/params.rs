//! Parameter archives.
