//! Owns dispatching a plan of the kernel library on a HAL device. Does not own: what is computed, or whether it is right.

use std::sync::Arc;

use bytes::Bytes;
use halite_formats::vmfb::{
    DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
    write_vulkan_executable,
};
use halite_hal::{
    Binding, BindingTable, Buffer, BufferParams, BufferSpan, Command, CommandBuffer, CommandBufferMode,
    CommandCategory, CommandList, Deadline, Device, DispatchCounts, DispatchFlags, Executable,
    ExecutableDesc, Fence, QueueAffinity, QueueOp, Result, ResultExt, status,
};
use halite_shaders::{Operation, Plan, Slot, Step};

/// `VK_SHADER_STAGE_COMPUTE_BIT`.
const COMPUTE: u32 = 0x20;
/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`.
const STORAGE_BUFFER: u32 = 7;

/// The executable format of a step's code: a module with one pipeline.
fn container(step: &Step) -> Result<Vec<u8>> {
    let storage = |binding| DescriptorBinding {
        binding,
        descriptor_type: STORAGE_BUFFER,
        count: 1,
        stage_flags: COMPUTE,
    };
    let push = u32::try_from(step.push.len() * 4).unwrap_or(u32::MAX);
    let executable = VulkanExecutable {
        pipelines: vec![Pipeline {
            name: "main".to_owned(),
            entry_point: "main".to_owned(),
            shader_module: 0,
            layout: 0,
            subgroup_size: step.subgroup_size,
            abi: DispatchAbi::Descriptors,
            bda: None,
            location: None,
        }],
        set_layouts: vec![(0..).map(storage).take(step.bindings.len()).collect()],
        pipeline_layouts: vec![PipelineLayout {
            set_layouts: vec![0],
            push_constants: (push > 0)
                .then_some(PushConstantRange { stage_flags: COMPUTE, offset: 0, size: push })
                .into_iter()
                .collect(),
        }],
        shader_modules: vec![Bytes::from(step.module.to_bytes())],
        source_files: Vec::new(),
    };
    write_vulkan_executable(&executable).map_err(|e| status!(Internal, "packing a kernel: {e}"))
}

/// Compiles the code of a step.
pub fn compile(device: &dyn Device, step: &Step, label: &str) -> Result<Arc<dyn Executable>> {
    let sizes = (step.subgroup_size > 0).then_some(step.subgroup_size).into_iter().collect();
    device.create_executable(ExecutableDesc {
        format: "vulkan-spirv-fb".to_owned(),
        data: container(step)?.into(),
        constants: step.constants.clone(),
        label: label.to_owned(),
        subgroup_sizes: sizes,
    })
}

/// A plan with its memory, ready to be run any number of times.
#[derive(Debug)]
pub struct Prepared {
    device: Arc<dyn Device>,
    inputs: Vec<Arc<dyn Buffer>>,
    outputs: Vec<Arc<dyn Buffer>>,
    commands: Arc<dyn CommandBuffer>,
}

impl Prepared {
    /// Compiles a plan and records it `repeat` times, with a barrier after each dispatch.
    pub fn new(device: &Arc<dyn Device>, operation: &Operation, plan: &Plan, repeat: u32) -> Result<Self> {
        let allocate = |bytes: u64| device.allocate_buffer(&BufferParams::DEVICE, padded(bytes));
        let all = |tensors: Vec<halite_shaders::TensorDesc>| {
            tensors.iter().map(|t| allocate(t.bytes())).collect::<Result<Vec<_>>>()
        };
        let (inputs, outputs) = (all(operation.inputs())?, all(operation.outputs())?);
        let scratch = plan.scratch.iter().map(|bytes| allocate(*bytes)).collect::<Result<Vec<_>>>()?;
        let buffer = |slot: &Slot| match *slot {
            Slot::Input(i) => inputs.get(i),
            Slot::Output(i) => outputs.get(i),
            Slot::Scratch(i) => scratch.get(i),
        };
        let mut once = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            let executable = compile(device.as_ref(), step, &format!("{}[{index}]", operation.name()))
                .context(|| format!("step {index}"))?;
            let bound = step.bindings.iter().map(|slot| {
                let buffer = buffer(slot).ok_or_else(|| status!(Internal, "a plan names {slot:?}"))?;
                Ok(Binding::from(BufferSpan::whole(buffer.clone())))
            });
            once.push(Command::Dispatch {
                executable,
                function: 0,
                counts: DispatchCounts::Direct(step.grid),
                constants: step.push.iter().copied().collect(),
                bindings: bound.collect::<Result<_>>()?,
                flags: DispatchFlags::empty(),
            });
            once.push(Command::Barrier);
        }
        let commands = (0..repeat).flat_map(|_| once.iter().cloned()).collect();
        let commands = device.create_command_buffer(CommandList {
            mode: CommandBufferMode::empty(),
            categories: CommandCategory::ANY,
            affinity: QueueAffinity::ANY,
            binding_capacity: 0,
            commands,
        })?;
        Ok(Prepared { device: device.clone(), inputs, outputs, commands })
    }

    /// Writes the bytes of an input.
    pub fn write_input(&self, index: usize, bytes: &[u8]) -> Result<()> {
        self.inputs[index].write(0, bytes)
    }

    /// Fills all of an output, also the padding behind it.
    pub fn poison_output(&self, index: usize, byte: u8) -> Result<()> {
        let buffer = &self.outputs[index];
        let length = usize::try_from(buffer.byte_length()).unwrap_or(usize::MAX);
        buffer.write(0, &vec![byte; length])
    }

    /// All bytes of an output, also the padding behind it.
    pub fn read_output(&self, index: usize) -> Result<Vec<u8>> {
        BufferSpan::whole(self.outputs[index].clone()).read_all()
    }

    /// Runs and waits.
    pub fn run(&self, deadline: Deadline) -> Result<()> {
        let done = Fence::new(self.device.create_semaphore(0)?, 1);
        let op =
            QueueOp::Execute { command_buffer: self.commands.clone(), bindings: BindingTable::default() };
        self.device.queue_submit(QueueAffinity::ANY, &Fence::default(), &done, op)?;
        self.device.queue_flush(QueueAffinity::ANY)?;
        done.wait(deadline)
    }
}

/// Bytes of the buffer of a tensor: whole words, and never none.
fn padded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(4)
}
