//! The second pipeline of a kernel, for dispatches with more workgroups than the device allows: its code takes its first
//! workgroup and the total number as push constants.

use ash::vk;
use halite_hal::{Result, Status, status};
use halite_spirv::{REBASE_BYTES, rebase};

use super::{Kernel, create_pipeline};

/// A pipeline for parts of dispatches. The kernel owns the handles.
#[derive(Clone, Copy)]
pub(crate) struct SplitPipeline {
    /// The pipeline.
    pub pipeline: vk::Pipeline,
    /// Its layout: the kernel's, with more push constants.
    pub layout: vk::PipelineLayout,
}

/// Few kernels ever need one, so it is built by the first dispatch that does.
#[derive(Default)]
pub(super) enum SplitState {
    #[default]
    Unused,
    Ready(SplitPipeline),
    Failed(Status),
}

impl Kernel {
    /// First byte of the push constants that `split` adds: behind those that the kernel has.
    pub fn split_offset(&self) -> u32 {
        self.layout.push_bytes.next_multiple_of(4)
    }

    /// The pipeline for parts of a dispatch with these workgroup counts, which the device does not do at once. Builds
    /// it in this thread if it is the first; others wait.
    pub fn split(&self, counts: [u32; 3]) -> Result<SplitPipeline> {
        let mut state = self.split.lock();
        if matches!(*state, SplitState::Unused) {
            *state = self.build_split(counts).map_or_else(SplitState::Failed, SplitState::Ready);
        }
        match &*state {
            SplitState::Ready(split) => Ok(*split),
            SplitState::Failed(status) => Err(status.clone()),
            SplitState::Unused => Err(status!(Internal, "kernel '{}' lost its pipeline", self.name)),
        }
    }

    fn build_split(&self, counts: [u32; 3]) -> Result<SplitPipeline> {
        let offset = self.split_offset();
        let (bytes, limits) = (offset + REBASE_BYTES, &self.ctx.facts.limits);
        if bytes > limits.max_push_constants_size {
            let most = limits.max_push_constants_size;
            return Err(
                self.cannot_split(counts, &format!("that takes {bytes} of {most} push constant bytes"))
            );
        }
        let entry = self.source.entry_point.to_str().unwrap_or_default();
        let words = rebase(&self.source.words, entry, offset)
            .map_err(|e| self.cannot_split(counts, &e.to_string()))?;
        let layout = self.layout.create(bytes)?;
        match create_pipeline(&self.ctx, &self.name, layout, &words, &self.source) {
            Ok(pipeline) => Ok(SplitPipeline { pipeline, layout }),
            Err(status) => {
                // SAFETY: the layout was made above and nothing uses it.
                unsafe { self.ctx.device.destroy_pipeline_layout(layout, None) };
                Err(status)
            }
        }
    }

    fn cannot_split(&self, counts: [u32; 3], why: &str) -> Status {
        status!(
            OutOfRange,
            "kernel '{}' is dispatched with {counts:?} workgroups, maxComputeWorkGroupCount of device '{}' is {:?}, and \
             it cannot be dispatched in parts: {why}; use smaller inputs or recompile with larger workgroups",
            self.name,
            self.ctx.info.name,
            self.ctx.facts.limits.max_compute_workgroup_count
        )
    }

    pub(super) fn destroy_split(&mut self) {
        if let SplitState::Ready(split) = *self.split.get_mut() {
            // SAFETY: work in flight holds a reference to the kernels it uses, so nothing uses this one.
            unsafe {
                self.ctx.device.destroy_pipeline(split.pipeline, None);
                self.ctx.device.destroy_pipeline_layout(split.layout, None);
            }
        }
    }
}
