//! Running a program: one command after the other, and how many threads work on each dispatch.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use halite_abi::{Result, bail, status};
use halite_hal::{BindingTable, Deadline};

use crate::{
    code::workgroup_total,
    engine::Engine,
    executable::Pace,
    job::{Job, Scratch},
    operation::Progress,
    pool::Pool,
    profile::Measured,
    program::{Counts, Dispatch, PreparedCommands, Step},
    transfer,
};

/// A dispatch that takes less is not worth sharing, in nanoseconds: lines of memory have to travel to each helper, and
/// on a busy machine a helper that loses its core holds up the leader for far longer than it could have saved.
const WORTH_SHARING: u64 = 8_000;
/// A program whose dispatches worth sharing take less together is not worth waking threads for, in nanoseconds.
const WORTH_CALLING: u64 = 200_000;
/// A dispatch that takes less is not worth waking a thread for that went back to sleep, in nanoseconds.
const WORTH_WAKING: u64 = 50_000;
/// What a helper should take at a time at least, in nanoseconds.
const WORTH_TAKING: u64 = 1_000;

/// A program on its way.
#[derive(Debug)]
pub(crate) struct Execution {
    job: Arc<Job>,
    /// Keeps the buffers alive.
    _table: BindingTable,
    next: usize,
    /// What measures the steps, while a profile is taken.
    measured: Option<Measured>,
}

impl Execution {
    /// A program with the buffers of this table.
    pub fn new(
        program: Arc<PreparedCommands>,
        table: BindingTable,
        measured: Option<Measured>,
    ) -> Result<Self> {
        let ranges = program.resolve(&table)?;
        Ok(Execution { job: Arc::new(Job::new(program, ranges)), _table: table, next: 0, measured })
    }

    /// What runs.
    pub fn program(&self) -> &PreparedCommands {
        self.job.program()
    }

    /// Runs commands until the end or the deadline.
    pub fn run(&mut self, engine: &Engine, deadline: Deadline) -> Result<Progress> {
        let mut scratch = engine.scratch.lock();
        let local_memory = self.program().local_memory;
        if !scratch.reserve(local_memory) {
            bail!(ResourceExhausted, "no memory for {local_memory} bytes of local memory of a kernel");
        }
        let helpers = Helpers::new(engine.pool.as_ref(), &self.job);
        let program = self.job.program().clone();
        let mut clock = Clock::new(engine.pool.is_some() || deadline != Deadline::Never);
        while let Some(step) = program.steps.get(self.next) {
            if clock.is_past(deadline) {
                return Ok(Progress::Interrupted);
            }
            let start = self.measured.as_ref().map(Measured::now);
            self.step(step, &helpers, &mut scratch, &mut clock)?;
            if let (Some(measured), Some(start)) = (&mut self.measured, start) {
                measured.note(self.next, start);
            }
            self.next += 1;
        }
        self.job.finish();
        Ok(Progress::Finished)
    }

    fn step(
        &self,
        step: &Step,
        helpers: &Helpers<'_>,
        scratch: &mut Scratch,
        clock: &mut Clock,
    ) -> Result<()> {
        let ranges = self.job.ranges();
        match step {
            Step::Fill(target, pattern) => transfer::fill(target.range(ranges)?, pattern),
            Step::Update(source, target) => transfer::update(target.range(ranges)?, source)?,
            Step::Copy(source, target) => transfer::copy(source.range(ranges)?, target.range(ranges)?)?,
            Step::Dispatch(dispatch) => return self.dispatch(dispatch, helpers, scratch, clock),
        }
        clock.lap();
        Ok(())
    }

    fn dispatch(
        &self,
        dispatch: &Dispatch,
        helpers: &Helpers<'_>,
        scratch: &mut Scratch,
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.job.program();
        let counts = match dispatch.counts {
            Counts::Direct(counts) => counts,
            Counts::Indirect(place) => {
                let mut bytes = [0; 12];
                transfer::download(place.range(self.job.ranges())?, &mut bytes)?;
                [0, 4, 8]
                    .map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
            }
        };
        let total = workgroup_total(counts).ok_or_else(|| {
            let what = program.describe(dispatch);
            status!(OutOfRange, "{counts:?} workgroups are more than 64 bits can count; {what}")
        })?;
        if total == 0 {
            return Ok(());
        }
        let pace = program.executables[dispatch.executable as usize].pace(dispatch.function);
        let mine = match helpers.for_dispatch(program, dispatch, total, pace) {
            None => {
                self.job.run_alone(dispatch, counts, total, scratch)?;
                total
            }
            Some(sharing) => self.job.run_shared(self.next, dispatch, counts, total, sharing, scratch)?,
        };
        if let Some(time) = clock.lap().filter(|_| mine > 0) {
            pace.note(time, mine);
        }
        Ok(())
    }
}

impl Drop for Execution {
    /// Also a program that failed must let its helpers go.
    fn drop(&mut self) {
        self.job.finish();
    }
}

/// The time of the last step's end: one look at the system's clock serves the pace of one dispatch, the deadline, and
/// the beginning of the next.
struct Clock(Option<Instant>);

impl Clock {
    /// A clock, or none where nobody asks for the time.
    fn new(wanted: bool) -> Self {
        Clock(wanted.then(Instant::now))
    }

    /// Time since the last step's end.
    fn lap(&mut self) -> Option<Duration> {
        let last = self.0.as_mut()?;
        let now = Instant::now();
        let time = now.saturating_duration_since(*last);
        *last = now;
        Some(time)
    }

    fn is_past(&self, deadline: Deadline) -> bool {
        match (deadline, self.0) {
            (Deadline::Never, _) => false,
            (Deadline::Now, _) => true,
            (Deadline::At(end), now) => now.is_some_and(|now| now >= end),
        }
    }
}

/// Threads that may help with a job.
struct Helpers<'a> {
    pool: Option<&'a Pool>,
    job: &'a Arc<Job>,
    called: Cell<bool>,
}

impl<'a> Helpers<'a> {
    /// Calls threads at once where the whole program is worth it: waking them takes a while. A program that was not
    /// timed yet calls them when it needs them.
    fn new(pool: Option<&'a Pool>, job: &'a Arc<Job>) -> Self {
        let mut helpers = Helpers { pool: None, job, called: Cell::new(false) };
        let Some(pool) = pool.filter(|pool| pool.helpers() > 0) else { return helpers };
        match job.program().shareable_time(WORTH_SHARING) {
            Some(time) if time < WORTH_CALLING => {}
            Some(_) => {
                helpers.pool = Some(pool);
                helpers.call(pool, pool.helpers());
            }
            None => helpers.pool = Some(pool),
        }
        helpers
    }

    fn call(&self, pool: &Pool, count: usize) {
        self.called.set(true);
        pool.recruit(self.job, count);
    }

    /// Number of threads to share a dispatch among, and how many workgroups each should take at least; `None` for a
    /// dispatch that is not worth it.
    fn for_dispatch(
        &self,
        program: &PreparedCommands,
        dispatch: &Dispatch,
        total: u64,
        pace: &Pace,
    ) -> Option<(u32, u64)> {
        let pool = self.pool?;
        if total < 2 || !program.is_parallel(dispatch) {
            return None;
        }
        let time = pace.estimate(total);
        if time.is_some_and(|time| time < WORTH_SHARING) {
            return None;
        }
        let present = self.job.present();
        let wanted = pool.helpers().min(usize::try_from(total - 1).unwrap_or(usize::MAX));
        if present < wanted && time.is_none_or(|time| time > WORTH_WAKING) {
            self.call(pool, wanted - present);
        } else if present == 0 {
            return None;
        }
        let least = time.map_or(1, |time| {
            u64::try_from(u128::from(total) * u128::from(WORTH_TAKING) / u128::from(time.max(1))).unwrap_or(1)
        });
        Some((wanted as u32 + 1, least))
    }
}

impl Drop for Helpers<'_> {
    /// Nobody may join a job that nobody leads.
    fn drop(&mut self) {
        if let Some(pool) = self.pool.filter(|_| self.called.get()) {
            pool.dismiss();
        }
    }
}

#[cfg(test)]
mod tests;
