//! Bringing a session up with a clock beside it, and measuring calls.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use cpu_time::ProcessTime;
use halite::{
    CancelToken, Device, DeviceKind, Function, FunctionInfo, Inputs, MemoryUse, Outputs, RunOptions, Session,
    Value, compile::ModelFormat,
};
use halite_formats::vmfb;

use super::{Duty, Flags, pattern, pinned, stats::Summary};
use crate::{
    console::{Failure, Result},
    inputs::{self, made_up},
    interrupt::{self, Watchdog},
    progress, session, state, values,
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
    pub(super) options: RunOptions,
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
    pub(super) devices: Vec<(String, String, MemoryUse)>,
    pub(super) phases: Phases,
    pub(super) peak_host_bytes: Option<u64>,
}

/// Name of a function's benchmark, as iree-benchmark-module forms it.
pub(super) fn benchmark_name(function: &str) -> String {
    format!("BM_{function}/process_time/real_time")
}

/// Loads and links everything.
pub(super) fn prepare(flags: &Flags, cancel: &CancelToken) -> Result<Prepared> {
    let watchdog = Watchdog::start(flags.devices.time(flags.timeout));
    let start = Instant::now();
    flags.modules.modules().map(Path::new).try_for_each(read_for_the_clock)?;
    let load = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let options = watchdog.options(cancel);
    let builder = flags.measure.decoder.sizes(session::builder(&flags.devices, &flags.modules)?)?;
    let session = builder.options(progress::shown(options.clone())).build().inspect_err(interrupt::note)?;
    progress::go_on("measuring");
    let init = start.elapsed().as_secs_f64();
    let functions = functions(flags, &session)?;
    let exported = session.functions().iter().map(FunctionInfo::full_name).collect();
    Ok(Prepared { session, functions, exported, options, load, init, _watchdog: watchdog })
}

/// Reads a module and checks its structure. The session reads it again, from the page cache. Streams and models are read once.
fn read_for_the_clock(path: &Path) -> Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let bytes = std::fs::read(path).map_err(|e| Failure::file("cannot read", path, &e))?;
    if ModelFormat::detect(&bytes[..bytes.len().min(16)], path).is_none() {
        vmfb::read_module(bytes.into())
            .map_err(|e| Failure::invalid(format!("cannot load module '{}': {e}", path.display())))?;
    }
    Ok(())
}

/// The named function, or all of the main module that take as many inputs as there are.
fn functions(flags: &Flags, session: &Session) -> Result<Vec<Function>> {
    let chosen = match flags.modules.function() {
        Some(name) => vec![session.function(name)?],
        // Names and archives are for one function.
        None if inputs::needs_ports(&flags.inputs.input) => vec![session.default_function()?],
        None => {
            let main = session.functions().last().map(|f| f.module.clone()).unwrap_or_default();
            let own = session.functions().iter().filter(|f| f.module == main);
            let wanted = |f: &FunctionInfo| match flags.measure.in_sequence {
                true => state::without_state(f),
                false => f.clone(),
            };
            let given = flags.inputs.input.len();
            let mut fitting: Vec<_> = own.clone().filter(|f| wanted(f).inputs.len() == given).collect();
            if given == 0 && fitting.is_empty() {
                fitting = own.filter(|f| made_up::values(&wanted(f)).is_some()).collect();
            }
            fitting.into_iter().map(|f| session.function(&f.full_name())).collect::<halite::Result<_>>()?
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
    let mut sequence = flags.measure.in_sequence.then(|| function.state()).transpose()?;
    let info = match &sequence {
        Some(_) => state::without_state(function.info()),
        None => function.info().clone(),
    };
    let on_host = made_up::read(&info, &flags.inputs)?;
    values::check_count(&info, on_host.len())?;
    made_up::tell(&info, &flags.inputs);
    let upload = || values::upload(prepared.session.device(), &on_host);
    let inputs = upload()?;
    let mut invoke = |inputs: Inputs, options: &RunOptions| -> Result<Outputs> {
        let made = match &mut sequence {
            Some(state) => state.run_with(inputs, options),
            None => function.run_with(inputs, options),
        };
        Ok(made.inspect_err(interrupt::note)?)
    };
    let start = Instant::now();
    // What a model's open sizes are compiled for comes with the first call; that it is shown costs nothing later.
    invoke(inputs.clone(), &progress::shown(prepared.options.clone())).map(drop)?;
    let first_call = start.elapsed().as_secs_f64();
    progress::clear();
    let mut pinned = match flags.measure.pinned_inputs {
        true => Some(pinned::of(prepared.session.device(), &on_host)?),
        false => None,
    };
    let mut call = || {
        if !flags.measure.with_transfers {
            // A call ends when its results are on the device.
            return invoke(inputs.clone(), &prepared.options).map(drop);
        }
        let inputs = match &mut pinned {
            Some(pinned) => pinned::send(prepared.session.device(), pinned)?,
            None => upload()?,
        };
        let results = invoke(inputs, &prepared.options)?;
        results
            .values()
            .iter()
            .filter_map(Value::as_tensor)
            .try_for_each(|tensor| Ok(tensor.to_bytes().map(drop)?))
    };
    warm_up(flags, &prepared.session, &mut call)?;
    let mut repetitions = Vec::new();
    for _ in 0..flags.measure.repetitions.unwrap_or(1) {
        repetitions.push(repeat(flags, &mut call)?);
    }
    Ok(Run { name: benchmark_name(function.name()), first_call, repetitions })
}

/// Calls until the clocks of a GPU are up, or for as long as the flags say.
pub(super) fn warm_up(flags: &Flags, session: &Session, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let gpu =
        |kind| matches!(kind, DeviceKind::DiscreteGpu | DeviceKind::IntegratedGpu | DeviceKind::VirtualGpu);
    let on_gpu = session.devices().iter().any(|d| gpu(d.info().kind()));
    let time = flags.measure.warmup.unwrap_or(if on_gpu { GPU_WARMUP } else { Duration::ZERO });
    let start = Instant::now();
    while start.elapsed() < time {
        call()?;
    }
    Ok(())
}

fn repeat(flags: &Flags, mut call: impl FnMut() -> Result<()>) -> Result<Repetition> {
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
    let device = |d: &Device| (d.uri(), d.info().name().to_owned(), d.memory());
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
