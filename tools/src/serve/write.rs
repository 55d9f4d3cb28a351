//! One answer: a prompt's text written on until the model ends, enough is there, or a text comes that ends it.

use std::ops::ControlFlow;

use halite::{
    CallScanner, Divided, Generator, JsonSchema, Next, Sampler, Sampling, Sequence, Stop, StopTexts,
    TextDecoder, Thoughts, ToolCall,
};
use hyper::StatusCode;

use super::{
    echo,
    error::Refusal,
    likely::Told,
    limits::{Limits, checked},
    request::Wanted,
    slots::Slots,
    together::{Seat, Together},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// What was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub text: String,
    /// What the model thought before.
    pub thoughts: String,
    /// Tokens that were written.
    pub tokens: usize,
    /// Those of them that were thoughts.
    pub thinking: usize,
    /// Tokens of the prompt that were there from an earlier request.
    pub kept: usize,
    /// `stop`, `length` or `tool_calls`.
    pub reason: &'static str,
    /// How likely its tokens were, if somebody wants to know.
    pub told: Vec<Told>,
    /// Calls of tools.
    pub calls: Vec<ToolCall>,
}

/// A piece of an answer that is sure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub text: &'a str,
    /// What the model thinks before it says something.
    pub thoughts: &'a str,
    /// How likely its tokens were.
    pub told: &'a [Told],
}

/// An answer while it is written.
struct Writing<'a, F> {
    together: &'a Together,
    seat: Seat<'a>,
    wanted: &'a Wanted,
    generator: Generator,
    sampler: Sampler,
    number: u64,
    /// Whether what the answer has to follow waits for the end of thoughts.
    is_behind: bool,
    decoder: TextDecoder,
    stops: StopTexts,
    /// What tells thoughts apart, in conversations.
    thoughts: Option<Thoughts>,
    /// What finds calls of tools, where there are some.
    scanner: Option<CallScanner>,
    answer: Answer,
    most: usize,
    /// Of the tokens of the answer, those whose likelihood went out.
    gone: usize,
    told: F,
}

/// What chooses the tokens of an answer, which may have to follow something. `number` tells several answers to the same prompt apart.
fn sampler(generator: &Generator, wanted: &Wanted, schema: Option<&JsonSchema>, number: u64) -> Sampler {
    let sampling = Sampling { seed: wanted.sampling.seed.wrapping_add(number), ..wanted.sampling.clone() };
    let sampler = match schema {
        Some(schema) => generator.schema_sampler(sampling, schema),
        None => Sampler::new(sampling),
    };
    let sampler = match &wanted.bias[..] {
        [] => sampler,
        bias => sampler.with_bias(bias.iter().copied()),
    };
    wanted.likely.into_iter().fold(sampler, Sampler::with_logprobs)
}

/// What finds calls. Where one has to be made, all that is written is one.
fn scanner(wanted: &Wanted) -> Option<CallScanner> {
    let is_forced = wanted.is_call_forced;
    wanted.tools.as_ref().map(|_| if is_forced { CallScanner::of_calls() } else { CallScanner::default() })
}

/// A sequence with a prompt, how many of its tokens were there, and how likely all were, each with so many others, if somebody wants to know.
fn begin(
    slots: &Slots,
    prompt: &[u32],
    likely: Option<usize>,
    limits: &Limits,
) -> Result<(Sequence, usize, Vec<Told>)> {
    let mut sequence = slots.take(prompt)?;
    let begun = match likely {
        Some(count) => echo::read(&mut sequence, prompt, count, limits).map(|read| (0, read)),
        None => {
            let kept = sequence.prompt(prompt, &limits.options());
            kept.map(|kept| (kept, Vec::new())).map_err(|error| Refusal::of(&error))
        }
    };
    match begun {
        Ok((kept, read)) => Ok((sequence, kept, read)),
        Err(refusal) => {
            slots.give(sequence);
            Err(refusal)
        }
    }
}

/// Writes an answer, and tells text as soon as it is sure. `echo` is a text that it begins with, the prompt; `number` tells several
/// answers to the same prompt apart.
pub(super) fn write<F: FnMut(Piece<'_>, &Seat<'_>) -> ControlFlow<()>>(
    slots: &Slots,
    (prompt, echo): (&[u32], Option<&str>),
    wanted: &Wanted,
    number: u64,
    limits: &Limits,
    told: F,
) -> Result<Answer> {
    let (sequence, kept, read) = begin(slots, prompt, wanted.likely.filter(|_| echo.is_some()), limits)?;
    let generator = slots.generator().clone();
    // Where a model thinks first, an answer follows what it has to from its beginning on, not from that of the thoughts.
    let later = wanted.thoughts.as_ref().is_some_and(Thoughts::is_thinking);
    let schema = wanted.schema.as_ref().filter(|_| !later);
    let mut writing = Writing {
        together: slots.together(),
        seat: slots.together().join(),
        wanted,
        sampler: sampler(&generator, wanted, schema, number),
        number,
        is_behind: schema.is_none() && wanted.schema.is_some(),
        thoughts: wanted.thoughts.clone(),
        generator,
        scanner: scanner(wanted),
        decoder: TextDecoder::default(),
        stops: StopTexts::new(&wanted.stops),
        answer: Answer { kept, reason: "stop", told: read, ..Answer::default() },
        most: wanted.most.unwrap_or(usize::MAX),
        gone: 0,
        told,
    };
    let mut sequence = Some(sequence);
    let flow = echo.map_or(ControlFlow::Continue(()), |echo| writing.tell("", echo));
    let stop = match flow {
        ControlFlow::Continue(()) => writing.run(&mut sequence, limits),
        ControlFlow::Break(()) => Ok(Stop::Caller),
    };
    // It is gone where a step broke off.
    sequence.into_iter().for_each(|sequence| slots.give(sequence));
    writing.end(stop?)
}

impl<F: FnMut(Piece<'_>, &Seat<'_>) -> ControlFlow<()>> Writing<'_, F> {
    /// Writes until something ends it: alone, or in steps with others.
    fn run(&mut self, sequence: &mut Option<Sequence>, limits: &Limits) -> Result<Stop> {
        let deadline = limits.deadline();
        while self.answer.tokens < self.most {
            let Some(own) = sequence else { return Err(Refusal::broken_off()) };
            let can_share = own.generator().batch() > 1;
            // Behind each step the sampler says how likely its token was.
            let steps = self.wanted.likely.is_some() || (can_share && self.together.has_others());
            let stop = match steps {
                true => {
                    checked(limits, deadline)?;
                    self.step(sequence)?
                }
                false => self.alone(own, can_share, limits)?,
            };
            if let Some(stop) = stop {
                return Ok(stop);
            }
            self.follow();
        }
        Ok(Stop::Length)
    }

    /// Has the answer follow what it has to, when thoughts are over.
    fn follow(&mut self) {
        if self.is_behind && !self.is_thinking() {
            self.is_behind = false;
            self.sampler = sampler(&self.generator, self.wanted, self.wanted.schema.as_ref(), self.number);
        }
    }

    fn is_thinking(&self) -> bool {
        self.thoughts.as_ref().is_some_and(Thoughts::is_thinking)
    }

    /// Writes until it ends, or others come with whom steps can be shared: then there is no reason to end,
    /// nor where thoughts do, behind which an answer has to follow something.
    fn alone(&mut self, sequence: &mut Sequence, can_share: bool, limits: &Limits) -> Result<Option<Stop>> {
        let mut goes_on = false;
        let most = self.most - self.answer.tokens;
        let mut sampler = self.sampler.clone();
        let stop = sequence.generate(&mut sampler, most, &limits.options(), |piece| {
            let flow = self.take(piece.token);
            let is_other = can_share && self.together.has_others() || self.is_behind && !self.is_thinking();
            goes_on = flow.is_continue() && is_other;
            if goes_on { ControlFlow::Break(()) } else { flow }
        });
        self.sampler = sampler;
        let stop = stop.map_err(|error| Refusal::of(&error))?;
        Ok(if goes_on && stop == Stop::Caller { None } else { Some(stop) })
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
                if let Some(likely) = self.sampler.likely() {
                    let told = Told::new(&self.generator, likely, self.answer.told.last());
                    self.answer.told.push(told);
                }
                let flow = self.take(token);
                Ok(flow.is_break().then_some(Stop::Caller))
            }
            Next::Stop(stop) => Ok(Some(stop)),
            other => {
                let text = format!("the server does not know what {other:?} means");
                Err(Refusal::with(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
        }
    }

    /// The bytes of a token. Those of control tokens count where they are a part of calls, or of marks of thoughts.
    fn bytes(&self, token: u32) -> Vec<u8> {
        let bytes = match &self.thoughts {
            Some(thoughts) => self.generator.bytes_for(token, thoughts),
            None => self.generator.bytes(token),
        };
        match &self.scanner {
            Some(_) if bytes.is_empty() => Some(self.generator.bytes_with_control(token))
                .filter(|own| CallScanner::is_mark(own))
                .unwrap_or(bytes),
            _ => bytes,
        }
    }

    /// Takes a token that was written.
    fn take(&mut self, token: u32) -> ControlFlow<()> {
        self.answer.tokens += 1;
        self.answer.thinking += usize::from(self.is_thinking());
        let piece = self.decoder.push(&self.bytes(token));
        let (text, ended) = self.stops.push(&piece);
        let Divided { thoughts, answer } = self.divided(text);
        let text = match &mut self.scanner {
            Some(scanner) => scanner.push(&answer),
            None => answer,
        };
        let is_told = !(text.is_empty() && thoughts.is_empty());
        let flow = if is_told { self.tell(&thoughts, &text) } else { ControlFlow::Continue(()) };
        if ended { ControlFlow::Break(()) } else { flow }
    }

    /// Text as thoughts and answer.
    fn divided(&mut self, text: String) -> Divided {
        match &mut self.thoughts {
            Some(thoughts) => thoughts.push(&text),
            None => Divided { answer: text, ..Divided::default() },
        }
    }

    /// Tells text that is sure, with the likelihood of all tokens so far.
    fn tell(&mut self, thoughts: &str, text: &str) -> ControlFlow<()> {
        self.answer.thoughts.push_str(thoughts);
        self.answer.text.push_str(text);
        let told = &self.answer.told[self.gone..];
        let flow = (self.told)(Piece { text, thoughts, told }, &self.seat);
        self.gone = self.answer.told.len();
        flow
    }

    /// The answer, when it is written.
    fn end(mut self, stop: Stop) -> Result<Answer> {
        let mut held = self.stops.finish();
        if stop == Stop::Caller {
            held.clear();
        }
        let mut made = self.divided(held);
        if let Some(own) = &mut self.thoughts {
            let rest = own.finish();
            made.thoughts.push_str(&rest.thoughts);
            made.answer.push_str(&rest.answer);
        }
        let Divided { thoughts, answer: mut held } = made;
        if let (Some(mut scanner), Some(tools)) = (self.scanner.take(), &self.wanted.tools) {
            let text = scanner.push(&held);
            let (rest, mut calls) = scanner.finish(tools.as_ref());
            calls.truncate(if tools.several { usize::MAX } else { 1 });
            self.answer.calls = calls;
            held = text + &rest;
        }
        if !held.is_empty() || !thoughts.is_empty() || self.gone < self.answer.told.len() {
            _ = self.tell(&thoughts, &held);
        }
        self.answer.reason = match stop {
            Stop::Length | Stop::Context => "length",
            _ if !self.answer.calls.is_empty() => "tool_calls",
            _ => "stop",
        };
        Ok(self.answer)
    }
}
