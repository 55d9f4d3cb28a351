//! `bench --ops`, `--trace` and `--etdump`: profiled calls, and the account of what they consist of.

mod ceilings;
mod json;
mod rows;
mod text;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use halite::{Function, Inputs, Profile};

use self::ceilings::Ceilings;
pub(crate) use self::rows::{Account, OpsReport, Row};
pub(super) use self::{json::object, text::write};
use super::{
    Flags,
    runner::{Prepared, Run},
};
use crate::{console::Result, inputs::made_up, interrupt, state, values, whole};

/// Calls that are profiled at least and at most.
const CALLS: (usize, usize) = (3, 200);
/// How long calls are profiled, unless the fewest take longer.
const ENOUGH: Duration = Duration::from_millis(500);
/// Calls that a trace shows.
const TRACED: usize = 3;

/// Profiles calls of the functions that are measured, and writes the trace.
pub(super) fn profile(flags: &Flags, prepared: &Prepared, runs: &[Run]) -> Result<OpsReport> {
    let device = prepared.session.device();
    let hal = device.map(halite::Device::hal);
    let (ceilings, no_ceilings) = match hal {
        Some(hal) if flags.measure.ops || flags.measure.html.is_some() => match Ceilings::measure(hal) {
            Ok(ceilings) => (ceilings, None),
            Err(e) => (Ceilings::default(), Some(e.message().to_owned())),
        },
        _ => (Ceilings::default(), None),
    };
    let named = |device: &halite::Device| format!("{} ({})", device.uri(), device.info().name());
    let mut report = OpsReport {
        device: device.map(named).unwrap_or_default(),
        ceilings,
        no_ceilings,
        functions: Vec::new(),
    };
    let (mut traced, mut dumped): (Vec<Profile>, Vec<Profile>) = (Vec::new(), Vec::new());
    for (function, run) in prepared.functions.iter().zip(runs) {
        let profiles = calls(flags, prepared, function)?;
        traced.extend(profiles.iter().rev().take(TRACED).rev().cloned());
        if flags.measure.etdump.is_some() {
            dumped.extend(profiles.iter().cloned());
        }
        let plain = run.repetitions.iter().map(|r| r.calls.p50).fold(f64::INFINITY, f64::min);
        let account = Account { plain, ..Account::of(&profiles, &ceilings) };
        report.functions.push((function.info().full_name(), account));
    }
    if let Some(path) = &flags.measure.trace {
        whole::write(path, |out| out.write_all(Profile::to_trace_of(&traced).as_ref()))?;
    }
    if let Some(path) = &flags.measure.etdump {
        whole::write(path, |out| out.write_all(&Profile::to_etdump_of(&dumped)))?;
    }
    Ok(report)
}

/// Profiles of some calls. The first is left out: recordings are made anew for it.
fn calls(flags: &Flags, prepared: &Prepared, function: &Function) -> Result<Vec<Profile>> {
    let mut sequence = flags.measure.in_sequence.then(|| function.state()).transpose()?;
    let info = match &sequence {
        Some(_) => state::without_state(function.info()),
        None => function.info().clone(),
    };
    let on_host = made_up::read(&info, &flags.inputs)?;
    let mut call = || -> Result<Profile> {
        let inputs: Inputs = values::upload(None, &on_host)?;
        let made = match &mut sequence {
            Some(state) => state.profile_with(inputs, &prepared.options),
            None => function.profile_with(inputs, &prepared.options),
        };
        Ok(made.inspect_err(interrupt::note)?.1)
    };
    call()?;
    let (mut profiles, start) = (Vec::new(), Instant::now());
    while profiles.len() < CALLS.0 || (profiles.len() < CALLS.1 && start.elapsed() < ENOUGH) {
        profiles.push(call()?);
    }
    Ok(profiles)
}
