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
    CompileError,
    graph::{Graph, NodeOp, Region},
};

/// Runs all passes.
///
/// # Errors
/// A pass broke a rule of graphs, which is a fault of the compiler.
pub fn optimize(graph: &mut Graph) -> Result<(), CompileError> {
    let mut body = std::mem::take(&mut graph.body);
    each(graph, &mut body, &|graph, region, uses| {
        clean::run(graph, region, uses);
        heavy::normalize(graph, region, uses);
    });
    each(graph, &mut body, &|graph, region, _| inline::run(graph, region));
    each(graph, &mut body, &|graph, region, uses| fuse::run(graph, region, uses));
    each(graph, &mut body, &|graph, region, uses| {
        attend::run(graph, region, uses);
        norms::run(graph, region, uses);
    });
    each(graph, &mut body, &finish::run);
    each(graph, &mut body, &|graph, region, uses| clean::run(graph, region, uses));
    graph.body = body;
    // Equal nodes are one now, of which results and ports have to have the same.
    for (port, id) in graph.outputs.iter_mut().zip(&graph.body.results) {
        port.tensor = *id;
    }
    if cfg!(debug_assertions) {
        graph.check()?;
    }
    Ok(())
}

/// Runs a pass over every region, inner ones first.
fn each(graph: &mut Graph, body: &mut Region, pass: &dyn Fn(&mut Graph, &mut Region, &mut Uses)) {
    let mut uses = Uses::of(body);
    inner(graph, body, &mut uses, pass);
}

fn inner(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    pass: &dyn Fn(&mut Graph, &mut Region, &mut Uses),
) {
    for node in &mut region.nodes {
        match &mut node.op {
            NodeOp::If(branches) => branches.iter_mut().for_each(|branch| inner(graph, branch, uses, pass)),
            NodeOp::Loop(body) => inner(graph, body, uses, pass),
            NodeOp::Kernel(_) | NodeOp::View => {}
        }
    }
    pass(graph, region, uses);
}
