//! The tool `halite kernels`, or `kernels`: which kernels of the library compute an operation, which of them would run on a target, and why.
//! `halite-shaders` has the kernels and chooses among them.

mod json;
mod survey;
mod text;

use std::{io::Write, path::PathBuf};

use clap::Parser;
use halite_ops::{Operation, OperationError};

use self::survey::Ranking;
use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    devices,
    flags::DeviceFlags,
    place,
};

/// What `--targets` alone compares: one of each kind.
const TARGETS: &str = "valhall-g78-android30,adreno-unknown-android30,rdna1-5700xt-linux,\
                       ampere-rtx3080-windows,cpu-swiftshader-unknown,hopper-h200-linux";

const EXAMPLES: &str = "\
Examples:
  halite kernels matmul:m=512,n=512,k=512                       what this machine's device would run, and why
  halite kernels --target=hopper-h200-linux matmul:m=4096,n=4096,k=4096,lhs=f16,rhs=f16
  halite kernels --targets matmul:m=512,n=512,k=512             the choice on targets of each kind, side by side
  halite kernels --targets=rdna3,sm_90 matmul:m=512,n=512,k=512
  halite kernels --list                                         operations, with an example of each
  halite kernels --list matmul                                  all variants of an operation and what they need
  halite kernels --json --target=rdna3 matmul:m=64,n=64,k=64    for programs

An operation is name:field=value,… or JSON: {\"matmul\":{\"m\":64,\"n\":64,\"k\":64}}. Measurements of this machine
(cargo xtask tune) go before those that ship: see --tuning.
Exit code: 0 when each operation can run on each target, 1 when one cannot, 2 for wrong usage.
";

/// Tells which kernels compute an operation on a target, in the order of choice.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Operations, such as matmul:m=512,n=512,k=512; with --list, names of operations
    #[arg(value_name = "OPERATION")]
    operations: Vec<String>,
    /// Target triple or another name of a GPU, such as hopper-h200-linux, sm_90, rdna3. May be repeated. Default: the device
    /// that runs when none is named
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Only the choice, on several targets side by side; without a list, on one of each kind
    #[arg(long, num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = TARGETS, value_name = "TRIPLE,…")]
    targets: Vec<String>,
    /// Prints the operations that there are, or all variants of those that are named
    #[arg(long)]
    list: bool,
    /// Prints variants for other types, too
    #[arg(long)]
    all: bool,
    /// Prints one JSON object with everything
    #[arg(long)]
    json: bool,
    /// File of measurements that goes before those that ship: a path, or none. Default: the one that HALITE_TUNING names, or
    /// that `cargo xtask tune` wrote for this user
    #[arg(long, value_name = "FILE|none")]
    tuning: Option<PathBuf>,
    #[command(flatten)]
    common: CommonFlags,
    #[command(flatten)]
    devices: DeviceFlags,
}

/// What a device can do, from the facts that its driver tells.
///
/// # Errors
/// The driver tells no facts.
pub fn capabilities(info: &halite::hal::DeviceInfo) -> std::result::Result<halite::Capabilities, String> {
    halite::compile::capabilities(info).map_err(|e| e.message().to_owned())
}

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    if flags.list {
        return list(flags, &mut out);
    }
    if flags.operations.is_empty() {
        return Err(Failure::Usage("no operation was named; --list shows what there are".to_owned()));
    }
    let operations = flags.operations.iter().map(|text| operation(text)).collect::<Result<Vec<_>>>()?;
    let tuning = place::tuning(flags.tuning.as_deref()).read()?.tuning();
    let triples: Vec<&str> = flags.target.iter().chain(&flags.targets).map(String::as_str).collect();
    let places = place::places(&triples, &flags.devices)?;
    let on_each = |operation| {
        let rank = |place| Ranking::new(operation, place, &tuning, flags.all);
        places.iter().map(rank).collect::<Vec<_>>()
    };
    let rankings: Vec<Vec<_>> = operations.iter().map(on_each).collect();
    let mut write = || -> Result<()> {
        if flags.json {
            writeln!(out, "{:#}", json::report(&operations, &rankings))?;
        }
        for (operation, rankings) in operations.iter().zip(&rankings).filter(|_| !flags.json) {
            match flags.targets.is_empty() {
                true => {
                    rankings.iter().try_for_each(|ranking| text::ranking(operation, ranking, &mut out))?;
                }
                false => text::side_by_side(operation, rankings, &mut out)?,
            }
        }
        Ok(())
    };
    let runs = rankings.iter().flatten().all(|ranking| ranking.choice().is_some());
    console::verdict(write(), runs)
}

fn list(flags: &Flags, out: &mut dyn Write) -> Result<()> {
    for name in &flags.operations {
        if !Operation::NAMES.contains(&name.as_str()) {
            let known = Operation::NAMES.join(", ");
            return Err(Failure::Usage(format!("there is no operation '{name}'; there are: {known}")));
        }
    }
    match (flags.json, flags.operations.is_empty()) {
        (true, _) => writeln!(out, "{:#}", json::list(&flags.operations))?,
        (false, true) => text::operations(out)?,
        (false, false) => flags.operations.iter().try_for_each(|name| text::variants(name, out))?,
    }
    Ok(())
}

/// Reads an operation. What is wrong comes with an example that is right.
fn operation(text: &str) -> Result<Operation> {
    halite_shaders::parse(text).map_err(|error| {
        let name = text.split(':').next().unwrap_or_default();
        let example =
            Operation::example(name).filter(|_| !matches!(error, OperationError::UnknownName { .. }));
        let example = example.map(|example| format!("; for example: {example}")).unwrap_or_default();
        Failure::Usage(format!("{error}{example}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_of_the_table_exist() {
        for triple in TARGETS.split(',') {
            assert!(place::RunTarget::of_triple(triple).is_ok(), "{triple}");
        }
    }
}
