//! The walk over a graph of the Vulkan delegate: its inputs, its calls in order, its outputs.

use halite_formats::pte::{Program, VulkanGraph};

use super::{
    Result,
    delegate::{Delegate, Passed},
    names::call_location,
    node::Node,
    ops,
};
use crate::{CompileError, SourceLocation, build::Builder};

/// Puts the graph of a delegate into that of the method.
pub(super) fn import(
    builder: Builder,
    program: &Program,
    graph: &VulkanGraph,
    inputs: &[Passed],
    name: String,
) -> Result<(Builder, Vec<Passed>)> {
    let mut delegate = Delegate::new(builder, program, graph);
    delegate.builder.at(SourceLocation::new(name.as_str()));
    for (id, value) in graph.inputs.iter().zip(inputs) {
        delegate.take(*id, *value)?;
    }
    for (i, call) in graph.calls.iter().enumerate() {
        delegate.builder.watch().step(i, graph.calls.len())?;
        delegate.builder.at(SourceLocation::new(format!("{} (call {i} of {name})", call.name)));
        let Some(import) = ops::find(&call.name) else {
            let operators = vec![ops::unknown(&call.name, call_location(i, &name))];
            return Err(CompileError::UnsupportedOperators { operators });
        };
        import(&mut Node { delegate: &mut delegate, call })?;
    }
    delegate.builder.watch().step(graph.calls.len(), graph.calls.len())?;
    delegate.builder.at(SourceLocation::new(format!("outputs of {name}")));
    let results: Result<Vec<_>> = graph.outputs.iter().map(|id| delegate.give(*id)).collect();
    Ok((delegate.builder, results?))
}
