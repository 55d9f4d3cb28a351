//! How people see variants and plans.

use std::io::Write;

use halite_ops::Operation;
use halite_shaders::{Module, Plan, Slot, Step, Variant, Verdict, variants_of};

use super::survey::Ranking;
use crate::{
    console::Result,
    units::{bytes, si},
};

/// The variants of an operation on a target, those that run with their plans.
pub(super) fn ranking(operation: &Operation, ranking: &Ranking<'_>, out: &mut dyn Write) -> Result<()> {
    title(operation, out)?;
    let place = ranking.place;
    let of = match &place.device {
        Some((uri, name)) => format!("{uri}, {name}"),
        None => "by the table".to_owned(),
    };
    writeln!(out, "on {} ({of})\n", place.triple())?;
    for (index, candidate) in ranking.candidates.iter().enumerate() {
        let name = &candidate.variant.name;
        match &candidate.verdict {
            Verdict::Runs { plan, why } => {
                let mark = if index == 0 { '*' } else { ' ' };
                writeln!(out, "{mark} {:>2}  {name}: {why}", index + 1)?;
                steps(operation, plan, out)?;
            }
            Verdict::RuledOut(why) => writeln!(out, "   -  {name}: {why}")?,
        }
    }
    if ranking.choice().is_none() {
        writeln!(out, "nothing can run it there")?;
    }
    writeln!(out)?;
    Ok(())
}

fn title(operation: &Operation, out: &mut dyn Write) -> Result<()> {
    let work = operation.work();
    let (flops, moved) = (si(work.flops, "OP"), si(work.bytes, "B"));
    writeln!(out, "{operation}\n{}: {flops}, {moved} read and written at least", operation.signature())?;
    Ok(())
}

fn steps(operation: &Operation, plan: &Plan, out: &mut dyn Write) -> Result<()> {
    for step in &plan.steps {
        let [x, y, z] = step.grid;
        let (name, length) = code(&step.module);
        let subgroup = match step.subgroup_size {
            0 => String::new(),
            size => format!(", subgroups of {size}"),
        };
        writeln!(out, "        {name} ({length} bytes of SPIR-V), {x} x {y} x {z} workgroups{subgroup}")?;
        writeln!(
            out,
            "            constants {:?}, push {:?}, {}",
            step.constants,
            step.push,
            bindings(operation, step)
        )?;
    }
    if !plan.scratch.is_empty() {
        let sizes: Vec<String> = plan.scratch.iter().map(|b| bytes(b.exact())).collect();
        writeln!(out, "        scratch: {}", sizes.join(", "))?;
    }
    Ok(())
}

/// Name and bytes of a step's code.
pub(super) fn code(module: &Module) -> (&str, usize) {
    match module {
        Module::Compiled { name, bytes } => (name, bytes.len()),
        Module::Emitted(words) => ("emitted", words.len() * 4),
    }
}

fn bindings(operation: &Operation, step: &Step) -> String {
    step.bindings.iter().map(|slot| binding(operation, *slot)).collect::<Vec<_>>().join(" ")
}

/// The tensor that a binding holds, by name.
pub(super) fn binding(operation: &Operation, slot: Slot) -> String {
    let (tensors, index) = match slot {
        Slot::Input(index) => (operation.inputs(), index),
        Slot::Output(index) => (operation.outputs(), index),
        Slot::Scratch(index) => return format!("scratch{index}"),
    };
    tensors.get(index).map_or_else(|| format!("{slot:?}"), |tensor| tensor.name.to_owned())
}

/// What would run on each target.
pub(super) fn side_by_side(
    operation: &Operation,
    rankings: &[Ranking<'_>],
    out: &mut dyn Write,
) -> Result<()> {
    title(operation, out)?;
    let triples: Vec<String> = rankings.iter().map(|r| r.place.triple()).collect();
    let chosen = |r: &Ranking<'_>| r.choice().map_or("-", |(c, _)| c.variant.name.as_str()).to_owned();
    let names: Vec<String> = rankings.iter().map(chosen).collect();
    let longest =
        |texts: &[String], least: &str| texts.iter().map(String::len).max().unwrap_or(0).max(least.len());
    let (target, variant) = (longest(&triples, "TARGET"), longest(&names, "VARIANT"));
    writeln!(out, "\n{:<target$}  {:<variant$}  WHY", "TARGET", "VARIANT")?;
    for ((triple, name), ranking) in triples.iter().zip(&names).zip(rankings) {
        let why = ranking.choice().map_or("nothing can run it there", |(_, why)| why);
        writeln!(out, "{triple:<target$}  {name:<variant$}  {why}")?;
    }
    writeln!(out)?;
    Ok(())
}

/// All operations with an example of each.
pub(super) fn operations(out: &mut dyn Write) -> Result<()> {
    for name in Operation::NAMES {
        let variants: Vec<&Variant> = variants_of(name).collect();
        let mut signatures: Vec<&str> =
            variants.iter().flat_map(|v| &v.signatures).map(String::as_str).collect();
        signatures.sort_unstable();
        signatures.dedup();
        writeln!(out, "{name}  {} variants for {}", variants.len(), signatures.join(" "))?;
        if let Some(example) = Operation::example(name) {
            writeln!(out, "    {example}")?;
        }
    }
    Ok(())
}

/// All variants of an operation and what they need.
pub(super) fn variants(name: &str, out: &mut dyn Write) -> Result<()> {
    for variant in variants_of(name) {
        let needs = needs(variant);
        writeln!(out, "{}: {}", variant.name, variant.note)?;
        let params: Vec<String> =
            variant.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        writeln!(
            out,
            "    types {}; order {}; {}",
            variant.signatures.join(" "),
            variant.order,
            params.join(" ")
        )?;
        writeln!(out, "    needs {needs}")?;
    }
    Ok(())
}

/// What a variant needs, as phrases.
pub(super) fn needs(variant: &Variant) -> String {
    let list = variant.needs.listed();
    if list.is_empty() { "nothing beyond Vulkan 1.1".to_owned() } else { list.join("; ") }
}
