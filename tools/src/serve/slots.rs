//! The sequences that requests are answered with: a few, each with caches on the device, which keep what they have of the last
//! request for the next one.

use std::sync::{Arc, Mutex, PoisonError};

use halite::{Generator, Sequence};
use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{error::Refusal, together::Together};

/// The sequences of a server.
pub(super) struct Slots {
    generator: Generator,
    idle: Mutex<Vec<Sequence>>,
    together: Together,
    /// A permit for each sequence.
    free: Arc<Semaphore>,
    /// A permit for each request that is answered or waits.
    waiting: Arc<Semaphore>,
}

/// A place among the requests that wait; with it goes a sequence's.
pub(super) struct Turn {
    _sequence: OwnedSemaphorePermit,
    _waiting: OwnedSemaphorePermit,
}

impl Slots {
    /// So many sequences, and requests that may wait for one.
    pub fn new(generator: Generator, sequences: usize, waiting: usize) -> Slots {
        Slots {
            generator,
            idle: Mutex::default(),
            together: Together::default(),
            free: Arc::new(Semaphore::new(sequences)),
            waiting: Arc::new(Semaphore::new(sequences.saturating_add(waiting).min(Semaphore::MAX_PERMITS))),
        }
    }

    /// The model that writes.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Where requests take their steps.
    pub fn together(&self) -> &Together {
        &self.together
    }

    /// Waits for a turn, if not too many do.
    pub async fn turn(&self) -> Result<Turn, Refusal> {
        let busy = || {
            let text = "too many requests wait already; try again later";
            Refusal::with(StatusCode::TOO_MANY_REQUESTS, text).code("server_busy")
        };
        let waiting = self.waiting.clone().try_acquire_owned().map_err(|_| busy())?;
        let sequence = self.free.clone().acquire_owned().await;
        let sequence =
            sequence.map_err(|_| Refusal::with(StatusCode::SERVICE_UNAVAILABLE, "the server ends"))?;
        Ok(Turn { _sequence: sequence, _waiting: waiting })
    }

    /// A sequence for a prompt, in turn: that which has most of it already.
    pub fn take(&self, prompt: &[u32]) -> Result<Sequence, Refusal> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Prompts for an encoder are no part of what was written.
        let read = |own: &Sequence| match own.source() {
            [] => own.tokens().iter().zip(prompt).take_while(|(a, b)| a == b).count(),
            source => usize::from(source == prompt),
        };
        let best = idle.iter().enumerate().max_by_key(|(_, own)| read(own)).map(|(place, _)| place);
        match best {
            Some(place) => Ok(idle.swap_remove(place)),
            None => self.generator.sequence().map_err(|error| Refusal::of(&error)),
        }
    }

    /// Gives a sequence back.
    pub fn give(&self, sequence: Sequence) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(sequence);
    }
}
