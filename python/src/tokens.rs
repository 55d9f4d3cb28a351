//! Tokens and their caches, which `halite.Sequence` and `halite.Stream` share: one call at a time uses them.

use std::{sync::Arc, time::Duration};

use halite::Sequence as Inner;
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;

use crate::{
    error::invalid,
    options::Bounds,
    work::{long, short},
};

/// How long a call waits for another one to let the sequence go: one that Ctrl-C ended does so soon.
const PATIENCE: Duration = Duration::from_secs(1);

/// A sequence of the library, of which clones are the same.
#[derive(Clone)]
pub struct Tokens {
    inner: Arc<Mutex<Inner>>,
    generator: halite::Generator,
}

impl Tokens {
    pub fn new(inner: Inner) -> Tokens {
        let generator = inner.generator().clone();
        Tokens { inner: Arc::new(Mutex::new(inner)), generator }
    }

    /// The generator that they belong to.
    pub fn generator(&self) -> &halite::Generator {
        &self.generator
    }

    /// Whether these are the same tokens.
    pub fn is_same(&self, other: &Tokens) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Where they are, by which those who want several take them in the same order.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// The sequence, unless another call uses it for long.
    pub fn lock(&self) -> Option<MutexGuard<'_, Inner>> {
        self.inner.try_lock_for(PATIENCE)
    }

    /// Does something that ends soon with the sequence, which nobody else may be using.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> halite::Result<T> + Send,
    ) -> PyResult<T> {
        let done = short(py, || {
            let Some(mut inner) = self.inner.try_lock_for(PATIENCE) else { return Ok(None) };
            work(&mut inner).map(Some)
        });
        done?.ok_or_else(|| in_use(py))
    }

    /// The same with what may take long.
    pub fn with_long<T: Send + 'static>(
        &self,
        py: Python<'_>,
        bounds: &Bounds,
        work: impl FnOnce(&mut Inner, &halite::RunOptions) -> halite::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (inner, options) = (self.inner.clone(), bounds.options.clone());
        let done = long(py, &bounds.token, move || {
            let Some(mut inner) = inner.try_lock_for(PATIENCE) else { return Ok(None) };
            work(&mut inner, &options).map(Some)
        });
        done?.ok_or_else(|| in_use(py))
    }

    /// Makes the sequence these tokens.
    pub fn begin(&self, py: Python<'_>, tokens: Vec<u32>, bounds: &Bounds) -> PyResult<usize> {
        self.with_long(py, bounds, move |inner, options| inner.prompt(&tokens, options))
    }
}

/// The error that somebody else uses a sequence.
pub fn in_use(py: Python<'_>) -> PyErr {
    invalid(
        py,
        "the sequence is used by another call; each call needs one of its own, such as a fork() of this one",
    )
}
