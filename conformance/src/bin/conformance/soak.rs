//! The command `soak`: many calls, and memory that must not grow.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;
use halite_abi::{format, query};
use halite_conformance::{
    corpus::{self, Call, CorpusModule},
    soak::{self, ModuleWork, Plan, Sample, TransferWork, Verdict, Work},
};
use halite_hal::Device;
use halite_testing::flags::DeviceFlags;
use serde_json::{Value as Json, json};

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    /// Calls in all.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,
    /// Threads that call at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// Sessions in all; one for 25 calls if not given.
    #[arg(long)]
    sessions: Option<u64>,
    /// Rounds. Memory is looked at between them.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Module to call. Without one: a network that fits the device's formats, or transfers.
    #[arg(long)]
    module: Option<PathBuf>,
    /// Function of the module.
    #[arg(long, requires = "module", default_value = "main")]
    function: String,
    /// Input as run-module takes it. All calls must give what the first one gave.
    #[arg(long = "input", requires = "module")]
    inputs: Vec<String>,
    /// Transfers, also where there is a module.
    #[arg(long, conflicts_with = "module")]
    transfers: bool,
    /// With transfers: every session opens and closes a device, too. Drivers may lose memory with every device.
    #[arg(long, conflicts_with = "module")]
    reopen: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Runs and prints; whether all results were right and nothing grew.
pub fn run(flags: &Flags) -> Result<bool> {
    let opener = flags.device.opener();
    let device = opener()?;
    if let Some(module) = &flags.module {
        ensure!(module.exists(), "module '{}' does not exist", module.display());
        let work = ModuleWork::new(device, Path::new("."), own_program(flags, module))?;
        return soak(flags, &work);
    }
    match program_for(device.as_ref()).filter(|_| !flags.transfers && !flags.reopen) {
        Some((root, program)) => {
            ensure!(
                program.module.exists(),
                "'{}' is not where it was when this program was built; give --module",
                program.module.display()
            );
            soak(flags, &ModuleWork::new(device, &root, program)?)
        }
        None => soak(flags, &TransferWork::new(device, flags.reopen.then_some(opener))),
    }
}

fn own_program(flags: &Flags, module: &Path) -> CorpusModule {
    let call = Call {
        function: flags.function.clone(),
        inputs: flags.inputs.clone(),
        expected: Vec::new(),
        tolerance: (1e-4, 1e-4),
        must_fail: false,
        without_parameters: false,
    };
    CorpusModule {
        name: format!("'{}' of {}", flags.function, module.display()),
        module: module.to_owned(),
        parameters: Vec::new(),
        devices: Vec::new(),
        addresses: false,
        sequence: false,
        calls: vec![call],
    }
}

/// A module that fits the device.
fn program_for(device: &dyn Device) -> Option<(PathBuf, CorpusModule)> {
    let takes = |format: &str| device.query_i64(query::EXECUTABLE_FORMAT, format) == Some(1);
    let local = takes(format::ELF_X86_64) || takes(format::VMVX);
    (local || takes(format::VULKAN_SPIRV)).then(|| corpus::digits(local))
}

fn soak(flags: &Flags, work: &dyn Work) -> Result<bool> {
    let rounds = flags.rounds.min(flags.calls);
    // Every thread has a session of its own in every round.
    let sessions = flags.sessions.unwrap_or(flags.calls / 25).max(rounds * flags.threads);
    let plan = Plan { calls: flags.calls, threads: flags.threads, sessions, rounds };
    if !flags.json {
        println!("# {}", soak::describe(work.device(), work, &plan));
        println!(
            "{:>9} {:>9} {:>9} {:>13} {:>13} {:>13}",
            "calls", "sessions", "seconds", "resident KiB", "in use KiB", "held KiB"
        );
    }
    let (every, mut seen) = (plan.rounds.div_ceil(10), 0);
    let samples = soak::run(work, &plan, |sample| {
        seen += 1;
        if !flags.json && (seen == 1 || seen % every == 0 || seen == plan.rounds) {
            print_row(sample);
        }
    })?;
    let (verdict, complaint) = (soak::judge(&samples), soak::device_complaint(&samples, plan.threads));
    let good = !matches!(verdict, Verdict::Grows(_)) && complaint.is_none();
    if flags.json {
        println!("{:#}", report(work, &plan, &samples, &verdict, complaint.as_deref()));
        return Ok(good);
    }
    println!("{}", words(&verdict));
    println!("device memory: {}", complaint.unwrap_or_else(|| "came back in every round".to_owned()));
    println!("{} calls, all with right results: {}", plan.calls, if good { "pass" } else { "FAIL" });
    Ok(good)
}

fn print_row(sample: &Sample) {
    let kib = |bytes: u64| bytes.div_ceil(1024);
    println!(
        "{:>9} {:>9} {:>9.1} {:>13} {:>13} {:>13}",
        sample.calls,
        sample.sessions,
        sample.time.as_secs_f64(),
        sample.resident.map_or("?".to_owned(), |bytes| kib(bytes).to_string()),
        kib(sample.used),
        kib(sample.reserved)
    );
}

fn words(verdict: &Verdict) -> String {
    let (growth, text) = match verdict {
        Verdict::Unknown => return "resident memory: not judged, too few samples".to_owned(),
        Verdict::Steady(growth) => (growth, "is steady"),
        Verdict::Grows(growth) => (growth, "GROWS"),
    };
    format!(
        "resident memory {text}: {:+.2} ± {:.2} KiB for 100 calls over the last {} (allowed: {:.2})",
        growth.slope / 1024.0,
        growth.error / 1024.0,
        growth.calls,
        growth.allowed / 1024.0
    )
}

fn report(
    work: &dyn Work,
    plan: &Plan,
    samples: &[Sample],
    verdict: &Verdict,
    complaint: Option<&str>,
) -> Json {
    let growth = match verdict {
        Verdict::Unknown => Json::Null,
        Verdict::Steady(g) | Verdict::Grows(g) => json!({
            "bytes_per_100_calls": g.slope, "standard_error": g.error, "allowed": g.allowed, "calls": g.calls,
            "steady": matches!(verdict, Verdict::Steady(_)),
        }),
    };
    let samples = samples.iter().map(|s| {
        json!({
            "calls": s.calls, "sessions": s.sessions, "seconds": s.time.as_secs_f64(),
            "resident": s.resident, "used": s.used, "reserved": s.reserved,
        })
    });
    json!({
        "work": work.name(), "device": work.device().info().uri(),
        "calls": plan.calls, "threads": plan.threads, "sessions": plan.sessions,
        "growth": growth, "device_memory": complaint, "samples": samples.collect::<Vec<_>>(),
    })
}
