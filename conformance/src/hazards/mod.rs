//! The proof of the check of barriers: recordings that programs execute are put on trial, one barrier at a time.
//!
//! A device that stands before another ([`Watched`]) takes each recording apart when it is executed. What comes out is held
//! against the check:
//! * as it is, the recording has no hazard;
//! * each dispatch changes no byte outside of what its code was said to write;
//! * for each barrier, the commands before and behind it are executed in their order and the other way round. If any byte
//!   of any buffer differs then, the barrier is needed, and without it the check must report a hazard.

mod device;
mod trial;

pub use device::Watched;

use std::fmt;

/// What came out of trials.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Recordings that were put on trial.
    pub recordings: usize,
    /// Commands in them that touch memory.
    pub commands: usize,
    /// Barriers with commands before and behind them.
    pub barriers: usize,
    /// Barriers without which results differ.
    pub needed: usize,
    /// Barriers without which the check reports a hazard.
    pub reported: usize,
    /// Barriers without which results differ and the check reports nothing.
    pub missed: Vec<String>,
    /// Hazards that the check reports in recordings as they are.
    pub hazards: Vec<String>,
    /// Bytes that a dispatch changed and was not said to write.
    pub outside: Vec<String>,
    /// Recordings that were executed as they are, because what they wait for did not come.
    pub waiting: usize,
}

impl Findings {
    /// Whether the check was right about everything that was tried.
    pub fn passed(&self) -> bool {
        self.missed.is_empty() && self.hazards.is_empty() && self.outside.is_empty()
    }

    /// The complaints.
    pub fn complaints(&self) -> impl Iterator<Item = &String> {
        self.missed.iter().chain(&self.hazards).chain(&self.outside)
    }

    /// Adds what came out elsewhere.
    pub fn add(&mut self, other: Findings) {
        self.recordings += other.recordings;
        self.commands += other.commands;
        self.barriers += other.barriers;
        self.needed += other.needed;
        self.reported += other.reported;
        self.waiting += other.waiting;
        self.missed.extend(other.missed);
        self.hazards.extend(other.hazards);
        self.outside.extend(other.outside);
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { recordings, commands, barriers, needed, reported, .. } = self;
        write!(
            f,
            "{recordings} recordings, {commands} commands, {barriers} barriers: without {needed} of them results \
             differ, without {reported} the check reports a hazard; {} missed, {} false reports, {} footprints too \
             small",
            self.missed.len(),
            self.hazards.len(),
            self.outside.len()
        )
    }
}
