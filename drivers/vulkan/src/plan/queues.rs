//! The choice of queue families.

use halite_facts::DeviceFacts;

use crate::{options::VulkanOptions, plan::PlanError};

/// One queue to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Queue family.
    pub family: u32,
    /// Index within the family.
    pub index: u32,
}

/// The queues to open: all from one family, so that buffers need no ownership transfers. A family that
/// dispatches without drawing is preferred, because work of the desktop does not delay it.
pub(super) fn choose(facts: &DeviceFacts, options: &VulkanOptions) -> Result<Vec<QueuePlan>, PlanError> {
    let compute = |prefer_dedicated: bool| {
        let families = facts.queue_families.iter().enumerate();
        families
            .filter(|(_, f)| f.compute() && f.count > 0)
            .min_by_key(|(index, f)| (f.graphics() == prefer_dedicated, *index))
    };
    let Some((family, found)) = compute(options.dedicated_compute_queue) else {
        return Err(PlanError::NoComputeQueue {
            device: facts.name.clone(),
            families: facts.queue_families.len(),
        });
    };
    let family = u32::try_from(family).expect("Vulkan counts queue families in u32");
    let count = options.queues.clamp(1, found.count);
    Ok((0..count).map(|index| QueuePlan { family, index }).collect())
}
