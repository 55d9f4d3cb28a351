//! What is measured of the kernel library, and how.

use std::thread;

use halite_shaders::Variant;

use super::{original::Compiler, timing::Pace};

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
    /// A variant that takes so many times as long as the fastest before it is not measured further.
    pub patience: f64,
    /// How many pipelines are compiled at a time.
    pub jobs: usize,
    /// Variants beside those of the list.
    pub forced: Vec<&'static Variant>,
}

impl Options {
    /// The patience where nothing else is asked for.
    pub const PATIENCE: f64 = 2.0;
}

/// As many jobs as there are cores.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
