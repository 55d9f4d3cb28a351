//! The text form of the account.

use std::{collections::BTreeMap, fmt};

use super::{OperationReport, Report, TargetReport, WorkReport};

/// Most characters of an operation that are shown.
const MOST_SHOWN: usize = 180;
/// Most kernels whose sizes are listed.
const MOST_KERNELS: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "module {}", self.module)?;
        for target in &self.targets {
            write_target(target, f)?;
        }
        let constants = &self.constants;
        let place = if constants.external { "beside the module" } else { "in the module" };
        writeln!(f, "\nconstants: {} of {} {place}", constants.count, Bytes(constants.stored_bytes))?;
        let (resident, packed) = (Bytes(constants.resident_bytes), Bytes(constants.packed_bytes));
        writeln!(f, "  on the device: {resident} as they are, {packed} computed at load")?;
        let sizes = &self.sizes;
        writeln!(f, "file: {}", Bytes(sizes.module))?;
        let (constants, kernels) = (Bytes(sizes.constants), Bytes(sizes.executables));
        writeln!(
            f,
            "  constants {constants}, {} kernels {kernels}, host code {}, tables of versions {}",
            sizes.kernels.len(),
            Bytes(sizes.bytecode),
            Bytes(sizes.tables)
        )?;
        for (name, bytes) in sizes.kernels.iter().take(MOST_KERNELS) {
            writeln!(f, "    {:>10} {name}", Bytes(*bytes).to_string())?;
        }
        let more = sizes.kernels.len().saturating_sub(MOST_KERNELS);
        if more > 0 {
            writeln!(f, "    and {more} smaller ones")?;
        }
        Ok(())
    }
}

fn write_target(target: &TargetReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let note = if target.baseline { " (for every other device)" } else { "" };
    let (kernels, served) = (target.kernels, target.served);
    writeln!(f, "\ntarget {}{note}: {kernels} kernels serve all {served} operations", target.target)?;
    if !target.load.operations.is_empty() {
        writeln!(f, "  at load")?;
        write_work(&target.load, f)?;
    }
    for function in &target.functions {
        if function.version_count > 1 {
            writeln!(
                f,
                "  {}: {} versions of {} kinds, {} for values in between",
                function.name,
                function.version_count,
                function.groups,
                Bytes(function.transient_bytes)
            )?;
        }
        for version in &function.versions {
            let (inputs, outputs) = (version.inputs.join(", "), version.outputs.join(", "));
            writeln!(f, "  {}({inputs}) -> {outputs}", function.name)?;
            write_work(version, f)?;
        }
    }
    Ok(())
}

fn write_work(work: &WorkReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for operation in &work.operations {
        write_operation(operation, f)?;
    }
    writeln!(f, "    operations: {}", counted(&work.operations))?;
    if !work.states.is_empty() {
        let there = work.states.iter().filter(|state| state.in_place).count();
        writeln!(f, "    states: {}, {there} of them updated in place", work.states.len())?;
    }
    for state in work.states.iter().filter(|state| !state.in_place) {
        writeln!(f, "      {} is copied from '{}': {}", state.input, state.output, state.why)?;
    }
    writeln!(
        f,
        "    total: {} flops, {} moved; recordings: {} with {} dispatches, {} copies, {} barriers",
        Count(work.flops),
        Bytes(work.bytes as u64),
        work.segments,
        work.dispatches,
        work.copies,
        work.barriers
    )?;
    writeln!(
        f,
        "    memory: {} for values in between ({} without sharing, {} results in place), {} of outputs",
        Bytes(work.transient_bytes),
        Bytes(work.unshared_bytes),
        work.in_place,
        Bytes(work.output_bytes)
    )
}

/// How many operations there are of each name: `12 matmul, 4 attention`.
fn counted(operations: &[OperationReport]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for operation in operations {
        let name = operation.operation.split_once(':').map_or(&operation.operation[..], |(name, _)| name);
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

fn write_operation(operation: &OperationReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text: String = operation.operation.chars().take(MOST_SHOWN).collect();
    if text.len() < operation.operation.len() {
        text.push('…');
    }
    let place = if operation.location.is_empty() { "?" } else { &operation.location };
    writeln!(f, "    {place}: {text}")?;
    let (flops, bytes) = (Count(operation.flops), Bytes(operation.bytes as u64));
    let times = if operation.dispatches == 1 { String::new() } else { format!(" x{}", operation.dispatches) };
    writeln!(f, "      {}{times}: {} ({flops} flops, {bytes})", operation.variant, operation.why)
}

/// A number of bytes for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        let digits = if unit == 0 { 0 } else { 1 };
        write!(f, "{value:.digits$} {}", UNITS[unit])
    }
}

/// A large number for people.
struct Count(f64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
        let (mut value, mut unit) = (self.0, 0);
        while value >= 1000.0 && unit + 1 < UNITS.len() {
            (value, unit) = (value / 1000.0, unit + 1);
        }
        let digits = if unit == 0 { 0 } else { 1 };
        write!(f, "{value:.digits$}{}", UNITS[unit])
    }
}
