//! Tables by numbers that the compiler itself gives out, one after the other.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A table by ids. Not for keys that come from files: these could be chosen so that all fall together.
pub(crate) type ById<Id, V> = HashMap<Id, V, BuildHasherDefault<Counted>>;

/// Spreads numbers that were counted out.
#[derive(Debug, Default)]
pub(crate) struct Counted(u64);

impl Hasher for Counted {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio, as a part of 2^64: tables look at the highest bits and at the lowest.
        let spread = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
