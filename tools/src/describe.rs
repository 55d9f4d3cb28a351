//! Describes a model's functions: `--describe`, and `halite dump` of a model.

use std::io::Write;

use halite::{FunctionInfo, ValueInfo, ValueType};
use serde_json::{Value as Json, json};

use crate::{console::Result, visible::visible};

/// Prints functions with their inputs and outputs. Names of the file have a line of their own each, whatever is in them.
pub(crate) fn print(functions: &[FunctionInfo], as_json: bool, out: &mut dyn Write) -> Result<()> {
    if as_json {
        writeln!(out, "{:#}", json(functions))?;
        return Ok(());
    }
    let line = |text: &dyn std::fmt::Display| visible(&text.to_string()).replace('\n', "\\n");
    for function in functions {
        writeln!(out, "function {}", line(&function.name))?;
        function.inputs.iter().try_for_each(|input| writeln!(out, "  input  {}", line(input)))?;
        function.outputs.iter().try_for_each(|output| writeln!(out, "  output {}", line(output)))?;
        function.kept_state().try_for_each(|state| writeln!(out, "  state  {}", line(state)))?;
    }
    Ok(())
}

/// The same as JSON.
pub(crate) fn json(functions: &[FunctionInfo]) -> Json {
    json!({"functions": functions.iter().map(function).collect::<Vec<_>>()})
}

fn function(info: &FunctionInfo) -> Json {
    let all = |values: &[ValueInfo]| values.iter().map(value).collect::<Vec<_>>();
    let state: Vec<Json> = info.kept_state().map(value).collect();
    json!({"function": info.name, "inputs": all(&info.inputs), "outputs": all(&info.outputs), "state": state})
}

fn value(info: &ValueInfo) -> Json {
    let (element, dims) = match &info.value_type {
        ValueType::Tensor { element_type, shape } => (
            element_type.map(|element| element.to_string()),
            shape.as_ref().map(|shape| shape.iter().map(ToString::to_string).collect::<Vec<_>>()),
        ),
        _ => (None, None),
    };
    json!({"name": info.name, "element_type": element, "dims": dims})
}
