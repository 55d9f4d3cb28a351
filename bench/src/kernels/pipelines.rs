//! Code that is compiled before anything is measured: that of all candidates at the same time, and each once for all shapes.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use halite_hal::{Deadline, Device, Executable, Result};
use halite_shaders::{Module, Plan, Step};
use halite_testing::library;

/// How long one pipeline may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The code of a plan, a piece for each step.
pub(super) type Code = Vec<Arc<dyn Executable>>;

/// All that a step's code is made from.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    words: Words,
    constants: Vec<u32>,
    bindings: usize,
    push: usize,
    subgroup_size: u32,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Words {
    Build(&'static str),
    Emitted(Arc<[u32]>),
}

impl Key {
    fn of(step: &Step) -> Key {
        let words = match &step.module {
            Module::Compiled { name, .. } => Words::Build(name),
            Module::Emitted(words) => Words::Emitted(words.clone()),
        };
        Key {
            words,
            constants: step.constants.clone(),
            bindings: step.bindings.len(),
            push: step.push.len(),
            subgroup_size: step.subgroup_size,
        }
    }
}

/// The code that was compiled, or why it could not be.
type Known = HashMap<Key, Result<Arc<dyn Executable>>>;

/// Compiles code on several threads. Any thread may use it.
pub(super) struct Pipelines {
    device: Arc<dyn Device>,
    jobs: NonZeroUsize,
    known: Mutex<Known>,
}

impl Pipelines {
    /// Compiles as many at a time as there are jobs.
    pub fn new(device: Arc<dyn Device>, jobs: NonZeroUsize) -> Pipelines {
        Pipelines { device, jobs, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is one insertion.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles what these plans need and what is not there yet; waits until all of it is done.
    pub fn compile<'a>(&self, plans: impl Iterator<Item = &'a Plan>) {
        let mut open: HashMap<Key, &Step> = HashMap::new();
        {
            let known = self.known();
            for step in plans.flat_map(|plan| &plan.steps) {
                let key = Key::of(step);
                if !known.contains_key(&key) {
                    open.entry(key).or_insert(step);
                }
            }
        }
        let open: Vec<(Key, &Step)> = open.into_iter().collect();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..self.jobs.get().min(open.len()) {
                scope.spawn(|| {
                    while let Some((key, step)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let built = self.build(step);
                        self.known().insert(key.clone(), built);
                    }
                });
            }
        });
    }

    fn build(&self, step: &Step) -> Result<Arc<dyn Executable>> {
        let executable = library::compile(self.device.as_ref(), step, "candidate")?;
        executable.wait_built(&[0], Deadline::after(LIMIT))?;
        Ok(executable)
    }

    /// The code of a plan.
    ///
    /// # Errors
    /// A step could not be compiled.
    pub fn code(&self, plan: &Plan) -> Result<Code> {
        let one = |step: &Step| {
            let known = self.known().get(&Key::of(step)).cloned();
            known.unwrap_or_else(|| self.build(step))
        };
        plan.steps.iter().map(one).collect()
    }

    /// How many different pieces were compiled, well or in vain.
    pub fn count(&self) -> usize {
        self.known().len()
    }
}

impl std::fmt::Debug for Pipelines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipelines").field("jobs", &self.jobs).field("count", &self.count()).finish()
    }
}
