//! A sequence of tokens and its caches on the device.

use std::sync::Arc;

use halite_text::Sampler;

use super::{
    Calls, Generator, Next, Pieces, Stop,
    drafting::Drafting,
    encoder::unknown_token,
    flight::{self, Chosen, Ticket},
    pieces,
    seats::{NOBODY, Seat, Seats},
};
use crate::{Error, ErrorKind, Result, RunOptions, State, Tensor, options::Limits};

/// A sequence of tokens, with caches of what the model computed of them. Made by [`Generator::sequence`].
///
/// A call that fails leaves the tokens as they were before it.
#[derive(Debug)]
pub struct Sequence {
    pub(super) generator: Generator,
    /// None where the model keeps nothing from call to call.
    pub(super) state: Option<State>,
    /// Where its caches are, if it can take steps together with others. The state has no call under way when it goes.
    pub(super) seat: Option<Seat>,
    /// Whether caches or states hold more than the tokens, and cannot be cut: they are computed anew then.
    pub(super) cut: bool,
    /// Tokens that an encoder in front of the model read.
    pub(super) source: Vec<u32>,
    /// Tokens whose keys and values are in the caches.
    pub(super) tokens: Vec<u32>,
    /// Logits behind the last token; empty where they have to be computed again.
    pub(super) logits: Vec<f32>,
    /// The most likely token behind the last one, where the device found it and logits were not read.
    likely: Option<u32>,
    /// The next token, where the device drew it for a sampler.
    drawn: Option<Chosen>,
    /// Its part in steps of several sequences that are under way: they take the last token, and more.
    pub(super) ticket: Option<Ticket>,
    /// Whether logits are not read behind steps of several sequences.
    pub(super) skips: bool,
    /// Whether texts go on behind the token that ends them.
    pub(super) goes_on: bool,
    /// What a second model writes ahead of it, once it has.
    pub(super) drafting: Option<Box<Drafting>>,
}

impl Sequence {
    pub(super) fn new(generator: Generator) -> Result<Sequence> {
        let state = match &generator.inner.calls {
            Calls::Pieces(pieces) => Some(pieces.main.state()?),
            Calls::Decoder(decoder) => decoder.state()?,
        };
        let (tokens, logits) = (Vec::new(), Vec::new());
        let (seat, likely) = (None, None);
        Ok(Sequence {
            generator,
            state,
            seat,
            cut: false,
            source: Vec::new(),
            tokens,
            logits,
            likely,
            drawn: None,
            ticket: None,
            skips: false,
            goes_on: false,
            drafting: None,
        })
    }

    /// The generator that it belongs to.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// All tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Whether the model writes on behind the token that ends a text, which is a token like others then. It does not unless this says so.
    pub fn ignore_end(&mut self, is_ignored: bool) {
        self.goes_on = is_ignored;
    }

    /// Whether only the most likely token is wanted behind [`Generator::append_each`]: the device finds it, and logits are not read, which
    /// for many tokens takes time. [`Sequence::choose`] knows it then.
    pub fn skip_logits(&mut self, are_skipped: bool) {
        self.skips = are_skipped;
    }

    /// Logits of the token that comes next, one for each token that the model knows. Empty before the first token, and behind
    /// [`Sequence::load`], [`Sequence::truncate`], texts that ended where the device chooses tokens, texts with a draft of which the next
    /// token is known, and steps of several sequences of which the device chose the next token ([`Generator::step`]).
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Bytes of its caches on the device, with those of its draft ([`super::GeneratorOptions::draft`]).
    pub fn byte_len(&self) -> usize {
        let draft = self.drafting.as_ref().map_or(0, |own| own.writer.byte_len());
        self.state.as_ref().map_or(0, State::byte_len) + draft
    }

    /// Makes the sequence these tokens. What it has in common with them from the beginning on is kept, and not computed again;
    /// returns how many tokens that are.
    ///
    /// Where a model has an encoder in front (T5), these tokens go there, whole, and are [`Sequence::source`]. The sequence is the one token
    /// then that answers begin with. The same prompt again is not read again.
    ///
    /// # Errors
    /// There are none, there is no room for them, one is not known, or the device fails.
    pub fn prompt(&mut self, tokens: &[u32], options: &RunOptions) -> Result<usize> {
        self.land()?;
        self.check(0, tokens)?;
        if tokens.is_empty() {
            return Err(Error::invalid("a prompt has at least one token"));
        }
        if self.has_encoder() {
            return self.prompt_encoder(tokens, options);
        }
        let same = self.tokens.iter().zip(tokens).take_while(|(own, other)| own == other).count();
        let is_known = !self.logits.is_empty() || self.knows_next();
        if same == tokens.len() && same == self.tokens.len() && is_known {
            return Ok(same);
        }
        // Logits come of the last token.
        let kept = same.min(tokens.len() - 1);
        let kept = if kept < self.tokens.len() && !self.forgets() { 0 } else { kept };
        self.truncate(kept);
        self.append(&tokens[kept..], options)?;
        Ok(kept)
    }

    /// Adds tokens and computes the logits behind them. Many go in pieces.
    ///
    /// # Errors
    /// There is no room for them, one is not known, or the device fails.
    pub fn append(&mut self, tokens: &[u32], options: &RunOptions) -> Result<()> {
        self.land()?;
        self.check_source()?;
        self.check(self.tokens.len(), tokens)?;
        let before = self.tokens.len();
        let mut rest = tokens;
        while !rest.is_empty() {
            let (size, count) = self.piece(rest.len());
            if let Err(error) = self.step(size, &rest[..count], options) {
                self.truncate(before);
                self.spoil();
                return Err(error);
            }
            rest = &rest[count..];
        }
        Ok(())
    }

    /// The size of the next call, and how many of so many tokens it takes.
    fn piece(&self, left: usize) -> (usize, usize) {
        let room = self.generator.context() - self.tokens.len();
        match &self.generator.inner.calls {
            Calls::Pieces(own) => pieces::next(&own.sizes, left, room, own.costs),
            Calls::Decoder(decoder) => (decoder.piece(left), decoder.piece(left)),
        }
    }

    /// A call that takes `size` tokens, filled up, and gives the logits of the last of them.
    fn step(&mut self, size: usize, tokens: &[u32], options: &RunOptions) -> Result<()> {
        let generator = self.generator.clone();
        (self.likely, self.drawn) = (None, None);
        self.begin_again(options)?;
        match &generator.inner.calls {
            Calls::Pieces(pieces) => {
                let row = [(tokens.len() - 1) as i32];
                let made = self.call(pieces, size, tokens, &row, options)?;
                // Into the memory that they had before: half a megabyte for each token is worth it.
                self.logits.resize(made.len(), 0.0);
                made.read_into(bytemuck::cast_slice_mut(&mut self.logits))
                    .inspect_err(|_| self.logits.clear())?;
            }
            Calls::Decoder(decoder) => {
                self.logits = decoder.logits(self.state.as_mut(), &self.tokens, tokens, options)?;
                // Models are wider than their vocabularies, which nothing fills up.
                self.logits.truncate(generator.vocabulary_len());
            }
        }
        self.tokens.extend_from_slice(tokens);
        Ok(())
    }

    /// Computes the tokens anew where caches or states hold more than these.
    pub(super) fn begin_again(&mut self, options: &RunOptions) -> Result<()> {
        if !std::mem::take(&mut self.cut) {
            return Ok(());
        }
        let tokens = std::mem::take(&mut self.tokens);
        let begun = match &self.generator.inner.calls {
            // The first token begins a state whatever is there.
            Calls::Pieces(_) => Ok(()),
            Calls::Decoder(_) => self.state.as_mut().map_or(Ok(()), State::reset),
        };
        let done = begun.and_then(|()| self.append(&tokens, options));
        if done.is_err() {
            (self.tokens, self.cut) = (tokens, true);
        }
        done
    }

    /// Whether caches can be cut at no cost.
    fn forgets(&self) -> bool {
        match &self.generator.inner.calls {
            Calls::Pieces(pieces) => !pieces.recurrent,
            Calls::Decoder(decoder) => decoder.forgets(),
        }
    }

    /// A call may have changed what is kept although its tokens do not count.
    pub(super) fn spoil(&mut self) {
        self.cut |= !self.forgets();
    }

    /// The same by a call of `size` tokens with the logits of all, which are also those behind the last one.
    pub(super) fn step_of_all(
        &mut self,
        size: usize,
        tokens: &[u32],
        options: &RunOptions,
    ) -> Result<Vec<f32>> {
        let generator = self.generator.clone();
        let Calls::Pieces(pieces) = &generator.inner.calls else { return Err(scores_none()) };
        self.begin_again(options)?;
        let rows: Vec<i32> = (0..size as i32).collect();
        let made = self.call(pieces, size, tokens, &rows, options).and_then(|made| made.to_vec::<f32>());
        let logits = made.inspect_err(|_| self.spoil())?;
        let width = logits.len() / size;
        self.logits = logits[(tokens.len() - 1) * width..tokens.len() * width].to_vec();
        (self.likely, self.drawn) = (None, None);
        self.tokens.extend_from_slice(tokens);
        Ok(logits)
    }

    fn call(
        &mut self,
        pieces: &Pieces,
        size: usize,
        tokens: &[u32],
        rows: &[i32],
        options: &RunOptions,
    ) -> Result<Tensor> {
        let first = self.tokens.len();
        // What fills a call up is behind the tokens, so that they do not see it, and what comes next writes over it.
        let all = tokens.iter().copied().chain(std::iter::repeat(0)).take(size);
        let all: Vec<i32> = all.map(|token| token as i32).collect();
        // A state would see it: there it is nobody's.
        let is_nobody = |place: usize| pieces.recurrent && place >= first + tokens.len();
        let place = |place: usize| if is_nobody(place) { NOBODY } else { place as i64 };
        let positions: Vec<i64> = (first..first + size).map(place).collect();
        let (all, positions, rows) = (
            Tensor::from_slice(&all, [size])?,
            Tensor::from_slice(&positions, [size])?,
            Tensor::from_slice(rows, [rows.len()])?,
        );
        let inputs = [("tokens", &all), ("positions", &positions), ("rows", &rows)];
        let state = self.kept()?;
        state.change(&pieces.main)?;
        let outputs = state.run_with(inputs, options)?;
        outputs.tensor("logits").cloned()
    }

    /// Whether tokens are known and there is room for them behind those that are there.
    pub(super) fn check_room(&self, tokens: &[u32]) -> Result<()> {
        self.check(self.tokens.len(), tokens)
    }

    pub(super) fn check(&self, before: usize, tokens: &[u32]) -> Result<()> {
        let (context, known) = (self.generator.context(), self.generator.vocabulary_len());
        if before + tokens.len() > context {
            let behind = if before == 0 { String::new() } else { format!(" behind {before}") };
            return Err(Error::invalid(format!(
                "{} tokens{behind} do not fit a context of {context}; make it larger with GeneratorOptions::context \
                 (--context)",
                tokens.len()
            )));
        }
        match tokens.iter().find(|token| **token as usize >= known) {
            Some(token) => Err(Error::invalid(unknown_token(*token, known))),
            None => Ok(()),
        }
    }

    /// Takes the tokens behind the first `count` back. Takes no time: the caches are as they were when these came. Where the caches of a
    /// model grow with its calls, which is so in most ONNX files, or layers keep a state of all tokens (as in LFM2), the tokens
    /// that are left are computed anew with the next ones.
    pub fn truncate(&mut self, count: usize) {
        if count < self.tokens.len() {
            // A step that failed took its token back.
            let _ = self.land();
            self.tokens.truncate(count);
            self.forget();
            self.cut |= !self.forgets();
        }
    }

    /// Logits are those of another token now.
    pub(super) fn forget(&mut self) {
        self.logits.clear();
        (self.likely, self.drawn) = (None, None);
    }

    /// Waits for steps of several sequences that are under way, and takes what they chose for this one.
    ///
    /// # Errors
    /// The step failed that took the last token, which is taken back.
    pub(super) fn land(&mut self) -> Result<()> {
        let Some(ticket) = self.ticket.take() else { return Ok(()) };
        let (left, is_ahead) = ticket.leave(self.tokens.len());
        if is_ahead || left.is_err() {
            self.spoil();
        }
        self.drawn = left.inspect_err(|_| _ = self.tokens.pop())?;
        Ok(())
    }

    /// Whether it takes part in steps that are under way.
    pub(super) fn flies(&self) -> bool {
        self.ticket.as_ref().is_some_and(Ticket::is_valid)
    }

    /// What a token is to it that comes next.
    pub(super) fn next_is(&self, token: u32) -> Next {
        match token {
            end if self.ends_with(end) => Next::Stop(Stop::End),
            _ if self.tokens.len() >= self.generator.context() => Next::Stop(Stop::Context),
            token => Next::Token(token),
        }
    }

    /// Whether the device found the next token already.
    pub(super) fn knows_next(&self) -> bool {
        self.likely.is_some() || self.drawn.is_some()
    }

    /// Takes a token whose keys and values are in the caches, with what comes behind it.
    pub(super) fn took(&mut self, token: u32, logits: Vec<f32>, likely: Option<u32>) {
        self.tokens.push(token);
        (self.logits, self.likely, self.drawn) = (logits, likely, None);
    }

    /// Has its caches where they can take part in a step of several sequences; where they are, if no place is free.
    pub(super) fn sit(&mut self, seats: &Arc<Seats>, limits: &Limits) -> Result<()> {
        self.land()?;
        if self.seat.is_none() {
            self.seat = seats.take()?;
        }
        match (&mut self.state, &self.seat) {
            (Some(state), Some(seat)) => state.move_to(&seat.parts, limits),
            _ => Ok(()),
        }
    }

    /// What it keeps from call to call.
    pub(super) fn kept(&mut self) -> Result<&mut State> {
        self.land()?;
        let inner = self.generator.inner.clone();
        if let Calls::Pieces(Pieces { seats: Some(seats), .. }) = &inner.calls
            && self.seat.is_none()
            && self.state.as_ref().is_some_and(State::is_empty)
        {
            self.sit(seats, &Limits::default())?;
        }
        let none = || Error::new(ErrorKind::Other, "the model keeps nothing from call to call");
        self.state.as_mut().ok_or_else(none)
    }

    /// The next token, which is not added yet. `None` where no logit is a number.
    ///
    /// # Errors
    /// There are no tokens yet, or the device fails.
    pub fn choose(&mut self, sampler: &mut Sampler, options: &RunOptions) -> Result<Option<u32>> {
        self.land()?;
        if self.likely.is_some() && sampler.is_greedy() {
            return Ok(self.likely);
        }
        if let Some(Chosen { token, samplers: [before, after] }) = &self.drawn
            && flight::is_same(before, sampler)
        {
            let (token, after) = (*token, after.clone());
            *sampler = after;
            return Ok(Some(token));
        }
        self.compute_logits(options)?;
        Ok(sampler.choose(&self.logits, &self.tokens))
    }

    /// Has the logits behind the last token, which is computed again where they were not kept.
    pub(super) fn compute_logits(&mut self, options: &RunOptions) -> Result<()> {
        if !self.logits.is_empty() {
            return Ok(());
        }
        let last = self.tokens.last().copied().ok_or_else(no_tokens)?;
        self.truncate(self.tokens.len() - 1);
        self.append(&[last], options)
    }

    /// A second sequence with the same tokens and a copy of the caches: from here on they go their own ways.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn fork(&mut self) -> Result<Sequence> {
        self.land()?;
        Ok(Sequence {
            generator: self.generator.clone(),
            state: self.state.as_mut().map(State::fork).transpose()?,
            seat: None,
            cut: self.cut,
            source: self.source.clone(),
            tokens: self.tokens.clone(),
            logits: self.logits.clone(),
            likely: self.likely,
            drawn: self.drawn.clone(),
            ticket: None,
            skips: self.skips,
            goes_on: self.goes_on,
            drafting: None,
        })
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        // The next one on its seat must not meet what the device still does there.
        let _ = self.land();
        if let (Some(state), Some(_)) = (&mut self.state, &self.seat) {
            let _ = state.settle(&Limits::default());
        }
    }
}

/// The error that a sequence does not tell how likely texts are.
pub(super) fn scores_none() -> Error {
    Error::invalid("the generator does not score; ask for it with GeneratorOptions::scoring, for a GGUF file")
}

/// The error that there is no next token.
pub(super) fn no_number() -> Error {
    let text = "no logit is a number: the model's weights, or a device's results, are damaged";
    Error::new(ErrorKind::Other, text)
}

/// The error that there is nothing to write on from.
pub(super) fn no_tokens() -> Error {
    Error::invalid("a sequence without tokens has no next one; give it a prompt")
}
