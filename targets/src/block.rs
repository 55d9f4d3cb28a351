//! A row of the table: facts about a GPU, each of which may be unknown, and how a more specific row covers a general one.

use halite_facts::{Feature, FeatureFacts, MatrixShape, SubgroupOps, kernel_keys};
use serde::{Deserialize, Serialize};

macro_rules! fact_block {
    ($($(#[$doc:meta])* $field:ident: $ty:ty,)*) => {
        /// Facts about a family, a generation, a product or a device. `None` is "not known"; sizes are in bytes.
        /// As JSON, features stand beside the other fields under their kernel keys; an unknown field is an error.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct FactBlock {
            /// Where the facts come from: a document, a URL, a recorded device. Never empty where a fact is stated.
            pub sources: Vec<String>,
            /// What a reader must know about the facts.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub notes: Vec<String>,
            /// Features that kernels choose by.
            #[serde(flatten, with = "kernel_keys")]
            pub features: FeatureFacts,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$ty>,)*
        }

        impl FactBlock {
            /// Names of the facts that are known.
            pub fn known(&self) -> Vec<&'static str> {
                let mut known: Vec<_> = self.features.known().iter().filter_map(Feature::kernel_key).collect();
                $(if self.$field.is_some() { known.push(stringify!($field)); })*
                known
            }

            /// These facts, and where one is not known, that of `general`. Sources and notes of both are kept.
            #[must_use]
            pub fn over(mut self, general: &FactBlock) -> FactBlock {
                $(if self.$field.is_none() { self.$field.clone_from(&general.$field); })*
                self.features = self.features.over(general.features);
                append_new(&mut self.sources, &general.sources);
                append_new(&mut self.notes, &general.notes);
                self
            }
        }
    };
}

fact_block! {
    /// Highest Vulkan version (major, minor) that drivers for it usually offer.
    api_version: (u32, u32),
    /// Subgroup sizes that a kernel can run with, ascending.
    subgroup_sizes: Vec<u32>,
    /// The size that kernels for it should assume.
    subgroup_preferred: u32,
    /// Subgroup operations in compute kernels.
    subgroup_operations: SubgroupOps,
    /// Most invocations in a workgroup.
    max_workgroup_invocations: u32,
    /// Largest workgroup in x, y, z.
    max_workgroup_size: [u32; 3],
    /// Most workgroups of a dispatch in x, y, z.
    max_workgroup_count: [u32; 3],
    /// Shared memory that a workgroup can use through Vulkan.
    shared_memory_bytes: u32,
    /// Push constants.
    max_push_constants_bytes: u32,
    /// Largest range of a storage buffer binding.
    max_storage_buffer_bytes: u64,
    /// Storage buffers that a kernel can bind, in one set.
    max_storage_buffers: u32,
    /// Turns after which the loops of an invocation end, all of them together, whatever they have left to do.
    max_loop_turns: u32,
    /// Whether signed dot products of four packed 8-bit integers are faster than spelling them out.
    packed_dot_product: bool,
    /// Cooperative matrix shapes of a subgroup; empty where there are none.
    cooperative_matrix: Vec<MatrixShape>,
    /// Whether host and device share their memory.
    unified_memory: bool,
    /// Units that run workgroups: streaming multiprocessors, compute units, shader or Xe cores.
    compute_units: u32,
    /// Invocations that a unit keeps in flight.
    max_invocations_per_unit: u32,
    /// Shared memory of a unit, for all its workgroups.
    local_memory_per_unit_bytes: u32,
    /// 32-bit registers of a unit, all lanes counted.
    registers_per_unit: u32,
    /// 32-bit registers that one invocation can have.
    max_registers_per_invocation: u32,
    /// 32-bit fused multiply-adds that a unit starts in a clock.
    fp32_fma_per_unit: u32,
    /// Level 1 data cache of a unit, with shared memory where the hardware keeps both in one.
    l1_bytes_per_unit: u32,
    /// Level 2 cache.
    l2_bytes: u64,
    /// Last cache before memory, where it is another than level 2.
    last_level_cache_bytes: u64,
    /// Bytes that caches move at once.
    cache_line_bytes: u32,
    /// Memory bandwidth in 10^9 bytes a second.
    memory_bandwidth_gbps: u32,
}

fn append_new(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specific_covers_the_general() {
        let row = |text: &str| serde_json::from_str::<FactBlock>(text).unwrap();
        let general = row(r#"{"sources": ["a"], "int8": true, "int16": true, "l2_bytes": 5}"#);
        let merged = row(r#"{"sources": ["b"], "int8": false}"#).over(&general);
        let features = [Feature::ShaderInt8, Feature::ShaderInt16, Feature::ShaderInt64];
        assert_eq!(features.map(|f| merged.features.get(f)), [Some(false), Some(true), None]);
        assert_eq!((merged.l2_bytes, &merged.sources), (Some(5), &vec!["b".to_owned(), "a".to_owned()]));
        assert_eq!(merged.known(), ["int16", "int8", "l2_bytes"]);
    }

    #[test]
    fn misspelled_facts_are_errors() {
        assert!(serde_json::from_str::<FactBlock>(r#"{"sources": ["x"], "int_8": true}"#).is_err());
    }
}
