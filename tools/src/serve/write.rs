//! One answer: a prompt's text written on until the model ends, enough is there, or a text comes that ends it.

use std::ops::ControlFlow;

use halite::{RunOptions, Sampler, Stop};

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

/// Texts that end an answer, while it is written.
struct Stops<'a> {
    all: &'a [String],
    /// What may be the beginning of one.
    held: String,
}

impl Stops<'_> {
    /// The text that is sure not to be part of one, and whether one is there.
    fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let found = self.all.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = found {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let may_begin = |at: &usize| {
            let rest = &self.held[*at..];
            self.all.iter().any(|stop| stop.starts_with(rest))
        };
        let at = self.held.char_indices().map(|(at, _)| at).find(may_begin).unwrap_or(self.held.len());
        let rest = self.held.split_off(at);
        (std::mem::replace(&mut self.held, rest), false)
    }
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
    let mut stops = Stops { all: &wanted.stops, held: String::new() };
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
    if stop != Stop::Caller && !stops.held.is_empty() {
        answer.text.push_str(&stops.held);
        _ = told(&stops.held);
    }
    answer.reason = if matches!(stop, Stop::Length | Stop::Context) { "length" } else { "stop" };
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn texts_that_end_an_answer_are_not_told() {
        let all = ["END".to_owned(), "\n\n".to_owned()];
        let mut stops = Stops { all: &all, held: String::new() };
        assert_eq!(stops.push("a E"), ("a ".to_owned(), false));
        assert_eq!(stops.push("N"), (String::new(), false));
        assert_eq!(stops.push("é\n"), ("ENé".to_owned(), false));
        assert_eq!(stops.push("b"), ("\nb".to_owned(), false));
        assert_eq!(stops.push("c\n\nEND"), ("c".to_owned(), true));
    }
}
