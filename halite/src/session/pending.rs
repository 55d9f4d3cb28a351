//! A call that was started: asking whether it is done, and waiting for its results.

use std::{fmt, sync::Arc, time::Duration};

use halite_hal::QueueAffinity;
use halite_runtime as runtime;
use parking_lot::Mutex;

use super::Session;
use crate::{
    ErrorKind, Outputs, Result, RunOptions, Tensor, Value,
    options::Limits,
    tensor::{self, Copy, Given},
};

/// A call whose work may still be going on, from [`Session::start`] or [`Function::start`](crate::Function::start).
///
/// ```no_run
/// # let session = halite::Session::builder().model("digits.onnx").build()?;
/// # let inputs = halite::Inputs::new();
/// let call = session.start(inputs)?;
/// // Do something else meanwhile.
/// let out = call.wait()?;
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Any thread may ask it and wait for it. Dropping it gives up the results; the work runs to its end.
#[must_use = "the results are in it"]
pub struct Pending {
    call: Arc<runtime::PendingCall>,
    names: Arc<[String]>,
    session: Session,
    /// How many results callers get; the others are what the program keeps by itself.
    given: usize,
    /// Places of results that nobody reads: they stay on the device.
    unread: Vec<usize>,
    /// What is on its way to the host before somebody waits.
    sent: Mutex<Option<Vec<Option<Copy>>>>,
}

impl Pending {
    pub(super) fn new(call: Arc<runtime::PendingCall>, names: Arc<[String]>, session: Session) -> Self {
        let given = names.len();
        Pending { call, names, session, given, unread: Vec::new(), sent: Mutex::default() }
    }

    /// The same call without what the program keeps by itself, of a function that keeps so many results.
    pub(crate) fn without_last(mut self, kept: usize) -> Self {
        self.given = self.names.len().saturating_sub(kept);
        self
    }

    /// The same call, of which nobody reads the results in these places.
    pub(crate) fn unread(mut self, places: impl Iterator<Item = usize>) -> Self {
        self.unread = places.collect();
        self
    }

    /// The same call, whose results are sent to the host right behind its work: before that of later calls. All of it is with the device
    /// then.
    pub(crate) fn sent(self) -> Self {
        *self.sent.lock() = Some(self.send(true));
        for device in self.session.devices() {
            // A failure is the failure of the work, which is told by whoever waits for it.
            let _ = device.hal().queue_flush(QueueAffinity::ANY);
        }
        self
    }

    /// A result as it will be, for calls that begin after this one on the device; `None` where the call is done, or has no such tensor.
    pub(crate) fn coming(&self, place: usize) -> Option<Tensor> {
        let (_, results) = self.call.unready()?;
        match Value::lift(results.into_iter().nth(place)?, self.session.devices()) {
            Ok(Value::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The call itself, for those who take what it leaves.
    pub(crate) fn call(&self) -> Arc<runtime::PendingCall> {
        self.call.clone()
    }

    /// Whether the results are there, or the call has failed: then waiting does not block.
    pub fn is_done(&self) -> bool {
        self.call.is_done()
    }

    /// Waits for the results.
    ///
    /// # Errors
    /// The device or the program failed.
    pub fn wait(self) -> Result<Outputs> {
        self.finish(&self.session.begin(&RunOptions::new()))
    }

    /// Waits for the results with options. A wait that they end leaves the call as it is: wait again, or drop it. Every wait
    /// gives the same results.
    ///
    /// # Errors
    /// As [`Pending::wait`], and when the options end it.
    pub fn wait_with(&self, options: &RunOptions) -> Result<Outputs> {
        self.finish(&self.session.begin(options))
    }

    /// Waits no longer than this: `None` when the results are not there by then.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Outputs>> {
        match self.wait_with(&RunOptions::new().timeout(timeout)) {
            Err(error) if error.kind() == ErrorKind::DeadlineExceeded && !self.is_done() => Ok(None),
            other => other.map(Some),
        }
    }

    /// As [`Pending::finish`], for calls that nobody else waits for: where the limits end it, the rest of its work is left out.
    pub(crate) fn finish_or_stop(&self, limits: &Limits) -> Result<Outputs> {
        self.finish(limits).inspect_err(|error| self.call.abandon(error.status()))
    }

    pub(crate) fn finish(&self, limits: &Limits) -> Result<Outputs> {
        let sent = self.sent.lock().take().unwrap_or_else(|| self.send(false));
        let call = Given::new(self.session.habit(), sent.iter().any(Option::is_some));
        let mut sent = sent.into_iter();
        let results = self.call.wait(&limits.call_options()).map_err(crate::Error::of_runtime)?;
        let lift = |value| {
            let copy = sent.next().flatten();
            Ok(match Value::lift(value, self.session.devices())? {
                Value::Tensor(tensor) => Value::Tensor(tensor.with_sent(&call, copy)),
                other => other,
            })
        };
        let values = results.into_iter().take(self.given).map(lift).collect::<Result<_>>()?;
        let names = match self.given == self.names.len() {
            true => self.names.clone(),
            false => self.names[..self.given].into(),
        };
        Ok(Outputs::new(names, values))
    }

    /// Sends the results that callers get to the host, where they are `read` or callers of this session read them: one for each, as far as
    /// they were sent.
    fn send(&self, read: bool) -> Vec<Option<Copy>> {
        if !read && !self.session.habit().is_reading() || self.call.is_done() {
            return Vec::new();
        }
        let Some((ready, results)) = self.call.unready() else { return Vec::new() };
        let place = |(place, value)| match value {
            runtime::Value::View(view) if !self.unread.contains(&place) => {
                let devices = self.session.devices().iter();
                let own = devices.clone().find(|device| device.hal().id() == view.span.buffer.device_id());
                own.map(|device| (view.span, device.clone()))
            }
            _ => None,
        };
        let spans: Vec<_> = results.into_iter().take(self.given).enumerate().map(place).collect();
        tensor::send(&spans, ready)
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
