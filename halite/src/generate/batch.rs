//! Steps of several sequences at once, which read the model's weights once.

use std::ops::Range;

use halite_compiler::CHOSEN;
use halite_text::Sampler;

use super::{
    Calls, Generator, Sequence, Stop,
    seats::{Ready, Seat, Seats},
    sequence::no_number,
};
use crate::{Error, Result, RunOptions, Tensor, options::Limits};

/// The place of a row that is of no sequence.
const NOBODY: i64 = -1;
/// Results of a step: the logits of each sequence, and the most likely tokens.
const LOGITS: &str = "logits";

/// What a sequence writes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// This token, which the sequence has now.
    Token(u32),
    /// Nothing: the sequence is as it was.
    Stop(Stop),
}

/// A token on its way into a sequence.
struct Added<'a> {
    sequence: &'a mut Sequence,
    token: u32,
    /// Whether somebody looks at the logits behind it, and not at the most likely token alone.
    reads: bool,
}

impl Generator {
    /// How many sequences take a step together at most ([`super::GeneratorOptions::batch`]).
    pub fn batch(&self) -> usize {
        match &self.inner.calls {
            Calls::Pieces(pieces) if pieces.seats.is_some() => pieces.batch,
            _ => 1,
        }
    }

    /// The next token of each of these sequences, as their samplers choose it, which is added to them: what is behind all of them is
    /// computed together, so that weights are read once and not once for each sequence. Sequences come and go between steps: who
    /// writes is who is in the list.
    ///
    /// ```no_run
    /// use halite::{GeneratorOptions, Next, RunOptions, Sampler, Sampling, Session};
    ///
    /// let options = RunOptions::new();
    /// let generator = Session::builder().model("model.gguf").generator(GeneratorOptions::new().batch(4))?;
    /// let mut texts = Vec::new();
    /// for prompt in ["The sky is", "Two and two are", "Once upon a time"] {
    ///     let mut sequence = generator.sequence()?;
    ///     sequence.prompt(&generator.tokenize(prompt, false), &options)?;
    ///     texts.push((sequence, Sampler::new(Sampling::default())));
    /// }
    /// for _ in 0..64 {
    ///     let mut all: Vec<_> = texts.iter_mut().map(|(sequence, sampler)| (sequence, sampler)).collect();
    ///     let next = generator.step(&mut all, &options)?;
    ///     // Who has said all leaves.
    ///     let mut next = next.iter();
    ///     texts.retain(|_| matches!(next.next(), Some(Next::Token(_))));
    /// }
    /// # Ok::<(), halite::Error>(())
    /// ```
    ///
    /// Tokens are those that each sequence writes alone, up to what devices round. Where a sampler takes the most likely token, the device
    /// finds it, and its logits are not read ([`Sequence::logits`] is empty behind it); otherwise the host chooses. Sequences beyond
    /// [`Generator::batch`], and those of models that are no GGUF files, take their steps one by one.
    ///
    /// # Errors
    /// A sequence is of another generator or has no tokens, no logit is a number, the device fails, or the options end it. Sequences and
    /// samplers are as they were then, but for those whose step was done before.
    pub fn step(
        &self,
        members: &mut [(&mut Sequence, &mut Sampler)],
        options: &RunOptions,
    ) -> Result<Vec<Next>> {
        let before = members.iter().map(|(own, sampler)| ((**sampler).clone(), own.tokens().len()));
        let before: Vec<(Sampler, usize)> = before.collect();
        let mut next = Vec::new();
        let chosen = members.iter_mut().try_for_each(|(sequence, sampler)| {
            next.push(self.next_of(sequence, sampler, options)?);
            Ok(())
        });
        let done = chosen.and_then(|()| {
            let added = members.iter_mut().zip(&next).filter_map(|((sequence, sampler), next)| match next {
                Next::Token(token) => {
                    Some(Added { sequence, token: *token, reads: !sampler.sampling().is_greedy() })
                }
                Next::Stop(_) => None,
            });
            self.add(added.collect(), options)
        });
        if done.is_err() {
            for ((sequence, sampler), (before, length)) in members.iter_mut().zip(before) {
                if sequence.tokens().len() == length {
                    **sampler = before;
                }
            }
        }
        done.map(|()| next)
    }

    /// Adds a token to each of these sequences and computes the logits behind it, of all together: for programs that choose tokens
    /// themselves. The rest is as with [`Generator::step`].
    ///
    /// # Errors
    /// A sequence is of another generator or is full, a token is not known, the device fails, or the options end it. Sequences are
    /// as they were then, but for those whose step was done before.
    pub fn append_each(&self, tokens: &mut [(&mut Sequence, u32)], options: &RunOptions) -> Result<()> {
        for (sequence, token) in tokens.iter() {
            self.check_own(sequence)?;
            sequence.check_room(&[*token])?;
        }
        let added = tokens.iter_mut().map(|(sequence, token)| {
            let reads = !sequence.skips;
            Added { sequence, token: *token, reads }
        });
        self.add(added.collect(), options)
    }

    fn check_own(&self, sequence: &Sequence) -> Result<()> {
        match std::sync::Arc::ptr_eq(&self.inner, &sequence.generator().inner) {
            true => Ok(()),
            false => {
                Err(Error::invalid("a sequence takes steps with its own generator, and this is another"))
            }
        }
    }

    fn next_of(&self, sequence: &mut Sequence, sampler: &mut Sampler, options: &RunOptions) -> Result<Next> {
        self.check_own(sequence)?;
        let token = sequence.choose(sampler, options)?.ok_or_else(no_number)?;
        Ok(match token {
            end if sequence.ends_with(end) => Next::Stop(Stop::End),
            _ if sequence.tokens().len() >= self.context() => Next::Stop(Stop::Context),
            token => Next::Token(token),
        })
    }

    /// Adds tokens, those of neighbours together.
    fn add(&self, mut all: Vec<Added<'_>>, options: &RunOptions) -> Result<()> {
        let Calls::Pieces(pieces) = &self.inner.calls else { return alone(all, options) };
        let Some(seats) = pieces.seats.as_ref().filter(|_| all.len() > 1) else { return alone(all, options) };
        let limits = self.session().begin(options);
        for added in &mut all {
            added.sequence.sit(seats, &limits)?;
        }
        all.sort_by_key(|added| added.sequence.seat.as_ref().map(Seat::place));
        let mut all = all.into_iter().peekable();
        while let Some(first) = all.next() {
            let Some((bench, place)) = first.sequence.seat.as_ref().map(Seat::place) else {
                alone(vec![first], options)?;
                continue;
            };
            let (mut group, mut places, mut found) = (vec![first], vec![place], None);
            while let Some((_, place)) = all
                .peek()
                .and_then(|next| next.sequence.seat.as_ref())
                .map(Seat::place)
                .filter(|own| own.0 == bench)
            {
                places.push(place);
                let Some(window) = seats.window(bench, &places) else { break };
                found = Some(window);
                group.extend(all.next());
            }
            match found {
                Some(window) => {
                    let mut ready = seats.ready(bench, &window)?;
                    together(seats, &window, &mut ready, &mut group, &limits)?;
                    // What failed is made anew.
                    seats.keep(bench, window, ready);
                }
                None => alone(group, options)?,
            }
        }
        Ok(())
    }
}

/// Adds tokens one by one.
fn alone(all: Vec<Added<'_>>, options: &RunOptions) -> Result<()> {
    all.into_iter().try_for_each(|added| added.sequence.append(&[added.token], options))
}

/// Adds a token to each of some sequences in one call, for neighbouring seats.
fn together(
    seats: &Seats,
    window: &Range<usize>,
    Ready { state, parts }: &mut Ready,
    group: &mut [Added<'_>],
    limits: &Limits,
) -> Result<()> {
    let row =
        |added: &Added<'_>| added.sequence.seat.as_ref().map_or(0, |seat| seat.place().1 - window.start);
    let (mut tokens, mut positions) = (vec![0i32; window.len()], vec![NOBODY; window.len()]);
    for added in group.iter() {
        (tokens[row(added)], positions[row(added)]) =
            (added.token as i32, added.sequence.tokens().len() as i64);
    }
    let (tokens, positions) =
        (Tensor::from_slice(&tokens, [window.len()])?, Tensor::from_slice(&positions, [window.len()])?);
    let reading = group.iter().filter(|added| added.reads).count();
    // Few rows are read one by one, where they are.
    let all_at_once = 2 * reading > window.len();
    let info = seats.function().info();
    let logits = info.outputs.iter().position(|output| output.name == LOGITS);
    let unread: Vec<usize> = logits.into_iter().filter(|_| !all_at_once).collect();
    let inputs = [("tokens", &tokens), ("positions", &positions)].into();
    let outputs = state.run_over(parts, inputs, &unread, limits)?;
    let chosen = outputs.tensor(CHOSEN)?.to_vec::<i32>()?;
    let logits = outputs.tensor(LOGITS)?;
    let logits = if all_at_once { logits.to_host()? } else { logits.clone() };
    // All is read before anything counts.
    let mut read = Vec::new();
    for added in group.iter() {
        let (row, likely) = (row(added), chosen[row(added)]);
        read.push(match u32::try_from(likely) {
            Ok(token) if !added.reads => (Vec::new(), Some(token)),
            likely => (logits.part(row..row + 1)?.to_vec::<f32>()?, likely.ok()),
        });
    }
    for (added, (logits, likely)) in group.iter_mut().zip(read) {
        added.sequence.took(added.token, logits, likely);
    }
    Ok(())
}
