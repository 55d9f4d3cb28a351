//! Work of one device on objects of another: devices that take each other's buffers and signal each other's semaphores.
//!
//! Programs for several devices allocate a tensor on one of the devices that use it and name it in work of the others.
//! No common way exists by which any two devices reach the same memory, so an operation that names a foreign buffer
//! works on a *mirror*: memory of its own device, filled from the buffer when the operation's wait fence is reached,
//! and written back where the operation changed it before its signal fence is. Bytes that did not change are not
//! written, so two devices may work on disjoint parts of a buffer at the same time.
//!
//! Copies go through the host on a thread of the device. Operations that name only objects of their own device pass
//! through untouched.

mod mirror;
mod recording;
mod worker;

use std::{sync::Arc, time::Duration};

use self::{
    mirror::{Access, Mirrors},
    recording::PeerCommandBuffer,
    worker::Worker,
};
use crate::{
    forward::{Layer, Layered},
    validation,
};
use halite_hal::{
    Buffer, BufferParams, BufferSpan, CommandBuffer, CommandList, Deadline, Device, Fence, QueueAffinity,
    QueueOp, Result, ResultExt, Status, bail, status,
};

/// How long closing a device waits for copies that have begun.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Devices that take each other's buffers and signal each other's semaphores, in the order given. What they are asked
/// otherwise goes to the given ones, which should be validated. A single device is given back as it is.
pub fn connect(devices: Vec<Arc<dyn Device>>) -> Vec<Arc<dyn Device>> {
    let several = devices.windows(2).any(|pair| pair[0].id() != pair[1].id());
    if !several {
        return devices;
    }
    let wrap = |inner| Layered::new(PeerDevice { inner, worker: Worker::default() }) as Arc<dyn Device>;
    devices.into_iter().map(wrap).collect()
}

/// A device that also works on buffers of others.
#[derive(Debug)]
struct PeerDevice {
    inner: Arc<dyn Device>,
    worker: Worker,
}

impl Drop for PeerDevice {
    /// The thread lets go of what it holds first: the device ends on the thread of its owner, whose program may end next.
    fn drop(&mut self) {
        // A copy that hangs keeps its device alive, and nobody waits for it longer.
        _ = self.worker.let_go(CLOSE_LIMIT);
    }
}

/// An operation that waits for its turn, with mirrors instead of foreign buffers.
struct Mirrored {
    device: Arc<dyn Device>,
    worker: Worker,
    affinity: QueueAffinity,
    signal: Promise,
    mirrors: Mirrors,
    op: QueueOp,
}

impl PeerDevice {
    fn is_foreign(&self, span: &BufferSpan) -> bool {
        span.buffer.device_id() != self.inner.id()
    }

    /// Submits something that signals: with `signal` itself where that is all the device's own, else with a fence that
    /// raises it. Nothing is signalled when `submit` fails.
    fn signalling<T>(&self, signal: &Fence, submit: impl FnOnce(&Fence) -> Result<T>) -> Result<T> {
        if signal.points().iter().all(|p| p.semaphore.device_id() == self.inner.id()) {
            return submit(signal);
        }
        let own = Fence::new(self.inner.create_semaphore(0)?, 1);
        let submitted = submit(&own)?;
        let signal = Promise(signal.clone());
        own.on_reached(Box::new(move |result| signal.settle(result)));
        Ok(submitted)
    }

    /// Replaces foreign buffers of an operation by mirrors.
    fn localize(&self, mirrors: &mut Mirrors, op: &mut QueueOp) -> Result<()> {
        match op {
            QueueOp::Barrier
            | QueueOp::Dealloca { .. }
            | QueueOp::Acquire { .. }
            | QueueOp::Release { .. } => Ok(()),
            QueueOp::Fill { target, .. } | QueueOp::Update { target, .. } | QueueOp::Read { target, .. } => {
                self.replace(mirrors, [(target, Access::Write)])
            }
            QueueOp::Write { source, .. } => self.replace(mirrors, [(source, Access::Read)]),
            QueueOp::Copy { source, target } => {
                self.replace(mirrors, [(source, Access::Read), (target, Access::Write)])
            }
            QueueOp::Execute { command_buffer, bindings } => {
                if let Some(recorded) = command_buffer.as_any().downcast_ref::<PeerCommandBuffer>() {
                    let inner = recorded.inner().clone();
                    recorded.extend(bindings);
                    *command_buffer = inner;
                }
                if !bindings.entries.iter().flatten().any(|span| self.is_foreign(span)) {
                    return Ok(());
                }
                let uses = recording::slot_uses(command_buffer.list());
                for (slot, entry) in (0..).zip(&mut bindings.entries) {
                    if entry.as_ref().is_some_and(|span| self.is_foreign(span)) && !uses.contains_key(&slot) {
                        *entry = None;
                    }
                }
                let used = |slot| uses.get(&slot).copied().unwrap_or(Access::Write);
                let spans = (0..).zip(&mut bindings.entries);
                self.replace(mirrors, spans.filter_map(|(slot, entry)| Some((entry.as_mut()?, used(slot)))))
            }
        }
    }

    /// Replaces the foreign ones of some spans: first all are gathered, so that those of one buffer share a mirror.
    fn replace<'a>(
        &self,
        mirrors: &mut Mirrors,
        spans: impl IntoIterator<Item = (&'a mut BufferSpan, Access)>,
    ) -> Result<()> {
        let mut foreign: Vec<_> = spans.into_iter().filter(|(span, _)| self.is_foreign(span)).collect();
        for (span, access) in &foreign {
            mirrors.add(span, *access)?;
        }
        mirrors.allocate(self.inner.as_ref())?;
        foreign.iter_mut().try_for_each(|(span, _)| {
            **span = mirrors.local(span)?;
            Ok(())
        })
    }
}

/// A fence that somebody counts on: it fails when what would settle it is dropped.
#[derive(Debug)]
struct Promise(Fence);

impl Promise {
    /// Signals the fence or fails it.
    fn settle(mut self, result: Result<()>) {
        let fence = std::mem::take(&mut self.0);
        if let Err(status) = result.and_then(|()| fence.signal()) {
            fence.fail(&status);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.0.fail(&status!(Aborted, "the operation never ran: what it waited for was dropped"));
        }
    }
}

/// Failures travel along fences under the code of the first one.
fn waited_in_vain(name: &str, failure: &Status) -> Status {
    Status::new(failure.code(), failure.message().to_owned()).annotate(format!("queue {name} waited for it"))
}

impl Mirrored {
    /// The wait fence is settled: fills the mirrors and hands the operation to the device.
    fn begin(self: Box<Self>, waited: Result<()>) {
        let name = self.op.name();
        let begun = waited
            .map_err(|failure| waited_in_vain(name, &failure))
            .and_then(|()| self.mirrors.fill().context(|| format!("queue {name}")))
            .and_then(|()| {
                let done = Fence::new(self.device.create_semaphore(0)?, 1);
                self.device.queue_submit(self.affinity, &Fence::default(), &done, self.op.clone())?;
                self.device.queue_flush(self.affinity)?;
                Ok(done)
            });
        match begun {
            Ok(done) => {
                let worker = self.worker.clone();
                done.on_reached(Box::new(move |result| {
                    worker.push(Box::new(move || self.finish(result)));
                }));
            }
            Err(status) => self.end(Err(status)),
        }
    }

    /// The device is done: writes back what it changed.
    fn finish(self: Box<Self>, result: Result<()>) {
        let name = self.op.name();
        let result = result.and_then(|()| self.mirrors.write_back().context(|| format!("queue {name}")));
        self.end(result);
    }

    fn end(self: Box<Self>, result: Result<()>) {
        let Mirrored { device, worker, signal, mirrors, op, .. } = *self;
        // Whoever waited may count on the memory being free, and on being the last who holds the device.
        drop((mirrors, op, device));
        signal.settle(result);
        worker.leave();
    }
}

impl Layer for PeerDevice {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.inner
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        recording::create(self.inner.as_ref(), list)
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        self.signalling(signal, |signal| self.inner.queue_alloca(affinity, wait, signal, params, byte_length))
    }

    fn queue_submit(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        mut op: QueueOp,
    ) -> Result<()> {
        let mut mirrors = Mirrors::default();
        let name = op.name();
        self.localize(&mut mirrors, &mut op).context(|| format!("queue {name}"))?;
        if mirrors.is_empty() {
            return self.signalling(signal, |signal| self.inner.queue_submit(affinity, wait, signal, op));
        }
        validation::check_ahead(self.inner.as_ref(), &op).context(|| format!("queue {name}"))?;
        let (device, worker) = (self.inner.clone(), self.worker.clone());
        let mirrored = Box::new(Mirrored {
            device,
            worker: worker.clone(),
            affinity,
            signal: Promise(signal.clone()),
            mirrors,
            op,
        });
        wait.on_reached(Box::new(move |waited| {
            worker.enter();
            worker.push(Box::new(move || mirrored.begin(waited)));
        }));
        Ok(())
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        if !self.worker.wait_idle(deadline) {
            bail!(
                DeadlineExceeded,
                "'{}' is still at work on buffers of other devices",
                self.inner.info().uri()
            );
        }
        self.inner.wait_idle(deadline)
    }
}
