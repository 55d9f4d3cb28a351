//! Owns what a kernel touches in a launch: which bytes of which binding, read or written, from its code alone. Does not own:
//! whether two launches may run at once (whoever orders them).
//!
//! Addresses are computed as sums of the ids of workgroups and invocations and of loop counters, with the range of each, and
//! conditions around an access narrow those ranges. What is reported is never less than what the kernel does, as long as it
//! stays inside of its bindings; where nothing can be told, it is all of a binding.

mod affine;
mod bytes;
mod expr;
mod floats;
mod lower;
mod narrow;
mod plan;
mod values;

pub use bytes::{Bytes, Touch};
pub use plan::{Resource, TouchPlan};

use self::{bytes::Gathered, values::Values};

/// Expressions that are evaluated for one launch before the rest counts as unknown.
const BUDGET: usize = 1 << 20;

/// The numbers that a kernel is started with.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The push constants, from byte 0 on; kernels that take a table of addresses have its address in the first two.
    pub push_constants: &'a [u32],
    /// Workgroups in x, y and z; `None` where only the device knows.
    pub workgroups: Option<[u32; 3]>,
}

impl TouchPlan {
    /// What the kernel touches when it is started like this, each binding's reads and writes apart; `None` when it
    /// follows pointers that cannot be traced, and may touch anything that it is given.
    pub fn of(&self, launch: &Launch<'_>) -> Option<Vec<Touch>> {
        if self.blind {
            return None;
        }
        let (mut gathered, mut budget) = (Gathered::default(), BUDGET);
        for access in &self.accesses {
            let (key, Some((address, width))) = ((access.resource, access.write), access.place) else {
                gathered.add_all((access.resource, access.write));
                continue;
            };
            let mut values = Values::new(&self.exprs, launch, self.local_size, budget);
            let guards = self.guards.get(access.guards).map(Vec::as_slice).unwrap_or_default();
            if !guards.iter().all(|(condition, wanted)| values.assume(*condition, *wanted)) {
                continue;
            }
            let found = values.value(address).and_then(|at| Bytes::of(&at, width, &values.ranges));
            budget = values.budget;
            match found {
                Some(bytes) => gathered.add(key, bytes),
                None => gathered.add_all(key),
            }
        }
        Some(gathered.finish())
    }
}
