//! What a kernel accesses in a launch: which bytes of which binding, read or written, from its code alone. Whether two
//! launches may run at once is for whoever orders them.
//!
//! Addresses are computed as sums of the ids of workgroups and invocations and of loop counters, with the range of each, and
//! conditions around an access narrow those ranges. What is reported is never less than what the kernel does, as long as it
//! stays inside of its bindings; where nothing can be told, it is all of a binding.

mod affine;
mod bytes;
mod expr;
mod floats;
mod launch;
mod lower;
mod narrow;
mod plan;
mod values;

pub use bytes::{Access, Bytes};
pub use launch::Launch;
pub use plan::{AccessPlan, Resource};

use self::{bytes::Gathered, values::Values};

/// Expressions that are evaluated for one launch before the rest counts as unknown.
const BUDGET: usize = 1 << 20;

impl AccessPlan {
    /// What the kernel accesses when it is started like this, each binding's reads and writes apart; `None` when it
    /// follows pointers that cannot be traced, and may access anything that it is given.
    pub fn of(&self, launch: &Launch<'_>) -> Option<Vec<Access>> {
        if self.blind {
            return None;
        }
        let (mut gathered, mut budget) = (Gathered::default(), BUDGET);
        for site in &self.sites {
            let (key, Some((address, width))) = ((site.resource, site.write), site.place) else {
                gathered.add_all((site.resource, site.write));
                continue;
            };
            let mut values = Values::new(&self.exprs, launch, self.local_size, budget);
            let guards = self.guards.get(site.guards).map(Vec::as_slice).unwrap_or_default();
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
