//! Measures what a device can do at most: copies of memory of any size, and arithmetic.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use halite_hal::{BufferParams, BufferRef, BufferSpan, Command, Device, Result, status};
use halite_ops::DType;
use halite_shaders::{Probe, ProbePlan};
use halite_targets::Capabilities;
use halite_testing::library::{Guards, Job, Prepared};

use super::timing::{Pace, Patience, Timing, measure_job};

/// Workgroups of a probe of arithmetic: enough for the largest GPU, a whole number of rounds on most.
const GROUPS: u32 = 4096;
/// Rounds in the first try.
const FIRST_ROUNDS: u32 = 16;
/// A dispatch of a probe takes so long, or its start and end would count.
const PROBE_SECONDS: f64 = 2e-3;
/// Least bytes of a copy.
const LEAST_COPY: u64 = 4096;

/// Bytes a second that a copy moves: what is read and what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CopySpeed {
    /// `vkCmdCopyBuffer`.
    pub command: f64,
    /// A kernel.
    pub kernel: f64,
}

impl CopySpeed {
    /// The faster one.
    pub fn best(&self) -> f64 {
        self.command.max(self.kernel)
    }
}

/// The ceilings of a device.
#[derive(Debug)]
pub struct Ceilings {
    device: Arc<dyn Device>,
    pace: Pace,
    largest: u64,
    copies: RefCell<BTreeMap<u64, CopySpeed>>,
    /// Operations a second of each probe, or why the device has no such thing.
    pub arithmetic: Vec<(Probe, std::result::Result<f64, String>)>,
}

impl Ceilings {
    /// Measures arithmetic and a large copy: of `largest` bytes, or what one binding can hold.
    pub fn measure(
        device: &Arc<dyn Device>,
        target: &Capabilities,
        largest: u64,
        pace: Pace,
    ) -> Result<Self> {
        let largest = largest.min(target.max_storage_buffer_bytes).max(LEAST_COPY) / 16 * 16;
        let (device, copies) = (device.clone(), RefCell::default());
        let mut ceilings = Ceilings { device, pace, largest, copies, arithmetic: Vec::new() };
        ceilings.copy(largest)?;
        for probe in Probe::ARITHMETIC {
            let speed = ceilings.arithmetic(probe, target)?;
            ceilings.arithmetic.push((probe, speed));
        }
        Ok(ceilings)
    }

    /// Bytes of the large copy.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The copy of as many bytes, rounded up to a power of two, over and over: it may stay in caches, as kernels of that
    /// size may. More bytes than the large copy are measured as that.
    pub fn copy(&self, bytes: u64) -> Result<CopySpeed> {
        let bytes = bytes.clamp(LEAST_COPY, self.largest);
        let bytes = bytes.checked_next_power_of_two().unwrap_or(self.largest).min(self.largest);
        if let Some(known) = self.copies.borrow().get(&bytes) {
            return Ok(*known);
        }
        let speed = self.measure_copy(bytes)?;
        self.copies.borrow_mut().insert(bytes, speed);
        Ok(speed)
    }

    fn measure_copy(&self, bytes: u64) -> Result<CopySpeed> {
        let allocate = || -> Result<BufferSpan> {
            Ok(BufferSpan::whole(self.device.allocate_buffer(&BufferParams::DEVICE, bytes)?))
        };
        let (from, to) = (allocate()?, allocate()?);
        let copy = Command::Copy { source: BufferRef::from(from), target: BufferRef::from(to) };
        let mut job = Job::new(&self.device, vec![vec![copy, Command::Barrier]], 1)?;
        let moved = 2.0 * bytes as f64;
        let command = moved / timed(&mut job, &self.pace)?.median;
        let mut kernel = 0.0f64;
        for per in [1, 4] {
            let probe = Probe::copy(bytes, per).map_err(|e| status!(Internal, "a copy {e}"))?;
            let mut copy =
                Prepared::new(&self.device, "copy", &probe.plan, &[bytes], &[bytes], 1, Guards::NONE)?;
            kernel = kernel.max(probe.bytes / timed(copy.job(), &self.pace)?.median);
        }
        Ok(CopySpeed { command, kernel })
    }

    fn arithmetic(&self, probe: Probe, target: &Capabilities) -> Result<std::result::Result<f64, String>> {
        let run = |plan: &ProbePlan| {
            let outputs = [plan.output_bytes];
            let mut prepared =
                Prepared::new(&self.device, probe.name(), &plan.plan, &[], &outputs, 1, Guards::NONE)?;
            timed(prepared.job(), &self.pace).map(|timing| timing.median)
        };
        let first = match probe.arithmetic(target, GROUPS, FIRST_ROUNDS) {
            Ok(plan) => plan,
            Err(unfit) => return Ok(Err(unfit.to_string())),
        };
        let seconds = run(&first)?;
        if seconds >= PROBE_SECONDS {
            return Ok(Ok(first.flops / seconds));
        }
        let rounds = (f64::from(FIRST_ROUNDS) * (PROBE_SECONDS / seconds).min(1e4)).ceil() as u32;
        let plan = probe.arithmetic(target, GROUPS, rounds).map_err(|e| status!(Internal, "a probe {e}"))?;
        Ok(Ok(plan.flops / run(&plan)?))
    }

    /// What bounds arithmetic on operands of a type: the fastest probe for it.
    pub fn peak(&self, operand: DType) -> Option<(Probe, f64)> {
        let fits = self.arithmetic.iter().filter(|(probe, _)| probe.bounds(operand));
        let measured = fits.filter_map(|(probe, speed)| Some((*probe, *speed.as_ref().ok()?)));
        measured.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn timed(job: &mut Job, pace: &Pace) -> Result<Timing> {
    measure_job(job, pace, Patience::default())
}
