//! The text form of a dump.

use std::io::Write;

use halite_abi::attribute;
use halite_formats::vmfb::ModuleDef;

use super::{
    executables::{ExecutableFacts, KernelFacts},
    facts::{self, ExportFacts, Facts, RodataFacts},
};
use crate::console::Result;

const RULE: &str = "//===--------------------------------------------------------------------------------------------------------------===//";

/// A title between rules.
pub(super) fn heading(out: &mut dyn Write, title: &str) -> Result<()> {
    writeln!(out, "{RULE}\n// {title}\n{RULE}\n")?;
    Ok(())
}

/// Text from the file, with control characters made visible: it goes to a terminal.
pub(super) fn clean(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.chars()
            .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
            .collect()
    } else {
        text.to_owned()
    }
}

/// Prints everything but code.
pub(super) fn metadata(facts: &Facts, out: &mut dyn Write) -> Result<()> {
    heading(out, &format!("@{} : version {}", clean(&facts.name), facts.version))?;
    let c = &facts.container;
    writeln!(
        out,
        "Container: {} form, {} bytes; FlatBuffer at {:#x}; bytecode version {}",
        c.form, c.file_bytes, c.flatbuffer_offset, facts.bytecode_version
    )?;
    writeln!(out, "Requirements: {:08X} ({})\n", facts.requirement_bits, facts.requirements.join(", "))?;
    if let Some(producer) = &facts.producer {
        writeln!(out, "Produced by: {}", clean(producer))?;
    }
    if let Some(model) = &facts.model {
        writeln!(out, "Model: {} ({})", clean(&model.name), clean(&model.format))?;
    }
    // Those of Halite's own are told in words.
    for (key, value) in facts.attrs.iter().filter(|(key, _)| !is_told(key)) {
        writeln!(out, "Attribute: {} = {}", clean(key), clean(value))?;
    }
    for target in &facts.targets {
        writeln!(out, "Compiled for: {}\n", clean(target))?;
    }
    interface(facts, out)?;
    heading(out, "Sections")?;
    sections(facts, out)?;
    heading(out, &format!("Bytecode : version {}", facts.bytecode_version))?;
    functions(facts, out)?;
    if !facts.executables.is_empty() {
        heading(out, "Executables")?;
        facts.executables.iter().try_for_each(|e| executable(e, out))?;
    }
    if let Some(debug) = &facts.debug {
        heading(out, "Debug Information")?;
        writeln!(out, "Locations: {}\nFunctions: {}\n", debug.locations, debug.functions)?;
    }
    Ok(())
}

/// Whether an attribute is printed in another form.
fn is_told(key: &str) -> bool {
    use attribute::{INPUTS, MODEL_FORMAT, MODEL_NAME, OUTPUTS, PRODUCER, TARGETS};
    [INPUTS, MODEL_FORMAT, MODEL_NAME, OUTPUTS, PRODUCER, TARGETS].contains(&key)
}

fn interface(facts: &Facts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Required Types:")?;
    for (i, name) in facts.types.iter().enumerate() {
        writeln!(out, "  [{i:3}] {}", clean(name))?;
    }
    writeln!(out, "\nModule Dependencies:")?;
    for d in &facts.dependencies {
        let need = if d.optional { "optional" } else { "required" };
        writeln!(out, "  {}, version >= {}, {need}", clean(&d.name), d.minimum_version)?;
    }
    writeln!(out, "\nImported Functions:")?;
    for (i, import) in facts.imports.iter().enumerate() {
        let optional = if import.optional { " (optional)" } else { "" };
        writeln!(
            out,
            "  [{i:3}] {}{}{optional}",
            clean(&import.name),
            signature(&import.calling_convention)
        )?;
    }
    writeln!(out, "\nExported Functions:")?;
    for (i, export) in facts.exports.iter().enumerate() {
        let ExportFacts { name, calling_convention, attrs, .. } = export;
        writeln!(out, "  [{i:3}] {}{}", clean(name), signature(calling_convention))?;
        for (key, value) in attrs.iter().filter(|(key, _)| !is_told(key)) {
            writeln!(out, "        {}: {}", clean(key), clean(value))?;
        }
        for (what, names) in [("inputs", &export.inputs), ("outputs", &export.outputs)] {
            let quoted: Vec<_> = names.iter().flatten().map(|name| format!("'{}'", clean(name))).collect();
            if !quoted.is_empty() {
                writeln!(out, "        {what}: {}", quoted.join(", "))?;
            }
        }
    }
    writeln!(out)?;
    Ok(())
}

fn sections(facts: &Facts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Module State:\n  {} bytes, {} refs\n", facts.globals.bytes, facts.globals.refs)?;
    writeln!(out, "FlatBuffer: {} bytes", facts.container.flatbuffer_bytes)?;
    writeln!(out, "  Bytecode: {} bytes", facts.bytecode_bytes)?;
    let mut external = 0usize;
    for (i, segment) in facts.rodata.iter().enumerate() {
        let RodataFacts { bytes, kind, external: is_external, file_offset, text } = segment;
        let place = if *is_external { "external" } else { "embedded" };
        write!(out, "  .rodata[{i:3}] {place} {bytes:8} bytes")?;
        match (text, file_offset) {
            (Some(text), _) => writeln!(out, " `{text}`")?,
            (None, Some(offset)) => writeln!(out, " {kind} (at {offset:#x} of the file)")?,
            (None, None) => writeln!(out, " {kind}")?,
        }
        external = external.saturating_add(if *is_external { *bytes } else { 0 });
    }
    writeln!(out, "\nExternal .rodata: {external} bytes\n")?;
    Ok(())
}

fn functions(facts: &Facts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "  # | Offset   |   Length | Blocks | i32 # | ref # | Requirements | Name (exported as)")?;
    writeln!(out, "----+----------+----------+--------+-------+-------+--------------+-------------------")?;
    for (i, f) in facts.functions.iter().enumerate() {
        let exported: Vec<_> = f.exported_as.iter().map(|n| clean(n)).collect();
        let exported =
            if exported.is_empty() { String::new() } else { format!(" ({})", exported.join(", ")) };
        writeln!(
            out,
            "{i:3} | {:08X} | {:8} | {:6} | {:5} | {:5} | {:08X}     | {}{exported}",
            f.offset,
            f.length,
            f.blocks,
            f.i32_registers,
            f.ref_registers,
            f.requirement_bits,
            clean(&f.name)
        )?;
    }
    writeln!(out)?;
    Ok(())
}

fn executable(facts: &ExecutableFacts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Vulkan executable in .rodata[{}], {} bytes", facts.rodata, facts.bytes)?;
    if let Some(error) = &facts.error {
        writeln!(out, "  cannot be read: {}", clean(error))?;
    }
    facts.kernels.iter().try_for_each(|k| kernel(k, out))?;
    for (path, bytes) in &facts.sources {
        writeln!(out, "  source: {} ({bytes} bytes)", clean(path))?;
    }
    writeln!(out)?;
    Ok(())
}

fn kernel(facts: &KernelFacts, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "  @{}", clean(&facts.name))?;
    if facts.entry_point != facts.name {
        writeln!(out, "    entry point: {}", clean(&facts.entry_point))?;
    }
    writeln!(out, "    abi: {}", facts.abi)?;
    if !facts.bindings.is_empty() {
        let bindings: Vec<_> = facts
            .bindings
            .iter()
            .map(|(set, binding, ty)| format!("{set}.{binding} {}", descriptor(*ty)))
            .collect();
        writeln!(out, "    bindings: {}", bindings.join(", "))?;
    }
    if facts.push_constant_bytes > 0 {
        writeln!(out, "    push constants: {} bytes", facts.push_constant_bytes)?;
    }
    if facts.subgroup_size > 0 {
        writeln!(out, "    required subgroup size: {}", facts.subgroup_size)?;
    }
    if let Some((file, line)) = &facts.location {
        writeln!(out, "    from: {}:{line}", clean(file))?;
    }
    if let Some(error) = &facts.error {
        writeln!(out, "    SPIR-V: {} bytes, cannot be used: {}", facts.spirv_bytes, clean(error))?;
    }
    let Some(spirv) = &facts.spirv else { return Ok(()) };
    let (major, minor) = spirv.version;
    writeln!(out, "    SPIR-V: {} bytes, version {major}.{minor}", facts.spirv_bytes)?;
    writeln!(out, "    capabilities: {}", spirv.capabilities.join(", "))?;
    if let Some(entry) = spirv.entry(&facts.entry_point) {
        let [x, y, z] = entry.local_size;
        writeln!(out, "    workgroup: {x}x{y}x{z}, {} bytes of shared memory", entry.workgroup_memory_bytes)?;
        if !entry.subgroup_ops.is_empty() {
            writeln!(out, "    subgroup operations: {}", entry.subgroup_ops.join(", "))?;
        }
    }
    for (feature, needed_by) in &facts.features {
        writeln!(out, "    needs {feature} ({})", clean(needed_by))?;
    }
    if !facts.subgroups.is_empty() {
        writeln!(out, "    subgroups: {}", clean(&facts.subgroups))?;
    }
    Ok(())
}

fn descriptor(ty: u32) -> String {
    match ty {
        6 => "uniform buffer".to_owned(),
        7 => "storage buffer".to_owned(),
        other => format!("descriptor type {other}"),
    }
}

/// A calling convention as `(i32, tuple<i64>...) -> (!vm.ref<?>)`; the text itself when it is not one.
fn signature(convention: &str) -> String {
    let Some(body) = convention.strip_prefix('0') else { return format!(" {}", clean(convention)) };
    let (args, results) = body.split_once('_').unwrap_or((body, ""));
    match (types(args), types(results)) {
        (Some(args), Some(results)) => format!("({args}) -> ({results})"),
        _ => format!(" {}", clean(convention)),
    }
}

fn types(chars: &str) -> Option<String> {
    let (mut text, mut separate) = (String::new(), false);
    for c in chars.chars() {
        if c == 'v' {
            continue;
        }
        if separate && c != 'D' {
            text.push_str(", ");
        }
        separate = c != 'C';
        text.push_str(match c {
            'i' => "i32",
            'I' => "i64",
            'f' => "f32",
            'F' => "f64",
            'r' => "!vm.ref<?>",
            'C' => "tuple<",
            'D' => ">...",
            _ => return None,
        });
    }
    Some(text)
}

/// Prints code. A function that cannot be decoded says so and does not stop the others.
pub(super) fn disassembly(
    module: &ModuleDef,
    name: Option<&str>,
    offsets: bool,
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(out, "vm.module @{} version {}", clean(&module.name), module.version)?;
    for code in facts::disassembly(module, name)? {
        writeln!(out, "\nvm.func @{} {{", clean(&code.name))?;
        match &code.lines {
            Ok(lines) => {
                for (offset, text) in lines {
                    let indent = if text.starts_with('^') { "" } else { "  " };
                    if offsets {
                        write!(out, "[{offset:08X}] ")?;
                    }
                    writeln!(out, "{indent}{}", clean(text))?;
                }
            }
            Err(error) => writeln!(out, "  // {}", clean(error))?,
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        assert_eq!(signature("0rriiCID_v"), "(!vm.ref<?>, !vm.ref<?>, i32, i32, tuple<i64>...) -> ()");
        assert_eq!(signature("0v_i"), "() -> (i32)");
        assert_eq!(
            signature("0iICiirIID_fF"),
            "(i32, i64, tuple<i32, i32, !vm.ref<?>, i64, i64>...) -> (f32, f64)"
        );
        assert_eq!(signature("0"), "() -> ()");
        assert_eq!(signature("1x"), " 1x");
        assert_eq!(signature("0q_v"), " 0q_v");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(clean("ok"), "ok");
    }
}
