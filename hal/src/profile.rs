//! What a device measured of the commands that it ran: the times of a profile, what names them, and the log that drivers keep.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::sync::{Condvar, Mutex};

use crate::{
    BufferRef, Command, CommandList, CommandTarget, Deadline, DispatchCounts, Result, WHOLE_BUFFER, status,
};

/// Most times that a profile keeps: what runs for ever must not take all memory.
pub const MOST_TIMES: usize = 1 << 20;

/// What kind of work was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// A kernel.
    Dispatch,
    /// A pattern that was repeated.
    Fill,
    /// Bytes of the host that were written.
    Update,
    /// A copy between buffers.
    Copy,
}

impl WorkKind {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Dispatch => "dispatch",
            WorkKind::Fill => "fill",
            WorkKind::Update => "update",
            WorkKind::Copy => "copy",
        }
    }
}

/// A command that was measured. Runs of one recording share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCommand {
    /// What it does.
    pub kind: WorkKind,
    /// Name of the entry point of a dispatch; empty for others.
    pub name: String,
    /// Name of the innermost debug group that it is in; empty outside of all, and for queue operations.
    pub group: Arc<str>,
    /// Its place among the commands of that group that do work (not barriers, not groups), or among those of the recording
    /// outside of all groups; 0 for a queue operation.
    pub index: u32,
    /// Workgroups of a dispatch; `None` for others, and where only the device knows them.
    pub workgroups: Option<[u32; 3]>,
    /// Bytes that a transfer writes; 0 for a dispatch, and where only the binding table knows them.
    pub bytes: u64,
}

impl TimedCommand {
    /// A transfer that is a queue operation of its own.
    pub fn transfer(kind: WorkKind, bytes: u64) -> Self {
        TimedCommand { kind, name: String::new(), group: "".into(), index: 0, workgroups: None, bytes }
    }

    /// The commands of a recording: one entry for each, `None` for those that do no work.
    pub fn of_list(list: &CommandList) -> Vec<Option<Arc<TimedCommand>>> {
        let outside: Arc<str> = "".into();
        let mut groups: Vec<Arc<str>> = Vec::new();
        // Groups of one name go on counting: what is recorded in two goes is numbered once.
        let mut counts: HashMap<Arc<str>, u32> = HashMap::new();
        let mut named = Vec::with_capacity(list.commands.len());
        for command in &list.commands {
            match command {
                Command::BeginDebugGroup(name) => groups.push(name.as_str().into()),
                Command::EndDebugGroup => _ = groups.pop(),
                _ => {}
            }
            let group = groups.last().unwrap_or(&outside);
            named.push(Self::of_command(command, group).map(|mut timed| {
                let next = counts.entry(group.clone()).or_default();
                timed.index = *next;
                *next = next.saturating_add(1);
                Arc::new(timed)
            }));
        }
        named
    }

    fn of_command(command: &Command, group: &Arc<str>) -> Option<Self> {
        let transfer = |kind, target: &BufferRef| {
            let bytes = known_bytes(target);
            Some(TimedCommand { group: group.clone(), ..Self::transfer(kind, bytes) })
        };
        match command {
            Command::Fill { target, .. } => transfer(WorkKind::Fill, target),
            Command::Update { target, .. } => transfer(WorkKind::Update, target),
            Command::Copy { target, .. } => transfer(WorkKind::Copy, target),
            Command::Dispatch { executable, function, counts, .. } => {
                let info = executable.functions().get(*function as usize);
                Some(TimedCommand {
                    kind: WorkKind::Dispatch,
                    name: info.map(|info| info.name.clone()).unwrap_or_default(),
                    group: group.clone(),
                    index: 0,
                    workgroups: match counts {
                        DispatchCounts::Direct(counts) => Some(*counts),
                        DispatchCounts::Indirect(_) => None,
                    },
                    bytes: 0,
                })
            }
            Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => None,
        }
    }
}

fn known_bytes(target: &BufferRef) -> u64 {
    match &target.target {
        _ if target.length != WHOLE_BUFFER => target.length,
        CommandTarget::Direct(buffer) => buffer.byte_length().saturating_sub(target.offset),
        CommandTarget::Slot(_) => 0,
    }
}

/// When one command ran, once.
#[derive(Clone, Debug)]
pub struct CommandTime {
    /// The command.
    pub command: Arc<TimedCommand>,
    /// The queue.
    pub queue: u32,
    /// Number of the queue operation that it is a part of, since profiling began.
    pub run: u64,
    /// When it began, in nanoseconds of the device's clock since the first command of the profile began.
    pub start_ns: u64,
    /// When it had ended.
    pub end_ns: u64,
}

/// What was measured between [`crate::Device::start_profiling`] and [`crate::Device::stop_profiling`].
#[derive(Clone, Debug, Default)]
pub struct DeviceProfile {
    /// The times, in the order in which the device was seen to end them. Those that no barrier separates may overlap.
    pub times: Vec<CommandTime>,
    /// Commands that ran and were not measured, because there were more than [`MOST_TIMES`] or the device could not.
    pub lost: u64,
    /// Nanoseconds between two values of the device's clock.
    pub resolution_ns: f64,
}

/// The log of a profile that a driver keeps: whether one is on, and what was measured. Any thread may use it.
#[derive(Debug, Default)]
pub struct ProfileLog {
    on: AtomicBool,
    state: Mutex<LogState>,
    settled: Condvar,
}

#[derive(Debug, Default)]
struct LogState {
    times: Vec<RawTime>,
    lost: u64,
    runs: u64,
    /// Runs that were announced and have not ended.
    open: usize,
}

/// A command's time on any clock of the driver that does not wrap.
#[derive(Clone, Debug)]
pub struct RawTime {
    /// The command.
    pub command: Arc<TimedCommand>,
    /// The queue.
    pub queue: u32,
    /// From [`ProfileLog::begin_run`].
    pub run: u64,
    /// When it began, in ticks.
    pub start: i64,
    /// When it had ended.
    pub end: i64,
}

impl ProfileLog {
    /// Whether commands should be measured. All that a device without a profile pays.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Begins a profile.
    ///
    /// # Errors
    /// FAILED_PRECONDITION when there is one: a device has one profile at a time.
    pub fn start(&self) -> Result<()> {
        let mut state = self.state.lock();
        if self.on.load(Ordering::Relaxed) {
            return Err(status!(
                FailedPrecondition,
                "the device is being profiled already; one profile can be taken at a time"
            ));
        }
        *state = LogState { open: state.open, ..LogState::default() };
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Announces the run of something that will be measured, and numbers it. [`ProfileLog::end_run`] must follow.
    pub fn begin_run(&self) -> u64 {
        let mut state = self.state.lock();
        state.open += 1;
        state.runs += 1;
        state.runs - 1
    }

    /// Adds what was measured of a run that was announced; nothing of a run that failed. `lost` commands of it were not
    /// measured.
    pub fn end_run(&self, times: impl IntoIterator<Item = RawTime>, lost: u64) {
        let mut state = self.state.lock();
        state.open = state.open.saturating_sub(1);
        state.lost += lost;
        if self.on.load(Ordering::Relaxed) {
            for time in times {
                if state.times.len() < MOST_TIMES { state.times.push(time) } else { state.lost += 1 }
            }
        }
        drop(state);
        self.settled.notify_all();
    }

    /// Ends the profile, when all runs that were announced have ended, and gives it. `tick_ns` is what a tick takes.
    ///
    /// # Errors
    /// FAILED_PRECONDITION when there is none. DEADLINE_EXCEEDED when work goes on for longer; the profile goes on, too.
    pub fn stop(&self, tick_ns: f64, deadline: Deadline) -> Result<DeviceProfile> {
        let mut state = self.state.lock();
        if !self.on.load(Ordering::Relaxed) {
            return Err(status!(FailedPrecondition, "the device is not being profiled"));
        }
        while state.open > 0 {
            match deadline.remaining() {
                None => self.settled.wait(&mut state),
                Some(left) if left.is_zero() => {
                    return Err(status!(
                        DeadlineExceeded,
                        "{} operations that are profiled are still at work",
                        state.open
                    ));
                }
                Some(left) => _ = self.settled.wait_for(&mut state, left),
            }
        }
        self.on.store(false, Ordering::Relaxed);
        let LogState { times, lost, .. } = std::mem::take(&mut *state);
        Ok(DeviceProfile { times: times_of(times, tick_ns), lost, resolution_ns: tick_ns })
    }
}

fn times_of(raw: Vec<RawTime>, tick_ns: f64) -> Vec<CommandTime> {
    let first = raw.iter().map(|time| time.start).min().unwrap_or(0);
    let ns = |tick: i64| (tick.saturating_sub(first).max(0) as f64 * tick_ns).round() as u64;
    let time = |raw: RawTime| CommandTime {
        queue: raw.queue,
        run: raw.run,
        start_ns: ns(raw.start),
        end_ns: ns(raw.end.max(raw.start)),
        command: raw.command,
    };
    raw.into_iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn raw(run: u64, start: i64, end: i64) -> RawTime {
        let command = Arc::new(TimedCommand::transfer(WorkKind::Copy, 64));
        RawTime { command, queue: 0, run, start, end }
    }

    #[test]
    fn times_count_from_the_first_command_whatever_the_clock_shows() {
        let log = ProfileLog::default();
        log.start().unwrap();
        let (first, second) = (log.begin_run(), log.begin_run());
        assert_eq!((first, second), (0, 1));
        log.end_run([raw(second, -90, -80)], 0);
        log.end_run([raw(first, -100, -95)], 3);
        let profile = log.stop(2.5, Deadline::Now).unwrap();
        let times: Vec<_> = profile.times.iter().map(|t| (t.run, t.start_ns, t.end_ns)).collect();
        assert_eq!(times, [(1, 25, 50), (0, 0, 13)]);
        assert_eq!((profile.lost, profile.resolution_ns), (3, 2.5));
    }

    #[test]
    fn one_profile_at_a_time_and_none_before_its_work_is_done() {
        let log = ProfileLog::default();
        assert_eq!(log.stop(1.0, Deadline::Now).unwrap_err().code(), Code::FailedPrecondition);
        log.start().unwrap();
        assert_eq!(log.start().unwrap_err().code(), Code::FailedPrecondition);
        let run = log.begin_run();
        assert_eq!(log.stop(1.0, Deadline::Now).unwrap_err().code(), Code::DeadlineExceeded);
        assert!(log.is_on());
        log.end_run([raw(run, 0, 1)], 0);
        assert_eq!(log.stop(1.0, Deadline::Now).unwrap().times.len(), 1);
        assert!(!log.is_on());
        log.end_run([raw(run, 0, 1)], 0);
        log.start().unwrap();
        assert!(log.stop(1.0, Deadline::Now).unwrap().times.is_empty(), "what ends late is of no profile");
    }

    #[test]
    fn commands_are_numbered_within_their_group() {
        let copy = || {
            let span = BufferRef { target: CommandTarget::Slot(0), offset: 0, length: 8 };
            Command::Copy { source: span.clone(), target: span }
        };
        let group = |name: &str| Command::BeginDebugGroup(name.to_owned());
        let list = CommandList {
            mode: crate::CommandBufferMode::empty(),
            categories: crate::CommandCategory::ANY,
            affinity: crate::QueueAffinity::ANY,
            binding_capacity: 1,
            commands: vec![
                copy(),
                group("a"),
                copy(),
                Command::Barrier,
                group("b"),
                copy(),
                Command::EndDebugGroup,
                copy(),
                Command::EndDebugGroup,
                copy(),
            ],
        };
        let named = TimedCommand::of_list(&list);
        assert_eq!(named.len(), list.commands.len());
        let named: Vec<_> = named.iter().flatten().map(|c| (&*c.group, c.index, c.bytes)).collect();
        assert_eq!(named, [("", 0, 8), ("a", 0, 8), ("b", 0, 8), ("a", 1, 8), ("", 1, 8)]);
    }
}
