//! Steps of several sequences that are under way while the host tells the tokens of those before them: the device chooses, and each step takes
//! the tokens of the one before it where they are.

use std::{
    collections::VecDeque,
    fmt,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use halite_compiler::{CHOSEN, SAMPLING};
use halite_text::Sampler;
use parking_lot::Mutex;

use super::{
    choosing::{MOST_LIKELY, SLOW, drawing},
    members::{Added, Member, Next},
    seats::{LOGITS, NOBODY, Ready, Seats},
};
use crate::{Pending, Result, Tensor, options::Limits};

/// Calls for neighbouring seats, each behind the last, which go on as long as the same sequences write, or fewer of them.
pub(super) struct Flight {
    seats: Arc<Seats>,
    bench: usize,
    window: Range<usize>,
    /// How many tokens the model knows, and sequences have room for.
    known: usize,
    context: usize,
    held: Mutex<Held>,
}

struct Held {
    /// Given back when the flight is over.
    ready: Option<Ready>,
    /// Who writes, by row.
    riders: Vec<Option<Rider>>,
    /// Those that are under way. Nobody has been told yet what the first chose.
    calls: VecDeque<Call>,
    /// What comes next of those that left.
    left: Vec<Option<Chosen>>,
    /// How long the last call was waited for.
    waited: Duration,
    /// Whether no call may take a token that nobody was told of: what it leaves could not be taken back.
    recurrent: bool,
}

/// A sequence that writes.
#[derive(Clone)]
struct Rider {
    /// As it is behind all calls under way.
    sampler: Sampler,
    /// The place of the token that the next call takes.
    position: usize,
}

struct Call {
    pending: Arc<Pending>,
    /// What it chose, by row, once that was read.
    chosen: Option<Vec<i32>>,
    /// Who takes part, by row: the samplers before it drew for this call, and behind that.
    draws: Vec<Option<[Sampler; 2]>>,
}

/// A token that the device chose for a sequence.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub token: u32,
    /// The sampler before and behind it.
    pub samplers: [Sampler; 2],
}

/// A sequence's part in a flight.
pub(super) struct Ticket {
    flight: Arc<Flight>,
    row: usize,
    /// Tokens of the sequence with the one that the first call took.
    length: usize,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("row", &self.row).field("length", &self.length).finish_non_exhaustive()
    }
}

impl Call {
    /// Waits for what it chooses.
    fn chosen(&mut self, limits: &Limits) -> Result<&[i32]> {
        let all = match self.chosen.take() {
            Some(all) => all,
            None => self.pending.finish(limits)?.tensor(CHOSEN)?.to_vec::<i32>()?,
        };
        Ok(self.chosen.insert(all))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // The last sequence that had part in it has its seat still.
        if let Some(ready) = self.held.get_mut().ready.take() {
            self.seats.keep(self.bench, self.window.clone(), ready);
        }
    }
}

impl Ticket {
    /// Whether its sequence takes part in further calls.
    pub fn is_valid(&self) -> bool {
        self.flight.held.lock().riders[self.row].is_some()
    }

    /// The flight.
    pub fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// The bench of the seats.
    pub fn bench(&self) -> usize {
        self.flight.bench
    }

    /// Takes no part in further calls, waits for those under way, and gives what comes next in a sequence of so many tokens, unless
    /// the call failed that took the last token; and whether calls took more tokens than these.
    pub fn leave(self, tokens: usize) -> (Result<Option<Chosen>>, bool) {
        let row = self.row;
        let own: Vec<Arc<Pending>> = {
            let mut held = self.flight.held.lock();
            held.riders[row] = None;
            let calls = held.calls.iter().filter(|call| call.draws[row].is_some());
            calls.map(|call| call.pending.clone()).collect()
        };
        for pending in &own {
            // Whether it failed is known of the first that nobody was told of.
            let _ = pending.finish(&Limits::default());
        }
        let mut held = self.flight.held.lock();
        // The first call took the last token, unless its choice was kept already.
        let is_ahead = own.len() > usize::from(held.left[row].is_none()) || tokens != self.length;
        let chosen = match held.left[row].take() {
            Some(chosen) => Ok(Some(chosen)),
            None => held.first_of(row, self.flight.known, &Limits::default()),
        };
        (chosen.map(|chosen| chosen.filter(|_| tokens == self.length)), is_ahead)
    }
}

impl Held {
    /// What the first call chose for a row, as it was made.
    fn first_of(&mut self, row: usize, known: usize, limits: &Limits) -> Result<Option<Chosen>> {
        let Some(call) = self.calls.front_mut() else { return Ok(None) };
        let Some(samplers) = call.draws[row].clone() else { return Ok(None) };
        let token = call.chosen(limits)?.get(row).and_then(|token| u32::try_from(*token).ok());
        Ok(token.filter(|token| (*token as usize) < known).map(|token| Chosen { token, samplers }))
    }

    /// Hands a call over for all that write, of tokens that the device may not know yet.
    fn launch(&mut self, tokens: &Tensor, context: usize, limits: &Limits) -> Result<()> {
        let Some(ready) = &mut self.ready else { return Ok(()) };
        let rows = self.riders.len();
        let mut riders = self.riders.clone();
        let (mut positions, mut numbers, mut draws) = (vec![NOBODY; rows], Vec::new(), vec![None; rows]);
        for (row, rider) in riders.iter_mut().enumerate() {
            let Some(rider) = rider.as_mut().filter(|rider| rider.position < context) else {
                numbers.extend(MOST_LIKELY);
                continue;
            };
            positions[row] = rider.position as i64;
            let before = rider.sampler.clone();
            numbers.extend(drawing(&mut rider.sampler));
            draws[row] = Some([before, rider.sampler.clone()]);
            rider.position += 1;
        }
        if draws.iter().all(Option::is_none) {
            return Ok(());
        }
        let positions = Tensor::from_slice(&positions, [rows])?;
        let sampling = Tensor::from_slice(&numbers, [rows, MOST_LIKELY.len()])?;
        let mut inputs = vec![("tokens", tokens), ("positions", &positions)];
        inputs.extend(ready.draws.then_some((SAMPLING, &sampling)));
        let unread: Vec<usize> = ready.place(LOGITS).into_iter().collect();
        let pending = ready.state.follow_unread(inputs.into_iter().collect(), &unread, limits)?;
        self.calls.push_back(Call { pending: Arc::new(pending), chosen: None, draws });
        self.riders = riders;
        ready.state.check_on(&ready.parts)
    }

    /// The call behind the last one, for the tokens that this chooses.
    fn launch_ahead(&mut self, context: usize, limits: &Limits) -> Result<()> {
        let place = self.ready.as_ref().and_then(|ready| ready.place(CHOSEN)).unwrap_or_default();
        let Some(last) = self.calls.back_mut() else { return Ok(()) };
        let tokens = match last.pending.coming(place) {
            Some(tokens) => tokens,
            // It is done already. What is no token is of nobody, or the host will see it.
            None => {
                let all: Vec<i32> = last.chosen(limits)?.iter().map(|token| (*token).max(0)).collect();
                Tensor::from_slice(&all, [all.len()])?
            }
        };
        self.launch(&tokens, context, limits)
    }

    /// As many calls as are under way while the host tells what the first of them chose.
    fn launch_up_to(&mut self, count: usize, context: usize, limits: &Limits) -> Result<()> {
        while self.calls.len() < count {
            let before = self.calls.len();
            self.launch_ahead(context, limits)?;
            if self.calls.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// How many calls are to be under way behind one that is told: what a slow device computes may not be needed.
    fn depth(&self) -> usize {
        if self.waited < SLOW && !self.recurrent { 2 } else { 1 }
    }

    /// Whether these are sequences that write here, as the calls under way left them.
    fn is_of(&self, members: &[&mut Member<'_>]) -> bool {
        let Some(first) = self.calls.front() else { return false };
        members.iter().all(|member| {
            let Some(ticket) = &member.sequence.ticket else { return false };
            let drawn = first.draws[ticket.row].as_ref();
            ticket.length == member.sequence.tokens.len()
                && self.riders[ticket.row].is_some()
                && drawn.is_some_and(|[before, _]| is_same(before, member.sampler))
        })
    }
}

/// Whether two samplers choose the same.
pub(super) fn is_same(one: &Sampler, other: &Sampler) -> bool {
    one == other || one.is_greedy() && other.is_greedy()
}

impl Ready {
    /// The place of a result.
    fn place(&self, name: &str) -> Option<usize> {
        self.state.function().info().outputs.iter().position(|output| output.name == name)
    }
}

impl Flight {
    /// Begins one: hands over the call that takes these tokens of sequences in neighbouring seats, and the one behind it.
    pub fn begin(
        seats: &Arc<Seats>,
        (bench, window): (usize, Range<usize>),
        all: &mut [Added<'_>],
        limits: &Limits,
    ) -> Result<()> {
        let Some(generator) = all.first().map(|first| first.sequence.generator().clone()) else {
            return Ok(());
        };
        let (known, context) = (generator.vocabulary_len(), generator.context());
        let draws = all.iter().any(|added| added.reads);
        let mut held = Held {
            ready: Some(seats.ready(bench, &window, draws)?),
            riders: vec![None; window.len()],
            calls: VecDeque::new(),
            left: vec![None; window.len()],
            waited: Duration::ZERO,
            recurrent: generator.inner.is_recurrent(),
        };
        let mut tokens = vec![0i32; window.len()];
        for added in all.iter() {
            let (row, Some(sampler)) = (added.row(&window), added.sampler) else { continue };
            tokens[row] = added.token as i32;
            held.riders[row] =
                Some(Rider { sampler: sampler.clone(), position: added.sequence.tokens.len() });
        }
        let tokens = Tensor::from_slice(&tokens, [tokens.len()])?;
        let launched = held.launch(&tokens, context, limits);
        let count = if held.recurrent { 1 } else { 2 };
        let launched = launched.and_then(|()| held.launch_up_to(count, context, limits));
        if launched.is_err() {
            // What these sequences do next must not meet what is under way.
            let settled = held.ready.as_mut().map(|ready| ready.state.settle(&Limits::default()));
            drop(settled);
            all.iter_mut().for_each(|added| added.sequence.spoil());
        }
        launched?;
        let (seats, window_of) = (seats.clone(), window.clone());
        let flight = Arc::new(Flight { seats, bench, window, known, context, held: Mutex::new(held) });
        for added in all {
            let (row, sequence) = (added.row(&window_of), &mut *added.sequence);
            sequence.tokens.push(added.token);
            sequence.forget();
            let length = sequence.tokens.len();
            sequence.ticket = Some(Ticket { flight: flight.clone(), row, length });
        }
        Ok(())
    }

    /// The next tokens of some that write here, while those behind them are computed; others have left then. Nothing is done where that
    /// is not possible, or a step of fewer is faster: then they have to leave.
    ///
    /// # Errors
    /// The device failed, or the limits end it; nobody has another token then.
    pub fn go_on(&self, members: &mut [&mut Member<'_>], limits: &Limits) -> Result<bool> {
        let mut held = self.held.lock();
        let rows: Vec<usize> =
            members.iter().filter_map(|member| Some(member.sequence.ticket.as_ref()?.row)).collect();
        let places: Vec<usize> = rows.iter().map(|row| self.window.start + row).collect();
        let window = self.seats.window(self.bench, &places);
        let is_full = window.is_some_and(|window| window.len() == self.window.len());
        if !is_full || !held.is_of(members) {
            return Ok(false);
        }
        for (_, rider) in held.riders.iter_mut().enumerate().filter(|(row, _)| !rows.contains(row)) {
            *rider = None;
        }
        let Some(next) = self.read(&mut held, members, limits)? else { return Ok(false) };
        let mut stay = 0;
        for (row, next) in rows.iter().zip(&next) {
            match next {
                Next::Token(_) => stay += 1,
                Next::Stop(_) => held.riders[*row] = None,
            }
        }
        // Calls that nobody takes part in any more are not made.
        if stay > 0 {
            let count = 1 + held.depth();
            held.launch_up_to(count, self.context, limits)?;
        }
        self.tell(&mut held, members, next, limits)
    }

    /// What the first call chose for these; `None` where it is no token, so that the host has to choose.
    fn read(
        &self,
        held: &mut Held,
        members: &[&mut Member<'_>],
        limits: &Limits,
    ) -> Result<Option<Vec<Next>>> {
        let Some(call) = held.calls.front_mut() else { return Ok(None) };
        let began = Instant::now();
        let all = call.chosen(limits)?;
        let waited = began.elapsed();
        let next = members.iter().map(|member| {
            let ticket = member.sequence.ticket.as_ref()?;
            let token = u32::try_from(*all.get(ticket.row)?).ok()?;
            ((token as usize) < self.known).then(|| member.sequence.next_is(token))
        });
        let next = next.collect();
        held.waited = waited;
        Ok(next)
    }

    /// Gives the tokens of the first call to those that write, and keeps those of others.
    fn tell(
        &self,
        held: &mut Held,
        members: &mut [&mut Member<'_>],
        next: Vec<Next>,
        limits: &Limits,
    ) -> Result<bool> {
        let told: Vec<usize> = members
            .iter()
            .zip(&next)
            .filter_map(|(member, next)| {
                let row = member.sequence.ticket.as_ref()?.row;
                matches!(next, Next::Token(_)).then_some(row)
            })
            .collect();
        for row in (0..held.left.len()).filter(|row| !told.contains(row)) {
            if held.left[row].is_none() {
                held.left[row] = held.first_of(row, self.known, limits)?;
            }
        }
        let Some(call) = held.calls.pop_front() else { return Ok(false) };
        for (member, next) in members.iter_mut().zip(next) {
            let Some(ticket) = &mut member.sequence.ticket else { continue };
            if let Some([_, after]) = &call.draws[ticket.row]
                && !after.is_greedy()
            {
                *member.sampler = after.clone();
            }
            if let Next::Token(token) = next {
                ticket.length += 1;
                member.sequence.tokens.push(token);
            }
            (member.next, member.is_done) = (Some(next), true);
        }
        Ok(true)
    }
}
