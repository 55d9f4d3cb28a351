//! One answer: a prompt's text written on until the model ends, enough is there, or a text comes that ends it.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use halite::{CancelToken, Next, RunOptions, Sampler, Sampling, Sequence, Stop, StopTexts, TextDecoder};
use hyper::StatusCode;

use super::{
    error::Refusal,
    request::Wanted,
    slots::Slots,
    together::{Seat, Together},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// What was written.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub text: String,
    /// Tokens that were written.
    pub tokens: usize,
    /// Tokens of the prompt that were there from an earlier request.
    pub kept: usize,
    /// `stop` or `length`.
    pub reason: &'static str,
}

/// What ends the work on a request.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// How long a prompt may take, and an answer.
    pub timeout: Duration,
    pub cancel: CancelToken,
}

impl Limits {
    /// For calls that begin now.
    pub fn options(&self) -> RunOptions {
        RunOptions::new().timeout(self.timeout).cancel(&self.cancel)
    }
}

/// An answer while it is written.
struct Writing<'a, F> {
    together: &'a Together,
    seat: Seat<'a>,
    sampler: Sampler,
    decoder: TextDecoder,
    stops: StopTexts,
    answer: Answer,
    most: usize,
    told: F,
}

/// Writes an answer, and tells text as soon as it is sure. `number` tells several answers to the same prompt apart.
pub(super) fn write<F: FnMut(&str, &Seat<'_>) -> ControlFlow<()>>(
    slots: &Slots,
    prompt: &[u32],
    wanted: &Wanted,
    number: u64,
    limits: &Limits,
    told: F,
) -> Result<Answer> {
    let mut sequence = slots.take(prompt)?;
    let begun = sequence.prompt(prompt, &limits.options());
    let kept = match begun {
        Ok(kept) => kept,
        Err(error) => {
            slots.give(sequence);
            return Err(Refusal::of(&error));
        }
    };
    let sampling = Sampling { seed: wanted.sampling.seed.wrapping_add(number), ..wanted.sampling.clone() };
    let sampler = match wanted.json {
        true => slots.generator().json_sampler(sampling),
        false => Sampler::new(sampling),
    };
    let mut writing = Writing {
        together: slots.together(),
        seat: slots.together().join(),
        sampler,
        decoder: TextDecoder::default(),
        stops: StopTexts::new(&wanted.stops),
        answer: Answer { text: String::new(), tokens: 0, kept, reason: "stop" },
        most: wanted.most.unwrap_or(usize::MAX),
        told,
    };
    let mut sequence = Some(sequence);
    let stop = writing.run(&mut sequence, limits);
    // It is gone where a step broke off.
    sequence.into_iter().for_each(|sequence| slots.give(sequence));
    writing.end(stop?)
}

impl<F: FnMut(&str, &Seat<'_>) -> ControlFlow<()>> Writing<'_, F> {
    /// Writes until something ends it: alone, or in steps with others.
    fn run(&mut self, sequence: &mut Option<Sequence>, limits: &Limits) -> Result<Stop> {
        let deadline = Instant::now().checked_add(limits.timeout);
        while self.answer.tokens < self.most {
            let Some(own) = sequence else { return Err(Refusal::broken_off()) };
            let can_share = own.generator().batch() > 1;
            let stop = match can_share && self.together.has_others() {
                true => {
                    checked(limits, deadline)?;
                    self.step(sequence)?
                }
                false => self.alone(own, can_share, limits)?,
            };
            if let Some(stop) = stop {
                return Ok(stop);
            }
        }
        Ok(Stop::Length)
    }

    /// Writes until it ends, or others come with whom steps can be shared: then there is no reason to end.
    fn alone(&mut self, sequence: &mut Sequence, can_share: bool, limits: &Limits) -> Result<Option<Stop>> {
        let mut others_come = false;
        let (most, generator) = (self.most - self.answer.tokens, sequence.generator().clone());
        let mut sampler = self.sampler.clone();
        let stop = sequence.generate(&mut sampler, most, &limits.options(), |piece| {
            let flow = self.take(&generator.bytes(piece.token));
            others_come = flow.is_continue() && can_share && self.together.has_others();
            if others_come { ControlFlow::Break(()) } else { flow }
        });
        self.sampler = sampler;
        let stop = stop.map_err(|error| Refusal::of(&error))?;
        Ok(if others_come && stop == Stop::Caller { None } else { Some(stop) })
    }

    /// Has the next token chosen and added in a step with others.
    fn step(&mut self, sequence: &mut Option<Sequence>) -> Result<Option<Stop>> {
        let Some(own) = sequence.take() else { return Err(Refusal::broken_off()) };
        let generator = own.generator().clone();
        let done = self.seat.step(&generator, (own, self.sampler.clone()));
        let ((own, sampler), next) = done.ok_or_else(Refusal::broken_off)?;
        (*sequence, self.sampler) = (Some(own), sampler);
        match next.map_err(|error| Refusal::of(&error))? {
            Next::Token(token) => {
                let flow = self.take(&generator.bytes(token));
                Ok(flow.is_break().then_some(Stop::Caller))
            }
            Next::Stop(stop) => Ok(Some(stop)),
            other => {
                let text = format!("the server does not know what {other:?} means");
                Err(Refusal::with(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
        }
    }

    /// Takes the bytes of a token that was written.
    fn take(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.answer.tokens += 1;
        let piece = self.decoder.push(bytes);
        let (text, ended) = self.stops.push(&piece);
        self.answer.text.push_str(&text);
        let flow = if text.is_empty() { ControlFlow::Continue(()) } else { (self.told)(&text, &self.seat) };
        if ended { ControlFlow::Break(()) } else { flow }
    }

    /// The answer, when it is written.
    fn end(mut self, stop: Stop) -> Result<Answer> {
        let held = self.stops.finish();
        if stop != Stop::Caller && !held.is_empty() {
            self.answer.text.push_str(&held);
            _ = (self.told)(&held, &self.seat);
        }
        self.answer.reason = if matches!(stop, Stop::Length | Stop::Context) { "length" } else { "stop" };
        Ok(self.answer)
    }
}

/// Whether the work may go on.
fn checked(limits: &Limits, deadline: Option<Instant>) -> Result<()> {
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
