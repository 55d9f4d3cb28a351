//! Owns the device that puts recordings on trial when they are executed. Does not own: the trial.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use halite_hal::{
    BindingTable, Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, Executable,
    ExecutableDesc, Fence, MemoryStats, QueueAffinity, QueueOp, Result, Semaphore,
};
use halite_layers::hazards::HazardCheck;

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
    pub fn new(inner: Arc<dyn Device>, check: HazardCheck) -> Arc<Self> {
        Arc::new(Watched { inner, check, state: Mutex::default() })
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

impl Device for Watched {
    fn id(&self) -> u64 {
        self.inner.id()
    }

    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn queue_count(&self) -> u32 {
        self.inner.queue_count()
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        self.inner.query_i64(category, key)
    }

    fn memory_stats(&self) -> MemoryStats {
        self.inner.memory_stats()
    }

    fn trim(&self) {
        self.inner.trim();
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.inner.allocate_buffer(params, byte_length)
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        self.inner.create_semaphore(initial)
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        self.inner.create_executable(desc)
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        self.inner.create_command_buffer(list)
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        self.inner.queue_alloca(affinity, wait, signal, params, byte_length)
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

    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()> {
        self.inner.queue_flush(affinity)
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.inner.wait_idle(deadline)
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
