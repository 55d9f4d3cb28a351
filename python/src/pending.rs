//! `halite.Pending`: a call that was started.

use std::time::Instant;

use halite::{ErrorKind, RunOptions};
use pyo3::prelude::*;

use crate::{error::OrRaise, messages, options::deadline, outputs::Outputs, running, work::LOOK};

/// A call whose work may still be going on, from `start()`. Dropping it gives up the results; the work runs to its end.
#[pyclass(frozen, module = "halite")]
pub struct Pending(pub halite::Pending);

/// Waits for a call for a moment: nothing when the results are not there by then, and there is time left.
pub fn look(
    call: &halite::Pending,
    options: &RunOptions,
    deadline: Option<Instant>,
) -> halite::Result<Option<halite::Outputs>> {
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    match call.wait_with(&options.clone().timeout(LOOK)) {
        Err(error) if error.kind() == ErrorKind::DeadlineExceeded && !is_over() && !call.is_done() => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

#[pymethods]
impl Pending {
    /// Whether the results are there, or the call has failed: then waiting does not block.
    #[getter]
    fn done(&self) -> bool {
        self.0.is_done()
    }

    /// Waits for the results, no longer than `timeout` seconds. After an error of the kind `deadline_exceeded`, and after Ctrl-C, it
    /// can be waited for again.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Outputs> {
        let deadline = deadline(py, timeout)?;
        let options = deadline.map_or_else(RunOptions::new, |end| RunOptions::new().deadline(end));
        loop {
            let _call = running::within(py)?;
            let looked = py.detach(|| look(&self.0, &options, deadline));
            messages::deliver(py);
            if let Some(outputs) = looked.or_raise(py)? {
                return Ok(Outputs::new(outputs));
            }
            py.check_signals()?;
        }
    }

    fn __repr__(&self) -> String {
        format!("Pending(done={})", if self.0.is_done() { "True" } else { "False" })
    }
}
