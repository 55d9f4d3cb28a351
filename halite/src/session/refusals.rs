//! What is remembered of tries for versions that many sizes share, and that failed.

use halite_compiler::{self as compiler, Region, signature::Signature};
use parking_lot::Mutex;

use super::ahead::Shapes;

/// Most tries that are remembered.
const MOST: usize = 256;

/// A try that failed: for a function, with an example, where the sizes wanted are not in a region.
pub(super) struct Refusal {
    pub place: usize,
    pub example: Shapes,
    pub region: Region,
}

/// The tries that failed.
#[derive(Default)]
pub(super) struct Refused {
    all: Mutex<Vec<Refusal>>,
}

impl Refused {
    /// Whether a try with an example is known to fail for sizes.
    pub fn knows(
        &self,
        place: usize,
        example: &[Vec<u64>],
        inputs: &[Signature],
        wanted: &[Vec<u64>],
    ) -> bool {
        let same = |one: &Refusal| {
            one.place == place && one.example == example && compiler::refuses(&one.region, inputs, wanted)
        };
        self.all.lock().iter().any(same)
    }

    /// Remembers one; the oldest makes room.
    pub fn note(&self, refusal: Refusal) {
        let mut all = self.all.lock();
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(refusal);
    }
}
