//! A call that was started: asking whether it is done, and waiting for its results.

use std::{fmt, sync::Arc, time::Duration};

#[cfg(feature = "text")]
use halite_hal::QueueAffinity;
use halite_runtime as runtime;
use parking_lot::Mutex;

use super::{Session, Started};
#[cfg(feature = "text")]
use crate::Tensor;
use crate::{
    Error, ErrorKind, Outputs, Result, RunOptions, Value,
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
    call: Arc<Started>,
    names: Arc<[String]>,
    session: Session,
    /// How many results callers get; the others are what the program keeps by itself.
    given: usize,
    /// Places of results that nobody reads: they stay on the device.
    unread: Vec<usize>,
    /// What was sent to the host so far: waits that end early leave it to those that follow.
    sent: Mutex<Option<Sent>>,
}

/// Results on their way to the host, one for each that callers get.
type Sent = (Arc<Given>, Vec<Option<Copy>>);

impl Session {
    /// The options of a call that begins now. Fails where it was stopped before.
    pub(crate) fn begin(&self, options: &RunOptions) -> Result<Limits> {
        let limits = self.follow(options)?;
        limits.check_begin("the call")?;
        Ok(limits)
    }

    /// The options of a wait for a call that has begun. Fails in a fork of the process that opened a device, before anything there is
    /// waited for.
    pub(crate) fn follow(&self, options: &RunOptions) -> Result<Limits> {
        self.0.devices.iter().try_for_each(|device| device.hal().check_process())?;
        Ok(options.begin_within(self.0.time.get().copied()))
    }
}

impl Pending {
    pub(super) fn new(call: Arc<Started>, names: Arc<[String]>, session: Session) -> Self {
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
    #[cfg(feature = "text")]
    pub(crate) fn sent(self) -> Self {
        *self.sent.lock() = Some(self.send(true));
        for device in self.session.devices() {
            // A failure is the failure of the work, which is told by whoever waits for it.
            let _ = device.hal().queue_flush(QueueAffinity::ANY);
        }
        self
    }

    /// A result as it will be, for calls that begin after this one on the device; `None` where the call is done, or has no such tensor.
    #[cfg(feature = "text")]
    pub(crate) fn coming(&self, place: usize) -> Option<Tensor> {
        let (_, results) = self.call.unready()?;
        match Value::lift(results.into_iter().nth(place)?, self.session.devices()) {
            Ok(Value::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The call itself, for those who take what it leaves.
    pub(crate) fn call(&self) -> Arc<Started> {
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
        self.finish(&self.session.follow(&RunOptions::new())?)
    }

    /// Waits for the results with options. A wait that they end leaves the call as it is: wait again, or drop it. Every wait
    /// gives the same results.
    ///
    /// # Errors
    /// As [`Pending::wait`], and when the options end it.
    pub fn wait_with(&self, options: &RunOptions) -> Result<Outputs> {
        self.finish(&self.session.follow(options)?)
    }

    /// Waits no longer than this: `None` when the results are not there by then.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Outputs>> {
        match self.wait_with(&RunOptions::new().timeout(timeout)) {
            Err(error) if error.kind() == ErrorKind::DeadlineExceeded => match self.is_done() {
                false => Ok(None),
                // It was done behind the end of the wait: with results, or with an error of its own.
                true => self.wait_with(&RunOptions::new()).map(Some),
            },
            other => other.map(Some),
        }
    }

    /// Nobody wants the results any more: what the device has not begun is left out, where its driver can do that and no other call shares
    /// state with this one. Waits fail then, with [`ErrorKind::Cancelled`].
    pub fn abandon(&self) {
        let gone = Error::new(ErrorKind::Cancelled, "nobody waits for the call any more");
        self.call.abandon(gone.status());
    }

    /// As [`Pending::finish`], for calls that nobody else waits for: where the limits end it, the rest of its work is left out.
    pub(crate) fn finish_or_stop(&self, limits: &Limits) -> Result<Outputs> {
        self.finish(limits).inspect_err(|error| self.call.abandon(error.status()))
    }

    pub(crate) fn finish(&self, limits: &Limits) -> Result<Outputs> {
        self.sent.lock().get_or_insert_with(|| self.send(false));
        let results = self.call.wait(&limits.call_options()).map_err(Error::of_runtime)?;
        // Who waits for them once more reads them from the device.
        let (call, sent) =
            self.sent.lock().take().unwrap_or_else(|| (Given::new(self.session.habit(), false), Vec::new()));
        let mut sent = sent.into_iter();
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
    fn send(&self, read: bool) -> Sent {
        let copies = match (read || self.session.habit().is_reading()) && !self.call.is_done() {
            true => self.copies(),
            false => Vec::new(),
        };
        (Given::new(self.session.habit(), copies.iter().any(Option::is_some)), copies)
    }

    fn copies(&self) -> Vec<Option<Copy>> {
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

#[cfg(all(test, feature = "compiler", feature = "vulkan"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

    use super::*;
    use crate::{Cache, Device, Tensor};

    /// A program that asks now and then whether the results are there wants them as much as one that waits: what was sent to the host for
    /// the first question is there for the last.
    #[test]
    fn waits_that_end_early_leave_what_was_sent_to_later_ones() {
        let Ok(device) = Device::open("vulkan?memory=staged") else {
            println!("SKIPPED: no Vulkan device");
            return;
        };
        let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/digits/digits.onnx");
        let session = Session::builder().device(&device).cache(Cache::off()).model(digits).build().unwrap();
        let picture = Tensor::from_slice(&[0.5f32; 256], [1, 1, 16, 16]).unwrap();
        let read = |out: &Outputs| out["probabilities"].to_vec::<f32>().unwrap();
        let wanted = read(&session.run([("picture", &picture)]).unwrap());
        assert!(session.habit().is_reading());
        let early = (0..200).any(|_| {
            // The device is busy with the others when the last is asked for.
            let calls: Vec<_> = (0..30).map(|_| session.start([("picture", &picture)]).unwrap()).collect();
            let last = calls.last().unwrap();
            let early = last.wait_timeout(Duration::ZERO).unwrap().is_none();
            let sent = |call: &Pending| {
                call.sent.lock().as_ref().map(|(given, sent)| (Arc::as_ptr(given), sent.len()))
            };
            let first = sent(last);
            if early {
                assert!(session.habit().is_reading(), "nobody is done with these results");
                assert!(last.wait_timeout(Duration::ZERO).unwrap().is_some() || sent(last) == first);
            }
            let out = last.wait_with(&RunOptions::new()).unwrap();
            assert_eq!(read(&out), wanted);
            // Every wait gives the same.
            assert_eq!(read(&last.wait_with(&RunOptions::new()).unwrap()), wanted);
            calls
                .iter()
                .for_each(|call| assert_eq!(read(&call.wait_with(&RunOptions::new()).unwrap()), wanted));
            early
        });
        assert!(early, "the device was never busy");
    }
}
