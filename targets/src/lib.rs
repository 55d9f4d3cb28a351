//! Target triples, the table of known GPUs, and the decisions made from them: which target a device is, what kernels may use
//! on it, which of several targets fits it best. Drivers ask devices, and the kernel library chooses kernels.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! A target is written `<arch-or-vendor>-<product>-<os>`: `valhall-g78-android30`, `hopper-h200-linux`,
//! `cpu-llvmpipe-linux`. The table is data, one file for each family under `targets/data/`; everything in it names
//! its source. What a real device reports ([`halite_facts::DeviceFacts`]) always wins over the table.
//!
//! ```
//! use halite_targets::{Capabilities, Target};
//!
//! let target = Target::parse("ampere-rtx3080-windows")?;
//! assert_eq!(target.to_string(), "ampere-rtx3080-windows");
//! assert_eq!(Target::parse("sm_90")?.family().unwrap().name, "hopper");
//! assert_eq!(Capabilities::of(target).subgroup.preferred, Some(32));
//! # Ok::<(), halite_targets::TargetError>(())
//! ```

#![forbid(unsafe_code)]

mod block;
mod capabilities;
mod detect;
mod error;
mod listing;
mod names;
mod os;
mod rank;
mod reported;
mod table;
mod target;

pub use block::FactBlock;
pub use capabilities::{Capabilities, HardwareHints, SubgroupCapabilities};
pub use detect::{Detected, How};
pub use error::TargetError;
pub use listing::families_table;
pub use os::{Os, OsKind};
pub use rank::{Ranked, best, rank_of, tier};
pub use table::{DeviceId, Family, Generation, IdRange, Product, Series, Vendor, families, vendors};
pub use target::Target;
