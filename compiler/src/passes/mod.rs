//! Owns rewriting of graphs into graphs that compute the same with less work. Does not own: how kernels are chosen.
//!
//! Passes work on one region at a time and look at the uses of tensors in the whole graph (`Uses`). None of them knows
//! a target.

mod attend;
#[cfg(test)]
mod attend_tests;
mod chain;
mod clean;
mod finish;
mod fuse;
mod heavy;
mod inline;
mod merge;
mod norms;
mod precision;
mod scores;
mod strides;
#[cfg(test)]
mod tests;
mod uses;

pub use self::precision::{Halved, halve};
pub(crate) use self::uses::Uses;

use crate::{
    CompileError, Control, Progress, Stage,
    control::Watch,
    graph::{Graph, NodeOp, Region},
};

/// What passes give: nothing, or the control's error.
type Result<T = ()> = std::result::Result<T, CompileError>;

/// A pass over one region.
type Pass = fn(&mut Graph, &mut Region, &mut Uses, Watch<'_>) -> Result;

/// All passes, in their order.
const PASSES: [Pass; 8] =
    [clean::run, heavy::normalize, inline::run, fuse::run, attend::run, norms::run, finish::run, clean::run];

/// Runs all passes.
///
/// # Errors
/// A pass broke a rule of graphs, which is a fault of the compiler.
pub fn optimize(graph: &mut Graph) -> Result {
    optimize_with(graph, &Control::default())
}

/// As [`optimize`], watched and stopped by `control`.
///
/// # Errors
/// As [`optimize`], and when `control` ends the work; the graph is not whole then, and good for nothing.
pub fn optimize_with(graph: &mut Graph, control: &Control) -> Result {
    let watch = control.at(Stage::Optimizing);
    let mut body = std::mem::take(&mut graph.body);
    for (done, pass) in PASSES.into_iter().enumerate() {
        control.report(Progress { stage: Stage::Optimizing, done, total: PASSES.len() });
        let mut uses = Uses::of(&body);
        each(graph, &mut body, &mut uses, pass, watch)?;
    }
    control.report(Progress { stage: Stage::Optimizing, done: PASSES.len(), total: PASSES.len() });
    graph.body = body;
    // Equal nodes are one now, of which results and ports have to have the same.
    for (port, id) in graph.outputs.iter_mut().zip(&graph.body.results) {
        port.tensor = *id;
    }
    if cfg!(debug_assertions) {
        graph.check_while(watch)?;
    }
    Ok(())
}

/// Runs a pass over every region, inner ones first.
fn each(graph: &mut Graph, region: &mut Region, uses: &mut Uses, pass: Pass, watch: Watch<'_>) -> Result {
    for node in &mut region.nodes {
        match &mut node.op {
            NodeOp::If(branches) => {
                for branch in branches.iter_mut() {
                    each(graph, branch, uses, pass, watch)?;
                }
            }
            NodeOp::Loop(body) => each(graph, body, uses, pass, watch)?,
            NodeOp::Kernel(_) | NodeOp::View => {}
        }
    }
    watch.check()?;
    pass(graph, region, uses, watch)
}
