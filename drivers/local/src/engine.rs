//! What all objects of a device share: identity, memory, the queue and the threads that work on it.

use std::{fmt, sync::Arc};

use halite_hal::{Deadline, DeviceInfo, Semaphore, SemaphorePoint};
use parking_lot::Mutex;

use crate::{
    job::Scratch,
    memory::Memory,
    pool::Pool,
    profile::Profile,
    queue::{Queue, Until},
    semaphore::LocalSemaphore,
};

/// The shared part of a device. Operations and semaphores hold it, so accepted work finishes also when the device
/// is dropped; threads hold it while they have something to do.
pub(crate) struct Engine {
    /// Identity of the device.
    pub id: u64,
    /// What enumeration says about it.
    pub info: DeviceInfo,
    /// Memory of its buffers.
    pub memory: Arc<Memory>,
    /// Measures commands while a profile is taken.
    pub profile: Arc<Profile>,
    /// Accepted operations.
    pub queue: Queue,
    /// What the thread that drains the queue needs to run workgroups.
    pub scratch: Mutex<Scratch>,
    /// Threads; `None` for a device that works on its callers' threads alone.
    pub pool: Option<Pool>,
}

impl Engine {
    /// This device's own semaphore behind a handle.
    pub fn own_semaphore<'a>(&self, semaphore: &'a dyn Semaphore) -> Option<&'a LocalSemaphore> {
        if semaphore.device_id() != self.id {
            return None;
        }
        semaphore.as_any().downcast_ref()
    }

    /// FAILED_PRECONDITION in a fork of the process that has the threads. A device without threads can go on there.
    pub fn check_process(&self) -> halite_abi::Result<()> {
        self.pool.as_ref().map_or(Ok(()), |pool| pool.opener().check(&self.info))
    }

    /// Makes sure that ready work is done soon: by a thread of the pool, or here where there is none.
    pub fn start(self: &Arc<Self>) {
        match &self.pool {
            Some(pool) if pool.request_drain(self) => {}
            _ => _ = self.drain(&Until::Empty, Deadline::Never),
        }
    }

    /// Raises a semaphore of whatever device to its point.
    pub fn reach(&self, point: &SemaphorePoint) -> halite_abi::Result<()> {
        match self.own_semaphore(point.semaphore.as_ref()) {
            Some(own) => own.advance(point.value),
            None if point.semaphore.query()? >= point.value => Ok(()),
            None => point.semaphore.signal(point.value),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine(device {}, {:?})", self.id, self.queue)
    }
}
