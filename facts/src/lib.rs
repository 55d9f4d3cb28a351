//! What a device can do, as plain data: the table of features, and the record of a device that its driver makes.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! A driver fills in [`DeviceFacts`] once. Inside a program the value is passed on as it is; only the plug-in interface and
//! reports write it as JSON. Targets, kernels and drivers all speak of a [`Feature`] of the one table, so what a kernel needs,
//! what a device has and what the table of known GPUs says are compared as sets.
//!
//! ```
//! use halite_facts::{DeviceFacts, Feature, FeatureSet};
//!
//! let mut facts = DeviceFacts::default();
//! facts.features.set(Feature::ShaderInt8, true);
//! let needed = FeatureSet::from_iter([Feature::ShaderInt8, Feature::ShaderFloat16]);
//! let missing: Vec<&str> = needed.without(facts.features.present()).iter().map(Feature::vulkan_name).collect();
//! assert_eq!(missing, ["shaderFloat16"]);
//! ```

#![forbid(unsafe_code)]

mod device;
mod features;
mod ids;
pub mod kernel_keys;
mod limits;
mod matrix;
mod memory;
mod required;
mod sets;
mod subgroup;
mod version;

pub use device::{
    CooperativeMatrixProperties, DeviceFacts, DeviceType, DotProductFacts, ExternalBuffers, FactsError,
    QueueFamily, SubgroupFacts,
};
pub use features::Feature;
pub use ids::{driver_id, vendor};
pub use limits::Limits;
pub use matrix::{ComponentType, MatrixShape};
pub use memory::{Memory, MemoryHeap, MemoryTypeFacts};
pub use required::{Need, Requirement, required_features};
pub use sets::{FeatureFacts, FeatureSet};
pub use subgroup::{SubgroupOp, SubgroupOps};
pub use version::{VERSION_1_1, VERSION_1_2, VERSION_1_3, VERSION_1_4, api_version};
