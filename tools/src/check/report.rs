//! What a check found, as text and as JSON.

use std::io::Write;

use halite::compile::{CheckReport, Difference, NodeCheck, RecordedCheck};
use serde_json::{Value as Json, json};

use crate::console::Result;

/// Most wrong nodes that are listed.
const MOST_WRONG: usize = 10;

/// For people: the first wrong node first.
pub(super) fn write_text(report: &CheckReport, device: &str, all: bool, out: &mut dyn Write) -> Result<()> {
    let compared = report.nodes.iter().filter(|node| node.compared).count();
    let wrong: Vec<_> = report.nodes.iter().filter(|node| node.wrong > 0).collect();
    writeln!(
        out,
        "{}: {} nodes on {device}, {compared} compared with references, {} wrong",
        report.function,
        report.nodes.len(),
        wrong.len()
    )?;
    if all {
        for node in &report.nodes {
            write_node("  ", node, out)?;
        }
    }
    if let Some(first) = wrong.first() {
        write_node("first wrong: ", first, out)?;
        for node in wrong.iter().skip(1).take(MOST_WRONG).filter(|_| !all) {
            write_node("  also ", node, out)?;
        }
    }
    match report.first_not_finite() {
        Some(node) => write_node("first that makes NaN or infinity of finite inputs: ", node, out)?,
        None => {
            let count: u64 = report.nodes.iter().map(|node| node.not_finite).sum();
            writeln!(
                out,
                "NaN and infinities: {}",
                if count == 0 { "none" } else { "only where inputs have some" }
            )?;
        }
    }
    for node in report.nodes.iter().filter(|node| !node.compared) {
        writeln!(out, "not compared: {} ({}), which has no reference", place(node), node.kind)?;
    }
    for recorded in &report.recorded {
        write_recorded(recorded, out)?;
    }
    match (&report.differs, report.runs) {
        (Some(location), runs) => writeln!(out, "{runs} runs: bits differ, first in {location}")?,
        (None, 1) => {}
        (None, runs) => writeln!(out, "{runs} runs: the same bits")?,
    }
    Ok(())
}

fn place(node: &NodeCheck) -> &str {
    if node.location.is_empty() { &node.kind } else { &node.location }
}

fn write_node(before: &str, node: &NodeCheck, out: &mut dyn Write) -> Result<()> {
    write!(out, "{before}{}: {}", place(node), if node.text.is_empty() { &node.kind } else { &node.text })?;
    if node.compared {
        write!(out, "; {} of {} elements are wrong", node.wrong, node.elements)?;
    }
    if node.not_finite > 0 {
        write!(out, "; {} are NaN or infinite", node.not_finite)?;
    }
    if let Some(worst) = &node.worst {
        write!(out, "; {}", difference(worst))?;
    }
    writeln!(out)?;
    Ok(())
}

fn difference(worst: &Difference) -> String {
    let Difference { output, index, got, expected, allowed, .. } = worst;
    format!("farthest: result {output}[{index}] is {got:e}, expected {expected:e} +- {allowed:.3e}")
}

fn write_recorded(check: &RecordedCheck, out: &mut dyn Write) -> Result<()> {
    let name = &check.name;
    if !check.found {
        writeln!(
            out,
            "recorded '{name}': the compiled graph has no tensor of this name and size; passes join nodes"
        )?;
        return Ok(());
    }
    let worst = check.worst.as_ref().map(difference).unwrap_or_default();
    writeln!(
        out,
        "recorded '{name}' ({}): {} of {} elements are wrong; {worst}",
        check.location, check.wrong, check.elements
    )?;
    Ok(())
}

/// For machines. Numbers that are no numbers are null.
pub(super) fn write_json(report: &CheckReport, device: &str, out: &mut dyn Write) -> Result<()> {
    let object = json!({
        "function": report.function,
        "device": device,
        "right": report.is_right(),
        "first_wrong": report.first_wrong().map(node),
        "first_not_finite": report.first_not_finite().map(node),
        "runs": report.runs,
        "differs": report.differs,
        "nodes": report.nodes.iter().map(node).collect::<Vec<_>>(),
        "recorded": report.recorded.iter().map(recorded).collect::<Vec<_>>(),
    });
    writeln!(out, "{}", serde_json::to_string_pretty(&object).map_err(std::io::Error::from)?)?;
    Ok(())
}

fn node(node: &NodeCheck) -> Json {
    json!({
        "location": node.location, "kind": node.kind, "operation": node.text, "tensors": node.tensors,
        "compared": node.compared, "elements": node.elements, "wrong": node.wrong,
        "not_finite": node.not_finite, "finite_inputs": node.finite_inputs,
        "worst": node.worst.as_ref().map(worst),
    })
}

fn recorded(check: &RecordedCheck) -> Json {
    json!({
        "name": check.name, "found": check.found, "location": check.location, "elements": check.elements,
        "wrong": check.wrong, "worst": check.worst.as_ref().map(worst),
    })
}

fn worst(worst: &Difference) -> Json {
    json!({
        "output": worst.output, "index": worst.index, "got": worst.got, "expected": worst.expected,
        "allowed": worst.allowed,
    })
}
