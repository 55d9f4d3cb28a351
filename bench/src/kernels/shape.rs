//! What all candidates of a shape share: inputs, what results are compared with, compiled code. All of it is made on the host,
//! so that it can be made for the next shape while the device works.

use std::{num::NonZeroUsize, sync::Arc};

use halite_hal::Device;
use halite_ops::Operation;
use halite_shaders::{Candidate, Tuning, Variant, rank_with};
use halite_targets::Capabilities;

use super::{
    check::{self, Reference},
    options::Options,
    pipelines::Pipelines,
};

/// A shape, ready to be measured.
#[derive(Debug)]
pub(super) struct Shape {
    pub operation: Operation,
    /// Those that can run come first, in the order of choice.
    pub candidates: Vec<Candidate>,
    /// Bytes of the inputs.
    pub inputs: Vec<Vec<u8>>,
    /// What the finite elements of each input are at most.
    pub magnitudes: Vec<f64>,
    /// The reference's results, when it takes no minutes.
    pub reference: Option<Reference>,
}

impl Shape {
    /// The candidates that can run, with their places.
    pub fn runnable(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let runnable = self.candidates.iter().filter(|candidate| candidate.plan().is_some());
        runnable.enumerate().map(|(index, candidate)| (index + 1, candidate))
    }

    /// The plainest variant that can run.
    pub fn plainest(&self) -> Option<&Candidate> {
        let key = |candidate: &&Candidate| (candidate.variant.needs.is_baseline(), candidate.variant.order);
        self.runnable().map(|(_, candidate)| candidate).max_by_key(key)
    }
}

/// Makes shapes ready. Any thread may do so.
#[derive(Debug)]
pub(super) struct Preparation {
    pub device: Arc<dyn Device>,
    pub target: Capabilities,
    pub tuning: Tuning,
    pub options: Options,
    /// Variants beside those of the list.
    pub forced: Vec<&'static Variant>,
    pub pipelines: Pipelines,
}

impl Preparation {
    /// For a device. As many threads compile as the options say.
    pub fn new(device: Arc<dyn Device>, target: Capabilities, tuning: Tuning, options: Options) -> Self {
        let jobs = NonZeroUsize::new(options.jobs).unwrap_or(NonZeroUsize::MIN);
        let pipelines = Pipelines::new(device.clone(), jobs);
        let forced = options.forced.clone();
        Preparation { device, target, tuning, options, forced, pipelines }
    }

    /// Whether a variant is asked for.
    pub fn wants(&self, candidate: &Candidate) -> bool {
        candidate.variant.name.contains(&self.options.filter)
    }

    /// Makes a shape ready: compiles the code of all candidates that are asked for, and computes the reference meanwhile.
    pub fn shape(&self, operation: &Operation) -> Shape {
        let mut shape = Shape {
            operation: operation.clone(),
            candidates: rank_with(operation, &self.target, &self.tuning, &self.forced),
            inputs: check::input_bytes(operation, self.options.seed),
            magnitudes: Vec::new(),
            reference: None,
        };
        shape.magnitudes = check::magnitudes(operation, &shape.inputs);
        shape.reference = std::thread::scope(|scope| {
            let reference = scope.spawn(|| self.reference(&shape));
            let wanted = shape.runnable().map(|(_, one)| one).filter(|one| self.wants(one));
            self.pipelines.compile(wanted.chain(shape.plainest()).filter_map(Candidate::plan));
            reference.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        shape
    }

    fn reference(&self, shape: &Shape) -> Option<Reference> {
        let (operation, work) = (&shape.operation, shape.operation.work());
        (work.flops.max(work.bytes) <= self.options.reference_flops)
            .then(|| Reference::Host(operation.reference(&check::input_values(operation, &shape.inputs))))
    }
}
