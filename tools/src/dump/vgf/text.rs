//! The text form of a VGF file.

use std::io::Write;

use super::facts::{Facts, ModuleFacts, PortFacts, ResourceFacts, SegmentFacts, SlotFacts};
use super::graph::{EntryFacts, OperationFacts};
use crate::console::Result;
use crate::dump::text::{clean, heading};

/// Prints everything but graphs.
pub(super) fn metadata(facts: &Facts, out: &mut dyn Write) -> Result<()> {
    heading(out, &format!("VGF : version {}", facts.version))?;
    for section in &facts.sections {
        writeln!(out, "{}: {} bytes at {:#x}", section.name, section.bytes, section.offset)?;
    }
    writeln!(out, "file: {} bytes\n", facts.file_bytes)?;
    heading(out, "Inputs and outputs")?;
    facts.inputs.iter().try_for_each(|port| print_port(facts, "input ", port, out))?;
    for name in &facts.unused_inputs {
        writeln!(out, "input  '{}' is not in the file: nothing reads it", clean(name))?;
    }
    facts.outputs.iter().try_for_each(|port| print_port(facts, "output", port, out))?;
    writeln!(out)?;
    heading(out, "Resources")?;
    for (i, resource) in facts.resources.iter().enumerate() {
        writeln!(out, "{i:>4} {}", describe(resource))?;
    }
    writeln!(out)?;
    heading(out, "Constants")?;
    for (i, constant) in facts.constants.iter().enumerate() {
        write!(out, "{i:>4} {} bytes, resource {}", constant.bytes, constant.resource)?;
        if let Some(axis) = constant.sparse_axis {
            write!(out, ", two of four zero along axis {axis}")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    heading(out, "Modules")?;
    for (i, module) in facts.modules.iter().enumerate() {
        print_module(i, module, out)?;
    }
    writeln!(out)?;
    heading(out, "Segments")?;
    facts.segments.iter().enumerate().try_for_each(|(i, segment)| print_segment(i, segment, out))?;
    writeln!(out)?;
    Ok(())
}

fn print_port(facts: &Facts, what: &str, port: &PortFacts, out: &mut dyn Write) -> Result<()> {
    let resource = facts.resources.get(port.resource).map(kind).unwrap_or_default();
    let (name, number) = (clean(&port.name), port.number);
    writeln!(out, "{what} {number} '{name}': {resource}, resource {}", port.resource)?;
    Ok(())
}

/// `i8[1,9,9,8]`.
fn kind(resource: &ResourceFacts) -> String {
    let sizes: Vec<_> = resource.shape.iter().map(ToString::to_string).collect();
    format!("{}[{}]", resource.element.unwrap_or(&resource.format), sizes.join(","))
}

fn describe(resource: &ResourceFacts) -> String {
    let mut text =
        format!("{:<12} {} {} ({})", resource.category, resource.descriptor, kind(resource), resource.format);
    if !resource.strides.is_empty() {
        text += &format!(", strides {:?}", resource.strides);
    }
    if let Some(group) = resource.alias_group {
        text += &format!(", alias group {group}");
    }
    if let Some(sampler) = &resource.sampler {
        text += &format!(
            ", filters {} {}, address modes {} {}, border {}",
            sampler.min_filter,
            sampler.mag_filter,
            sampler.address_mode_u,
            sampler.address_mode_v,
            sampler.border_color
        );
    }
    text
}

fn print_module(i: usize, module: &ModuleFacts, out: &mut dyn Write) -> Result<()> {
    let code = match module.is_missing {
        true => format!("no code ({})", module.language),
        false => format!("{}, {} bytes", module.language, module.bytes),
    };
    let (name, entry) = (clean(&module.name), clean(&module.entry_point));
    writeln!(out, "{i:>4} {} '{name}', entry point '{entry}': {code}", module.kind)?;
    for used in &module.bindings {
        let access = match (used.readonly, used.writeonly) {
            (true, _) => "read",
            (_, true) => "written",
            _ => "read and written",
        };
        writeln!(out, "     set {} binding {}: {}, {access}", used.set, used.binding, used.class)?;
    }
    if let Some(error) = &module.error {
        writeln!(out, "     {error}")?;
    }
    Ok(())
}

fn slots(all: &[SlotFacts]) -> String {
    let all: Vec<_> = all.iter().map(|slot| format!("{}={}", slot.binding, slot.resource)).collect();
    all.join(" ")
}

fn print_segment(i: usize, segment: &SegmentFacts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{i:>4} {} '{}': module {}", segment.kind, clean(&segment.name), segment.module)?;
    for set in &segment.sets {
        writeln!(out, "     set {}, binding=resource: {}", set.set, slots(&set.bindings))?;
    }
    let (inputs, outputs) = (slots(&segment.inputs), slots(&segment.outputs));
    writeln!(out, "     inputs {inputs}; outputs {outputs}")?;
    if !segment.constants.is_empty() {
        let all = segment.constants.iter().map(|slot| format!("{}={}", slot.id, slot.constant));
        writeln!(out, "     number in the graph=constant: {}", all.collect::<Vec<_>>().join(" "))?;
    }
    if segment.kind == "compute" {
        let [x, y, z] = segment.dispatch;
        writeln!(out, "     {x}x{y}x{z} workgroups")?;
    }
    for range in &segment.push_constants {
        writeln!(out, "     {} bytes of push constants at {}", range.bytes, range.offset)?;
    }
    Ok(())
}

/// Prints a module's graphs or source.
pub(super) fn code(module: &ModuleFacts, out: &mut dyn Write) -> Result<()> {
    if let Some(source) = &module.source {
        heading(out, &format!("{} of '{}'", module.language, clean(&module.name)))?;
        source.lines().try_for_each(|line| writeln!(out, "{}", clean(line)))?;
        writeln!(out)?;
    }
    let Some(graphs) = &module.graphs else { return Ok(()) };
    let sets: Vec<_> = graphs.sets.iter().map(|set| clean(set)).collect();
    heading(
        out,
        &format!("Graphs of '{}' : SPIR-V {} {}", clean(&module.name), graphs.spirv_version, sets.join(" ")),
    )?;
    graphs.graphs.iter().try_for_each(|graph| print_graph(graph, out))?;
    for debug in &graphs.debug {
        let ids: Vec<_> = debug.ids.iter().map(|id| format!("%{id}")).collect();
        writeln!(out, "debug: {} '{}' {}", debug.kind, clean(&debug.text), ids.join(" "))?;
    }
    writeln!(out)?;
    Ok(())
}

fn print_graph(graph: &EntryFacts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "graph '{}' {{", clean(&graph.name))?;
    for port in &graph.inputs {
        let (value, name) = (&port.value, clean(&port.name));
        writeln!(out, "  {value}: {} = input {}.{} '{name}'", port.ty, port.set, port.binding)?;
    }
    graph.operations.iter().try_for_each(|operation| print_operation(operation, out))?;
    for port in &graph.outputs {
        writeln!(out, "  output {}.{} '{}' = {}", port.set, port.binding, clean(&port.name), port.value)?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn print_operation(operation: &OperationFacts, out: &mut dyn Write) -> Result<()> {
    let results: Vec<_> = operation.results.iter().map(|(value, ty)| format!("{value}: {ty}")).collect();
    let operands: Vec<_> = operation.operands.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = match operation.name.is_empty() {
        true => String::new(),
        false => format!("  // {}", clean(&operation.name)),
    };
    let operator = clean(&operation.operator);
    writeln!(out, "  {} = {operator}({}){name}", results.join(", "), operands.join(", "))?;
    Ok(())
}
