//! Compiling ahead: a thread compiles the version for the steps behind a decoder's prompt while the prompt's is compiled and runs, and
//! where sizes grow step by step the version for the next range before a call needs it.
//!
//! The thread only computes. It holds the model and no device, so a process may end while it works; what it made is loaded by the
//! next call, while the device works for that.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};

use halite_hal::sync::{Condvar, Mutex};

use crate::{CancelToken, Result, kept::Kept, options::Limits};

/// How often a call that waits for the thread looks at its own limits.
const LOOK: Duration = Duration::from_millis(20);

/// The stack of the thread: as large as that of most programs' first thread.
const STACK: usize = 8 << 20;

/// What was compiled and is not needed yet: most of it, of all functions of a session.
const MOST_READY: usize = 4;

/// The shapes of a call's inputs.
pub(super) type Shapes = Vec<Vec<u64>>;

/// How the sizes of a function's inputs change from call to call.
#[derive(Default)]
struct Steps {
    last: Shapes,
    step: Option<Shapes>,
    /// For so many steps more there is nothing to look for.
    rest: u64,
}

impl Steps {
    /// Notes a call's sizes. Gives the step, if it was the same twice and makes something larger and nothing smaller.
    fn note(&mut self, shapes: &[Vec<u64>]) -> Option<Shapes> {
        let step = difference(&self.last, shapes);
        self.last = shapes.to_vec();
        let before = std::mem::replace(&mut self.step, step);
        if before != self.step {
            self.rest = 0;
            return None;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        self.step.clone()
    }
}

/// What sizes grew by; none where one shrank, or nothing changed.
fn difference(from: &[Vec<u64>], to: &[Vec<u64>]) -> Option<Shapes> {
    if from.len() != to.len() || from == to {
        return None;
    }
    let one = |(from, to): (&Vec<u64>, &Vec<u64>)| {
        let sizes = || from.iter().zip(to).map(|(from, to)| to.checked_sub(*from)).collect();
        if from.len() == to.len() { sizes() } else { None }
    };
    from.iter().zip(to).map(one).collect()
}

/// Sizes after so many steps more.
pub(super) fn after(shapes: &[Vec<u64>], step: &[Vec<u64>], count: u64) -> Shapes {
    let size = |(size, step): (&u64, &u64)| size.saturating_add(step.saturating_mul(count));
    shapes.iter().zip(step).map(|(sizes, steps)| sizes.iter().zip(steps).map(size).collect()).collect()
}

#[derive(Default)]
struct State {
    steps: HashMap<usize, Steps>,
    /// The function and the sizes of what is compiled.
    working: Option<(usize, Shapes)>,
    /// What nobody needed yet, the oldest first.
    ready: Vec<(usize, Kept)>,
    /// Functions and sizes of what can be loaded without compiling it: what is ready, and what earlier processes kept.
    loadable: Vec<(usize, Shapes)>,
    /// Sizes for which there is nothing to compile ahead.
    without: HashSet<(usize, Shapes)>,
}

impl State {
    fn note_loadable(&mut self, place: usize, shapes: Shapes) {
        if self.loadable.len() == MOST_READY {
            self.loadable.remove(0);
        }
        self.loadable.push((place, shapes));
    }

    fn find(&self, place: usize, shapes: &[Vec<u64>]) -> Option<usize> {
        let has = |kept: &Kept| {
            kept.coverage.as_ref().is_some_and(|coverage| coverage.has(shapes.iter().map(Vec::as_slice)))
        };
        self.ready.iter().position(|(own, kept)| *own == place && has(kept))
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

/// The work of one thread: when it ends, also by a panic, nobody waits for it.
struct Working(Arc<Shared>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.state.lock().working = None;
        self.0.done.notify_all();
    }
}

/// What is compiled ahead for a session. When it is dropped it stops the thread and waits for it.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    stop: CancelToken,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether it works; unless that was said, for functions with caches that grow.
    is_on: Option<bool>,
    /// The process that the thread is in: in a fork of it there is none to wait for.
    process: u32,
}

impl Ahead {
    pub fn new(is_on: Option<bool>) -> Ahead {
        Ahead {
            shared: Arc::default(),
            stop: CancelToken::new(),
            thread: Mutex::default(),
            is_on,
            process: std::process::id(),
        }
    }

    /// Whether it works for a function, which may have caches that grow. A thread that takes a call's only processor helps nobody.
    pub fn is_for(&self, has_caches: bool) -> bool {
        let has_room = || std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        self.is_on.unwrap_or_else(|| has_caches && has_room())
    }

    /// Notes a call of a function whose sizes share versions. Gives the step by which sizes grow, if there may be something to compile.
    pub fn step(&self, place: usize, shapes: &[Vec<u64>]) -> Option<Shapes> {
        let mut state = self.shared.state.lock();
        let is_free = state.working.is_none();
        state.steps.entry(place).or_default().note(shapes).filter(|_| is_free)
    }

    /// The sizes of the call behind the last one of a function, which had these, if it grew by a step and the next does, too.
    pub fn next(&self, place: usize, shapes: &[Vec<u64>]) -> Option<Shapes> {
        let state = self.shared.state.lock();
        let steps = state.steps.get(&place).filter(|steps| steps.last == shapes)?;
        steps.step.as_ref().map(|step| after(shapes, step, 1))
    }

    /// Whether nothing is compiled for sizes, nor looked for in vain.
    pub fn lacks(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        let state = self.shared.state.lock();
        state.working.is_none()
            && state.find(place, shapes).is_none()
            && !state.without.contains(&(place, shapes.to_vec()))
    }

    /// The step from the last call of a function to one with these sizes, if it is that to the last call.
    pub fn same_step(&self, place: usize, shapes: &[Vec<u64>]) -> Option<Shapes> {
        let state = self.shared.state.lock();
        let steps = state.steps.get(&place)?;
        difference(&steps.last, shapes).filter(|step| steps.step.as_ref() == Some(step))
    }

    /// Notes sizes of a function whose version was kept by an earlier process.
    pub fn note_kept(&self, place: usize, shapes: Shapes) {
        self.shared.state.lock().note_loadable(place, shapes);
    }

    /// Sizes of a function whose version can be loaded without compiling it, each told once.
    pub fn next_loadable(&self, place: usize) -> Option<Shapes> {
        let mut state = self.shared.state.lock();
        let found = state.loadable.iter().position(|(own, _)| *own == place)?;
        Some(state.loadable.remove(found).1)
    }

    /// Looks for nothing in so many calls of a function that go on as before.
    pub fn rest(&self, place: usize, calls: u64) {
        self.shared.state.lock().steps.entry(place).or_default().rest = calls;
    }

    /// Whether something is compiled for these sizes.
    pub fn has(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        self.shared.state.lock().find(place, shapes).is_some()
    }

    /// Whether nothing can be compiled ahead for these sizes, as was found.
    pub fn is_without(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        self.shared.state.lock().without.contains(&(place, shapes.to_vec()))
    }

    /// Compiles for sizes on a thread; where the system gives none, the call that needs the version makes it.
    pub fn begin(
        &self,
        place: usize,
        shapes: Shapes,
        work: impl FnOnce(&Limits) -> Result<Option<Kept>> + Send + 'static,
    ) {
        {
            let mut state = self.shared.state.lock();
            if state.working.is_some() {
                return;
            }
            state.working = Some((place, shapes.clone()));
        }
        let working = Working(self.shared.clone());
        let limits = Limits { cancel: Some(self.stop.clone()), ..Limits::default() };
        let run = move || {
            let made = work(&limits);
            let mut state = working.0.state.lock();
            match made {
                Ok(Some(made)) => {
                    if state.ready.len() == MOST_READY {
                        state.ready.remove(0);
                    }
                    state.ready.push((place, made));
                    state.note_loadable(place, shapes);
                }
                // A call with such sizes says what is wrong with them.
                other => {
                    state.without.insert((place, shapes));
                    if let Err(error) = other {
                        log::debug!("compiling ahead: {error}");
                    }
                }
            }
            drop(state);
        };
        let started = Builder::new().name("halite-ahead".to_owned()).stack_size(STACK).spawn(run);
        match started {
            Ok(thread) => *self.thread.lock() = Some(thread),
            Err(error) => log::debug!("no thread to compile ahead: {error}"),
        }
    }

    /// What was compiled for these sizes. Waits for a thread that is about to have it, within the limits of the call.
    pub fn take(&self, place: usize, shapes: &[Vec<u64>], limits: &Limits) -> Result<Option<Kept>> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(found) = state.find(place, shapes) {
                return Ok(Some(state.ready.remove(found).1));
            }
            let is_likely = |(own, first): &(usize, Shapes)| {
                *own == place && (first == shapes || difference(first, shapes).is_some())
            };
            if !state.working.as_ref().is_some_and(is_likely) {
                return Ok(None);
            }
            self.shared.done.wait_for(&mut state, LOOK);
            limits.check("waiting for what is compiled ahead")?;
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.lock().take().filter(|_| self.process == std::process::id()) {
            // Its end is all that counts: a panic was told where it happened.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sizes_that_grow_evenly_have_a_step() {
        let mut steps = Steps::default();
        let mut note = |sizes: &[u64]| steps.note(&[vec![1, 4], sizes.to_vec()]);
        assert_eq!(
            [note(&[1, 5]), note(&[1, 6]), note(&[1, 7])],
            [None, None, Some(vec![vec![0, 0], vec![0, 1]])]
        );
        // Another length, the same one again, and one that is shorter.
        assert_eq!([note(&[1, 9]), note(&[1, 9]), note(&[1, 9]), note(&[1, 8])], [const { None }; 4]);
        assert_eq!(after(&[vec![1, 8]], &[vec![0, 2]], 3), [vec![1, 14]]);
        assert_eq!(difference(&[vec![1]], &[vec![1, 1]]), None);
    }

    #[test]
    fn a_thread_that_makes_nothing_keeps_nobody_waiting() {
        let ahead = Ahead::new(Some(true));
        for failing in [false, true] {
            ahead.begin(0, vec![vec![4]], move |limits| {
                assert!(!failing, "a panic ends the thread, and the wait for it");
                limits.check("nothing").map(|()| None)
            });
            assert!(ahead.take(0, &[vec![5]], &Limits::default()).unwrap().is_none());
        }
        // Work that looks at its limits ends when the session does.
        ahead.begin(0, vec![vec![4]], |limits| {
            while limits.goes_on() {
                std::thread::yield_now();
            }
            Ok(None)
        });
        assert!(ahead.take(0, &[vec![3]], &Limits::default()).unwrap().is_none(), "it is for larger sizes");
        drop(ahead);
    }
}
