//! Measures the variants of an operation on one device: medians of checked runs.

use std::{sync::Arc, time::Duration};

use halite_hal::{Deadline, Device, Result};
use halite_ops::{DType, Operation};
use halite_shaders::{Candidate, Plan, Tuning, Verdict, rank};
use halite_targets::Capabilities;
use halite_testing::library::Prepared;

use super::{
    ceilings::Ceilings,
    check::{self, Reference},
    defaults::Size,
    original::Compiler,
    result::{Measured, Report, Row},
    timing::{Pace, measure_job},
};

/// A run that is checked takes at most so long.
const LIMIT: Duration = Duration::from_secs(300);
/// Bytes that no right result consists of.
const POISON: u8 = 0xA5;
/// Operations on a byte below which memory decides the speed.
const MEMORY_BOUND: f64 = 24.0;
/// Most sets of buffers that runs take turns on.
const MOST_SETS: u64 = 64;

/// Whether runs find their inputs in caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caches {
    /// All runs use the same buffers.
    Warm,
    /// Runs take turns on buffers that are together larger than caches.
    Cold,
    /// Cold where memory decides the speed, warm elsewhere.
    Auto,
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long.
    pub pace: Pace,
    /// Only variants whose name contains this; the reference may be another.
    pub filter: String,
    /// Operations of more arithmetic are checked against a variant rather than the reference.
    pub reference_flops: f64,
    /// Whether caches help.
    pub caches: Caches,
    /// Seed of the inputs.
    pub seed: u64,
    /// Compiles the original's code for operations, which is measured too.
    pub original: Option<Compiler>,
}

/// Measures on one device.
#[derive(Debug)]
pub struct Bench {
    pub(super) device: Arc<dyn Device>,
    target: Capabilities,
    tuning: Tuning,
    ceilings: Ceilings,
    pub(super) options: Options,
}

impl Bench {
    /// Measures the device's ceilings. Places in reports are those that `tuning` gives.
    pub fn new(
        device: Arc<dyn Device>,
        target: Capabilities,
        tuning: Tuning,
        options: Options,
    ) -> Result<Self> {
        let short = Pace { measure: options.pace.measure.min(Duration::from_millis(300)), ..options.pace };
        let ceilings = Ceilings::measure(&device, &target, Size::of(&target).copy_bytes(), short)?;
        Ok(Bench { device, target, tuning, ceilings, options })
    }

    /// The device's ceilings.
    pub fn ceilings(&self) -> &Ceilings {
        &self.ceilings
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// What it can do.
    pub fn target(&self) -> &Capabilities {
        &self.target
    }

    /// Checks and measures every variant of an operation that the device can run.
    ///
    /// # Errors
    /// What is not the fault of one variant: memory, a lost device.
    pub fn measure(&self, operation: &Operation) -> Result<Report> {
        let candidates = rank(operation, &self.target, &self.tuning);
        let inputs = check::input_bytes(operation, self.options.seed);
        let mut reference = self.reference(operation, &inputs);
        if reference.is_none() {
            reference = self.other(operation, &candidates, &inputs);
        }
        let sets = self.sets(operation);
        let mut rows = Vec::new();
        let runnable = candidates.iter().filter_map(|c| Some((c.variant.name.as_str(), c.plan()?)));
        for (index, (name, plan)) in runnable.enumerate() {
            if !name.contains(&self.options.filter) {
                continue;
            }
            let outcome = self.one(operation, name, plan, &inputs, reference.as_ref(), sets);
            let outcome = outcome.unwrap_or_else(|status| Err(status.to_string()));
            rows.push(Row { variant: name, place: index + 1, outcome });
        }
        let against = self.against(operation, &candidates, &rows, &inputs, reference.as_ref())?;
        let signature = operation.signature();
        let out = |c: &Candidate| match &c.verdict {
            Verdict::RuledOut(why) => Some((c.variant.name.as_str(), why.clone())),
            Verdict::Runs { .. } => None,
        };
        let work = operation.work();
        let copied = if sets > 1 { self.ceilings.largest() } else { (work.bytes / 2.0) as u64 };
        let operand = operation.inputs().first().map_or(DType::F32, |tensor| tensor.dtype);
        Ok(Report {
            operation: operation.clone(),
            work,
            rows,
            ruled_out: candidates
                .iter()
                .filter(|c| c.variant.signatures.contains(&signature))
                .filter_map(|c| out(c).filter(|(name, _)| name.contains(&self.options.filter)))
                .collect(),
            sets,
            copy: self.ceilings.copy(copied)?,
            peak: self.ceilings.peak(operand),
            against,
        })
    }

    /// The reference's results, when it takes no minutes.
    fn reference(&self, operation: &Operation, inputs: &[Vec<u8>]) -> Option<Reference> {
        let work = operation.work();
        (work.flops.max(work.bytes) <= self.options.reference_flops)
            .then(|| Reference::Host(operation.reference(&check::input_values(operation, inputs))))
    }

    /// The results of the plainest variant.
    fn other(
        &self,
        operation: &Operation,
        candidates: &[Candidate],
        inputs: &[Vec<u8>],
    ) -> Option<Reference> {
        let runnable = candidates.iter().filter(|c| c.plan().is_some());
        let plainest = runnable.max_by_key(|c| (c.variant.needs.is_baseline(), c.variant.order))?;
        let prepared = self.prepared(operation, plainest.plan()?, inputs, 1);
        let outputs = prepared.and_then(|prepared| run(operation, &prepared));
        match outputs {
            Ok(outputs) => Some(Reference::Variant(
                plainest.variant.name.clone(),
                check::output_values(operation, &outputs),
            )),
            Err(error) => {
                log::warn!("{}: nothing to compare {operation} with: {error}", plainest.variant.name);
                None
            }
        }
    }

    /// A plan with its inputs in memory, so many times.
    pub(super) fn prepared(
        &self,
        operation: &Operation,
        plan: &Plan,
        inputs: &[Vec<u8>],
        sets: u32,
    ) -> Result<Prepared> {
        let prepared = Prepared::with_sets(&self.device, operation, plan, sets)?;
        for (index, bytes) in inputs.iter().enumerate() {
            prepared.write_input(index, bytes)?;
        }
        Ok(prepared)
    }

    /// Runs a variant once and checks it, times it, and checks what the last run left.
    fn one(
        &self,
        operation: &Operation,
        name: &str,
        plan: &Plan,
        inputs: &[Vec<u8>],
        reference: Option<&Reference>,
        sets: u32,
    ) -> Result<std::result::Result<Measured, String>> {
        let mut prepared = self.prepared(operation, plan, inputs, sets)?;
        let magnitudes = check::magnitudes(operation, inputs);
        let compare = |outputs: &[Vec<u8>]| {
            let Some(reference) = reference else { return Ok("nothing".to_owned()) };
            let told = match reference {
                Reference::Variant(other, _) if other == name => "itself".to_owned(),
                other => other.name().to_owned(),
            };
            reference
                .compare(operation, &magnitudes, outputs)
                .map(|()| told)
                .map_err(|e| format!("wrong: {e}"))
        };
        let first = run(operation, &prepared)?;
        let checked = match compare(&first) {
            Ok(checked) => checked,
            Err(wrong) => return Ok(Err(wrong)),
        };
        let timing = measure_job(prepared.job(), &self.options.pace)?;
        let last = read(operation, &prepared)?;
        if last != first
            && let Err(wrong) = compare(&last)
        {
            return Ok(Err(format!("{wrong}, after many runs that began right")));
        }
        Ok(Ok(Measured { timing, checked }))
    }

    /// Sets of buffers that are together larger than caches; one when caches may help.
    fn sets(&self, operation: &Operation) -> u32 {
        let work = operation.work();
        let cold = match self.options.caches {
            Caches::Warm => false,
            Caches::Cold => true,
            Caches::Auto => work.flops < MEMORY_BOUND * work.bytes,
        };
        let wanted = 2 * self.ceilings.largest();
        let sets = wanted.div_ceil((work.bytes as u64).max(1)).clamp(1, MOST_SETS);
        if cold { u32::try_from(sets).unwrap_or(1) } else { 1 }
    }
}

/// Poisons what is written, runs once, and reads them.
fn run(operation: &Operation, prepared: &Prepared) -> Result<Vec<Vec<u8>>> {
    prepared.poison(POISON)?;
    for (index, tensor) in operation.outputs().iter().enumerate() {
        if operation.updates(index) {
            // What the reference begins with.
            let bytes = tensor.bytes().exact_usize();
            prepared.write_output(index, &vec![0; bytes])?;
        }
    }
    prepared.run(Deadline::after(LIMIT))?;
    read(operation, prepared)
}

fn read(operation: &Operation, prepared: &Prepared) -> Result<Vec<Vec<u8>>> {
    (0..operation.outputs().len()).map(|index| prepared.read_output(index)).collect()
}
