//! One answer: a prompt's text written on until the model ends, enough is there, or a text comes that ends it.

use std::ops::ControlFlow;

use halite::{RunOptions, Sampler, Stop, StopTexts};

use super::{request::Wanted, slots::Slots};

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

/// Writes an answer, and tells text as soon as it is sure. `number` tells several answers to the same prompt apart.
pub(super) fn write(
    slots: &Slots,
    prompt: &[u32],
    wanted: &Wanted,
    number: u64,
    options: &RunOptions,
    mut told: impl FnMut(&str) -> ControlFlow<()>,
) -> halite::Result<Answer> {
    let mut sequence = slots.take(prompt)?;
    let mut answer = Answer { text: String::new(), tokens: 0, kept: 0, reason: "stop" };
    let mut sampling = wanted.sampling.clone();
    sampling.seed = sampling.seed.wrapping_add(number);
    let mut stops = StopTexts::new(&wanted.stops);
    let made = sequence.prompt(prompt, options).and_then(|kept| {
        answer.kept = kept;
        let mut sampler = Sampler::new(sampling);
        sequence.generate(&mut sampler, wanted.most.unwrap_or(usize::MAX), options, |piece| {
            answer.tokens += 1;
            let (text, ended) = stops.push(&piece.text);
            answer.text.push_str(&text);
            let flow = if text.is_empty() { ControlFlow::Continue(()) } else { told(&text) };
            if ended { ControlFlow::Break(()) } else { flow }
        })
    });
    slots.give(sequence);
    let stop = made?;
    let held = stops.finish();
    if stop != Stop::Caller && !held.is_empty() {
        answer.text.push_str(&held);
        _ = told(&held);
    }
    answer.reason = if matches!(stop, Stop::Length | Stop::Context) { "length" } else { "stop" };
    Ok(answer)
}
