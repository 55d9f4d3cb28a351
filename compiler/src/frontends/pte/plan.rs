//! Methods as graphs: from the plan in the file, over its steps, to what they give.

use halite_formats::pte::{Plan, Program};
use halite_sizes::{Size, Trace};

use super::{
    Result,
    buffers::Buffer,
    flow::Running,
    outside::Method,
    state::{Constants, State},
    survey,
};
use crate::{
    CompileError, Control, SourceLocation,
    build::Builder,
    graph::{Graph, OpenSizes},
    signature::{Bindings, Signature},
};

/// The graph of a method.
pub(super) fn import(
    program: &Program,
    (plan, buffers): (&Plan, &[Buffer]),
    inputs: &[Signature],
    bindings: &Bindings,
    (mut builder, control): (Builder, &Control),
) -> Result<Graph> {
    let location = SourceLocation::new(format!("method '{}'", plan.name));
    let [instructions] = &plan.chains[..] else {
        let count = plan.chains.len();
        return Err(CompileError::unsupported(
            &location,
            format!("{count} chains of instructions; there is one"),
        ));
    };
    let shapes = bindings.resolve(inputs)?;
    let open = bindings.open_shapes(inputs, &shapes);
    let trace = open.as_ref().map_or_else(Trace::new, |open| open.trace.clone());
    let _entered = trace.enter();
    builder.with_data(&trace);
    let shapes = match &open {
        Some(open) => open.shapes.clone(),
        None => shapes.iter().map(|dims| dims.iter().map(Size::from).collect()).collect(),
    };
    builder.at(location);
    let method = Method::new(plan, instructions);
    let constants = Constants { program, plan };
    let mut state = State::begin(
        (program, plan, &method),
        buffers,
        &constants,
        builder,
        (inputs, &shapes, bindings),
        control,
    )?;
    Running::new(&mut state).all().map_err(|error| survey::with_all(error, plan, &method))?;
    let data = state.scope.builder.take_data();
    let mut graph = state.finish()?;
    let symbols = open.map_or_else(Vec::new, |open| open.symbols);
    graph.open = (!symbols.is_empty() || !data.is_empty()).then_some(OpenSizes { trace, symbols, data });
    Ok(graph)
}
