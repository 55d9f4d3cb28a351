//! The device that puts recordings on trial when they are executed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use halite_hal::{BindingTable, CommandBuffer, Deadline, Device, Fence, QueueAffinity, QueueOp, Result};
use halite_layers::{Layer, Layered, hazards::HazardCheck};

use super::{Findings, trial::Trial};

/// Executions of one recording that are put on trial; loops execute theirs often.
const TRIALS: usize = 2;
/// How long an execution's wait may take before it is executed without a trial.
const PATIENCE: Duration = Duration::from_secs(5);

/// A device whose executions are put on trial, one after the other. All else is the other device's.
#[derive(Debug)]
pub struct Watched {
    inner: Arc<dyn Device>,
    check: HazardCheck,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    findings: Findings,
    /// Trials of each recording, which is kept so that its address stays its own.
    seen: HashMap<usize, (usize, Arc<dyn CommandBuffer>)>,
}

impl Watched {
    /// Stands before a device. Hazards are looked for with this check.
    pub fn before(inner: Arc<dyn Device>, check: HazardCheck) -> Arc<Layered<Self>> {
        Layered::new(Watched { inner, check, state: Mutex::default() })
    }

    /// What came out since the last call.
    pub fn take(&self) -> Findings {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seen.clear();
        std::mem::take(&mut state.findings)
    }

    fn is_due(&self, command_buffer: &Arc<dyn CommandBuffer>) -> bool {
        let key = Arc::as_ptr(command_buffer).cast::<()>().addr();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (trials, _) = state.seen.entry(key).or_insert_with(|| (0, command_buffer.clone()));
        *trials += 1;
        *trials <= TRIALS
    }

    fn execute(&self, command_buffer: &Arc<dyn CommandBuffer>, bindings: &BindingTable) -> Result<()> {
        let mut findings = Findings::default();
        let outcome = Trial::new(&self.inner, command_buffer.list(), bindings, self.check)
            .and_then(|mut trial| trial.run(&mut findings));
        self.state.lock().unwrap_or_else(PoisonError::into_inner).findings.add(findings);
        outcome
    }
}

impl Layer for Watched {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.inner
    }

    /// Trials execute the lists of recordings: a caller's mistakes have to be found before.
    fn is_validated(&self) -> bool {
        false
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let QueueOp::Execute { command_buffer, bindings } = &op else {
            return self.inner.queue_submit(affinity, wait, signal, op);
        };
        if !self.is_due(command_buffer) {
            return self.inner.queue_submit(affinity, wait, signal, op);
        }
        // What is waited for may itself have been placed only, and has to be started.
        self.inner.queue_flush(affinity)?;
        if wait.wait(Deadline::after(PATIENCE)).is_err() {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).findings.waiting += 1;
            return self.inner.queue_submit(affinity, wait, signal, op);
        }
        self.execute(command_buffer, bindings)?;
        self.inner.queue_submit(affinity, wait, signal, QueueOp::Barrier)
    }
}
