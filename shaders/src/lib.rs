//! How Vulkan computes operations: which kernels (*variants*) compute them, which one suits a target and a shape, and what has to
//! be dispatched. What operations mean is in `halite-ops`.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # From an operation to dispatches
//! An [`Operation`](halite_ops::Operation) is a computation with types and shapes. [`rank`] orders the [`Variant`]s that compute it
//! on a target, each with its reason; [`Variant::plan`] turns one into a [`Plan`]: SPIR-V, specialization and push constants,
//! bindings and workgroup counts. Whoever has a device dispatches the steps in order, with a barrier between them.
//!
//! # Tensors
//! All tensors are dense and row-major; each is one storage buffer. Inputs come first, in the order of the operation's inputs, then
//! outputs. Buffers are padded to multiples of four bytes, which kernels for devices without 8- and 16-bit storage read and write
//! whole.
#![forbid(unsafe_code)]

mod cost;
mod divider;
mod emit;
pub mod expand;
mod fit;
mod forced;
mod library;
mod local;
mod plan;
mod plans;
mod probe;
mod repeats;
mod select;
mod tuning;
mod turns;
mod variant;
mod words;

pub use cost::{Matrices, Models};
pub use forced::{parameters, rank_with};
pub use local::{Measurement, TUNING_VARIABLE, TuningError, TuningFile, VariantTime};
pub use plan::{Module, Plan, Slot, Step, Unfit};
pub use probe::{Probe, ProbePlan};
pub use select::{Candidate, Verdict, multiplies_images, rank, ranked};
pub use tuning::{Fitting, Nearness, Tuning, TuningRow};
pub use variant::{Needs, Params, Variant, check, parse, variants, variants_of};
