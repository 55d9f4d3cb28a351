//! The error of an allocation that failed: what was asked, what the heap has, who uses it, and what to do.

use std::fmt::Write as _;

use ash::vk;
use halite_hal::{BufferParams, Code, MemoryStats, Status, status};

use super::Limit;
use crate::{context::DeviceContext, memory_types::MemoryCandidate};

/// Why there is no memory of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No single allocation may have so many bytes.
    TooLarge,
    /// The device allows no more allocations.
    TooMany,
    /// There may be no more bytes than these.
    OverLimit(Limit),
    /// A new block had no room: never seen, but no reason to panic.
    Fragmented,
    /// A Vulkan call failed.
    Call {
        /// The call.
        call: &'static str,
        /// Its result.
        result: vk::Result,
    },
}

impl Failure {
    /// A failed call.
    pub fn of(call: &'static str) -> impl Fn(vk::Result) -> Failure {
        move |result| Failure::Call { call, result }
    }

    /// Whether trying again or elsewhere is of no use.
    pub fn is_final(self) -> bool {
        matches!(self, Failure::Call { result: vk::Result::ERROR_DEVICE_LOST, .. })
    }
}

/// A request that could not be met.
pub(super) struct Request<'a> {
    /// What was asked for.
    pub params: &'a BufferParams,
    /// Bytes that were asked for.
    pub length: u64,
    /// Types that were tried and why each did not do, best first.
    pub tried: &'a [(MemoryCandidate, Failure)],
    /// What the device holds now.
    pub stats: MemoryStats,
    /// What it holds of the first type's heap.
    pub reserved: u64,
}

/// The error.
pub(super) fn status(ctx: &DeviceContext, request: &Request<'_>) -> Status {
    let Some((first, failure)) = request.tried.first() else {
        return status!(
            Unavailable,
            "no memory type of device '{}' has {:?}; ask for fewer bits",
            ctx.info.name,
            request.params.memory_type
        );
    };
    let heap = Heap::of(ctx, first);
    let (code, cause) = cause(ctx, request.length, *failure);
    let mut text = cause.message().to_owned();
    _ = write!(text, "; {}", heap.text());
    _ = write!(
        text,
        "; this device holds {} bytes of it and {} in all, {} are in buffers",
        request.reserved, request.stats.reserved, request.stats.used
    );
    if request.tried.iter().skip(1).any(|(c, _)| c.heap != first.heap) {
        text.push_str("; the other heaps that would do failed too");
    }
    text.push_str("; free buffers, use smaller inputs or another device");
    let mut told = Status::new(code, text);
    for (key, value) in cause.details() {
        told = told.with_detail(key.to_owned(), value);
    }
    heap.details(told)
        .with_detail("bytes", request.length.to_string())
        .with_detail("reserved", request.reserved.to_string())
        .with_detail("used", request.stats.used.to_string())
}

fn cause(ctx: &DeviceContext, length: u64, failure: Failure) -> (Code, Status) {
    let limits = &ctx.facts.limits;
    let name = &ctx.info.name;
    let cause = match failure {
        Failure::TooLarge => status!(
            ResourceExhausted,
            "a buffer of {length} bytes is more than device '{name}' gives at once; maxMemoryAllocationSize is {}, \
             maxBufferSize {}",
            limits.max_memory_allocation_size,
            limits.max_buffer_size
        ),
        Failure::TooMany => status!(
            ResourceExhausted,
            "a buffer of {length} bytes needs another allocation, and device '{name}' allows {}",
            limits.max_memory_allocation_count
        ),
        Failure::OverLimit(Limit::Option(limit)) => status!(
            ResourceExhausted,
            "a buffer of {length} bytes would take more than the {limit} bytes that the option memory_limit gives to buffers \
             on device '{name}'"
        ),
        Failure::OverLimit(Limit::Process(limit)) => status!(
            ResourceExhausted,
            "a buffer of {length} bytes would take more than the {limit} bytes that the machine, or its container, leaves to \
             buffers of this process, of which the memory of device '{name}' is a part"
        ),
        Failure::Fragmented => {
            status!(ResourceExhausted, "a buffer of {length} bytes does not fit in a block of its own size")
        }
        Failure::Call { call, result } => ctx.error(call, result, &format!("buffer of {length} bytes")),
    };
    let code = if failure.is_final() { cause.code() } else { Code::ResourceExhausted };
    (code, cause)
}

/// What is known about a heap at the moment. Sizes in bytes.
struct Heap {
    index: u32,
    device_local: bool,
    size: u64,
    /// What the process may use of it and does use, where the device tells (`VK_EXT_memory_budget`).
    budget: Option<(u64, u64)>,
}

impl Heap {
    fn of(ctx: &DeviceContext, candidate: &MemoryCandidate) -> Self {
        let heap = ctx.facts.memory.heaps.get(candidate.heap as usize);
        Heap {
            index: candidate.heap,
            device_local: heap.is_some_and(|h| h.device_local),
            size: heap.map_or(0, |h| h.size),
            budget: budget(ctx, candidate.heap as usize),
        }
    }

    fn text(&self) -> String {
        let local = if self.device_local { " (device-local)" } else { "" };
        let mut text = format!("heap {}{local} has {} bytes", self.index, self.size);
        match self.budget {
            Some((budget, usage)) => {
                _ = write!(text, ", this process may use {budget} of them now and uses {usage}");
            }
            None => text.push_str("; the device does not tell how many are free"),
        }
        text
    }

    fn details(&self, status: Status) -> Status {
        let status = status
            .with_detail("heap", self.index.to_string())
            .with_detail("heap.size", self.size.to_string());
        match self.budget {
            Some((budget, usage)) => status
                .with_detail("heap.budget", budget.to_string())
                .with_detail("heap.usage", usage.to_string()),
            None => status,
        }
    }
}

fn budget(ctx: &DeviceContext, heap: usize) -> Option<(u64, u64)> {
    if !ctx.facts.has_extension("VK_EXT_memory_budget") {
        return None;
    }
    let mut budgets = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut root = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budgets);
    // SAFETY: the physical device belongs to this instance, which the context keeps alive; it has Vulkan 1.1 and the
    // extension that defines the structure.
    unsafe { ctx.instance.instance.get_physical_device_memory_properties2(ctx.physical, &mut root) };
    Some((*budgets.heap_budget.get(heap)?, *budgets.heap_usage.get(heap)?))
}
