//! From models to modules: front ends, the graph, passes over it, plans for targets, and the modules that are written.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # The road
//! A front end ([`frontends`]) reads a model and, given sizes for its symbolic dimensions, builds a [`graph::Graph`] with the
//! [`build::Builder`]. The graph's nodes are operations by their meaning (`halite-ops`), so it is typed and shaped by
//! construction, and knows no model format. [`passes`] rewrite it. [`plan`] picks kernels for each target and lays out memory; [`emit`]
//! writes the module.
#![forbid(unsafe_code)]

pub mod backend;
pub mod build;
mod capacities;
mod choice;
mod compile;
mod control;
mod cover;
mod coverage;
pub mod emit;
mod error;
pub mod explain;
pub mod frontends;
pub mod graph;
mod location;
mod model;
mod options;
mod parameters;
pub mod passes;
pub mod plan;
mod program;
pub mod signature;
pub mod states;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod weights;

pub use capacities::{Capacities, Capacity};
pub use choice::{CHOSEN, ChoiceWay, MOST_CANDIDATES, SAMPLING, TokenChoice};
pub use compile::{Compiled, compile};
pub use control::{Control, Progress, ProgressSink, Stage};
pub use cover::{OpenVersion, Steps, can_be_open, grown, likely, neighbours, opened, together};
pub use coverage::{Coverage, refuses};
pub use error::{CompileError, UnknownName, UnsupportedOperator};
pub use frontends::{
    ModelFormat,
    gguf::{BATCH, BATCH_SAMPLE, ENCODE, VERIFY},
};
pub use halite_sizes::Region;
pub use location::SourceLocation;
pub use model::Model;
pub use options::{BASELINE, CompileOptions};
pub use parameters::{ParameterArchive, ParameterStorage};
pub use passes::{Precision, PrintGraph};
pub use program::{Function, LeftOut, ModelInfo, Program};
