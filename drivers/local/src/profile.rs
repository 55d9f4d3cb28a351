//! Profiles of the processor: when each command began and ended, by the host's clock.

use std::{sync::Arc, time::Instant};

use halite_abi::Result;
use halite_hal::{Deadline, DeviceProfile, ProfileLog, RawTime, TimedCommand};

/// The profile of a device. Ticks are nanoseconds.
#[derive(Debug)]
pub(crate) struct Profile {
    log: ProfileLog,
    epoch: Instant,
}

impl Default for Profile {
    fn default() -> Self {
        Profile { log: ProfileLog::default(), epoch: Instant::now() }
    }
}

impl Profile {
    /// Whether commands should be measured.
    pub fn is_on(&self) -> bool {
        self.log.is_on()
    }

    /// Begins a profile.
    pub fn start(&self) -> Result<()> {
        self.log.start()
    }

    /// Ends it.
    pub fn stop(&self, deadline: Deadline) -> Result<DeviceProfile> {
        self.log.stop(1.0, deadline)
    }

    /// A run of commands that begins now.
    pub fn begin(self: &Arc<Self>, commands: Arc<[Arc<TimedCommand>]>) -> Measured {
        let (run, times) = (self.log.begin_run(), Vec::with_capacity(commands.len()));
        Measured { profile: self.clone(), run, commands, times }
    }
}

/// A run that is measured. What was measured is added to the profile when it is dropped.
#[derive(Debug)]
pub(crate) struct Measured {
    profile: Arc<Profile>,
    run: u64,
    commands: Arc<[Arc<TimedCommand>]>,
    times: Vec<RawTime>,
}

impl Measured {
    /// The time.
    pub fn now(&self) -> i64 {
        i64::try_from(self.profile.epoch.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Notes that the command with this index began at `start` and ends now.
    pub fn note(&mut self, index: usize, start: i64) {
        if let Some(command) = self.commands.get(index).cloned() {
            let (run, end) = (self.run, self.now());
            self.times.push(RawTime { command, queue: 0, run, start, end });
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let lost = self.commands.len() - self.times.len().min(self.commands.len());
        self.profile.log.end_run(std::mem::take(&mut self.times), lost as u64);
    }
}
