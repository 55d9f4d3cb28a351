//! Operations and values that tests use.

use crate::{Op, Values};

/// What tests need of an operation.
pub trait Samples: Op + Sized {
    /// Operations that together exercise every path of the kernels.
    fn samples() -> Vec<Self>;

    /// Values that an input must have where not any will do, such as indices; `random` gives 64 random bits.
    fn sample_input(&self, _index: usize, _random: &mut dyn FnMut() -> u64) -> Option<Values> {
        None
    }
}
