//! What a device can do at most, measured with kernels of the library by the device's own timestamps: a copy of memory, and
//! arithmetic in a loop. Only devices that run SPIR-V can be measured.

use std::sync::Arc;

use bytes::Bytes;
use halite::hal::{
    BindingTable, BufferParams, BufferRef, BufferSpan, Command, CommandBufferMode, CommandCategory,
    CommandList, Deadline, Device, DeviceKind, DispatchCounts, DispatchFlags, ExecutableDesc, Fence,
    QueueAffinity, QueueOp, Result, bail, status,
};
use halite_abi::format;
use halite_formats::vmfb::{VulkanExecutable, write_vulkan_executable};
use halite_shaders::{Probe, ProbePlan, Slot, Step};
use halite_targets::Target;
use std::time::Duration;

/// Bytes of the copy: far more than caches hold on a GPU.
const COPY: u64 = 256 << 20;
/// The same on a processor, whose copies are slow.
const COPY_CPU: u64 = 64 << 20;
/// Workgroups of a probe of arithmetic.
const GROUPS: u32 = 4096;
/// The same on a processor.
const GROUPS_CPU: u32 = 256;
/// Rounds of the first try.
const FIRST_ROUNDS: u32 = 16;
/// A dispatch of a probe takes about so long.
const LONG_ENOUGH: f64 = 2e-3;
/// Dispatches of each probe; the shortest counts.
const REPEATS: usize = 5;
/// A probe that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The ceilings of a device; `None` for what it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ceilings {
    /// Bytes a second that a copy reads and writes.
    pub(crate) bytes: Option<f64>,
    /// Arithmetic operations a second on `f32`.
    pub(crate) f32: Option<f64>,
    /// On `f16`, with matrix units where there are some.
    pub(crate) f16: Option<f64>,
    /// On 8-bit integers, with dot products or matrix units where there are some.
    pub(crate) i8: Option<f64>,
}

impl Ceilings {
    /// Measures them, in about a second.
    pub(super) fn measure(device: &Arc<dyn Device>) -> Result<Self> {
        let info = device.info();
        let takes = info.executable_formats.iter().any(|known| known == format::VULKAN_SPIRV);
        let Some(facts) = info.facts.as_deref().filter(|_| takes) else {
            bail!(Unimplemented, "device '{}' does not run the kernels that measure it", info.uri());
        };
        let target = Target::detect(facts).capabilities();
        let cpu = info.kind == DeviceKind::Cpu;
        let bytes = if cpu { COPY_CPU } else { COPY }.min(target.max_storage_buffer_bytes) / 16 * 16;
        let copy = |per| {
            let probe = Probe::copy(bytes, per).map_err(|e| status!(Internal, "a copy {e}"))?;
            Ok(probe.bytes / seconds(device, &probe, bytes)?)
        };
        let arithmetic = |probe: Probe| -> Result<Option<f64>> {
            let groups = if cpu { GROUPS_CPU } else { GROUPS };
            let Ok(first) = probe.arithmetic(&target, groups, FIRST_ROUNDS) else { return Ok(None) };
            let took = seconds(device, &first, 0)?.max(1e-9);
            let rounds = (f64::from(FIRST_ROUNDS) * (LONG_ENOUGH / took).clamp(1.0, 1e4)).ceil();
            let plan = probe.arithmetic(&target, groups, rounds as u32);
            let plan = plan.map_err(|e| status!(Internal, "a probe {e}"))?;
            Ok(Some(plan.flops / seconds(device, &plan, 0)?))
        };
        let copies: [Result<f64>; 2] = [1, 4].map(copy);
        let [one, four] = copies;
        Ok(Ceilings {
            bytes: Some(one?.max(four?)),
            f32: arithmetic(Probe::FmaF32)?,
            f16: larger(arithmetic(Probe::FmaF16)?, arithmetic(Probe::MatrixF16)?),
            i8: larger(arithmetic(Probe::DotI8)?, arithmetic(Probe::MatrixI8)?),
        })
    }

    /// The ceiling of arithmetic for an operation, by the types in its text.
    pub(super) fn arithmetic(&self, operation: &str) -> Option<f64> {
        let has = |name: &str| {
            let words = operation.split(|c: char| !c.is_ascii_alphanumeric());
            words.into_iter().any(|word| word == name)
        };
        if has("i8") || has("u8") {
            self.i8.or(self.f32)
        } else if has("f16") || has("bf16") {
            self.f16.or(self.f32)
        } else {
            self.f32
        }
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Seconds of a probe's one dispatch, by the device's clock.
fn seconds(device: &Arc<dyn Device>, probe: &ProbePlan, input_bytes: u64) -> Result<f64> {
    let [step] = &probe.plan.steps[..] else {
        bail!(Internal, "a probe of {} dispatches", probe.plan.steps.len())
    };
    let allocate =
        |bytes: u64| device.allocate_buffer(&BufferParams::DEVICE, bytes.max(4)).map(BufferSpan::whole);
    let (input, output) = (allocate(input_bytes)?, allocate(probe.output_bytes)?);
    let executable = device.create_executable(desc(step)?)?;
    let binding = |slot: &Slot| {
        BufferRef::from(if matches!(slot, Slot::Input(_)) { input.clone() } else { output.clone() })
    };
    let dispatch = Command::Dispatch {
        executable,
        function: 0,
        counts: DispatchCounts::Direct(step.exact_grid()),
        constants: step.exact_push().into_iter().collect(),
        bindings: step.bindings.iter().map(binding).collect(),
        flags: DispatchFlags::empty(),
    };
    let commands = (0..REPEATS).flat_map(|_| [dispatch.clone(), Command::Barrier]).collect();
    let commands = device.create_command_buffer(CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    })?;
    let run = || {
        let done = Fence::new(device.create_semaphore(0)?, 1);
        let op = QueueOp::Execute { command_buffer: commands.clone(), bindings: BindingTable::default() };
        device.queue_submit(QueueAffinity::ANY, &Fence::default(), &done, op)?;
        done.wait(Deadline::after(LIMIT))
    };
    run()?;
    device.start_profiling()?;
    let ran = run();
    let profile = device.stop_profiling(Deadline::after(LIMIT))?;
    ran?;
    let times = profile.times.iter().map(|time| time.end_ns - time.start_ns).filter(|time| *time > 0);
    let least = times.min().ok_or_else(|| status!(Unavailable, "the device's clock is too coarse"))?;
    Ok(least as f64 / 1e9)
}

fn desc(step: &Step) -> Result<ExecutableDesc> {
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let spirv = Bytes::from(step.module.to_bytes());
    let (bindings, push) = (narrow(step.bindings.len()), narrow(step.push.len() * 4));
    let executable = VulkanExecutable::of_kernel("main", spirv, bindings, push, step.subgroup_size);
    let data =
        write_vulkan_executable(&executable).map_err(|e| status!(Internal, "packing a kernel: {e}"))?;
    Ok(ExecutableDesc {
        format: format::VULKAN_SPIRV.to_owned(),
        data: data.into(),
        constants: step.constants.clone(),
        label: "ceiling".to_owned(),
        subgroup_sizes: (step.subgroup_size > 0).then_some(step.subgroup_size).into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_that_of_the_types() {
        let all = Ceilings { bytes: None, f32: Some(1.0), f16: Some(2.0), i8: Some(4.0) };
        for (text, wanted) in [
            ("conv2d: f32[1,3,8,8] f32[8,3,3,3]", 1.0),
            ("matmul: f16xf16_f32", 1.0),
            ("matmul: f16 8x8 by f16", 2.0),
            ("quant matmul i8 of 4x4", 4.0),
        ] {
            assert_eq!(all.arithmetic(text), Some(wanted), "{text}");
        }
        let plain = Ceilings { f32: Some(1.0), ..Ceilings::default() };
        assert_eq!(plain.arithmetic("i8"), Some(1.0));
    }
}
