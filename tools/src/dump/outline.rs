//! The text form of what is in a model's file: parts of functions, operators and where they run, memory, data.

use std::io::Write;

use halite::compile::outline::{FunctionOutline, OperatorOutline, Outline, PartOutline, RunsOn};

use super::text::clean;
use crate::console::Result;

/// Prints what is in a model's file.
pub(super) fn print(outline: &Outline, out: &mut dyn Write) -> Result<()> {
    outline.functions.iter().try_for_each(|function| print_function(function, out))?;
    if outline.data.is_empty() {
        return Ok(());
    }
    writeln!(out, "\ndata by name")?;
    for data in &outline.data {
        let place = if data.external { " in another file" } else { "" };
        writeln!(out, "  {:12} bytes  {}{place}", data.bytes, clean(&data.name))?;
    }
    Ok(())
}

fn print_function(function: &FunctionOutline, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nparts of {}", clean(&function.name))?;
    function.parts.iter().try_for_each(|part| print_part(part, out))?;
    let memory: Vec<_> = function.memory.iter().map(u64::to_string).collect();
    if !memory.is_empty() {
        writeln!(out, "  memory that the file plans: {} bytes (modules plan their own)", memory.join(" + "))?;
    }
    let outside = if function.parts.iter().any(|part| !part.options.is_empty() || part.bytes > 0) {
        " outside of delegates"
    } else {
        ""
    };
    writeln!(out, "  constants{outside}: {} bytes", function.constants)?;
    Ok(())
}

fn print_part(part: &PartOutline, out: &mut dyn Write) -> Result<()> {
    let bytes = if part.bytes > 0 { format!(", {} bytes", part.bytes) } else { String::new() };
    writeln!(out, "  {}{bytes}", clean(&part.name))?;
    let options: Vec<_> =
        part.options.iter().map(|(key, value)| format!("{}={}", clean(key), clean(value))).collect();
    if !options.is_empty() {
        writeln!(out, "    options: {}", options.join(", "))?;
    }
    if let Some(problem) = &part.problem {
        writeln!(out, "    not understood: {}", clean(problem))?;
    }
    part.operators.iter().try_for_each(|operator| writeln!(out, "    {}", told(operator)))?;
    Ok(())
}

/// An operator with how often it is called, and where it runs if not on the device.
fn told(operator: &OperatorOutline) -> String {
    let place = match operator.runs {
        RunsOn::Device => String::new(),
        RunsOn::Compiler => "  (computed when the model is compiled)".to_owned(),
        RunsOn::Refused => match &operator.reason {
            Some(reason) => format!("  NOT SUPPORTED: {}", clean(reason)),
            None => "  NOT SUPPORTED".to_owned(),
        },
    };
    format!("{:4} x {}{place}", operator.count, clean(&operator.name))
}
