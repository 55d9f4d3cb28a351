//! Short calls, which the main thread makes itself.
//!
//! A call that another thread makes while this one looks for signals (`work.rs`) costs two changes of threads, 10 µs and on a busy machine
//! 50. So a call that was short the last time is begun here. Only a call without state is: it gets little time to begin, and one that
//! needs more (sizes whose version was let go of, loops, a session that others use) is ended and made once more by the other thread. What
//! was begun is waited for here, with a look for signals in between.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use halite::{ErrorKind, Function, Inputs, Value};
use pyo3::prelude::*;

use crate::{error::OrRaise, main_thread::is_main_thread, messages, options::Bounds, pending, running};

/// The longest call that is worth it: changing threads is nothing beside longer ones.
const SHORT: Duration = Duration::from_millis(5);
/// How long beginning a call may take: as long Ctrl-C is not seen.
const BEGIN: Duration = Duration::from_millis(20);

/// Whether the last call of a function was short, and what its inputs were.
#[derive(Default)]
pub struct Pace {
    /// A digest of their names, types and sizes; 0 where it was long.
    short: AtomicU64,
}

impl Pace {
    /// Makes a call that may be short: by `direct` where the last one with such inputs was and nobody watches it, else by `other`, and also
    /// where `direct` says that it takes too long.
    pub fn call<T>(
        &self,
        py: Python<'_>,
        (function, inputs): (&Function, Inputs),
        bounds: Bounds,
        direct: impl FnOnce(Python<'_>, &Function, &Inputs, &Bounds) -> PyResult<Option<T>>,
        other: impl FnOnce(Python<'_>, Inputs, Bounds) -> PyResult<T>,
    ) -> PyResult<T> {
        if !function.info().is_stateless() || bounds.watcher.is_watching() || !is_main_thread(py)? {
            return other(py, inputs, bounds);
        }
        let (like, begin) = (digest(&inputs), Instant::now());
        let made = match self.short.load(Ordering::Relaxed) == like {
            true => direct(py, function, &inputs, &bounds)?,
            false => None,
        };
        let made = match made {
            Some(made) => made,
            None => other(py, inputs, bounds)?,
        };
        self.short.store(if begin.elapsed() < SHORT { like } else { 0 }, Ordering::Relaxed);
        Ok(made)
    }
}

/// Names, types and sizes of inputs, as a number that is not 0.
fn digest(inputs: &Inputs) -> u64 {
    fn add(value: &Value, hasher: &mut DefaultHasher) {
        value.kind().hash(hasher);
        match value {
            Value::Tensor(tensor) => (tensor.element_type(), tensor.shape()).hash(hasher),
            Value::List(values) => values.iter().for_each(|value| add(value, hasher)),
            _ => {}
        }
    }
    let mut hasher = DefaultHasher::new();
    for (name, value) in inputs.iter() {
        name.hash(&mut hasher);
        add(value, &mut hasher);
    }
    hasher.finish() | 1
}

/// Starts a call on this thread; `None` where that takes too long.
fn begin(function: &Function, inputs: &Inputs, bounds: &Bounds) -> halite::Result<Option<halite::Pending>> {
    match function.start_with(inputs.clone(), &bounds.options.clone().timeout(BEGIN)) {
        Err(error) if error.kind() == ErrorKind::DeadlineExceeded && !bounds.is_over() => Ok(None),
        other => other.map(Some),
    }
}

/// Runs a function; `None` where it takes too long to begin.
pub fn run(
    py: Python<'_>,
    function: &Function,
    inputs: &Inputs,
    bounds: &Bounds,
) -> PyResult<Option<halite::Outputs>> {
    let _call = running::begin(py, Some(&bounds.token), true)?;
    let look = |call: &halite::Pending| {
        pending::look(call, &bounds.options, bounds.deadline).inspect_err(|_| call.abandon())
    };
    let begun = py.detach(|| {
        let Some(call) = begin(function, inputs, bounds)? else { return Ok(None) };
        look(&call).map(|outputs| Some((call, outputs)))
    });
    messages::deliver(py);
    let Some((call, mut outputs)) = begun.or_raise(py)? else { return Ok(None) };
    while outputs.is_none() {
        if let Err(raised) = py.check_signals() {
            bounds.token.cancel();
            call.abandon();
            return Err(raised);
        }
        outputs = py.detach(|| look(&call)).or_raise(py)?;
        messages::deliver(py);
    }
    Ok(outputs)
}

/// Starts a function; `None` where that takes too long.
pub fn start(
    py: Python<'_>,
    function: &Function,
    inputs: &Inputs,
    bounds: &Bounds,
) -> PyResult<Option<halite::Pending>> {
    let _call = running::begin(py, Some(&bounds.token), true)?;
    let begun = py.detach(|| begin(function, inputs, bounds));
    messages::deliver(py);
    begun.or_raise(py)
}
