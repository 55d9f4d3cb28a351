//! Requests that write at the same time take their steps together.
//!
//! Each request has a thread and its sequence. For a step it hands the sequence in and waits; when all that write have done so, one of the
//! threads takes the step for all. Nobody waits long for one who does not come: such a one takes part in the next step.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use halite::{Generator, Next, RunOptions, Sampler, Sequence, Stop};

/// Who waits for others waits for a part of what a step takes, and within these bounds.
const PART: u32 = 4;
const LEAST_WAIT: Duration = Duration::from_millis(1);
const MOST_WAIT: Duration = Duration::from_millis(50);

/// What became of a sequence's step; nothing where the step broke off, and the sequence is gone.
type Done = Option<(Writer, halite::Result<Next>)>;

/// A sequence, and what chooses its tokens.
pub(super) type Writer = (Sequence, Sampler);

/// Where requests meet.
#[derive(Default)]
pub(super) struct Together {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next request's number.
    next: u64,
    /// Requests that write and are not held up.
    writing: usize,
    /// Those that handed in a sequence.
    waiting: Vec<(u64, Writer)>,
    /// What a step gave.
    done: HashMap<u64, Done>,
    /// Whether one of the threads takes a step.
    stepping: bool,
    /// How long the last step took.
    took: Duration,
    /// Steps of several requests so far, and their tokens.
    shared: (u64, u64),
}

/// A request that writes, until this is dropped.
pub(super) struct Seat<'a> {
    together: &'a Together,
    number: u64,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.together.lock().writing -= 1;
        // Others may be all there now.
        self.together.changed.notify_all();
    }
}

impl Together {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on others wait for this request.
    pub fn join(&self) -> Seat<'_> {
        let mut state = self.lock();
        state.writing += 1;
        state.next += 1;
        Seat { together: self, number: state.next }
    }

    /// Steps of several requests so far, and their tokens.
    pub fn shared(&self) -> (u64, u64) {
        self.lock().shared
    }

    /// Whether others write, too.
    pub fn has_others(&self) -> bool {
        self.lock().writing > 1
    }
}

impl Seat<'_> {
    /// Does something that may take long, for which others do not wait.
    pub fn away<T>(&self, work: impl FnOnce() -> T) -> T {
        self.together.lock().writing -= 1;
        self.together.changed.notify_all();
        let made = work();
        self.together.lock().writing += 1;
        made
    }

    /// The next token of a sequence, which is added to it in a step with others.
    pub fn step(&self, generator: &Generator, writer: Writer) -> Done {
        let together = self.together;
        let mut state = together.lock();
        state.waiting.push((self.number, writer));
        together.changed.notify_all();
        let wait = (state.took / PART).clamp(LEAST_WAIT, MOST_WAIT);
        let mut until = None;
        loop {
            if let Some(done) = state.done.remove(&self.number) {
                return done;
            }
            let now = Instant::now();
            if state.stepping {
                // Time counts from when a step could begin.
                until = None;
                state = together.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = until.get_or_insert(now + wait).saturating_duration_since(now);
            if left.is_zero() || state.waiting.len() >= state.writing {
                state = together.lead(state, generator);
                continue;
            }
            state = together.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Together {
    /// Takes a step for all that wait.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>, generator: &Generator) -> MutexGuard<'a, State> {
        let all = std::mem::take(&mut state.waiting);
        state.stepping = true;
        drop(state);
        let mut led = Led {
            together: self,
            numbers: all.iter().map(|(number, _)| *number).collect(),
            done: Vec::new(),
        };
        let began = Instant::now();
        let writers = all.into_iter().map(|(_, writer)| writer).collect();
        led.done = step(generator, writers);
        let (took, count) = (began.elapsed(), led.done.len() as u64);
        drop(led);
        let mut state = self.lock();
        state.took = took;
        if count > 1 {
            state.shared = (state.shared.0 + 1, state.shared.1 + count);
        }
        state
    }
}

/// A step that is under way: when this is dropped, also by a panic, each request has what became of it.
struct Led<'a> {
    together: &'a Together,
    numbers: Vec<u64>,
    done: Vec<Done>,
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        let mut state = self.together.lock();
        let mut done = std::mem::take(&mut self.done).into_iter();
        for number in self.numbers.drain(..) {
            state.done.insert(number, done.next().flatten());
        }
        state.stepping = false;
        drop(state);
        self.together.changed.notify_all();
    }
}

/// A step of all of these. Where that fails, each takes it alone, so that none fails by another's fault.
fn step(generator: &Generator, mut writers: Vec<Writer>) -> Vec<Done> {
    let options = RunOptions::new();
    let before: Vec<usize> = writers.iter().map(|(sequence, _)| sequence.tokens().len()).collect();
    let mut members: Vec<_> = writers.iter_mut().map(|(sequence, sampler)| (sequence, sampler)).collect();
    let made = generator.step(&mut members, &options);
    drop(members);
    if let Ok(next) = made {
        return writers.into_iter().zip(next).map(|(writer, next)| Some((writer, Ok(next)))).collect();
    }
    let one = |((mut sequence, mut sampler), before): (Writer, usize)| {
        let next = match sequence.tokens().get(before) {
            // Its part was done before the step failed.
            Some(token) => Ok(Next::Token(*token)),
            None => alone(generator, &mut sequence, &mut sampler, &options),
        };
        Some(((sequence, sampler), next))
    };
    writers.into_iter().zip(before).map(one).collect()
}

fn alone(
    generator: &Generator,
    sequence: &mut Sequence,
    sampler: &mut Sampler,
    options: &RunOptions,
) -> halite::Result<Next> {
    let next = generator.step(&mut [(sequence, sampler)], options)?;
    Ok(next.first().copied().unwrap_or(Next::Stop(Stop::Caller)))
}
