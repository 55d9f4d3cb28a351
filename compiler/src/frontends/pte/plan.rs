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
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    graph::{DataSymbol, Graph, OpenSizes},
    signature::{Bindings, Signature},
};

/// The graph of a method.
pub(super) fn import(
    program: &Program,
    (plan, buffers): (&Plan, &[Buffer]),
    inputs: &[Signature],
    bindings: &Bindings,
    (make, control): (&dyn Fn() -> Builder, &Control),
) -> Result<Graph> {
    let with =
        |takes_data| attempt(program, (plan, buffers), inputs, bindings, (make(), control), takes_data);
    let (made, has_data) = with(true);
    match made {
        // Not all operators take sizes that data decide. Then the caller gives the values that they are computed of.
        Err(_) if has_data && control.check(Stage::Importing).is_ok() => with(false).0,
        made => made,
    }
}

/// The graph of a method where sizes may be numbers that data decide, or where they may not; and whether some are.
fn attempt(
    program: &Program,
    method: (&Plan, &[Buffer]),
    inputs: &[Signature],
    bindings: &Bindings,
    making: (Builder, &Control),
    takes_data: bool,
) -> (Result<Graph>, bool) {
    let open = bindings.resolve(inputs).map(|shapes| (bindings.open_shapes(inputs, &shapes), shapes));
    let (open, shapes) = match open {
        Ok(all) => all,
        Err(error) => return (Err(error), false),
    };
    let (trace, symbols, shapes) = match open {
        Some(open) => (open.trace, open.symbols, open.shapes),
        None => {
            let fixed = shapes.iter().map(|dims| dims.iter().map(Size::from).collect());
            (Trace::new(), Vec::new(), fixed.collect())
        }
    };
    let before = trace.symbol_count();
    let data = takes_data.then_some(&trace);
    let made = {
        let _entered = trace.enter();
        let made = walk(program, method, (inputs, &shapes, bindings), making, data);
        // What an attempt that failed left behind.
        let _ = halite_sizes::take_pinned();
        made
    };
    let has_data = trace.symbol_count() > before;
    let made = made.map(|(mut graph, data)| {
        graph.open = (!symbols.is_empty() || !data.is_empty()).then_some(OpenSizes { trace, symbols, data });
        graph
    });
    (made, has_data)
}

/// Walks over the steps of a method.
fn walk(
    program: &Program,
    (plan, buffers): (&Plan, &[Buffer]),
    given: (&[Signature], &[Vec<Size>], &Bindings),
    (mut builder, control): (Builder, &Control),
    data: Option<&Trace>,
) -> Result<(Graph, Vec<DataSymbol>)> {
    let location = SourceLocation::new(format!("method '{}'", plan.name));
    let [instructions] = &plan.chains[..] else {
        let count = plan.chains.len();
        return Err(CompileError::unsupported(
            &location,
            format!("{count} chains of instructions; there is one"),
        ));
    };
    builder.at(location);
    if let Some(trace) = data {
        builder.with_data(trace);
    }
    let method = Method::new(plan, instructions);
    let constants = Constants { program, plan };
    let mut state = State::begin((program, plan, &method), buffers, &constants, builder, given, control)?;
    Running::new(&mut state).all().map_err(|error| survey::with_all(error, plan, &method))?;
    state.finish()
}
