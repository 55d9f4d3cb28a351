//! The decision whether a kernel may run on a device whose subgroups have another width than it was made for.

mod access;
mod address;
mod barrier;
mod decision;
mod emulate;
mod fold;
mod hazard;
mod lanes;
mod plan;
mod repair;
mod replica;
mod shrink;
mod split;
mod uniform;
mod usage;

pub use decision::{Decision, Policy, SubgroupSupport};
pub use plan::plan;
pub use usage::{SubgroupUse, subgroup_use};
