//! The choice of memory types for a buffer: an ordered list of candidates.

use halite_facts::{Memory, MemoryTypeFacts};
use halite_hal::{BufferParams, BufferUsage, MemoryType};

use crate::plan::{MemoryPlan, MemoryStrategy};

/// One memory type that a buffer may live in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCandidate {
    /// Memory type index.
    pub index: u32,
    /// Index of its heap.
    pub heap: u32,
    /// Whether it is to be mapped for as long as it lives.
    pub mapped: bool,
    /// Whether mapped accesses need no flush or invalidate.
    pub coherent: bool,
    /// Whether mapped reads go through the CPU cache.
    pub cached: bool,
    /// Whether it is the device's own memory; with unified memory all of it is.
    pub device_local: bool,
    /// Whether it is the host's own memory; with unified memory all of it is.
    pub host_local: bool,
}

impl MemoryCandidate {
    /// The memory type as the HAL names it: what a buffer in this memory really has.
    pub fn memory_type(&self) -> MemoryType {
        let mut bits = MemoryType::DEVICE_VISIBLE;
        bits.set(MemoryType::DEVICE_LOCAL, self.device_local);
        // DEVICE_LOCAL contains DEVICE_VISIBLE, which every Vulkan memory is.
        bits.insert(MemoryType::DEVICE_VISIBLE);
        bits.set(MemoryType::HOST_VISIBLE, self.mapped);
        bits.set(MemoryType::HOST_COHERENT, self.mapped && self.coherent);
        bits.set(MemoryType::HOST_CACHED, self.mapped && self.cached);
        if self.mapped && self.coherent && self.host_local {
            bits.insert(MemoryType::HOST_LOCAL);
        }
        bits
    }
}

/// What a buffer's memory must be and should be, from its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    /// The host must be able to map it.
    mapped: bool,
    /// Mapped accesses must need no flush.
    coherent: bool,
    /// The memory should be the device's own, even if mapped.
    device_local: bool,
    /// Memory of the host will not do instead.
    strict: bool,
    /// The host will read it.
    host_reads: bool,
}

impl Wish {
    fn of(params: &BufferParams, strategy: MemoryStrategy) -> Self {
        let kind = params.memory_type;
        let host = kind.contains(MemoryType::HOST_VISIBLE);
        let maps = BufferUsage::MAPPING_SCOPED | BufferUsage::MAPPING_PERSISTENT;
        let needs_mapping =
            params.usage.intersects(maps) && !params.usage.contains(BufferUsage::MAPPING_OPTIONAL);
        let device_local = kind.contains(MemoryType::DEVICE_LOCAL) || !host;
        let unified = strategy == MemoryStrategy::Unified;
        let writes_only = params.usage.contains(BufferUsage::MAPPING_ACCESS_SEQUENTIAL_WRITE)
            && !params.usage.contains(BufferUsage::MAPPING_ACCESS_RANDOM)
            && !kind.contains(MemoryType::HOST_CACHED);
        Wish {
            mapped: host || needs_mapping,
            coherent: kind.contains(MemoryType::HOST_COHERENT),
            device_local,
            // Where memory is shared, another heap is as near; across a bus, running out is better than
            // crawling.
            strict: kind.contains(MemoryType::DEVICE_LOCAL)
                && !kind.contains(MemoryType::OPTIMAL)
                && !unified,
            host_reads: (host || needs_mapping || unified) && !writes_only,
        }
    }

    /// How badly a type fits: lower is better; `None` when it cannot be used.
    fn cost(&self, t: &MemoryTypeFacts, strategy: MemoryStrategy) -> Option<u32> {
        if !t.ordinary() || (self.mapped && !t.host_visible()) || (self.coherent && !t.host_coherent()) {
            return None;
        }
        if self.strict && !t.device_local() {
            return None;
        }
        let unified = strategy == MemoryStrategy::Unified;
        let mut cost = 0;
        // The wrong side of a bus costs most, then uncached host reads, then flushes.
        if self.device_local != t.device_local() && !(unified && t.device_local()) {
            cost += 16;
        }
        if unified && !t.host_visible() {
            cost += 8;
        }
        if self.host_reads && t.host_visible() && !t.host_cached() {
            cost += 4;
        }
        if t.host_visible() && !t.host_coherent() {
            cost += 2;
        }
        // Under staging, mappable device memory is scarce: leave it to those who map it.
        if !unified && !self.mapped && t.host_visible() {
            cost += 1;
        }
        // Write-combined memory takes host writes faster than cached memory.
        if self.mapped && !self.host_reads && t.host_cached() {
            cost += 1;
        }
        Some(cost)
    }
}

/// The memory types that a buffer may live in, best first. `type_bits` are those that Vulkan allows for the
/// buffer (`VkMemoryRequirements::memoryTypeBits`). Empty when none can serve; when the first heap is full,
/// the next candidate is to be tried. The order is total: the same inputs give the same list.
pub fn candidates(
    params: &BufferParams,
    memory: &Memory,
    plan: &MemoryPlan,
    type_bits: u32,
) -> Vec<MemoryCandidate> {
    let wish = Wish::of(params, plan.strategy);
    let allowed = memory.types.iter().enumerate().take(32).filter(|(i, _)| type_bits & (1 << i) != 0);
    let mut scored: Vec<(u32, u32, &MemoryTypeFacts)> = allowed
        .filter_map(|(i, t)| Some((wish.cost(t, plan.strategy)?, u32::try_from(i).ok()?, t)))
        .collect();
    scored.sort_by_key(|(cost, index, t)| (*cost, u64::MAX - memory.heap_size(*index), *index, t.heap));
    let unified = plan.strategy == MemoryStrategy::Unified;
    // Where all memory is the device's, it is the host's too, also when it is used as if it were not.
    let shared = memory.types.iter().all(MemoryTypeFacts::device_local);
    let candidate = |(_, index, t): (u32, u32, &MemoryTypeFacts)| MemoryCandidate {
        index,
        heap: t.heap,
        mapped: t.host_visible() && (wish.mapped || unified),
        coherent: t.host_coherent(),
        cached: t.host_cached(),
        device_local: unified || t.device_local(),
        host_local: unified || shared || !t.device_local(),
    };
    scored.into_iter().map(candidate).collect()
}

#[cfg(test)]
mod tests;
