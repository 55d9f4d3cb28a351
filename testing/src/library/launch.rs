//! Dispatches a plan of the kernel library on a HAL device.

use std::sync::Arc;

use bytes::Bytes;
use halite_abi::format;
use halite_formats::vmfb::{VulkanExecutable, write_vulkan_executable};
use halite_hal::{
    BindingTable, Command, CommandBuffer, CommandBufferMode, CommandCategory, CommandList, Deadline, Device,
    DispatchCounts, DispatchFlags, Executable, ExecutableDesc, Fence, QueueAffinity, QueueOp, Result,
    ResultExt, status,
};
use halite_ops::{Operation, TensorDesc};
use halite_shaders::{Plan, Step};

use super::memory::{Guards, Memory};

/// The executable format of a step's code: a module with one pipeline.
fn container(step: &Step) -> Result<Vec<u8>> {
    let bindings = u32::try_from(step.bindings.len()).unwrap_or(u32::MAX);
    let push = u32::try_from(step.push.len() * 4).unwrap_or(u32::MAX);
    let spirv = Bytes::from(step.module.to_bytes());
    let executable = VulkanExecutable::of_kernel("main", spirv, bindings, push, step.subgroup_size);
    write_vulkan_executable(&executable).map_err(|e| status!(Internal, "packing a kernel: {e}"))
}

/// Compiles the code of a step.
pub fn compile(device: &dyn Device, step: &Step, label: &str) -> Result<Arc<dyn Executable>> {
    let sizes = (step.subgroup_size > 0).then_some(step.subgroup_size).into_iter().collect();
    device.create_executable(ExecutableDesc {
        format: format::VULKAN_SPIRV.to_owned(),
        data: container(step)?.into(),
        constants: step.constants.clone(),
        label: label.to_owned(),
        subgroup_sizes: sizes,
    })
}

/// Compiles the code of all steps of a plan.
pub fn compile_all(device: &dyn Device, plan: &Plan, label: &str) -> Result<Vec<Arc<dyn Executable>>> {
    let one = |(index, step): (usize, &Step)| {
        compile(device, step, &format!("{label}[{index}]")).context(|| format!("step {index}"))
    };
    plan.steps.iter().enumerate().map(one).collect()
}

/// Commands that are run as often as is asked for. Does not change after a recording.
#[derive(Debug)]
pub struct Job {
    device: Arc<dyn Device>,
    /// What one run is; several do the same on other memory and take turns.
    turns: Vec<Vec<Command>>,
    commands: Arc<dyn CommandBuffer>,
}

impl Job {
    /// Records `repeat` runs into one command buffer, which take turns.
    pub fn new(device: &Arc<dyn Device>, turns: Vec<Vec<Command>>, repeat: u32) -> Result<Self> {
        let commands = recorded(device.as_ref(), &turns, repeat)?;
        Ok(Job { device: device.clone(), turns, commands })
    }

    /// Records anew, for another number of runs.
    pub fn record(&mut self, repeat: u32) -> Result<()> {
        self.commands = recorded(self.device.as_ref(), &self.turns, repeat)?;
        Ok(())
    }

    /// Runs what is recorded and waits.
    pub fn run(&self, deadline: Deadline) -> Result<()> {
        let done = Fence::new(self.device.create_semaphore(0)?, 1);
        let op =
            QueueOp::Execute { command_buffer: self.commands.clone(), bindings: BindingTable::default() };
        self.device.queue_submit(QueueAffinity::ANY, &Fence::default(), &done, op)?;
        self.device.queue_flush(QueueAffinity::ANY)?;
        done.wait(deadline)
    }
}

fn recorded(device: &dyn Device, turns: &[Vec<Command>], repeat: u32) -> Result<Arc<dyn CommandBuffer>> {
    let commands = turns.iter().cycle().take(repeat as usize).flatten().cloned().collect();
    device.create_command_buffer(CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    })
}

/// The steps of a plan on some memory, with a barrier after each.
fn commands(memory: &Memory, plan: &Plan, code: &[Arc<dyn Executable>]) -> Result<Vec<Command>> {
    let mut commands = Vec::new();
    for (executable, step) in code.iter().zip(&plan.steps) {
        commands.push(Command::Dispatch {
            executable: executable.clone(),
            function: 0,
            counts: DispatchCounts::Direct(step.exact_grid()),
            constants: step.exact_push().into_iter().collect(),
            bindings: step.bindings.iter().map(|slot| memory.binding(slot)).collect::<Result<_>>()?,
            flags: DispatchFlags::empty(),
        });
        commands.push(Command::Barrier);
    }
    Ok(commands)
}

/// A plan with its memory, ready to be run any number of times.
#[derive(Debug)]
pub struct Prepared {
    sets: Vec<Memory>,
    guards: Guards,
    job: Job,
}

impl Prepared {
    /// Compiles a plan and records one run. Runs take turns on `sets` sets of buffers: together larger than a cache, they
    /// make every run read from memory.
    pub fn with_sets(
        device: &Arc<dyn Device>,
        operation: &Operation,
        plan: &Plan,
        sets: u32,
    ) -> Result<Self> {
        let (inputs, outputs) = sizes(operation);
        Self::new(device, operation.name(), plan, &inputs, &outputs, sets, Guards::NONE)
    }

    /// Compiles a plan and records one run, on buffers with guard words.
    pub fn guarded(device: &Arc<dyn Device>, operation: &Operation, plan: &Plan) -> Result<Self> {
        let (inputs, outputs) = sizes(operation);
        Self::new(device, operation.name(), plan, &inputs, &outputs, 1, Guards::AROUND)
    }

    /// The same for a plan that computes no operation. `inputs` and `outputs` are the bytes of their buffers.
    pub fn new(
        device: &Arc<dyn Device>,
        label: &str,
        plan: &Plan,
        inputs: &[u64],
        outputs: &[u64],
        sets: u32,
        guards: Guards,
    ) -> Result<Self> {
        let code = compile_all(device.as_ref(), plan, label)?;
        let sets = (0..sets.max(1)).map(|_| Memory::new(device.as_ref(), inputs, outputs, plan, guards));
        Self::with_memory(device, plan, &code, sets.collect::<Result<_>>()?, guards)
    }

    /// Records one run of code that is compiled already, a piece for each step.
    pub fn of_code(
        device: &Arc<dyn Device>,
        operation: &Operation,
        plan: &Plan,
        code: &[Arc<dyn Executable>],
        sets: u32,
    ) -> Result<Self> {
        let (inputs, outputs) = sizes(operation);
        let none = Guards::NONE;
        let sets = (0..sets.max(1)).map(|_| Memory::new(device.as_ref(), &inputs, &outputs, plan, none));
        Self::with_memory(device, plan, code, sets.collect::<Result<_>>()?, none)
    }

    /// Another plan of the same operation on the same inputs and outputs, with scratch memory of its own.
    pub fn beside(
        &self,
        device: &Arc<dyn Device>,
        plan: &Plan,
        code: &[Arc<dyn Executable>],
    ) -> Result<Self> {
        let sets = self.sets.iter().map(|set| set.beside(device.as_ref(), plan, self.guards));
        Self::with_memory(device, plan, code, sets.collect::<Result<_>>()?, self.guards)
    }

    fn with_memory(
        device: &Arc<dyn Device>,
        plan: &Plan,
        code: &[Arc<dyn Executable>],
        sets: Vec<Memory>,
        guards: Guards,
    ) -> Result<Self> {
        let turns = sets.iter().map(|memory| commands(memory, plan, code)).collect::<Result<_>>()?;
        Ok(Prepared { sets, guards, job: Job::new(device, turns, 1)? })
    }

    /// Records anew, for another number of runs in one command buffer.
    pub fn record(&mut self, repeat: u32) -> Result<()> {
        self.job.record(repeat)
    }

    /// Its commands.
    pub fn job(&mut self) -> &mut Job {
        &mut self.job
    }

    /// Writes the bytes of an input, of each set.
    pub fn write_input(&self, index: usize, bytes: &[u8]) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.write_input(index, bytes))
    }

    /// The bytes of an input of the first set, to the end of its last word.
    pub fn read_input(&self, index: usize) -> Result<Vec<u8>> {
        self.sets[0].read_input(index)
    }

    /// Writes the bytes that an output of each set has before a run.
    pub fn write_output(&self, index: usize, bytes: &[u8]) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.write_output(index, bytes))
    }

    /// Fills outputs and scratch memory of each set with a byte, and sets the guard words around them.
    pub fn poison(&self, byte: u8) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.poison(byte))
    }

    /// The same for the set that the first run after a recording uses, and whose outputs are read.
    pub fn poison_first(&self, byte: u8) -> Result<()> {
        self.sets[0].poison(byte)
    }

    /// The bytes of an output of the first set, to the end of its last word.
    pub fn read_output(&self, index: usize) -> Result<Vec<u8>> {
        self.sets[0].read_output(index)
    }

    /// The first buffer whose guard words a kernel wrote since they were set, in words. Nothing without guard words.
    pub fn damage(&self) -> Result<Option<String>> {
        for set in &self.sets {
            if let Some(found) = set.damage()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Runs and waits.
    pub fn run(&self, deadline: Deadline) -> Result<()> {
        self.job.run(deadline)
    }
}

/// Bytes of the inputs and of the outputs.
fn sizes(operation: &Operation) -> (Vec<u64>, Vec<u64>) {
    let bytes = |tensors: Vec<TensorDesc>| tensors.iter().map(|tensor| tensor.bytes().exact()).collect();
    (bytes(operation.inputs()), bytes(operation.outputs()))
}
