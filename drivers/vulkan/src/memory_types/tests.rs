//! Which memory buffers get on devices of each kind.

use halite_hal::QueueAffinity;

use super::*;
use crate::{
    options::{MemoryChoice, VulkanOptions},
    plan::tests::{planned, recorded},
};

fn first(device: &str, memory_type: MemoryType, usage: BufferUsage) -> Option<MemoryCandidate> {
    let facts = recorded(device);
    let plan = planned(device, &VulkanOptions::default()).unwrap();
    let params = BufferParams { memory_type, usage, affinity: QueueAffinity::ANY };
    candidates(&params, &facts.memory, &plan.memory, u32::MAX).into_iter().next()
}

const STAGING_UP: BufferUsage = BufferUsage::TRANSFER.union(BufferUsage::MAPPING_ACCESS_SEQUENTIAL_WRITE);

#[test]
fn tensors_on_discrete_devices_are_not_mapped() {
    let got = first("discrete_rebar", MemoryType::DEVICE_LOCAL, BufferUsage::DEFAULT).unwrap();
    assert!(got.device_local && !got.mapped, "{got:?}");
    assert_eq!(got.memory_type(), MemoryType::DEVICE_LOCAL);
}

#[test]
fn read_back_staging_is_cached_and_on_the_host() {
    let got = first("discrete_rebar", MemoryType::HOST_LOCAL, BufferUsage::TRANSFER).unwrap();
    assert!(!got.device_local && got.mapped && got.cached && got.coherent, "{got:?}");
}

#[test]
fn upload_staging_is_write_combined() {
    let got = first("discrete_rebar", MemoryType::HOST_LOCAL, STAGING_UP).unwrap();
    assert!(!got.device_local && got.mapped && !got.cached, "{got:?}");
}

#[test]
fn mapped_device_memory_is_found_where_it_exists() {
    let both = MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE;
    let got = first("discrete_rebar", both, STAGING_UP).unwrap();
    assert!(got.device_local && got.mapped, "{got:?}");
}

#[test]
fn tensors_on_unified_devices_are_mapped_and_cached() {
    for device in ["llvmpipe", "swiftshader", "intel_integrated", "mali_g78"] {
        let got = first(device, MemoryType::DEVICE_LOCAL, BufferUsage::DEFAULT).unwrap();
        assert!(got.mapped && got.device_local, "{device}: {got:?}");
        let facts = recorded(device);
        if facts.memory.types.iter().any(|t| t.ordinary() && t.host_cached() && t.host_coherent()) {
            assert!(got.cached, "{device}: {got:?}");
        }
        assert!(got.memory_type().contains(MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE));
    }
}

#[test]
fn memory_that_is_all_shared_is_the_hosts_too_under_staging() {
    let facts = recorded("llvmpipe");
    let options = VulkanOptions { memory: MemoryChoice::Staged, ..VulkanOptions::default() };
    let plan = planned("llvmpipe", &options).unwrap();
    let memory_type = MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE;
    let params = BufferParams { memory_type, usage: BufferUsage::DEFAULT, affinity: QueueAffinity::ANY };
    let got = candidates(&params, &facts.memory, &plan.memory, u32::MAX)[0];
    assert!(got.memory_type().contains(memory_type), "{got:?}");
}

#[test]
fn only_allowed_types_are_offered_and_all_usable_ones_follow() {
    let facts = recorded("discrete_rebar");
    let plan = planned("discrete_rebar", &VulkanOptions::default()).unwrap();
    let all = candidates(&BufferParams::DEVICE, &facts.memory, &plan.memory, u32::MAX);
    assert_eq!(
        all.iter().map(|c| c.index).collect::<Vec<_>>(),
        [1, 4],
        "only the device's own, unmapped first"
    );
    let optimal = BufferParams { memory_type: MemoryType::OPTIMAL, ..BufferParams::DEVICE };
    let any = candidates(&optimal, &facts.memory, &plan.memory, u32::MAX);
    assert_eq!(any.len(), facts.memory.types.iter().filter(|t| t.ordinary()).count());
    assert_eq!(any[..2], all[..]);
    for bits in [0_u32, 1, 0b110, 0b1010] {
        let some = candidates(&BufferParams::DEVICE, &facts.memory, &plan.memory, bits);
        assert!(some.iter().all(|c| bits & (1 << c.index) != 0));
    }
    let coherent = BufferParams { memory_type: MemoryType::HOST_LOCAL, ..BufferParams::DEVICE };
    assert!(
        candidates(&coherent, &facts.memory, &plan.memory, u32::MAX).iter().all(|c| c.coherent && c.mapped)
    );
}

#[test]
fn shared_memory_falls_back_to_the_other_heap() {
    let mut facts = recorded("intel_integrated");
    facts.memory.heaps.push(halite_facts::MemoryHeap { size: 8 << 30, device_local: false });
    facts.memory.types.push(MemoryTypeFacts { heap: 1, flags: 6 });
    let plan = planned("intel_integrated", &VulkanOptions::default()).unwrap();
    let all = candidates(&BufferParams::DEVICE, &facts.memory, &plan.memory, u32::MAX);
    assert_eq!(all.last().map(|c| c.heap), Some(1));
    assert!(all.iter().all(|c| c.memory_type().contains(MemoryType::DEVICE_LOCAL)));
}
