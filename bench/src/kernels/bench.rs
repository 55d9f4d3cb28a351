//! Measures the variants of an operation on one device: medians of checked runs.

use std::{
    cell::Cell,
    panic::resume_unwind,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use halite_hal::{Deadline, Device, Result};
use halite_ops::{DType, Operation};
use halite_shaders::{Candidate, Plan, Tuning, Verdict};
use halite_targets::Capabilities;
use halite_testing::library::Prepared;

use super::{
    ceilings::Ceilings,
    check::{self, Reference},
    defaults::Size,
    options::{Caches, Options},
    result::{Details, Measured, Report, Row},
    shape::{Preparation, Shape},
    timing::{Pace, Patience, measure_job},
};

/// A run that is checked takes at most so long.
const LIMIT: Duration = Duration::from_secs(300);
/// Bytes that no right result consists of.
const POISON: u8 = 0xA5;
/// Operations on a byte below which memory decides the speed.
const MEMORY_BOUND: f64 = 24.0;
/// Most sets of buffers that runs take turns on.
const MOST_SETS: u64 = 64;
/// How long a device may have nothing to do before it is kept busy again.
const IDLE: Duration = Duration::from_millis(100);
/// How long ceilings are measured at most, and the device kept busy before each.
const CEILING: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(50));
/// Results that others are compared with byte by byte.
const MOST_RIGHT: usize = 4;

/// Measures on one device.
#[derive(Debug)]
pub struct Bench {
    preparation: Preparation,
    ceilings: Ceilings,
    /// When the device had work last.
    busy: Cell<Option<Instant>>,
}

impl Bench {
    /// Measures the device's ceilings. Places in reports are those that `tuning` gives.
    pub fn new(
        device: Arc<dyn Device>,
        target: Capabilities,
        tuning: Tuning,
        options: Options,
    ) -> Result<Self> {
        let Pace { measure, warm, .. } = options.pace;
        let short = Pace { measure: measure.min(CEILING.0), warm: warm.min(CEILING.1), ..options.pace };
        let ceilings = Ceilings::measure(&device, &target, Size::of(&target).copy_bytes(), short)?;
        let preparation = Preparation::new(device, target, tuning, options);
        Ok(Bench { preparation, ceilings, busy: Cell::new(None) })
    }

    /// The device's ceilings.
    pub fn ceilings(&self) -> &Ceilings {
        &self.ceilings
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.preparation.device
    }

    /// What it can do.
    pub fn target(&self) -> &Capabilities {
        &self.preparation.target
    }

    /// What is measured, and how.
    pub fn options(&self) -> &Options {
        &self.preparation.options
    }

    /// How many pieces of code were compiled so far.
    pub fn compiled(&self) -> usize {
        self.preparation.pipelines.count()
    }

    /// Checks and measures every variant of an operation that the device can run.
    ///
    /// # Errors
    /// What is not the fault of one variant: memory, a lost device.
    pub fn measure(&self, operation: &Operation) -> Result<Report> {
        self.measure_shape(&self.preparation.shape(operation), None)
    }

    /// The same for several operations, until `end`. While one is measured, the host makes the next one ready, unless the host is the
    /// device. Each report goes to `each` with its place; the last one may lack variants.
    ///
    /// # Errors
    /// As for one.
    pub fn measure_all(
        &self,
        operations: &[Operation],
        end: Option<Instant>,
        mut each: impl FnMut(usize, Report),
    ) -> Result<()> {
        let preparation = &self.preparation;
        let ahead = !preparation.target.target.is_processor();
        let mut next = None;
        for (index, operation) in operations.iter().enumerate() {
            if is_past(end) {
                break;
            }
            let shape: Shape = next.take().unwrap_or_else(|| preparation.shape(operation));
            let following = operations.get(index + 1).filter(|_| ahead);
            let (report, made) = thread::scope(|scope| {
                let following = following.map(|operation| scope.spawn(|| preparation.shape(operation)));
                let report = self.measure_shape(&shape, end);
                (report, following.map(|made| made.join().unwrap_or_else(|panic| resume_unwind(panic))))
            });
            next = made;
            each(index, report?);
        }
        Ok(())
    }

    fn measure_shape(&self, shape: &Shape, end: Option<Instant>) -> Result<Report> {
        let sets = self.sets(&shape.operation);
        // Buffers of inputs and outputs, for all variants.
        let memory = Prepared::of_code(self.device(), &shape.operation, &Plan::default(), &[], sets)?;
        for (index, bytes) in shape.inputs.iter().enumerate() {
            memory.write_input(index, bytes)?;
        }
        let other = || self.other(shape, &memory);
        let reference = shape.reference.clone().or_else(other);
        let mut turn = Turn { shape, memory, reference, right: Vec::new(), best: None };
        let (mut rows, mut complete) = (Vec::new(), true);
        for (place, candidate) in shape.runnable().filter(|(_, one)| self.preparation.wants(one)) {
            if is_past(end) {
                complete = false;
                break;
            }
            let outcome = self.one(&mut turn, candidate);
            let outcome = outcome.unwrap_or_else(|status| Err(status.to_string()));
            let details = Details::of(candidate, &shape.operation, self.target());
            rows.push(Row { variant: candidate.variant.name.as_str(), place, details, outcome });
        }
        let reference = turn.reference;
        let inputs = &shape.inputs;
        let against = self.against(&shape.operation, &shape.candidates, &rows, inputs, reference.as_ref())?;
        self.report(shape, rows, sets, against).map(|report| Report { complete, ..report })
    }

    fn report(
        &self,
        shape: &Shape,
        rows: Vec<Row>,
        sets: u32,
        against: Option<std::result::Result<super::Against, String>>,
    ) -> Result<Report> {
        let operation = &shape.operation;
        let signature = operation.signature();
        let out = |c: &Candidate| match &c.verdict {
            Verdict::RuledOut(why) => Some((c.variant.name.as_str(), why.clone())),
            Verdict::Runs { .. } => None,
        };
        let work = operation.work();
        let copied = if sets > 1 { self.ceilings.largest() } else { (work.bytes / 2.0) as u64 };
        let operand = operation.inputs().first().map_or(DType::F32, |tensor| tensor.dtype);
        let ruled_out = shape.candidates.iter().filter(|c| c.variant.signatures.contains(&signature));
        Ok(Report {
            operation: operation.clone(),
            work,
            rows,
            complete: true,
            ruled_out: ruled_out.filter(|c| self.preparation.wants(c)).filter_map(out).collect(),
            sets,
            copy: self.ceilings.copy(copied)?,
            peak: self.ceilings.peak(operand),
            against,
        })
    }

    /// The results of the plainest variant.
    fn other(&self, shape: &Shape, memory: &Prepared) -> Option<Reference> {
        let plainest = shape.plainest()?;
        let (name, plan) = (plainest.variant.name.clone(), plainest.plan()?);
        let outputs = || {
            let code = self.preparation.pipelines.code(plan)?;
            run(&shape.operation, &memory.beside(self.device(), plan, &code)?)
        };
        match outputs() {
            Ok(outputs) => {
                let values = check::output_values(&shape.operation, &outputs);
                Some(Reference::Variant(name, values))
            }
            Err(error) => {
                log::warn!("{name}: nothing to compare {} with: {error}", shape.operation);
                None
            }
        }
    }

    /// A plan with its inputs in memory of its own, so many times.
    pub(super) fn prepared(
        &self,
        operation: &Operation,
        plan: &Plan,
        inputs: &[Vec<u8>],
        sets: u32,
    ) -> Result<Prepared> {
        let prepared = Prepared::with_sets(self.device(), operation, plan, sets)?;
        for (index, bytes) in inputs.iter().enumerate() {
            prepared.write_input(index, bytes)?;
        }
        Ok(prepared)
    }

    /// Runs a variant once and checks it, times it, and checks what the last run left.
    fn one(
        &self,
        turn: &mut Turn<'_>,
        candidate: &Candidate,
    ) -> Result<std::result::Result<Measured, String>> {
        let (operation, name) = (&turn.shape.operation, candidate.variant.name.as_str());
        let Some(plan) = candidate.plan() else { return Ok(Err("cannot run".to_owned())) };
        let code = self.preparation.pipelines.code(plan)?;
        let mut prepared = turn.memory.beside(self.device(), plan, &code)?;
        let first = run(operation, &prepared)?;
        let checked = match turn.compare(name, &first) {
            Ok(checked) => checked,
            Err(wrong) => return Ok(Err(wrong)),
        };
        let idle = self.busy.get().is_none_or(|busy| busy.elapsed() >= IDLE);
        let warm = if idle { self.options().pace.warm } else { Duration::ZERO };
        let pace = Pace { warm, ..self.options().pace };
        let patience = Patience { best: turn.best.map(|best| (best, self.options().patience)) };
        let timing = measure_job(prepared.job(), &pace, patience)?;
        self.busy.set(Some(Instant::now()));
        let last = read(operation, &prepared)?;
        if last != first
            && let Err(wrong) = turn.compare(name, &last)
        {
            return Ok(Err(format!("{wrong}, after many runs that began right")));
        }
        turn.best = Some(turn.best.unwrap_or(f64::INFINITY).min(timing.least));
        if turn.right.len() < MOST_RIGHT && !turn.right.contains(&first) {
            turn.right.push(first);
        }
        Ok(Ok(Measured { timing, checked }))
    }

    /// Sets of buffers that are together larger than caches; one when caches may help.
    fn sets(&self, operation: &Operation) -> u32 {
        let work = operation.work();
        let cold = match self.options().caches {
            Caches::Warm => false,
            Caches::Cold => true,
            Caches::Auto => work.flops < MEMORY_BOUND * work.bytes,
        };
        let wanted = 2 * self.ceilings.largest();
        let sets = wanted.div_ceil((work.bytes as u64).max(1)).clamp(1, MOST_SETS);
        if cold { u32::try_from(sets).unwrap_or(1) } else { 1 }
    }
}

fn is_past(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

/// The measurement of a shape.
struct Turn<'a> {
    shape: &'a Shape,
    memory: Prepared,
    reference: Option<Reference>,
    /// Results that are right.
    right: Vec<Vec<Vec<u8>>>,
    /// Seconds of the fastest variant so far.
    best: Option<f64>,
}

impl Turn<'_> {
    /// What results of a variant were compared with, or how they are wrong.
    fn compare(&self, name: &str, outputs: &Vec<Vec<u8>>) -> std::result::Result<String, String> {
        let Some(reference) = &self.reference else { return Ok("nothing".to_owned()) };
        let told = match reference {
            Reference::Variant(other, _) if other == name => "itself".to_owned(),
            other => other.name().to_owned(),
        };
        if self.right.contains(outputs) {
            return Ok(told);
        }
        let compared = reference.compare(&self.shape.operation, &self.shape.magnitudes, outputs);
        compared.map(|()| told).map_err(|e| format!("wrong: {e}"))
    }
}

/// Poisons what is written, runs once, and reads them.
fn run(operation: &Operation, prepared: &Prepared) -> Result<Vec<Vec<u8>>> {
    prepared.poison_first(POISON)?;
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
