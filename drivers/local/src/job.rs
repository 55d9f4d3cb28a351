//! What the threads that work on one program share: which dispatch is open, who takes which workgroups, and when all are done.
//!
//! One thread leads: it opens dispatches one after the other. Everybody who takes part, the leader too, takes
//! workgroups from the open one until none are left. The word `claim` holds the turn in its upper half and the number
//! of units taken in its lower half. Turns are odd while the leader changes what is open; whoever takes units does so
//! by comparing the whole word, so nobody takes units of a dispatch with the facts of another.

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    time::{Duration, Instant},
};

use halite_abi::{Result, ResultExt, Status, status};
use parking_lot::Mutex;

use crate::{
    code::{Bindings, Call, Worker},
    memory::Block,
    program::{Dispatch, PreparedCommands, Ranges, Step},
};

/// The turn after the last.
const OVER: u32 = u32::MAX;

/// How often a thread looks at a word before it looks at the clock.
const LOOKS: u32 = 64;

/// How long the leader looks for the end of others' workgroups before it lets other threads run.
const PATIENCE: Duration = Duration::from_micros(5);

/// How long it then yields before it sleeps in between.
const LONG_PATIENCE: Duration = Duration::from_millis(2);

/// What a thread needs to run workgroups; kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    processor: u32,
    bindings: Bindings,
    local_memory: Option<Block>,
}

impl Scratch {
    /// For the thread with this number within the device.
    pub fn new(processor: u32) -> Self {
        Scratch { processor, ..Scratch::default() }
    }

    /// Makes sure that there is this much local memory; `false` where the system has none left.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        if bytes > self.local_memory.as_ref().map_or(0, Block::len) {
            self.local_memory = Block::new(bytes);
        }
        bytes <= self.local_memory.as_ref().map_or(0, Block::len)
    }
}

/// A program on its way, as all who work on it see it.
#[derive(Debug)]
pub(crate) struct Job {
    program: Arc<PreparedCommands>,
    ranges: Ranges,
    claim: AtomicU64,
    open: Open,
    /// Units of the open dispatch that are done.
    done: AtomicU64,
    /// Helpers that are here now.
    present: AtomicUsize,
    failed: AtomicBool,
    failure: Mutex<Option<Status>>,
}

/// Facts of the open dispatch. They change only while the turn is odd.
#[derive(Debug, Default)]
struct Open {
    step: AtomicUsize,
    counts: [AtomicU32; 3],
    total: AtomicU64,
    /// Workgroups in a unit: 1 unless there are more than 32 bits of them.
    grain: AtomicU64,
    units: AtomicU32,
    /// Fewest units that are worth taking at a time.
    least: AtomicU32,
    /// Threads that share the dispatch.
    sharers: AtomicU32,
}

/// Units that a thread has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taken {
    units: u64,
    workgroups: Range<u64>,
}

impl Job {
    /// A job in which nothing is open.
    pub fn new(program: Arc<PreparedCommands>, ranges: Ranges) -> Self {
        Job {
            program,
            ranges,
            claim: AtomicU64::new(word(1, 0)),
            open: Open::default(),
            done: AtomicU64::new(0),
            present: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// What runs.
    pub fn program(&self) -> &Arc<PreparedCommands> {
        &self.program
    }

    /// Memory of the program's buffers.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Number of helpers that are here now.
    pub fn present(&self) -> usize {
        self.present.load(Relaxed)
    }

    /// Runs a dispatch on the calling thread alone.
    pub fn run_alone(
        &self,
        dispatch: &Dispatch,
        counts: [u32; 3],
        total: u64,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.bind(dispatch, scratch)?;
        self.call(dispatch, counts, 1, 0..total, scratch)
    }

    /// Opens a dispatch to everybody, works on it, and returns when it is done: how many workgroups the calling
    /// thread ran itself. Only the leader calls this.
    ///
    /// `least` is the number of workgroups that are worth taking at a time.
    pub fn run_shared(
        &self,
        step: usize,
        dispatch: &Dispatch,
        counts: [u32; 3],
        total: u64,
        (sharers, least): (u32, u64),
        scratch: &mut Scratch,
    ) -> Result<u64> {
        self.bind(dispatch, scratch)?;
        let turn = turn_of(self.claim.load(Relaxed)) + 1;
        let grain = total.div_ceil(u64::from(u32::MAX)).max(1);
        let units = total.div_ceil(grain);
        let open = &self.open;
        // Whoever reads one of these also sees that the turn before is over, because that was stored first.
        open.step.store(step, Release);
        open.counts.iter().zip(counts).for_each(|(to, from)| to.store(from, Release));
        open.total.store(total, Release);
        open.grain.store(grain, Release);
        open.units.store(units as u32, Release);
        open.least.store(least.div_ceil(grain).clamp(1, units) as u32, Release);
        open.sharers.store(sharers, Release);
        self.done.store(0, Release);
        self.claim.store(word(turn, 0), Release);
        let mut mine = 0;
        while let Some(taken) = self.take(turn) {
            mine += taken.workgroups.end - taken.workgroups.start;
            self.run_taken(dispatch, counts, sharers, taken, scratch);
        }
        self.wait_for(units);
        // Odd: nobody takes anything until the next dispatch is open.
        self.claim.store(word(turn + 1, 0), Release);
        match self.failed.load(Acquire).then(|| self.failure.lock().take()).flatten() {
            Some(failure) => Err(failure),
            None => Ok(mine),
        }
    }

    /// Sends the helpers home.
    pub fn finish(&self) {
        self.claim.store(word(OVER, 0), Release);
    }

    /// Works on what the leader opens, until the job is over or nothing was open for `patience`.
    pub fn help(&self, scratch: &mut Scratch, patience: Duration) {
        if !scratch.reserve(self.program.local_memory) {
            return;
        }
        self.present.fetch_add(1, Relaxed);
        let mut bound = 1;
        while let Some(turn) = self.await_turn(bound, patience) {
            while let Some(taken) = self.take(turn) {
                let counts = [0, 1, 2].map(|i| self.open.counts[i].load(Acquire));
                // Units of this turn are taken, so the leader waits and its facts stay as they are.
                let Some(Step::Dispatch(dispatch)) = self.program.steps.get(self.open.step.load(Acquire))
                else {
                    break;
                };
                if bound != turn {
                    if let Err(failure) = self.bind(dispatch, scratch) {
                        self.fail(failure);
                    }
                    bound = turn;
                }
                self.run_taken(dispatch, counts, self.open.sharers.load(Acquire), taken, scratch);
            }
            bound = turn;
        }
        self.present.fetch_sub(1, Relaxed);
    }

    /// The next turn in which something is open; `None` when there will be none, or not soon.
    fn await_turn(&self, last: u32, patience: Duration) -> Option<u32> {
        let mut until = None;
        loop {
            for _ in 0..LOOKS {
                match turn_of(self.claim.load(Acquire)) {
                    OVER => return None,
                    turn if turn != last && turn.is_multiple_of(2) => return Some(turn),
                    _ => std::hint::spin_loop(),
                }
            }
            let now = Instant::now();
            if now >= *until.get_or_insert(now + patience) {
                return None;
            }
            // On a busy machine the leader itself may be waiting for this core.
            std::thread::yield_now();
        }
    }

    /// Takes units of a turn: many at first, fewer towards the end, so that all finish together.
    fn take(&self, turn: u32) -> Option<Taken> {
        let mut claim = self.claim.load(Acquire);
        loop {
            let first = claim as u32;
            let units = self.open.units.load(Acquire);
            if turn_of(claim) != turn || first >= units {
                return None;
            }
            let left = units - first;
            let share = left / self.open.sharers.load(Acquire).max(1).saturating_mul(2);
            let count = share.max(self.open.least.load(Acquire)).clamp(1, left);
            let (grain, total) = (self.open.grain.load(Acquire), self.open.total.load(Acquire));
            match self.claim.compare_exchange_weak(claim, word(turn, first + count), AcqRel, Acquire) {
                Ok(_) => {
                    let start = u64::from(first) * grain;
                    let end = (start + u64::from(count) * grain).min(total);
                    return Some(Taken { units: count.into(), workgroups: start..end });
                }
                Err(now) => claim = now,
            }
        }
    }

    fn run_taken(
        &self,
        dispatch: &Dispatch,
        counts: [u32; 3],
        sharers: u32,
        taken: Taken,
        scratch: &mut Scratch,
    ) {
        // After a failure the rest is only counted.
        if !self.failed.load(Relaxed)
            && let Err(failure) = self.call(dispatch, counts, sharers, taken.workgroups, scratch)
        {
            self.fail(failure);
        }
        self.done.fetch_add(taken.units, Release);
    }

    fn bind(&self, dispatch: &Dispatch, scratch: &mut Scratch) -> Result<()> {
        self.program
            .bind(&self.ranges, dispatch, &mut scratch.bindings)
            .context(|| self.program.describe(dispatch))
    }

    fn call(
        &self,
        dispatch: &Dispatch,
        counts: [u32; 3],
        concurrency: u32,
        workgroups: Range<u64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let call = Call {
            function: dispatch.function as usize,
            counts,
            concurrency,
            constants: &self.program.constants[dispatch.constants.clone()],
            bindings: &scratch.bindings,
        };
        let local_memory = scratch.local_memory.as_mut().map_or(&mut [][..], Block::bytes_mut);
        let mut worker = Worker { processor: scratch.processor, local_memory };
        let code = self.program.executables[dispatch.executable as usize].code();
        // Everybody counts on the units of this thread: not even a fault of Halite's own may leave them undone.
        let run = AssertUnwindSafe(|| code.run(&call, workgroups, &mut worker));
        let result = catch_unwind(run).unwrap_or_else(|_| Err(status!(Internal, "the code panicked")));
        result.context(|| self.program.describe(dispatch))
    }

    fn fail(&self, failure: Status) {
        self.failure.lock().get_or_insert(failure);
        self.failed.store(true, Release);
    }

    /// Waits until this many units are done. Others have only begun workgroups left, so it rarely takes long.
    fn wait_for(&self, units: u64) {
        let mut start = None;
        loop {
            for _ in 0..LOOKS {
                if self.done.load(Acquire) >= units {
                    return;
                }
                std::hint::spin_loop();
            }
            let waited = start.get_or_insert_with(Instant::now).elapsed();
            if waited > LONG_PATIENCE {
                std::thread::park_timeout(Duration::from_micros(100));
            } else if waited > PATIENCE {
                std::thread::yield_now();
            }
        }
    }
}

fn word(turn: u32, taken: u32) -> u64 {
    u64::from(turn) << 32 | u64::from(taken)
}

fn turn_of(word: u64) -> u32 {
    (word >> 32) as u32
}
