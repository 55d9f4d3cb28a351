//! Writing with a draft: a second, smaller model writes some tokens ahead, and the first looks at all of them in one call.

use std::ops::ControlFlow;

use halite_compiler::CHOSEN;
use halite_text::{Decoder, Sampler};

use super::{Draft, Piece, Sequence, Stop, draft::Pace, seats::LOGITS};
use crate::{Result, RunOptions, Tensor};

/// How many tokens were drafted for a sequence, and how many of them it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drafted {
    /// Tokens that the second model wrote.
    pub tokens: u64,
    /// Those of them that the first chose, too.
    pub taken: u64,
}

/// What a sequence keeps of its drafts.
#[derive(Debug)]
pub(super) struct Drafting {
    /// The text as the second model has it.
    pub writer: Sequence,
    pace: Pace,
    pub count: Drafted,
}

/// Tokens that are in the caches, but not in the sequence yet, with what the model has behind each.
#[derive(Default)]
struct Verified {
    /// The token that was known, and those that were drafted behind it.
    tokens: Vec<u32>,
    /// How many of them the sequence has.
    given: usize,
    likely: Vec<i32>,
    logits: Option<Tensor>,
}

impl Verified {
    /// Gives the sequence a token, if it is the next one here.
    fn give(&mut self, to: &mut Sequence, token: u32, sampler: &Sampler) -> Result<bool> {
        if self.tokens.get(self.given) != Some(&token) {
            return Ok(false);
        }
        let row = self.given;
        let likely = self.likely.get(row).and_then(|own| u32::try_from(*own).ok());
        let is_enough = likely.is_some() && sampler.is_greedy();
        let logits = match &self.logits {
            Some(logits) if !is_enough => logits.part(row..row + 1)?.to_vec::<f32>()?,
            _ => Vec::new(),
        };
        self.given += 1;
        to.took(token, logits, likely);
        Ok(true)
    }
}

impl Sequence {
    /// How many tokens were drafted for this sequence by the model of [`super::GeneratorOptions::draft`], and how many of them it took.
    pub fn drafted(&self) -> Drafted {
        self.drafting.as_ref().map_or_else(Drafted::default, |own| own.count)
    }

    /// As [`Sequence::generate`], with a draft: each token is chosen as without one, of the logits that the model has behind the token
    /// before it. Where a draft had that token, too, no call is needed for it.
    pub(super) fn generate_drafted(
        &mut self,
        draft: &Draft,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        told: &mut dyn FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        let mut verified = Verified::default();
        let done = self.write_drafted(draft, &mut verified, sampler, most, options, told);
        self.learn(draft, &verified);
        done
    }

    fn write_drafted(
        &mut self,
        draft: &Draft,
        verified: &mut Verified,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        told: &mut dyn FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        let mut decoder = Decoder::default();
        for count in 0..most {
            let token = self.chosen(sampler, options)?;
            if self.ends_with(token) {
                return Ok(Stop::End);
            }
            if self.tokens().len() >= self.generator().context() {
                return Ok(Stop::Context);
            }
            let text = decoder.push(&self.generator().inner.tokenizer.bytes(token, false));
            let flow = told(&Piece { token, text });
            if !verified.give(self, token, sampler)? {
                self.learn(draft, &std::mem::take(verified));
                let left = if flow.is_break() { 0 } else { most - count - 1 };
                let tokens = self.draft(draft, token, left, options)?;
                if tokens.is_empty() {
                    // With its logits, for what comes next.
                    self.append(&[token], options)?;
                } else {
                    *verified = self.verify(draft, token, &tokens, options)?;
                    verified.give(self, token, sampler)?;
                }
            }
            if flow.is_break() {
                return Ok(Stop::Caller);
            }
        }
        Ok(Stop::Length)
    }

    /// What the second model writes behind a token, where `left` more are wanted.
    fn draft(&mut self, draft: &Draft, token: u32, left: usize, options: &RunOptions) -> Result<Vec<u32>> {
        let own = match &mut self.drafting {
            Some(own) => own,
            none => none.insert(Box::new(Drafting {
                writer: draft.writer.sequence()?,
                pace: Pace::default(),
                count: Drafted::default(),
            })),
        };
        let room = self.generator.context() - self.tokens.len();
        let Some(size) = own.pace.next(&draft.sizes, room.min(left)) else { return Ok(Vec::new()) };
        let known = self.generator.vocabulary_len();
        let text = [&self.tokens[..], &[token]].concat();
        own.writer.goes_on = self.goes_on;
        let mut tokens = own.writer.write_ahead_of(&text, (size - 1).min(draft.most), options)?;
        let is_known = |token: &u32| (*token as usize) < known;
        tokens.truncate(tokens.iter().take_while(|token| is_known(token)).count());
        Ok(tokens)
    }

    /// A call with a token and those that were drafted behind it. They are in the caches then, and not yet in the sequence.
    fn verify(
        &mut self,
        draft: &Draft,
        token: u32,
        drafted: &[u32],
        options: &RunOptions,
    ) -> Result<Verified> {
        let tokens = [&[token], drafted].concat();
        // Drafts that ended early are filled up, as pieces of prompts are.
        let size = draft.sizes.iter().copied().find(|size| *size >= tokens.len()).unwrap_or(tokens.len());
        let first = self.tokens.len();
        let all: Vec<i32> =
            tokens.iter().map(|token| *token as i32).chain(std::iter::repeat(0)).take(size).collect();
        let positions: Vec<i64> = (first..first + size).map(|position| position as i64).collect();
        let (all, positions) = (Tensor::from_slice(&all, [size])?, Tensor::from_slice(&positions, [size])?);
        let inputs = [("tokens", &all), ("positions", &positions)].into();
        let limits = self.generator.session().begin(options)?;
        let unread = draft.verify.info().outputs.iter().position(|output| output.name == LOGITS);
        let state = self.kept()?;
        state.change(&draft.verify)?;
        let outputs = state.run_unread(inputs, unread.as_slice(), &limits)?;
        let likely = outputs.tensor(CHOSEN)?.to_vec::<i32>()?;
        Ok(Verified { tokens, given: 0, likely, logits: Some(outputs.tensor(LOGITS)?.clone()) })
    }

    /// Counts what was taken of a draft.
    fn learn(&mut self, draft: &Draft, verified: &Verified) {
        let (drafted, taken) = (verified.tokens.len().saturating_sub(1), verified.given.saturating_sub(1));
        if let Some(own) = self.drafting.as_mut().filter(|_| drafted > 0) {
            own.pace.learn(drafted, taken, draft.sizes.len());
            (own.count.tokens, own.count.taken) =
                (own.count.tokens + drafted as u64, own.count.taken + taken as u64);
        }
    }

    /// As many tokens as are wanted behind a text, the most likely ones; fewer where the text ends or there is no room for more. The sequence
    /// becomes the text, with some or all of them behind it.
    fn write_ahead_of(&mut self, text: &[u32], count: usize, options: &RunOptions) -> Result<Vec<u32>> {
        let generator = self.generator.clone();
        let (known, room) = (generator.vocabulary_len(), generator.context());
        let count = count.min(room.saturating_sub(text.len()));
        if count == 0 || text.iter().any(|token| *token as usize >= known) {
            return Ok(Vec::new());
        }
        let mut sampler = Sampler::new(halite_text::Sampling::greedy());
        let chooser = generator.inner.choosers().and_then(|all| all.of(&sampler));
        match chooser {
            Some(chooser) => {
                // The call of the last token chooses what is behind it.
                self.prompt_but_last(text, options)?;
                self.draft_ahead(chooser, &mut sampler, text[text.len() - 1], count, options)
            }
            None => {
                self.prompt(text, options)?;
                self.draft_here(&mut sampler, count, options)
            }
        }
    }

    /// Makes the sequence a text without its last token, of which nobody reads the logits.
    fn prompt_but_last(&mut self, text: &[u32], options: &RunOptions) -> Result<()> {
        let wanted = &text[..text.len() - 1];
        let same = self.tokens.iter().zip(wanted).take_while(|(own, other)| own == other).count();
        self.truncate(same);
        self.append(&wanted[same..], options)
    }

    /// The most likely tokens, chosen by the host.
    fn draft_here(&mut self, sampler: &mut Sampler, count: usize, options: &RunOptions) -> Result<Vec<u32>> {
        let mut drafted = Vec::with_capacity(count);
        while let Some(token) = self.choose(sampler, options)? {
            drafted.push(token);
            if drafted.len() == count || self.ends_with(token) {
                break;
            }
            self.append(&[token], options)?;
        }
        Ok(drafted)
    }
}
