//! Executables: parsing, checking against the device, and starting the build of their pipelines.

mod check;

pub(crate) use check::supports_format;

use std::{any::Any, ffi::CString, fmt, sync::Arc};

use halite_formats::vmfb::{self, DispatchAbi, Pipeline, VmfbError, VulkanExecutable as Parsed};
use halite_hal::{
    Code, Deadline, Executable, ExecutableDesc, Footprint, FunctionInfo, Result, ResultExt as _, Status,
    status,
};
use halite_spirv::{EntryFacts, ModuleFacts};

use crate::{
    context::DeviceContext,
    device::Core,
    pipeline::{CompilePool, Kernel, KernelKey, KernelLayout, Kernels, LayoutDesc, PipelineSource},
};

/// An executable of this driver.
pub(crate) struct VulkanExecutable {
    ctx: Arc<DeviceContext>,
    functions: Vec<FunctionInfo>,
    kernels: Vec<Arc<Kernel>>,
    compiler: CompilePool,
    /// Where kernels are shared with other executables.
    shared: Kernels,
    label: String,
}

/// A shader module of an executable, checked.
struct Shader {
    words: Arc<[u32]>,
    facts: ModuleFacts,
}

impl VulkanExecutable {
    /// Checks everything that can be checked, then lets the pipelines be built in the background.
    pub fn create(core: &Core, desc: &ExecutableDesc) -> Result<Self> {
        let ctx = &core.ctx;
        check::format(ctx, &desc.format)?;
        let parsed = vmfb::read_vulkan_executable(desc.data.clone()).map_err(parse_error)?;
        let shaders = parsed.shader_modules.iter().map(read_shader).collect::<Result<Vec<_>>>()?;
        let constants: Arc<[u32]> = desc.constants.as_slice().into();
        let mut executable = VulkanExecutable {
            ctx: ctx.clone(),
            functions: Vec::new(),
            kernels: Vec::new(),
            compiler: core.compiler.clone(),
            shared: core.kernels.clone(),
            label: desc.label.clone(),
        };
        for index in 0..parsed.pipelines.len() {
            let builder =
                KernelBuilder { ctx, shared: &core.kernels, parsed: &parsed, shaders: &shaders, desc, index };
            let (info, kernel) = builder.build(constants.clone())?;
            executable.functions.push(info);
            executable.kernels.push(kernel);
        }
        let open = executable.kernels.iter().filter(|kernel| !kernel.is_settled());
        core.compiler.build(open.map(Arc::downgrade));
        Ok(executable)
    }

    /// A kernel by index.
    pub fn kernel(&self, function: u32) -> Result<&Arc<Kernel>> {
        self.kernels.get(function as usize).ok_or_else(|| {
            status!(
                OutOfRange,
                "function {function} of executable '{}' does not exist; it has {}",
                self.label,
                self.kernels.len()
            )
        })
    }
}

fn parse_error(error: VmfbError) -> Status {
    let code = if error.is_incompatible() { Code::Incompatible } else { Code::InvalidArgument };
    Status::new(code, error.to_string())
}

fn read_shader(bytes: &bytes::Bytes) -> Result<Shader> {
    let refuse = |e: halite_spirv::SpirvError| {
        status!(
            InvalidArgument,
            "the executable holds SPIR-V that no driver may see: {e}; compile the module again"
        )
    };
    let words = halite_spirv::words_from_bytes(bytes).map_err(refuse)?;
    let facts = halite_spirv::analyze(&words).map_err(refuse)?;
    let words = halite_spirv::normalize(&words).map_err(refuse)?.unwrap_or(words);
    Ok(Shader { words: words.into(), facts })
}

/// Makes one kernel of an executable.
struct KernelBuilder<'a> {
    ctx: &'a Arc<DeviceContext>,
    shared: &'a Kernels,
    parsed: &'a Parsed,
    shaders: &'a [Shader],
    desc: &'a ExecutableDesc,
    index: usize,
}

impl KernelBuilder<'_> {
    fn build(&self, constants: Arc<[u32]>) -> Result<(FunctionInfo, Arc<Kernel>)> {
        let pipeline = &self.parsed.pipelines[self.index];
        let missing = || status!(InvalidArgument, "kernel '{}' names parts that do not exist", pipeline.name);
        let shader = self.shaders.get(pipeline.shader_module as usize).ok_or_else(missing)?;
        let layout = self.parsed.pipeline_layouts.get(pipeline.layout as usize).ok_or_else(missing)?;
        let sets: Vec<&[_]> = layout
            .set_layouts
            .iter()
            .map(|s| self.parsed.set_layouts.get(*s as usize).map(Vec::as_slice).ok_or_else(missing))
            .collect::<Result<_>>()?;
        let entry = entry_of(pipeline, shader)?;
        let subject = check::Subject { ctx: self.ctx, kernel: &pipeline.name, facts: &shader.facts, entry };
        let push_bytes = push_bytes(layout);
        subject.features()?;
        subject.numbers()?;
        subject.limits(&sets, push_bytes)?;
        subject.interface(&sets, push_bytes, pipeline.abi)?;
        let (words, required_subgroup_size) =
            subject.subgroups(&shader.words, &self.desc.subgroup_sizes, pipeline.subgroup_size)?;
        let bda = pipeline.bda.as_ref().filter(|_| pipeline.abi == DispatchAbi::BufferDeviceAddress);
        let constant_count = match bda {
            Some(bda) => check::bda_constants(&pipeline.name, bda, push_bytes)?,
            None => push_bytes / 4,
        };
        let desc = LayoutDesc {
            sets: &sets,
            push_constants: &layout.push_constants,
            address_bindings: bda.map(|b| b.bindings.len() as u32),
            constant_count,
        };
        let entry_point = CString::new(pipeline.entry_point.as_str()).map_err(|_| {
            status!(InvalidArgument, "kernel '{}' has a zero byte in its name", pipeline.name)
        })?;
        let counts_workgroups = shader.facts.counts_workgroups;
        let source =
            PipelineSource { words, entry_point, required_subgroup_size, constants, counts_workgroups };
        let key = KernelKey::new(&pipeline.name, &source, &desc);
        let kernel = self.shared.get_or_make(key, || {
            let layout =
                KernelLayout::new(self.ctx, &desc).context(|| format!("kernel '{}'", pipeline.name))?;
            Ok(Kernel::new(self.ctx.clone(), pipeline.name.clone(), layout, source))
        })?;
        let info = FunctionInfo {
            name: pipeline.name.clone(),
            binding_count: kernel.layout.binding_count,
            constant_count,
            workgroup_size: entry.local_size,
        };
        Ok((info, kernel))
    }
}

/// Bytes up to the end of the last push constant.
fn push_bytes(layout: &vmfb::PipelineLayout) -> u32 {
    layout.push_constants.iter().map(|range| range.offset.saturating_add(range.size)).max().unwrap_or(0)
}

/// The entry point that a pipeline names.
fn entry_of<'a>(pipeline: &Pipeline, shader: &'a Shader) -> Result<&'a EntryFacts> {
    shader.facts.entry(&pipeline.entry_point).ok_or_else(|| {
        status!(
            InvalidArgument,
            "kernel '{}' names entry point '{}', its shader has: {}",
            pipeline.name,
            pipeline.entry_point,
            shader.facts.entry_points.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ")
        )
    })
}

impl Drop for VulkanExecutable {
    fn drop(&mut self) {
        // In a fork they stay where they are, and so does the lock of those that devices share.
        if self.kernels.first().is_some_and(|kernel| kernel.is_forked()) {
            std::mem::forget(std::mem::take(&mut self.kernels));
            return;
        }
        self.shared.keep(self.kernels.drain(..));
    }
}

impl fmt::Debug for VulkanExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanExecutable")
            .field("label", &self.label)
            .field("functions", &self.functions)
            .finish_non_exhaustive()
    }
}

impl Executable for VulkanExecutable {
    fn device_id(&self) -> u64 {
        self.ctx.id
    }

    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn wait_built(&self, functions: &[u32], deadline: Deadline) -> Result<usize> {
        let kernels = functions.iter().map(|f| self.kernel(*f)).collect::<Result<Vec<_>>>()?;
        let open: Vec<_> = kernels.iter().copied().filter(|kernel| !kernel.is_settled()).collect();
        if !open.is_empty() && deadline != Deadline::Now && !self.compiler.build_first(&open) {
            open.iter().for_each(|kernel| kernel.build());
        }
        let mut built = kernels.len() - open.len();
        for kernel in open {
            built += usize::from(kernel.wait_settled(deadline)?);
        }
        Ok(built)
    }

    fn footprints(
        &self,
        function: u32,
        constants: &[u32],
        workgroups: Option<[u32; 3]>,
    ) -> Option<Vec<Footprint>> {
        self.kernel(function).ok()?.footprints(constants, workgroups)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
