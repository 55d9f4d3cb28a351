//! Steps of several sequences at once, which read the model's weights once.

use std::{ops::Range, sync::Arc};

use halite_compiler::CHOSEN;
use halite_text::Sampler;

use super::{
    Calls, Generator, Sequence,
    flight::{Flight, Ticket},
    members::{Added, Member, Next},
    seats::{LOGITS, NOBODY, Ready, Seat, Seats},
};
use crate::{Error, Result, RunOptions, Tensor, options::Limits};

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
    /// Tokens are those that each sequence writes alone, up to what devices round. Where the device chooses for all of them
    /// ([`super::ChooseOn`]), it works on the two steps behind this one when this returns: the next call, for the same sequences or fewer of
    /// them, does not make it wait. Otherwise the device finds most likely tokens, and the host chooses where samplers take others. Logits
    /// are not read where the device has the token ([`Sequence::logits`] is empty behind it). Sequences beyond [`Generator::batch`], and
    /// those of models that are no GGUF files, take their steps one by one.
    ///
    /// # Errors
    /// A sequence is of another generator or has no tokens, no logit is a number, the device fails, or the options end it. Sequences and
    /// samplers are as they were then, but for those whose step was done before; where a device failed in a step that was under way, the
    /// last token is taken back.
    pub fn step(
        &self,
        members: &mut [(&mut Sequence, &mut Sampler)],
        options: &RunOptions,
    ) -> Result<Vec<Next>> {
        members.iter().try_for_each(|(sequence, _)| self.check_own(sequence))?;
        let limits = self.session().begin(options)?;
        let before = members.iter().map(|(own, sampler)| ((**sampler).clone(), own.tokens().len()));
        let before: Vec<(Sampler, usize)> = before.collect();
        let all = members.iter_mut().map(|(sequence, sampler)| {
            let (sequence, sampler): (&mut Sequence, &mut Sampler) = (sequence, sampler);
            Member { sequence, sampler, next: None, is_done: false }
        });
        let mut all: Vec<Member<'_>> = all.collect();
        let done = self.take_steps(&mut all, options, &limits);
        let next = all.into_iter().filter_map(|member| member.next).collect();
        if done.is_err() {
            for ((sequence, sampler), (before, length)) in members.iter_mut().zip(before) {
                if sequence.tokens().len() <= length {
                    **sampler = before;
                }
            }
        }
        done.map(|()| next)
    }

    /// The next tokens of all of these, in steps of as many as can take one together.
    fn take_steps(&self, all: &mut [Member<'_>], options: &RunOptions, limits: &Limits) -> Result<()> {
        // Who was away, or is new, chooses here.
        for member in all.iter_mut().filter(|member| !member.sequence.flies()) {
            member.choose(options)?;
        }
        // They join the others of their bench, whose flight ends.
        if let Some(seats) = self.seats() {
            let mut benches = Vec::new();
            for member in all.iter_mut().filter(|member| member.is_to_add()) {
                member.sequence.sit(seats, limits)?;
                benches.extend(member.sequence.seat.as_ref().map(|seat| seat.place().0));
            }
            let joined = |member: &&mut Member<'_>| {
                let bench = member.sequence.ticket.as_ref().map(Ticket::bench);
                bench.is_some_and(|bench| benches.contains(&bench))
            };
            for member in all.iter_mut().filter(joined) {
                member.choose(options)?;
            }
        }
        self.go_on(all, options, limits)?;
        let added = all.iter_mut().filter(|member| member.is_to_add()).filter_map(|member| {
            let Some(Next::Token(token)) = member.next else { return None };
            let reads = !member.sampler.is_greedy();
            Some(Added { sequence: member.sequence, token, reads, sampler: Some(member.sampler) })
        });
        self.add(added.collect(), options)
    }

    /// Those whose steps are under way go on; where that is not possible they choose here.
    fn go_on(&self, all: &mut [Member<'_>], options: &RunOptions, limits: &Limits) -> Result<()> {
        let mut rest: Vec<&mut Member<'_>> = all
            .iter_mut()
            .filter(|member| member.sequence.ticket.is_some() && member.next.is_none())
            .collect();
        while let Some(ticket) = rest.first().and_then(|first| first.sequence.ticket.as_ref()) {
            let flight = ticket.flight().clone();
            let is_on = |member: &&mut Member<'_>| {
                member.sequence.ticket.as_ref().is_some_and(|own| Arc::ptr_eq(own.flight(), &flight))
            };
            let (mut own, others) = rest.into_iter().partition::<Vec<_>, _>(is_on);
            rest = others;
            let went = flight.go_on(&mut own, limits);
            if went.is_err() && limits.goes_on() {
                // The device failed: what it was to compute is taken back.
                own.iter_mut().for_each(|member| _ = member.sequence.land());
            }
            if !went? {
                own.into_iter().try_for_each(|member| member.choose(options))?;
            }
        }
        Ok(())
    }

    /// Where sequences are that take steps together.
    fn seats(&self) -> Option<&Arc<Seats>> {
        match &self.inner.calls {
            Calls::Pieces(pieces) => pieces.seats.as_ref(),
            Calls::Decoder(_) => None,
        }
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
            Added { sequence, token: *token, reads, sampler: None }
        });
        self.add(added.collect(), options)
    }

    fn check_own(&self, sequence: &Sequence) -> Result<()> {
        match Arc::ptr_eq(&self.inner, &sequence.generator().inner) {
            true => Ok(()),
            false => {
                Err(Error::invalid("a sequence takes steps with its own generator, and this is another"))
            }
        }
    }

    /// Adds tokens, those of neighbours together.
    fn add(&self, mut all: Vec<Added<'_>>, options: &RunOptions) -> Result<()> {
        let Some(seats) = self.seats().filter(|_| all.len() > 1) else { return alone(all, options) };
        let limits = self.session().begin(options)?;
        for added in &mut all {
            added.sequence.begin_again(options)?;
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
                Some(window) if self.is_ahead(seats, &group) => {
                    Flight::begin(seats, (bench, window), &mut group, &limits)?;
                }
                Some(window) => {
                    let mut ready = seats.ready(bench, &window, false)?;
                    let done = together(&window, &mut ready, &mut group, &limits);
                    if done.is_err() {
                        group.iter_mut().for_each(|added| added.sequence.spoil());
                    }
                    done?;
                    // What failed is made anew.
                    seats.keep(bench, window, ready);
                }
                None => alone(group, options)?,
            }
        }
        Ok(())
    }

    /// Whether the device chooses what comes next in all of these.
    fn is_ahead(&self, seats: &Seats, all: &[Added<'_>]) -> bool {
        let Some(choosers) = self.inner.choosers() else { return false };
        let is_chosen = |added: &Added<'_>| added.sampler.is_some_and(|own| choosers.of(own).is_some());
        all.iter().all(is_chosen) && (seats.can_draw() || all.iter().all(|added| !added.reads))
    }
}

/// Adds tokens one by one.
fn alone(all: Vec<Added<'_>>, options: &RunOptions) -> Result<()> {
    all.into_iter().try_for_each(|added| added.sequence.append(&[added.token], options))
}

/// Adds a token to each of some sequences in one call, for neighbouring seats.
fn together(
    window: &Range<usize>,
    Ready { state, parts, .. }: &mut Ready,
    group: &mut [Added<'_>],
    limits: &Limits,
) -> Result<()> {
    let row = |added: &Added<'_>| added.row(window);
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
    let info = state.function().info();
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
