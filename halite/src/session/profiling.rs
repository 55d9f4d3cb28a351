//! Running a call with clocks beside it, and putting what devices measured beside what modules tell of it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use halite_hal as hal;
use halite_runtime::{self as runtime, RecordingNotes};

use super::{Content, Function, Started, started::Group, states::lowered};
use crate::{
    Device, Error, Outputs, Result, Value,
    options::{Handed, Limits},
    profile::{CommandProfile, DeviceTimes, OperationInfo, Profile},
    tensor::Capacity,
};

/// How long is waited for work that others began during a profile.
const SETTLES: Duration = Duration::from_secs(60);

/// Devices that are being profiled. Those that are left when it is dropped end their profiles.
struct Profiled<'a> {
    devices: Vec<&'a Device>,
}

impl<'a> Profiled<'a> {
    fn start(devices: &'a [Device]) -> Result<Self> {
        let mut profiled = Profiled { devices: Vec::new() };
        for device in devices {
            if !profiled.devices.iter().any(|other| other.is_same(device)) {
                device.hal().start_profiling()?;
                profiled.devices.push(device);
            }
        }
        Ok(profiled)
    }

    /// The profiles, with the URIs of their devices.
    fn stop(mut self) -> Result<Vec<(String, hal::DeviceProfile)>> {
        let mut profiles = Vec::new();
        while let Some(device) = self.devices.first() {
            profiles.push((device.uri(), device.hal().stop_profiling(hal::Deadline::after(SETTLES))?));
            self.devices.remove(0);
        }
        Ok(profiles)
    }
}

impl Drop for Profiled<'_> {
    fn drop(&mut self) {
        for device in &self.devices {
            if let Err(e) = device.hal().stop_profiling(hal::Deadline::after(SETTLES)) {
                log::warn!("the profile of '{}' could not be ended: {e}", device.uri());
            }
        }
    }
}

/// Runs a function once and tells where the time went.
pub(super) fn profile(function: &Function, values: &[Value], limits: &Limits) -> Result<(Outputs, Profile)> {
    let kept = function.info().kept.len();
    profile_so(function, values, &Handed::default(), limits, |call| {
        function.pending(call).without_last(kept).finish(limits)
    })
}

/// The same; `finish` waits for the call's results.
pub(crate) fn profile_so(
    function: &Function,
    values: &[Value],
    handed: &Handed,
    limits: &Limits,
    finish: impl FnOnce(Arc<Started>) -> Result<Outputs>,
) -> Result<(Outputs, Profile)> {
    let values = &super::check::inputs(function.info(), values.to_vec())?;
    let session = &function.session.0;
    prepare(function, values, handed, limits)?;
    let moved = || {
        let all = session.devices.iter().map(Device::transfers);
        all.fold((0, 0), |(up, down), one| (up + one.uploaded_bytes, down + one.downloaded_bytes))
    };
    let (up, down) = moved();
    let profiled = Profiled::start(&session.devices)?;
    let mut clock = Laps(Instant::now());
    limits.check("copying inputs")?;
    let Ready { handle, groups, arguments, grown } = ready(function, values, handed, limits)?;
    let upload = clock.lap();
    let call = handle.start(&arguments, &limits.call_options()).map_err(Error::of_runtime)?;
    let launch = clock.lap();
    let outputs = finish(Arc::new(Started::new(call, groups, grown)))?;
    let wait = clock.lap();
    outputs.values().iter().try_for_each(download)?;
    let downloaded_in = clock.lap();
    let (uploaded, downloaded) = moved();
    let mut profile = Profile {
        upload,
        launch,
        wait,
        download: downloaded_in,
        uploaded_bytes: uploaded - up,
        downloaded_bytes: downloaded - down,
        ..Profile::default()
    };
    let mut notes = Notes { function: &handle, known: HashMap::new() };
    for (uri, measured) in profiled.stop()? {
        add_device(&mut profile, uri, &measured, &mut notes);
    }
    Ok((outputs, profile))
}

/// Brings a result to the host.
fn download(value: &Value) -> Result<()> {
    match value {
        Value::Tensor(tensor) => tensor.to_bytes().map(drop),
        Value::List(values) => values.iter().try_for_each(download),
        _ => Ok(()),
    }
}

/// The time since the last look.
struct Laps(Instant);

impl Laps {
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let time = now - self.0;
        self.0 = now;
        time
    }
}

/// What a call is made with.
struct Ready {
    handle: runtime::Function,
    /// What its results are, where they are not one for each output.
    groups: Option<Arc<[Group]>>,
    arguments: Vec<runtime::Value>,
    grown: Vec<(usize, Capacity)>,
}

/// Compiles and loads what a function needs for these inputs.
fn prepare(function: &Function, values: &[Value], handed: &Handed, limits: &Limits) -> Result<()> {
    match &function.session.0.program {
        Content::Module(_) => {
            let _ = (values, handed, limits);
            Ok(())
        }
        #[cfg(feature = "compiler")]
        Content::Model(model) => model.version_handed(function.place, values, handed, limits).map(drop),
    }
}

/// The handle of a function for these inputs, and the inputs on the device.
fn ready(function: &Function, values: &[Value], handed: &Handed, limits: &Limits) -> Result<Ready> {
    let session = &function.session.0;
    match &session.program {
        Content::Module(module) => {
            let _ = limits;
            let handle = module.function(function.place)?.clone();
            let states = handle.info().states();
            let arguments = lowered(values.iter(), states, handed.kept, &session.devices)?;
            Ok(Ready { handle, groups: None, arguments, grown: Vec::new() })
        }
        #[cfg(feature = "compiler")]
        Content::Model(model) => {
            let made = model.ready(function.place, values, &session.devices, handed, limits)?;
            let (handle, groups) = (made.version.function.clone(), made.version.groups.clone());
            Ok(Ready { handle, groups, arguments: made.arguments, grown: made.grown })
        }
    }
}

/// What modules tell, read once for each recording.
struct Notes<'a> {
    function: &'a runtime::Function,
    known: HashMap<Arc<str>, Option<RecordingNotes>>,
}

impl Notes<'_> {
    fn of(&mut self, group: &Arc<str>) -> Option<&RecordingNotes> {
        if group.is_empty() {
            return None;
        }
        let function = self.function;
        self.known.entry(group.clone()).or_insert_with(|| function.notes(group)).as_ref()
    }
}

/// Adds what a device measured.
fn add_device(profile: &mut Profile, uri: String, measured: &hal::DeviceProfile, notes: &mut Notes<'_>) {
    let device = profile.devices.len();
    let first = profile.commands.len();
    let mut runs: HashMap<u64, Vec<&hal::CommandTime>> = HashMap::new();
    for time in &measured.times {
        runs.entry(time.run).or_default().push(time);
    }
    let mut runs: Vec<_> = runs.into_iter().collect();
    runs.sort_by_key(|(run, _)| *run);
    for (_, times) in &runs {
        let operations = operations(times, notes);
        // A transfer alone, outside of all groups, is no recording of a program.
        let is_of_program = times
            .iter()
            .any(|time| time.command.kind == hal::WorkKind::Dispatch || !time.command.group.is_empty());
        for (time, operation) in times.iter().zip(operations) {
            profile.commands.push(CommandProfile {
                kind: time.command.kind.into(),
                device,
                queue: time.queue,
                start: Duration::from_nanos(time.start_ns),
                end: Duration::from_nanos(time.end_ns),
                own: Duration::ZERO,
                entry_point: time.command.name.clone(),
                workgroups: time.command.workgroups,
                bytes: time.command.bytes,
                operation,
                is_of_program,
            });
        }
    }
    let commands = &mut profile.commands[first..];
    commands.sort_by_key(|command| (command.start, command.end));
    let (span, busy) = own_times(commands, true);
    let (_, transfers) = own_times(commands, false);
    profile.devices.push(DeviceTimes {
        uri,
        span,
        busy,
        transfers,
        resolution: Duration::from_nanos(measured.resolution_ns.ceil() as u64),
        unmeasured: measured.lost,
    });
}

/// The operation of each command of one run.
fn operations(times: &[&hal::CommandTime], notes: &mut Notes<'_>) -> Vec<Option<Arc<OperationInfo>>> {
    let mut made: HashMap<(Arc<str>, usize), Arc<OperationInfo>> = HashMap::new();
    let of_command = |time: &&hal::CommandTime| {
        let group = &time.command.group;
        let notes = notes.of(group)?;
        let (place, operation) = notes.operation(time.command.index)?;
        let known = made.entry((group.clone(), place));
        Some(
            known
                .or_insert_with(|| {
                    let mut grids = vec![None; notes.commands.len()];
                    for other in times.iter().filter(|other| other.command.group == *group) {
                        if let Some(grid) = grids.get_mut(other.command.index as usize) {
                            *grid = other.command.workgroups;
                        }
                    }
                    let work = notes.version(&grids).and_then(|version| version.work.get(place));
                    Arc::new(OperationInfo {
                        location: operation.location.clone(),
                        kind: operation.kind.clone(),
                        text: operation.text.clone(),
                        variant: operation.variant.clone(),
                        flops: work.map(|(flops, _)| *flops),
                        bytes: work.map(|(_, bytes)| *bytes),
                    })
                })
                .clone(),
        )
    };
    times.iter().map(of_command).collect()
}

/// Sets the time that each command has for itself, of those of the program or of the others. Gives the time from the first begin
/// to the last end, and how much of it something ran. Commands are in the order in which they begin.
fn own_times(commands: &mut [CommandProfile], of_program: bool) -> (Duration, Duration) {
    let (mut first, mut busy, mut until) = (None, Duration::ZERO, Duration::ZERO);
    for command in commands.iter_mut().filter(|command| command.is_of_program == of_program) {
        first.get_or_insert(command.start);
        command.own = command.end.saturating_sub(command.start.max(until));
        busy += command.own;
        until = until.max(command.end);
    }
    (until.saturating_sub(first.unwrap_or(until)), busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(start: u64, end: u64, is_of_program: bool) -> CommandProfile {
        CommandProfile {
            kind: crate::WorkKind::Dispatch,
            device: 0,
            queue: 0,
            start: Duration::from_nanos(start),
            end: Duration::from_nanos(end),
            own: Duration::ZERO,
            entry_point: String::new(),
            workgroups: None,
            bytes: 0,
            operation: None,
            is_of_program,
        }
    }

    #[test]
    fn times_of_commands_that_overlap_add_up_to_the_time_that_something_ran() {
        let mut commands = [
            command(0, 5, false),
            command(10, 30, true),
            command(15, 20, true),
            command(25, 40, true),
            command(50, 60, true),
        ];
        let (span, busy) = own_times(&mut commands, true);
        assert_eq!((span.as_nanos(), busy.as_nanos()), (50, 40));
        let (span, busy) = own_times(&mut commands, false);
        assert_eq!((span.as_nanos(), busy.as_nanos()), (5, 5));
        let own: Vec<_> = commands.iter().map(|command| command.own.as_nanos()).collect();
        assert_eq!(own, [5, 20, 0, 10, 10]);
        assert_eq!(own_times(&mut [], true), (Duration::ZERO, Duration::ZERO));
    }
}
