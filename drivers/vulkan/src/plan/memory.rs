//! The choice between mapped device memory and staging.

use halite_facts::{DeviceFacts, DeviceType, MemoryTypeFacts};

use crate::{
    options::{MemoryChoice, VulkanOptions},
    plan::PlanError,
};

/// How host and device exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryStrategy {
    /// Host and device share memory: device buffers stay mapped, nothing is staged.
    Unified,
    /// The device has its own memory: data goes through staging buffers.
    Staged,
}

/// The memory decisions of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// How host and device exchange data.
    pub strategy: MemoryStrategy,
    /// Bytes of device-local memory that the host can map although the strategy is staged (resizable BAR).
    /// Host writes may go straight there; host reads must not, because the mapping is uncached. 0 when there
    /// is none, or only the small window of older systems.
    pub upload_window: u64,
}

/// A mappable part of device memory below this is the classic 256 MiB window: other programs need it too.
const SMALL_WINDOW: u64 = 256 << 20;

pub(super) fn choose(facts: &DeviceFacts, options: &VulkanOptions) -> Result<MemoryPlan, PlanError> {
    let mappable = |t: &&MemoryTypeFacts| t.ordinary() && t.device_local() && t.host_visible();
    let types = facts.memory.types.iter().filter(mappable);
    let any_mappable = types.clone().next().is_some();
    let window = types.filter_map(|t| facts.memory.heaps.get(t.heap as usize)).map(|h| h.size).max();
    let whole = window.is_some_and(|w| w >= facts.memory.largest_device_local_heap());
    let strategy = match options.memory {
        MemoryChoice::Staged => MemoryStrategy::Staged,
        MemoryChoice::Unified if any_mappable => MemoryStrategy::Unified,
        MemoryChoice::Unified => {
            return Err(PlanError::Option {
                device: facts.name.clone(),
                option: "memory=unified",
                reason: "no device-local memory type can be mapped; use memory=auto".to_owned(),
            });
        }
        MemoryChoice::Auto if whole && shares_host_memory(facts) => MemoryStrategy::Unified,
        MemoryChoice::Auto => MemoryStrategy::Staged,
    };
    let upload_window = match strategy {
        MemoryStrategy::Staged => window.filter(|w| *w > SMALL_WINDOW).unwrap_or(0),
        MemoryStrategy::Unified => 0,
    };
    Ok(MemoryPlan { strategy, upload_window })
}

/// Whether device memory is host memory. Discrete devices with a resizable BAR map all of it too, but over a
/// bus; what a device calls itself decides, and where that says nothing, a single heap does.
fn shares_host_memory(facts: &DeviceFacts) -> bool {
    match facts.device_type {
        DeviceType::Integrated | DeviceType::Cpu => true,
        DeviceType::Discrete => false,
        DeviceType::Virtual | DeviceType::Other => facts.memory.heaps.len() == 1,
    }
}
