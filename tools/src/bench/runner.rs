//! Owns bringing a session up with a clock beside it, and measuring calls. Does not own: reports.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use cpu_time::ProcessTime;
use halite_formats::vmfb;
use halite::hal::{DeviceKind, MemoryStats};
use halite_runtime::{CallOptions, Function, Session, Value};
use halite::hal::{Code, Status};

use super::{Duty, Flags, pattern, stats::Summary};
use crate::{
    compile,
    console::{Failure, Result},
    interrupt::{self, Watchdog, cancel_on_interrupt},
    load, values,
};

/// Calls of one repetition whose times are kept; a longer one is ended.
const MAX_SAMPLES: u64 = 10_000_000;
/// Default warm-up where a GPU may sleep.
const GPU_WARMUP: Duration = Duration::from_millis(500);

/// Seconds that start-up took, by phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    /// Reading module files and checking their structure.
    pub(super) load: f64,
    /// Opening devices, verifying bytecode, linking, and running initializers, which create pipelines and put weights
    /// on the device.
    pub(super) init: f64,
    /// The first call of the first function.
    pub(super) first_call: f64,
}

/// What is there before measuring.
pub(super) struct Prepared {
    pub(super) session: Session,
    pub(super) functions: Vec<Function>,
    pub(super) exported: Vec<String>,
    pub(super) options: CallOptions,
    pub(super) load: f64,
    pub(super) init: f64,
    _watchdog: Watchdog,
}

/// One repetition of one benchmark. Times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Repetition {
    pub(super) iterations: u64,
    /// Wall-clock time of one call, on average.
    pub(super) real: f64,
    /// Processor time of one call, on average.
    pub(super) cpu: f64,
    pub(super) items_per_second: f64,
    pub(super) calls: Summary,
}

/// All repetitions of one benchmark.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) first_call: f64,
    pub(super) repetitions: Vec<Repetition>,
}

/// Facts that go with the measurements.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) devices: Vec<(String, String, MemoryStats)>,
    pub(super) phases: Phases,
    pub(super) peak_host_bytes: Option<u64>,
}

/// Name of a function's benchmark, as iree-benchmark-module forms it.
pub(super) fn benchmark_name(function: &str) -> String {
    format!("BM_{function}/process_time/real_time")
}

/// Loads and links everything.
pub(super) fn prepare(flags: &Flags) -> Result<Prepared> {
    let cancel = cancel_on_interrupt();
    let watchdog = Watchdog::start(flags.timeout);
    let start = Instant::now();
    for module in flags.modules.modules().filter(|m| *m != "-") {
        if compile::detect(Path::new(module))?.is_some() {
            continue;
        }
        // Read for the clock only: the session reads again, from the page cache.
        let bytes = std::fs::read(module).map_err(|e| Failure::file("cannot read", Path::new(module), &e))?;
        vmfb::read_module(bytes.into()).map_err(|e| {
            Failure::Status(Status::new(Code::InvalidArgument, format!("cannot load module '{module}': {e}")))
        })?;
    }
    let load = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let options = CallOptions { deadline: watchdog.deadline(), cancel: Some(cancel) };
    let builder = load::session_builder(&flags.devices, &flags.modules, &flags.inputs)?;
    let session = builder.init_options(options.clone()).build().inspect_err(interrupt::note)?;
    let init = start.elapsed().as_secs_f64();
    let functions = functions(flags, &session)?;
    let exported = session.modules().iter().flat_map(|m| &m.functions).map(|f| f.full_name()).collect();
    Ok(Prepared { session, functions, exported, options, load, init, _watchdog: watchdog })
}

/// The named function, or all of the main module that take no inputs.
fn functions(flags: &Flags, session: &Session) -> Result<Vec<Function>> {
    let chosen = match flags.modules.function() {
        Some(name) => vec![session.function(name)?],
        None => {
            let infos = session.modules().last().map(|m| m.functions.as_slice()).unwrap_or_default();
            let inputs = flags.inputs.input.len();
            let fitting = infos.iter().filter(|f| f.input_kinds().len() == inputs);
            fitting.map(|f| session.function(&f.full_name())).collect::<halite_runtime::Result<_>>()?
        }
    };
    let selected = |f: &Function| pattern::selects(&flags.measure.filter, &benchmark_name(f.name()));
    Ok(chosen.into_iter().filter(selected).collect())
}

/// Measures all functions, one after the other.
pub(super) fn measure(flags: &Flags, prepared: &Prepared) -> Result<Vec<Run>> {
    prepared.functions.iter().map(|function| measure_one(flags, prepared, function)).collect()
}

fn measure_one(flags: &Flags, prepared: &Prepared, function: &Function) -> Result<Run> {
    let on_host = values::read_host_inputs(function.info(), &flags.inputs)?;
    let upload = || -> halite_runtime::Result<Vec<Value>> {
        on_host.iter().map(|value| Ok(values::upload(&prepared.session, value)?)).collect()
    };
    let inputs = upload()?;
    let invoke =
        |inputs: &[Value]| function.call_with(inputs, &prepared.options).inspect_err(interrupt::note);
    let call = || {
        if !flags.measure.with_transfers {
            // A call ends when its results are on the device.
            return invoke(&inputs).map(drop);
        }
        let results = invoke(&upload()?)?;
        results.iter().filter_map(Value::as_view).try_for_each(|view| Ok(view.to_host().map(drop)?))
    };
    let start = Instant::now();
    call()?;
    let first_call = start.elapsed().as_secs_f64();
    warm_up(flags, prepared, call)?;
    let mut repetitions = Vec::new();
    for _ in 0..flags.measure.repetitions {
        repetitions.push(repeat(flags, call)?);
    }
    Ok(Run { name: benchmark_name(function.name()), first_call, repetitions })
}

fn warm_up(flags: &Flags, prepared: &Prepared, call: impl Fn() -> halite_runtime::Result<()>) -> Result<()> {
    let gpu =
        |kind| matches!(kind, DeviceKind::DiscreteGpu | DeviceKind::IntegratedGpu | DeviceKind::VirtualGpu);
    let on_gpu = prepared.session.devices().iter().any(|d| gpu(d.info().kind));
    let time = flags.measure.warmup.unwrap_or(if on_gpu { GPU_WARMUP } else { Duration::ZERO });
    let start = Instant::now();
    while start.elapsed() < time {
        call()?;
    }
    Ok(())
}

fn repeat(flags: &Flags, call: impl Fn() -> halite_runtime::Result<()>) -> Result<Repetition> {
    let (least, most) = match flags.measure.min_time {
        Duty::Time(time) => (time, MAX_SAMPLES),
        Duty::Iterations(count) => (Duration::MAX, count.min(MAX_SAMPLES)),
    };
    let mut samples = Vec::new();
    let (cpu, start) = (ProcessTime::now(), Instant::now());
    let mut last = Duration::ZERO;
    while samples.is_empty() || (last < least && (samples.len() as u64) < most) {
        call()?;
        let now = start.elapsed();
        samples.push((now - last).as_secs_f64());
        last = now;
    }
    let (cpu, real) = (cpu.elapsed().as_secs_f64(), last.as_secs_f64());
    let iterations = samples.len() as u64;
    let items = iterations as f64 * f64::from(flags.measure.batch_size);
    Ok(Repetition {
        iterations,
        real: real / iterations as f64,
        cpu: cpu / iterations as f64,
        items_per_second: if real > 0.0 { items / real } else { 0.0 },
        calls: Summary::of(&mut samples),
    })
}

/// Facts at the end of the measurements.
pub(super) fn context(prepared: &Prepared, runs: &[Run]) -> Context {
    let device = |d: &std::sync::Arc<dyn halite::hal::Device>| {
        (d.info().uri(), d.info().name.clone(), d.memory_stats())
    };
    Context {
        devices: prepared.session.devices().iter().map(device).collect(),
        phases: Phases {
            load: prepared.load,
            init: prepared.init,
            first_call: runs.first().map_or(0.0, |r| r.first_call),
        },
        peak_host_bytes: peak_host_bytes(),
    }
}

/// Largest resident set of the process, where the system tells.
fn peak_host_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
