//! The device suite notices faults: a null device with one fault each fails the cases that are about it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use halite_conformance::suites::{Runner, Summary, hal};
use halite_hal::{
    BindingTable, Buffer, BufferParams, BufferSpan, CommandBuffer, CommandList, Deadline, Device,
    Driver as _, Fence, Options, QueueAffinity, QueueOp, Result, Status,
};
use halite_layers::{Layer, Layered, validation::ValidatedDevice};
use halite_null::NullDriver;
use halite_testing::drivers::Opener;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    ShortFills,
    WaitsAreLost,
    SignalsComeEarly,
    SignalsNeverCome,
    FailuresAreSwallowed,
    BuffersLeak,
    LastCommandIsLost,
    FirstTableIsKept,
    ShortageIsInternal,
    FileOffsetsAreLost,
    IdleNeverWaits,
}

#[derive(Debug)]
struct Faulty {
    inner: Arc<dyn Device>,
    fault: Fault,
    /// First binding table of each command buffer.
    tables: Mutex<HashMap<usize, BindingTable>>,
}

impl Faulty {
    /// The operation as the fault makes it.
    fn spoil(&self, op: QueueOp) -> QueueOp {
        match (self.fault, op) {
            (Fault::ShortFills, QueueOp::Fill { target, pattern, pattern_length }) => {
                let length = target.length.saturating_sub(pattern_length.into());
                QueueOp::Fill { target: BufferSpan { length, ..target }, pattern, pattern_length }
            }
            (Fault::FileOffsetsAreLost, QueueOp::Read { source, target, .. }) => {
                QueueOp::Read { source, source_offset: 0, target }
            }
            (Fault::FirstTableIsKept, QueueOp::Execute { command_buffer, bindings }) => {
                let key = Arc::as_ptr(&command_buffer).cast::<()>().addr();
                let bindings = self.tables.lock().unwrap().entry(key).or_insert(bindings).clone();
                QueueOp::Execute { command_buffer, bindings }
            }
            (_, op) => op,
        }
    }
}

impl Layer for Faulty {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.inner
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        let made = self.inner.allocate_buffer(params, byte_length);
        match self.fault {
            Fault::BuffersLeak => made.inspect(|buffer| std::mem::forget(buffer.clone())),
            Fault::ShortageIsInternal => {
                made.map_err(|e| Status::new(halite_hal::Code::Internal, e.message().to_owned()))
            }
            _ => made,
        }
    }

    fn create_command_buffer(&self, mut list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        if self.fault == Fault::LastCommandIsLost {
            list.commands.pop();
        }
        self.inner.create_command_buffer(list)
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let (op, none) = (self.spoil(op), Fence::default());
        match self.fault {
            Fault::WaitsAreLost => self.inner.queue_submit(affinity, &none, signal, op),
            Fault::SignalsNeverCome => self.inner.queue_submit(affinity, wait, &none, op),
            Fault::SignalsComeEarly => {
                signal.signal()?;
                self.inner.queue_submit(affinity, wait, &none, op)
            }
            Fault::FailuresAreSwallowed => {
                let (inner, signal) = (self.inner.clone(), signal.clone());
                let run = move |_| _ = inner.queue_submit(affinity, &Fence::default(), &signal, op);
                wait.on_reached(Box::new(run));
                Ok(())
            }
            _ => self.inner.queue_submit(affinity, wait, signal, op),
        }
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        if self.fault == Fault::IdleNeverWaits {
            return Err(Status::new(halite_hal::Code::DeadlineExceeded, "at once"));
        }
        self.inner.wait_idle(deadline)
    }
}

/// Runs the cases whose names contain `filter` on a device with a fault.
fn run(fault: Fault, filter: &str) -> Summary {
    let opener: Opener = Arc::new(move || {
        let inner = NullDriver.open("", &Options::new())?;
        Ok(ValidatedDevice::wrap(Layered::new(Faulty { inner, fault, tables: Mutex::default() })))
    });
    let mut cases = hal::cases(1, 6);
    cases.retain(|case| case.name.contains(filter));
    assert!(!cases.is_empty(), "no case has '{filter}' in its name");
    // With a fault, waits for what never comes end here, not at their own deadline. Without one nothing waits in vain, and a busy
    // machine may take its time.
    let limit = if fault == Fault::None { 110 } else { 5 };
    Runner::new(opener, Duration::from_secs(limit)).run(&cases, |_| ()).unwrap()
}

/// The fault makes every one of these fail, and none of them fails without it.
fn noticed(fault: Fault, filters: &[&str]) {
    for filter in filters {
        assert_eq!(run(Fault::None, filter).failures().count(), 0, "{filter} without a fault");
        assert_ne!(run(fault, filter).failures().count(), 0, "{filter} with {fault:?}");
    }
}

#[test]
fn wrong_bytes() {
    noticed(Fault::ShortFills, &["transfer.fill", "memory.size", "memory.type", "stress.graph"]);
    noticed(Fault::LastCommandIsLost, &["commands.copy", "commands.update", "slots.", "stress.graph"]);
    noticed(Fault::FirstTableIsKept, &["slots.reused_with_other_buffers", "slots.reused_while_in_flight"]);
    noticed(Fault::FileOffsetsAreLost, &["file.read:", "file.read_big", "stress.graph"]);
}

#[test]
fn wrong_order() {
    noticed(
        Fault::WaitsAreLost,
        &["queue.work_waits", "queue.waits_submitted", "file.in_queue", "stress.graph"],
    );
    noticed(Fault::SignalsComeEarly, &["queue.work_waits_for_its_fence", "queue.wait_times_out"]);
    noticed(Fault::SignalsNeverCome, &["queue.work_waits_for_its_fence"]);
}

#[test]
fn wrong_errors_and_accounts() {
    noticed(
        Fault::FailuresAreSwallowed,
        &["queue.failures_travel", "queue.failure_of_one", "alloca.failed_wait"],
    );
    noticed(Fault::ShortageIsInternal, &["memory.exhaustion"]);
    noticed(Fault::BuffersLeak, &["memory.account_returns_to_zero"]);
    noticed(Fault::IdleNeverWaits, &["device.idle_after_work", "device.idle_at_once"]);
}
