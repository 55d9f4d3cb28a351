//! The loss of a device: the one failure that everything reports from then on, and failing all that waits.

use halite_hal::{Result, Semaphore as _, Status, status};

use crate::{
    device::Core,
    fault,
    queue::{Queue, Unfinished},
};

impl Core {
    /// The failure that ended the device, if it was lost. FAILED_PRECONDITION in a fork of the process that opened it.
    pub fn check_lost(&self) -> Result<()> {
        self.ctx.check_process()?;
        if let Some(status) = self.lost.get() {
            return Err(status.clone());
        }
        // Calls that only know the device's context leave word there.
        self.ctx.reported_loss().map_or(Ok(()), |report| Err(self.lose(report)))
    }

    /// Notes that the device is lost and fails everything that waits: batches in flight, operations that wait for
    /// others, callbacks. Returns the first such failure with what it reported. No queue may be locked.
    pub fn lose(&self, status: Status) -> Status {
        let mut first = false;
        let failure = self.lost.get_or_init(|| {
            first = true;
            self.tell(&status)
        });
        if first {
            // Whoever waits gets the failure; here is only the fact.
            let (name, uri) = (&self.ctx.info.name, self.ctx.info.uri());
            log::error!("device '{name}' ({uri}) is lost; what waits for it fails and says why");
            log::info!("{failure}");
            for (key, value) in failure.details().filter(|(key, _)| key.starts_with("vk.")) {
                log::info!("{key}: {value}");
            }
            self.queues.iter().for_each(|queue| queue.abandon(failure));
            // Nobody promised what these stand for, and nobody can any more.
            for semaphore in self.take_waited_for() {
                semaphore.fail(failure.clone());
            }
        }
        failure.clone()
    }

    /// The status of the loss, with what was unfinished and what the driver says about it.
    fn tell(&self, status: &Status) -> Status {
        let unfinished: Vec<Unfinished> = self.queues.iter().map(Queue::unfinished).collect();
        let summaries: Vec<&str> =
            unfinished.iter().map(|s| s.summary.as_str()).filter(|s| !s.is_empty()).collect();
        let mut message = status.message().to_owned();
        if !summaries.is_empty() {
            message.push_str("; ");
            message.push_str(&summaries.join("; "));
        }
        let fault = fault::describe(&self.ctx);
        if let Some((_, description)) = fault.first() {
            message.push_str("; the driver says: ");
            message.push_str(description);
        }
        let mut told = Status::new(status.code(), message);
        for (key, value) in status.details() {
            told = told.with_detail(key.to_owned(), value);
        }
        for (index, batch) in unfinished.into_iter().flat_map(|s| s.batches).enumerate() {
            told = told.with_detail(format!("vk.unfinished.{index}"), batch);
        }
        for (key, value) in fault {
            told = told.with_detail(key, value);
        }
        status.annotations().iter().fold(told, |told, note| told.annotate(note.clone()))
    }

    /// The failure of a wait that ended because a queue finished nothing for as long as the option `stall_limit` allows.
    pub fn stalled(&self, queue: usize, limit: std::time::Duration) -> Status {
        status!(
            DeadlineExceeded,
            "queue {queue} of device '{}' ({}) has finished nothing for {limit:?}: {}; a kernel may be endless; the option \
             stall_limit=<seconds>|off changes how long is waited",
            self.ctx.info.name,
            self.ctx.info.uri(),
            self.queues[queue].busy_with()
        )
    }
}
