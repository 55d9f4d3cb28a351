//! What a device reports, in the form of the table's rows.

use halite_facts::{
    CooperativeMatrixProperties, DeviceFacts, DeviceType, Feature, FeatureSet, MatrixShape, SubgroupOps,
};

use crate::{FactBlock, Os};

/// The facts that kernels care about.
pub(crate) fn row_of(facts: &DeviceFacts) -> FactBlock {
    let l = &facts.limits;
    let said = |value: u32| (value != 0).then_some(value);
    let said3 = |value: [u32; 3]| (value != [0; 3]).then_some(value);
    let (subgroup_sizes, subgroup_preferred) = subgroup_sizes(facts);
    FactBlock {
        sources: vec![format!("reported by the device '{}'", facts.name)],
        api_version: said(facts.api_version).map(|v| ((v >> 22) & 0x7F, (v >> 12) & 0x3FF)),
        features: facts.features.only(FeatureSet::of_kernels()),
        subgroup_sizes,
        subgroup_preferred,
        subgroup_operations: said(facts.subgroup.operations).map(SubgroupOps::from_vulkan),
        max_workgroup_invocations: said(l.max_compute_workgroup_invocations),
        max_workgroup_size: said3(l.max_compute_workgroup_size),
        max_workgroup_count: said3(l.max_compute_workgroup_count),
        shared_memory_bytes: said(l.max_compute_shared_memory_size),
        max_push_constants_bytes: said(l.max_push_constants_size),
        max_storage_buffer_bytes: said(l.max_storage_buffer_range).map(u64::from),
        max_storage_buffers: l.storage_buffers(),
        packed_dot_product: facts.dot_product.map(|fast| fast.packed_4x8_signed),
        cooperative_matrix: matrix_shapes(facts),
        unified_memory: unified_memory(facts),
        compute_units: facts.compute_units,
        ..FactBlock::default()
    }
}

/// The system of the device; unknown when not said or not known.
pub(crate) fn os_of(facts: &DeviceFacts) -> Os {
    Os::parse(&facts.os).unwrap_or(Os::UNKNOWN)
}

/// Sizes that kernels can run with, and the one they get when they ask for nothing.
fn subgroup_sizes(facts: &DeviceFacts) -> (Option<Vec<u32>>, Option<u32>) {
    let s = &facts.subgroup;
    if s.size == 0 {
        return (None, None);
    }
    if !facts.features.has(Feature::SubgroupSizeControl) || s.min_size == 0 {
        return (Some(vec![s.size]), Some(s.size));
    }
    let powers = (0..31).map(|bit| 1_u32 << bit);
    let sizes: Vec<u32> = powers.filter(|size| (s.min_size..=s.max_size).contains(size)).collect();
    (Some(if sizes.is_empty() { vec![s.size] } else { sizes }), Some(s.size))
}

fn matrix_shapes(facts: &DeviceFacts) -> Option<Vec<MatrixShape>> {
    match facts.features.get(Feature::CooperativeMatrix)? {
        true => {
            Some(facts.cooperative_matrices.iter().filter_map(CooperativeMatrixProperties::shape).collect())
        }
        false => Some(Vec::new()),
    }
}

fn unified_memory(facts: &DeviceFacts) -> Option<bool> {
    match facts.device_type {
        DeviceType::Integrated | DeviceType::Cpu => Some(true),
        DeviceType::Discrete => Some(false),
        // Only the device's own memory is left when nothing is the host's alone.
        _ if facts.memory.heaps.is_empty() => None,
        _ => Some(facts.memory.heaps.iter().all(|h| h.device_local)),
    }
}
