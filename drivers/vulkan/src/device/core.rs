//! What everything made from a device shares: context, allocator, queues, compile pool, and the state of being lost or closed.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use halite_hal::{Deadline, Fence, Result, Semaphore, SemaphorePoint, Status, status};
use parking_lot::Mutex;

use crate::{
    allocator::{Allocation, Allocator, Progress},
    context::DeviceContext,
    pipeline::{CompilePool, Kernels},
    profile::Profiler,
    queue::{Deferred, Pace, Queue},
    recordings::Recordings,
    semaphore::VulkanSemaphore,
    staging::Writes,
};

/// How long closing a device waits for its work.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// The shared heart of a device. Buffers, semaphores, command buffers and executables keep it alive.
pub(crate) struct Core {
    /// The open device.
    pub ctx: Arc<DeviceContext>,
    /// Its queues, in the plan's order.
    pub queues: Vec<Queue>,
    /// What became of its recordings.
    pub recordings: Arc<Recordings>,
    /// Its memory.
    pub allocator: Allocator,
    /// Builds pipelines.
    pub compiler: CompilePool,
    /// Its kernels, which executables share.
    pub kernels: Kernels,
    /// What is known about the time of dispatches.
    pub pace: Arc<Pace>,
    /// Measures commands while a profile is taken.
    pub profiler: Arc<Profiler>,
    /// Copies to device memory that nobody waits for.
    pub writes: Writes,
    /// Stands in for bindings without bytes.
    pub dummy: Mutex<Option<Arc<Allocation>>>,
    ready: Mutex<Ready>,
    /// Semaphores that hold deferred operations or callbacks for payloads that nobody has promised, or held some.
    /// Operations hold what they wait for: closing the device cuts the circle, losing it fails them.
    waited_for: Mutex<Vec<Weak<VulkanSemaphore>>>,
    /// What reports the device's loss.
    pub(super) lost: OnceLock<Status>,
    closed: AtomicBool,
}

/// Deferred operations that can be placed. One thread at a time works the list off, so that a chain of operations
/// that release each other needs no stack.
#[derive(Default)]
struct Ready {
    operations: VecDeque<Deferred>,
    working: bool,
}

impl Core {
    /// The core of an open device.
    pub fn new(ctx: Arc<DeviceContext>) -> Result<Arc<Self>> {
        let progress = Arc::new(Progress::new(ctx.queues.len()));
        let pace = Arc::new(Pace::new(ctx.options.submission_limit, ctx.facts.device_type));
        let queues = ctx.queues.iter().enumerate();
        let queues: Vec<Queue> =
            queues.map(|(i, q)| Queue::new(&ctx, progress.clone(), &pace, i, q)).collect::<Result<_>>()?;
        Ok(Arc::new(Core {
            allocator: Allocator::new(ctx.clone(), progress)?,
            recordings: Arc::default(),
            compiler: CompilePool::new(ctx.options.compile_threads),
            kernels: Kernels::new(ctx.options.kept_kernels),
            pace,
            profiler: Arc::new(Profiler::new(&ctx)),
            writes: Writes::default(),
            dummy: Mutex::default(),
            ready: Mutex::default(),
            waited_for: Mutex::default(),
            lost: OnceLock::new(),
            closed: AtomicBool::new(false),
            queues,
            ctx,
        }))
    }

    /// A semaphore as this driver's own, if this device made it.
    pub fn own_semaphore<'a>(&self, semaphore: &'a dyn Semaphore) -> Option<&'a VulkanSemaphore> {
        if semaphore.device_id() != self.ctx.id {
            return None;
        }
        semaphore.as_any().downcast_ref()
    }

    /// Reaches a point because its work has finished.
    pub fn reach_point(&self, point: &SemaphorePoint) {
        if let Some(own) = self.own_semaphore(point.semaphore.as_ref()) {
            own.completed(point.value);
            return;
        }
        let reached = point.semaphore.query().and_then(|present| {
            if present >= point.value { Ok(()) } else { point.semaphore.signal(point.value) }
        });
        if let Err(e) = reached {
            log::debug!("a semaphore of another device could not be signalled: {e}");
        }
    }

    /// Reaches all points of a fence.
    pub fn reach(&self, fence: &Fence) {
        fence.points().iter().for_each(|p| self.reach_point(p));
    }

    /// Places operations that waited for a promise. Errors fail their signal fences.
    pub fn place_deferred(self: &Arc<Self>, operations: Vec<Deferred>) {
        if operations.is_empty() {
            return;
        }
        {
            let mut ready = self.ready.lock();
            ready.operations.extend(operations);
            if std::mem::replace(&mut ready.working, true) {
                return;
            }
        }
        loop {
            let next = {
                let mut ready = self.ready.lock();
                let next = ready.operations.pop_front();
                ready.working = next.is_some();
                next
            };
            let Some(operation) = next else { return };
            // The fence carries the failure; there is nobody here to return it to.
            _ = self.submit(operation);
        }
    }

    /// Remembers a semaphore that something waits for although nobody has promised it.
    pub fn note_waited_for(&self, semaphore: Weak<VulkanSemaphore>) {
        {
            let mut list = self.waited_for.lock();
            if list.len() == list.capacity() {
                list.retain(|s| s.strong_count() > 0);
            }
            list.push(semaphore.clone());
        }
        // Who comes after the loss was told to all has to be told apart.
        if let (Err(lost), Some(semaphore)) = (self.check_lost(), semaphore.upgrade()) {
            semaphore.fail(lost);
        }
    }

    /// Forgets the semaphores that were remembered; returns those that are alive.
    pub(super) fn take_waited_for(&self) -> Vec<Arc<VulkanSemaphore>> {
        let list = std::mem::take(&mut *self.waited_for.lock());
        list.iter().filter_map(Weak::upgrade).collect()
    }

    /// ABORTED once the device was closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(status!(Aborted, "device '{}' was closed", self.ctx.info.uri()));
        }
        self.check_lost()
    }

    /// Waits until everything accepted so far has finished.
    pub fn wait_idle(self: &Arc<Self>, deadline: Deadline) -> Result<()> {
        self.check_lost()?;
        self.queues.iter().try_for_each(|q| q.drain(self, deadline))
    }

    fn close_limit(&self) -> Duration {
        self.ctx.options.stall_limit.map_or(CLOSE_LIMIT, |limit| limit.min(CLOSE_LIMIT))
    }

    /// Ends all work and all threads. Called once, when the device handle goes; what programs still hold stays
    /// valid, but accepts nothing more.
    pub fn close(self: &Arc<Self>) {
        if self.ctx.is_forked() {
            // Its threads are in the other process, which goes on using what would be given back here.
            std::mem::forget(self.clone());
            return;
        }
        self.closed.store(true, Ordering::Release);
        self.compiler.close();
        if let Err(e) = self.wait_idle(Deadline::after(self.close_limit()))
            && self.check_lost().is_ok()
        {
            log::error!("device '{}' is leaked, because its work does not end: {e}", self.ctx.info.uri());
            std::mem::forget(self.clone());
        }
        self.kernels.close();
        self.queues.iter().for_each(Queue::stop_watching);
        for semaphore in self.take_waited_for() {
            semaphore.give_up_deferred();
        }
        self.ctx.flush_pipeline_cache();
    }
}
