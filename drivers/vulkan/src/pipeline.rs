//! Kernels: one compute pipeline with its layouts, built when first needed or by the compile pool before.

mod compile_pool;
mod footprints;
mod layout;
mod shared;
mod split;

use std::{
    ffi::CString,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ash::vk;
use halite_hal::sync::{Condvar, Mutex, MutexGuard};
use halite_hal::{Code, Deadline, Result, Status, status};
use halite_spirv::access::AccessPlan;

pub(crate) use compile_pool::CompilePool;
pub(crate) use layout::{KernelBinding, KernelLayout, LayoutDesc};
pub(crate) use shared::{KernelKey, Kernels};

use split::SplitState;

use crate::context::DeviceContext;

/// What the log tells of: a pipeline that takes the device's driver longer to build.
const SLOW: Duration = Duration::from_secs(1);

/// What a pipeline is made from.
pub(crate) struct PipelineSource {
    /// SPIR-V, checked.
    pub words: Arc<[u32]>,
    /// Entry point in it.
    pub entry_point: CString,
    /// Subgroup size that the pipeline must run with.
    pub required_subgroup_size: Option<u32>,
    /// Specialization constants: constant id n is entry n.
    pub constants: Arc<[u32]>,
    /// Whether it may ask how many workgroups its dispatch has.
    pub counts_workgroups: bool,
}

/// A dispatchable function. Any thread may use it.
pub(crate) struct Kernel {
    ctx: Arc<DeviceContext>,
    /// Number in this process.
    pub id: u64,
    /// Name for people.
    pub name: String,
    /// How it takes its arguments.
    pub layout: KernelLayout,
    /// Kept for `split`; the words are shared with the other kernels of their shader.
    source: PipelineSource,
    state: Mutex<State>,
    changed: Condvar,
    split: Mutex<SplitState>,
    /// What its code says about memory, once somebody asked.
    access_plan: OnceLock<Option<AccessPlan>>,
}

enum State {
    Waiting,
    /// Since when.
    Building(Instant),
    Ready(vk::Pipeline),
    Failed(Status),
}

impl Kernel {
    /// Whether it was made before this process was forked.
    pub fn is_forked(&self) -> bool {
        self.ctx.is_forked()
    }

    /// A kernel whose pipeline is not built yet.
    pub fn new(ctx: Arc<DeviceContext>, name: String, layout: KernelLayout, source: PipelineSource) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let state = Mutex::new(State::Waiting);
        Kernel {
            ctx,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name,
            layout,
            source,
            state,
            changed: Condvar::new(),
            split: Mutex::default(),
            access_plan: OnceLock::new(),
        }
    }

    /// Whether its code may ask how many workgroups a dispatch has.
    pub fn counts_workgroups(&self) -> bool {
        self.source.counts_workgroups
    }

    /// The pipeline. Builds it in this thread if nobody has begun, waits for whoever has. Tries once more where memory
    /// had run out.
    pub fn pipeline(&self) -> Result<vk::Pipeline> {
        let (mut state, mut again) = (self.state.lock(), true);
        loop {
            match &*state {
                State::Failed(status) if again && status.code() == Code::ResourceExhausted => {
                    again = false;
                    *state = State::Waiting;
                }
                State::Ready(pipeline) => return Ok(*pipeline),
                State::Failed(status) => return Err(status.clone()),
                State::Building(_) => self.wait_for_builder(&mut state)?,
                State::Waiting => {
                    drop(state);
                    self.build();
                    state = self.state.lock();
                }
            }
        }
    }

    fn wait_for_builder(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        let Some(limit) = self.ctx.options.stall_limit else {
            self.changed.wait(state);
            return Ok(());
        };
        if self.changed.wait_for(state, limit).timed_out() && matches!(**state, State::Building(_)) {
            return Err(self.stalled(limit));
        }
        Ok(())
    }

    fn stalled(&self, limit: Duration) -> Status {
        status!(
            DeadlineExceeded,
            "the driver of device '{}' ({}) has been compiling kernel '{}' for {limit:?}; the option \
             stall_limit=<seconds>|off changes how long is waited",
            self.ctx.info.name,
            self.ctx.facts.driver_text(),
            self.name
        )
    }

    /// Whether its pipeline was built or has failed to be.
    pub fn is_settled(&self) -> bool {
        matches!(*self.state.lock(), State::Ready(_) | State::Failed(_))
    }

    /// Whether its pipeline is built.
    pub fn is_ready(&self) -> bool {
        matches!(*self.state.lock(), State::Ready(_))
    }

    /// Whether its pipeline could not be built.
    pub fn has_failed(&self) -> bool {
        matches!(*self.state.lock(), State::Failed(_))
    }

    /// Waits until somebody has built the pipeline; whether that is so at the deadline. DEADLINE_EXCEEDED when the Vulkan
    /// driver has been at it for longer than the option `stall_limit` allows.
    pub fn wait_settled(&self, deadline: Deadline) -> Result<bool> {
        let mut state = self.state.lock();
        let limit = self.ctx.options.stall_limit;
        loop {
            let patience = match &*state {
                State::Ready(_) | State::Failed(_) => return Ok(true),
                State::Waiting => limit,
                State::Building(since) => match limit.map(|limit| limit.checked_sub(since.elapsed())) {
                    None => None,
                    Some(Some(left)) => Some(left),
                    Some(None) => return Err(self.stalled(limit.unwrap_or_default())),
                },
            };
            let left = match (deadline.remaining(), patience) {
                (Some(left), _) if left.is_zero() => return Ok(false),
                (Some(left), Some(patience)) => Some(left.min(patience)),
                (left, patience) => left.or(patience),
            };
            match left {
                Some(left) => _ = self.changed.wait_for(&mut state, left),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Builds the pipeline unless somebody has begun to.
    pub fn build(&self) {
        {
            let mut state = self.state.lock();
            if !matches!(*state, State::Waiting) {
                return;
            }
            *state = State::Building(Instant::now());
        }
        let (layout, begin) = (self.layout.handle(), Instant::now());
        let result = create_pipeline(&self.ctx, &self.name, layout, &self.source.words, &self.source);
        let took = begin.elapsed();
        if took >= SLOW {
            log::info!(
                "the driver took {took:.1?} to compile kernel '{}', {} words",
                self.name,
                self.source.words.len()
            );
        }
        *self.state.lock() = result.map_or_else(State::Failed, State::Ready);
        self.changed.notify_all();
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        if let State::Ready(pipeline) = *self.state.get_mut() {
            // SAFETY: work in flight holds a reference to the kernels it uses, so nothing uses this one.
            unsafe { self.ctx.device.destroy_pipeline(pipeline, None) };
        }
        self.destroy_split();
    }
}

/// Builds a pipeline from words that take the place of the source's own.
fn create_pipeline(
    ctx: &DeviceContext,
    name: &str,
    layout: vk::PipelineLayout,
    words: &[u32],
    source: &PipelineSource,
) -> Result<vk::Pipeline> {
    let info = vk::ShaderModuleCreateInfo::default().code(words);
    // SAFETY: the words were validated, and their features checked, before the kernel was made; those that `split`
    // gives need no other features.
    let module = unsafe { ctx.device.create_shader_module(&info, None) }
        .map_err(|e| ctx.error("vkCreateShaderModule", e, name))?;
    let pipeline = create_with_module(ctx, layout, source, module);
    // SAFETY: the module was made above; pipelines do not need theirs once they exist.
    unsafe { ctx.device.destroy_shader_module(module, None) };
    let pipeline =
        pipeline.map_err(|e| ctx.error("vkCreateComputePipelines", e, &format!("kernel '{name}'")))?;
    ctx.set_name(pipeline, name);
    Ok(pipeline)
}

fn create_with_module(
    ctx: &DeviceContext,
    layout: vk::PipelineLayout,
    source: &PipelineSource,
    module: vk::ShaderModule,
) -> Result<vk::Pipeline, vk::Result> {
    let entries: Vec<_> = (0..source.constants.len() as u32)
        .map(|id| vk::SpecializationMapEntry { constant_id: id, offset: id * 4, size: 4 })
        .collect();
    let bytes: Vec<u8> = source.constants.iter().flat_map(|c| c.to_ne_bytes()).collect();
    let specialization = vk::SpecializationInfo::default().map_entries(&entries).data(&bytes);
    let mut subgroup = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
        .required_subgroup_size(source.required_subgroup_size.unwrap_or(0));
    let mut stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(&source.entry_point);
    if !entries.is_empty() {
        stage = stage.specialization_info(&specialization);
    }
    if source.required_subgroup_size.is_some() {
        stage = stage.push_next(&mut subgroup);
    }
    let mut info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    if ctx.divides_dispatches() {
        info[0].flags |= vk::PipelineCreateFlags::DISPATCH_BASE;
    }
    // SAFETY: module and layout are live and fit each other (`executable` compared them); the cache is internally
    // synchronized; all arrays live until the call returns.
    let made = unsafe { ctx.device.create_compute_pipelines(ctx.pipeline_cache.handle(), &info, None) };
    match made {
        Ok(pipelines) => pipelines.first().copied().ok_or(vk::Result::ERROR_UNKNOWN),
        Err((_, e)) => Err(e),
    }
}
