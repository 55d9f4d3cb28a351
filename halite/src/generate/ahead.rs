//! Writing on where the device chooses: while it computes a token, the host has handed over the call for the one behind it.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use halite_compiler::{CHOSEN, SAMPLING};
use halite_text::{Decoder, Sampler};

use super::{
    Piece, Sequence, Stop,
    choosing::{Chooser, SLOW, Trust},
    sequence::{no_number, no_tokens},
};
use crate::{Error, Pending, Result, RunOptions, Tensor, options::Limits};

/// Calls that are under way. Each takes the token that the one before it chose.
struct Calls<'a> {
    chooser: Chooser<'a>,
    trust: Trust,
    limits: Limits,
    /// The only row of a call, on the device.
    row: Tensor,
    under_way: VecDeque<Call>,
    /// How long the last one was waited for.
    waited: Duration,
}

struct Call {
    pending: Pending,
    /// Where the sampler was in its random numbers before it drew for this call.
    before: u64,
}

impl Calls<'_> {
    /// Hands a call over, for a token whose number the host knows or not yet.
    fn launch(&mut self, sequence: &mut Sequence, sampler: &mut Sampler, token: &Tensor) -> Result<()> {
        let position = (sequence.tokens.len() + self.under_way.len()) as i64;
        let before = sampler.drawn_so_far();
        let sampling = self.chooser.sampling(sampler)?;
        let position = Tensor::from_slice(&[position], [1])?;
        let mut inputs = vec![("tokens", token), ("positions", &position), ("rows", &self.row)];
        inputs.extend(sampling.as_ref().map(|sampling| (SAMPLING, sampling)));
        let state = sequence.kept()?;
        state.change(self.chooser.function)?;
        let pending = state.follow(inputs.into_iter().collect(), &self.limits);
        let pending = pending.inspect_err(|_| sampler.draw_again_from(before))?;
        self.under_way.push_back(Call { pending, before });
        // They are behind another token now.
        sequence.forget();
        Ok(())
    }

    /// The call behind the last one, for the token that this will have chosen. Nothing where that is chosen already.
    fn launch_ahead(&mut self, sequence: &mut Sequence, sampler: &mut Sampler) -> Result<()> {
        match self.under_way.back().and_then(|last| last.pending.coming(0)) {
            Some(token) => self.launch(sequence, sampler, &token),
            None => Ok(()),
        }
    }

    /// What the first call chose; `None` where the host has to look at the logits.
    fn wait(&mut self, sampler: &mut Sampler, known: usize) -> Result<Option<u32>> {
        let Some(call) = self.under_way.front() else { return Ok(None) };
        let began = Instant::now();
        let chosen =
            call.pending.finish(&self.limits).and_then(|outputs| outputs.tensor(CHOSEN)?.item::<i32>());
        let chosen = chosen.inspect_err(|_| self.drop_all(sampler))?;
        self.under_way.pop_front();
        self.waited = began.elapsed();
        match u32::try_from(chosen) {
            Ok(token) if token as usize >= known => {
                Err(Error::invalid(format!("there is no token {token}; the model knows {known}")))
            }
            token => Ok(token.ok()),
        }
    }

    /// Gives up what is under way: caches keep what it leaves behind the tokens, where nothing looks.
    fn drop_all(&mut self, sampler: &mut Sampler) {
        if let Some(first) = self.under_way.drain(..).next() {
            sampler.draw_again_from(first.before);
        }
    }
}

impl Sequence {
    /// As [`Sequence::generate`], where the device chooses.
    pub(super) fn generate_ahead(
        &mut self,
        chooser: Chooser<'_>,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        told: &mut dyn FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        let mut calls = self.calls_ahead(chooser, options)?;
        self.begin_again(options)?;
        let done = self.write_ahead(&mut calls, sampler, most, options, told);
        calls.drop_all(sampler);
        if done.is_err() {
            self.spoil();
        }
        done
    }

    /// No calls yet, of a function that chooses.
    fn calls_ahead<'a>(&self, chooser: Chooser<'a>, options: &RunOptions) -> Result<Calls<'a>> {
        let limits = self.generator.session().begin(options)?;
        let row = Tensor::from_slice(&[0i32], [1])?;
        let row =
            self.generator.session().device().map_or(Ok(row.clone()), |device| row.to_device(device))?;
        let (trust, waited) = (Trust::new(), Duration::ZERO);
        Ok(Calls { chooser, trust, limits, row, under_way: VecDeque::new(), waited })
    }

    /// So many tokens behind one that comes next, fewer where the text ends; all but the last of them are in the sequence then.
    pub(super) fn draft_ahead(
        &mut self,
        chooser: Chooser<'_>,
        sampler: &mut Sampler,
        token: u32,
        count: usize,
        options: &RunOptions,
    ) -> Result<Vec<u32>> {
        let mut calls = self.calls_ahead(chooser, options)?;
        let known = self.generator.vocabulary_len();
        let (mut token, mut drafted) = (token, Vec::with_capacity(count));
        while drafted.len() < count {
            self.launch_two(&mut calls, sampler, token, drafted.len() + 1 < count)?;
            let next = calls.wait(sampler, known)?;
            self.tokens.push(token);
            let Some(next) = next else { break };
            drafted.push(next);
            if self.ends_with(next) {
                break;
            }
            token = next;
        }
        calls.drop_all(sampler);
        Ok(drafted)
    }

    fn write_ahead(
        &mut self,
        calls: &mut Calls<'_>,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        told: &mut dyn FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        let mut decoder = Decoder::default();
        let mut token = match self.logits.is_empty() && !self.knows_next() {
            false => self.chosen(sampler, options)?,
            true => self.begin_ahead(calls, sampler, options)?,
        };
        for count in 0..most {
            if self.ends_with(token) {
                return Ok(Stop::End);
            }
            if self.tokens.len() >= self.generator.context() {
                return Ok(Stop::Context);
            }
            let is_last = count + 1 == most;
            let is_here = is_last || calls.under_way.is_empty() && calls.trust.host_chooses();
            if !is_here {
                self.launch_two(calls, sampler, token, count + 2 < most)?;
            }
            let text = decoder.push(&self.generator.inner.tokenizer.bytes(token, false));
            let flow = told(&Piece { token, text });
            if is_here {
                // With its logits, for what comes next.
                self.append(&[token], options)?;
            }
            if flow.is_break() {
                // Else the call that takes it is under way; nobody wants to know what it chose.
                self.tokens.extend((!is_here).then_some(token));
                return Ok(Stop::Caller);
            }
            token = match is_here {
                true if is_last => break,
                true => self.chosen(sampler, options)?,
                false => {
                    let next = calls.wait(sampler, self.generator.vocabulary_len())?;
                    self.tokens.push(token);
                    self.taken(calls, sampler, next, options)?
                }
            };
        }
        Ok(Stop::Length)
    }

    /// The calls that take a token and the one behind it, unless they are under way.
    fn launch_two(
        &mut self,
        calls: &mut Calls<'_>,
        sampler: &mut Sampler,
        token: u32,
        more: bool,
    ) -> Result<()> {
        if calls.under_way.is_empty() {
            self.check_room(&[token])?;
            let token = Tensor::from_slice(&[token as i32], [1])?;
            calls.launch(self, sampler, &token)?;
        }
        let has_room = self.tokens.len() + calls.under_way.len() < self.generator.context();
        // What takes a token that nobody has seen could not be taken back from a state.
        let is_free = calls.under_way.len() == 1 && !self.generator.inner.is_recurrent();
        match more && has_room && is_free && calls.waited < SLOW {
            true => calls.launch_ahead(self, sampler),
            false => Ok(()),
        }
    }

    /// The first token, where its logits are not there: the last token is computed once more.
    fn begin_ahead(
        &mut self,
        calls: &mut Calls<'_>,
        sampler: &mut Sampler,
        options: &RunOptions,
    ) -> Result<u32> {
        let Some(last) = self.tokens.last().copied() else { return Err(no_tokens()) };
        self.truncate(self.tokens.len() - 1);
        self.begin_again(options)?;
        let token = Tensor::from_slice(&[last as i32], [1])?;
        let launched = calls.launch(self, sampler, &token);
        let next = launched.and_then(|()| calls.wait(sampler, self.generator.vocabulary_len()));
        // Its keys and values are as they were, or the same again.
        self.tokens.push(last);
        let next = next?;
        self.taken(calls, sampler, next, options)
    }

    /// The next token: the one that the device chose, or where the host has to, or a schema does not allow that one, another.
    fn taken(
        &mut self,
        calls: &mut Calls<'_>,
        sampler: &mut Sampler,
        chosen: Option<u32>,
        options: &RunOptions,
    ) -> Result<u32> {
        let Some(token) = chosen else { return self.choose_again(calls, sampler, options) };
        let is_allowed = sampler.takes(token);
        calls.trust.learn(is_allowed);
        if is_allowed {
            return Ok(token);
        }
        calls.drop_all(sampler);
        self.forget();
        self.compute_logits(options)?;
        sampler.choose_allowed(&self.logits, &self.tokens).ok_or_else(no_number)
    }

    /// The host chooses where a logit is no number.
    fn choose_again(
        &mut self,
        calls: &mut Calls<'_>,
        sampler: &mut Sampler,
        options: &RunOptions,
    ) -> Result<u32> {
        calls.drop_all(sampler);
        self.forget();
        self.chosen(sampler, options)
    }
}
