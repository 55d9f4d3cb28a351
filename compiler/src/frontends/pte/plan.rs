//! Methods as graphs: from the plan in the file, over its steps, to what they give.

use halite_formats::pte::{Plan, Program};

use super::{
    Result,
    flow::Running,
    outside::Method,
    state::{Constants, State},
    survey,
};
use crate::{
    CompileError, Control, SourceLocation,
    build::Builder,
    graph::Graph,
    signature::{Bindings, Signature},
};

/// The graph of a method.
pub(super) fn import(
    program: &Program,
    plan: &Plan,
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
    builder.at(location);
    let method = Method::new(plan, instructions);
    let constants = Constants { program, plan };
    let mut state = State::begin((program, plan, &method), &constants, builder, (inputs, bindings), control)?;
    Running::new(&mut state).all().map_err(|error| survey::with_all(error, plan, &method))?;
    state.finish()
}
