//! What was measured of commands, on its way through the interface.

use std::{ffi::c_void, sync::Arc};

use super::{
    abi::*,
    panics,
    peer::Peer,
    raw::{self, Grows},
};
use halite_hal::{
    CommandTime, DeviceInfo, DeviceProfile, Result, Status, TimedCommand, WorkKind, profile::MOST_TIMES,
    status,
};

/// The visitor of times.
pub(super) type VisitTime = unsafe extern "C" fn(context: *mut c_void, time: *const HaliteCommandTime);

fn kind_number(kind: WorkKind) -> u32 {
    match kind {
        WorkKind::Dispatch => HALITE_COMMAND_DISPATCH,
        WorkKind::Fill => HALITE_COMMAND_FILL,
        WorkKind::Update => HALITE_COMMAND_UPDATE,
        WorkKind::Copy => HALITE_COMMAND_COPY,
    }
}

/// A time as the interface has it. It borrows the texts.
pub(super) fn lend(time: &CommandTime) -> HaliteCommandTime {
    let command = &time.command;
    HaliteCommandTime {
        struct_size: HaliteCommandTime::SIZE,
        kind: kind_number(command.kind),
        name: raw::lend(&command.name),
        group: raw::lend(&command.group),
        index: command.index,
        queue: time.queue,
        workgroups: command.workgroups.unwrap_or_default(),
        reserved: 0,
        bytes: command.bytes,
        run: time.run,
        start_ns: time.start_ns,
        end_ns: time.end_ns,
    }
}

/// What else a profile tells, as the interface has it.
pub(super) fn lend_summary(profile: &DeviceProfile) -> HaliteProfileSummary {
    HaliteProfileSummary {
        struct_size: HaliteProfileSummary::SIZE,
        reserved: 0,
        lost: profile.lost,
        resolution_ns: profile.resolution_ns,
    }
}

/// The answer of a device that cannot be profiled.
pub(super) fn unsupported(info: &DeviceInfo) -> Status {
    status!(
        Unimplemented,
        "device '{}' cannot be profiled: its driver '{}' does not measure commands",
        info.uri(),
        info.driver
    )
}

/// What [`gather`] is given: times, or the first thing that was wrong with one.
pub(super) struct Gathered {
    peer: Peer,
    times: Result<Vec<CommandTime>>,
    lost: u64,
}

impl Gathered {
    /// Nothing yet, from this end.
    pub fn new(peer: Peer) -> Self {
        Gathered { peer, times: Ok(Vec::new()), lost: 0 }
    }

    /// The profile of all that was told.
    pub fn finish(self, summary: &HaliteProfileSummary) -> Result<DeviceProfile> {
        let resolution = summary.resolution_ns;
        let resolution_ns = if resolution.is_finite() { resolution.max(0.0) } else { 0.0 };
        let lost = summary.lost.saturating_add(self.lost);
        Ok(DeviceProfile { times: self.times?, lost, resolution_ns })
    }

    /// # Safety
    /// `time` is null or there for the call, and so is what it points to.
    unsafe fn receive(
        &self,
        time: *const HaliteCommandTime,
        last: Option<&CommandTime>,
    ) -> Result<CommandTime> {
        // SAFETY: the caller's promise, for all of it.
        let (time, name, group) = unsafe {
            let time = raw::structure(time, self.peer)?;
            let name = raw::text(time.name, "the name of an entry point", self.peer)?;
            (time, name, raw::text(time.group, "the name of a group", self.peer)?)
        };
        let kind = match time.kind {
            HALITE_COMMAND_DISPATCH => WorkKind::Dispatch,
            HALITE_COMMAND_FILL => WorkKind::Fill,
            HALITE_COMMAND_UPDATE => WorkKind::Update,
            HALITE_COMMAND_COPY => WorkKind::Copy,
            other => {
                return Err(self
                    .peer
                    .broke(format_args!("a command of the unknown kind {other} was measured")));
            }
        };
        // Commands of one group follow each other, so the group's name is often there.
        let known = last.map(|last| &last.command.group).filter(|known| ***known == *group);
        let command = TimedCommand {
            kind,
            name: name.to_owned(),
            group: known.cloned().unwrap_or_else(|| group.into()),
            index: time.index,
            workgroups: (kind == WorkKind::Dispatch && time.workgroups != [0; 3]).then_some(time.workgroups),
            bytes: time.bytes,
        };
        Ok(CommandTime {
            command: Arc::new(command),
            queue: time.queue,
            run: time.run,
            start_ns: time.start_ns,
            end_ns: time.end_ns.max(time.start_ns),
        })
    }
}

/// The visitor for a context of [`Gathered`].
pub(super) unsafe extern "C" fn gather(context: *mut c_void, time: *const HaliteCommandTime) {
    panics::swallow("visiting a time", || {
        // SAFETY: the context is the caller's `Gathered`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<Gathered>().as_mut() }) else { return };
        let Ok(times) = &gathered.times else { return };
        if times.len() >= MOST_TIMES {
            gathered.lost += 1;
            return;
        }
        // SAFETY: the time is lent for the visit.
        let received = unsafe { gathered.receive(time, times.last()) };
        match (received, &mut gathered.times) {
            (Ok(time), Ok(times)) => times.push(time),
            (Err(e), times) => *times = Err(e),
            (Ok(_), Err(_)) => {}
        }
    });
}
