//! The device suite with every buffer on another device than the one that works: what `halite_layers::peer` does must not be
//! seen.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{any::Any, sync::Arc, time::Duration};

use halite_conformance::suites::{Case, Runner, hal};
use halite_hal::*;
use halite_layers::{Layer, Layered, open, peer};
use halite_testing::drivers::{Opener, registry};

/// The Vulkan device at hand, without the pipelines that this user keeps.
const VULKAN: &str = "vulkan?pipeline_cache=off";

/// Works on one device and allocates on another.
#[derive(Debug)]
struct Displaced {
    worker: Arc<dyn Device>,
    memory: Arc<dyn Device>,
}

impl Layer for Displaced {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.worker
    }

    fn memory_stats(&self) -> MemoryStats {
        self.memory.memory_stats()
    }

    fn trim(&self) {
        self.memory.trim();
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.memory.allocate_buffer(params, byte_length)
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        self.memory.queue_alloca(affinity, wait, signal, params, byte_length)
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let device = match op {
            QueueOp::Dealloca { .. } => &self.memory,
            _ => &self.worker,
        };
        device.queue_submit(affinity, wait, signal, op)
    }

    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()> {
        self.memory.queue_flush(affinity)?;
        self.worker.queue_flush(affinity)
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.memory.wait_idle(deadline)?;
        self.worker.wait_idle(deadline)
    }

    fn is_validated(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Cases that look at the owner of a buffer, want foreign ones refused, or want a recording refused that is refused when
/// it is executed.
const OTHERWISE: [&str; 8] = [
    "hal.device.identities_differ",
    "hal.memory.size:",
    "hal.transfer.foreign_buffers_are_refused",
    "hal.slots.bad_tables_are_refused",
    "hal.dispatch.bad_indirect_counts_are_refused",
    "hal.alloca.used_in_order:",
    "hal.shared.what_is_not_there_is_refused:",
    "hal.shared.own_buffers_are_left_alone",
];

fn run(worker: &'static str, memory: &'static str) {
    let registry = registry(&[]);
    let opener: Opener = Arc::new(move || {
        let devices = [open(&registry, worker, &Options::new())?, open(&registry, memory, &Options::new())?];
        let connected = peer::connect(devices.to_vec());
        let (worker, memory) = (connected[0].clone(), connected[1].clone());
        Ok(Layered::new(Displaced { worker, memory }) as Arc<dyn Device>)
    });
    let mut cases: Vec<Case> = hal::cases(1, 10);
    let all = cases.len();
    cases.retain(|case| !OTHERWISE.iter().any(|name| case.name.starts_with(name)));
    assert!(cases.len() > all - 36, "{} of {all} cases are left", cases.len());
    let summary = Runner::new(opener, Duration::from_secs(110)).run(&cases, |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn work_on_a_processor_with_the_memory_of_another() {
    run("local-sync", "local-task");
    run("local-task", "local-sync");
}

#[test]
fn work_on_a_processor_with_the_memory_of_a_gpu_and_the_reverse() {
    if let Err(e) = open(&registry(&[]), VULKAN, &Options::new()) {
        assert!(std::env::var_os("HALITE_TEST_DEVICE").is_none(), "the Vulkan device cannot be opened: {e}");
        eprintln!("SKIPPED: no Vulkan device: {e}");
        return;
    }
    run("local-task", VULKAN);
    run(VULKAN, "local-sync");
}
