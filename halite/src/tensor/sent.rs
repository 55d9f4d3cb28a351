//! Results that are on their way to the host before somebody reads them: behind the work that makes them, in the same submission. Asking for
//! them later is a submission of its own, and a second wait: some 30 µs on a discrete GPU.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use halite_hal::{Buffer, BufferParams, BufferSpan, Deadline, Fence, MemoryType, QueueAffinity, QueueOp};
use parking_lot::Mutex;

use crate::{Device, Result};

/// Most bytes of a call's results that are sent to the host unasked.
const MOST: u64 = 64 << 20;

/// What callers do with the results of a session: whether those of the next call will be read.
#[derive(Debug, Default)]
pub(crate) struct Habit(AtomicBool);

impl Habit {
    /// Whether any results were read of the last call that somebody is done with.
    pub fn is_reading(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The results of one call, as long as there are some.
pub(crate) struct Given {
    habit: Arc<Habit>,
    sent: bool,
    read: AtomicBool,
}

impl Given {
    /// Of a session with this habit. `sent`: some are on their way to the host.
    pub fn new(habit: &Arc<Habit>, sent: bool) -> Arc<Given> {
        Arc::new(Given { habit: habit.clone(), sent, read: AtomicBool::new(false) })
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if self.sent && !*self.read.get_mut() {
            self.habit.0.store(false, Ordering::Relaxed);
        }
    }
}

/// A result's way to the host.
#[derive(Clone)]
pub(crate) struct Sent {
    call: Arc<Given>,
    copy: Option<Arc<Copy>>,
}

/// A copy in host memory.
pub(crate) struct Copy(Mutex<Place>);

enum Place {
    /// There when the fence is reached.
    UnderWay {
        buffer: Arc<dyn Buffer>,
        fence: Fence,
    },
    There(Bytes),
    Lost,
}

impl Copy {
    fn bytes(&self) -> Option<Bytes> {
        let mut place = self.0.lock();
        if let Place::UnderWay { buffer, fence } = std::mem::replace(&mut *place, Place::Lost) {
            let there = fence.wait(Deadline::Never).and_then(|()| buffer.into_bytes());
            // What did not come is read from the device, which tells why if it cannot be.
            *place = there.map_or(Place::Lost, Place::There);
        }
        match &*place {
            Place::There(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

impl Sent {
    /// Of one result of a call.
    pub fn new(call: &Arc<Given>, copy: Option<Copy>) -> Sent {
        Sent { call: call.clone(), copy: copy.map(Arc::new) }
    }

    /// The first `length` bytes of what was sent, not copied; nothing where nothing was sent, or it did not come. Either way the results of
    /// the next call will be sent.
    pub fn bytes(&self, length: usize) -> Option<Bytes> {
        self.call.read.store(true, Ordering::Relaxed);
        self.call.habit.0.store(true, Ordering::Relaxed);
        let bytes = self.copy.as_ref()?.bytes()?;
        (length <= bytes.len()).then(|| bytes.slice(..length))
    }
}

/// Sends the bytes of results to the host as soon as `ready` is reached, those that are in memory which the host does not see and are few
/// in all. What cannot be sent is read later, as ever.
pub(crate) fn send(spans: &[Option<(BufferSpan, Device)>], ready: &Fence) -> Vec<Option<Copy>> {
    let hidden =
        |span: &BufferSpan| span.length > 0 && !span.buffer.memory_type().contains(MemoryType::HOST_VISIBLE);
    let total =
        spans.iter().flatten().filter(|(span, _)| hidden(span)).map(|(span, _)| span.length).sum::<u64>();
    if total == 0 || total > MOST {
        return spans.iter().map(|_| None).collect();
    }
    let sent = spans.iter().map(|span| {
        let (span, device) = span.as_ref().filter(|(span, _)| hidden(span))?;
        send_one(span, device, ready).ok()
    });
    let sent: Vec<_> = sent.collect();
    for (_, device) in spans.iter().flatten() {
        // A failure is the failure of the work, which is told by whoever waits for it.
        let _ = device.hal().queue_flush(QueueAffinity::ANY);
    }
    sent
}

fn send_one(span: &BufferSpan, device: &Device, ready: &Fence) -> Result<Copy> {
    let buffer = device.hal().allocate_buffer(&BufferParams::READBACK, span.length)?;
    let target = BufferSpan::whole(buffer.clone()).subspan(0, span.length)?;
    let fence = Fence::new(device.hal().create_semaphore(0)?, 1);
    let copy = QueueOp::Copy { source: span.clone(), target };
    device.hal().queue_submit(QueueAffinity::ANY, ready, &fence, copy)?;
    Ok(Copy(Mutex::new(Place::UnderWay { buffer, fence })))
}
