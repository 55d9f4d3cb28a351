//! What ends the work on a request: its time, and whoever cancels it.

use std::time::{Duration, Instant};

use halite::{CancelToken, RunOptions};
use hyper::StatusCode;

use super::error::Refusal;

/// What ends the work on a request.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// How long a prompt may take, and an answer.
    pub timeout: Duration,
    pub cancel: CancelToken,
}

impl Limits {
    /// When work that begins now has to be over.
    pub fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.timeout)
    }

    /// For calls that begin now.
    pub fn options(&self) -> RunOptions {
        RunOptions::new().timeout(self.timeout).cancel(&self.cancel)
    }
}

/// Whether the work may go on.
pub(super) fn checked(limits: &Limits, deadline: Option<Instant>) -> Result<(), Refusal> {
    if limits.cancel.is_cancelled() {
        return Err(Refusal::with(StatusCode::SERVICE_UNAVAILABLE, "cancelled while an answer was written"));
    }
    match deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        true => Err(Refusal::with(
            StatusCode::GATEWAY_TIMEOUT,
            "the time for a request is over (halite serve --timeout)",
        )),
        false => Ok(()),
    }
}
