//! Where sequences have their caches that write together: those of up to 16 lie one behind the other in one piece of memory, so that one
//! dispatch reaches all of them.

use std::{ops::Range, sync::Arc};

use halite_compiler::{BATCH, BATCH_SAMPLE};
use parking_lot::Mutex;

use crate::{
    Device, Dimension, ElementType, Error, ErrorKind, Function, Result, Session, State, Tensor, ValueType,
    compile, state::Parts,
};

/// The place of a row that is of no sequence.
pub(super) const NOBODY: i64 = -1;
/// Results of a step: the logits of each sequence, and the most likely tokens.
pub(super) const LOGITS: &str = "logits";

/// Most sequences that a call takes a step of.
pub(super) const MOST_TOGETHER: usize = 16;
/// Caches have room for a multiple of so many tokens, of two bytes each at least: so those of each sequence begin at a multiple of 256 bytes,
/// which is the most that Vulkan lets a device ask for.
pub(super) const ROUND: usize = 128;

/// For how many sequences there are versions of the function, where so many are to write together.
pub(super) fn sizes(most: usize) -> Vec<usize> {
    let most = most.min(MOST_TOGETHER);
    let powers = [2, 4, 8, 16].into_iter().filter(|size| *size < most);
    // Graphs for 2, 4, 8 and, say, 10 differ in more than a size: ten take a step of eight and one of two.
    let is_own = most > 1 && (most <= 8 || most == MOST_TOGETHER);
    powers.chain(is_own.then_some(most)).collect()
}

/// A tensor of the caches.
struct Kind {
    name: String,
    element: ElementType,
    /// Its sizes behind that of sequences.
    dims: Vec<usize>,
}

/// The seats of a generator.
pub(super) struct Seats {
    /// The function that takes a step of several sequences and gives logits.
    function: Function,
    /// That which draws their next tokens, where the device chooses.
    draws: Option<Function>,
    device: Device,
    sizes: Vec<usize>,
    kinds: Vec<Kind>,
    benches: Vec<Bench>,
}

/// The state of neighbouring seats, and its memory.
pub(super) struct Ready {
    /// Whether it is that of the function that draws tokens.
    pub draws: bool,
    pub state: State,
    pub parts: Parts,
}

/// Neighbouring seats.
struct Bench {
    seats: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// Memory of all, as long as one is taken.
    parts: Parts,
    /// What steps of neighbours need, as they had it before.
    ready: Vec<(Range<usize>, Ready)>,
    /// Seats that are taken.
    taken: Vec<bool>,
    /// Seats that somebody had.
    used: Vec<bool>,
    /// Whether the device had no memory for it.
    is_refused: bool,
}

/// A sequence's seat, which is free again when this is dropped. Nothing on the device may use it any more then.
pub(super) struct Seat {
    seats: Arc<Seats>,
    bench: usize,
    place: usize,
    /// Its part of the bench's memory.
    pub parts: Parts,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let dropped = {
            let mut held = self.seats.benches[self.bench].held.lock();
            held.taken[self.place] = false;
            let is_empty = !held.taken.contains(&true);
            is_empty.then(|| std::mem::take(&mut *held))
        };
        drop(dropped);
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("bench", &self.bench).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Seat {
    /// Its bench, and its place there.
    pub fn place(&self) -> (usize, usize) {
        (self.bench, self.place)
    }
}

impl Seats {
    /// Seats for so many sequences of a session with functions that take a step of several.
    pub fn new(session: &Session, most: usize, context: usize) -> Result<Seats> {
        let function = session.function(BATCH)?;
        let draws = session.function(BATCH_SAMPLE).ok();
        let device = session.device().cloned();
        let device =
            device.ok_or_else(|| Error::invalid("caches live on a device, and the session has none"))?;
        let kinds = kinds(&function, context)?;
        let largest = compile::capabilities(device.hal().info())?.max_storage_buffer_bytes;
        // Where a device cannot bind the caches of all at once, there are more benches.
        let bytes = kinds.iter().map(Kind::seat_bytes).max().unwrap_or(1).max(1) as u64;
        let together = usize::try_from(largest / bytes).unwrap_or(usize::MAX).min(MOST_TOGETHER);
        if together < most.min(MOST_TOGETHER) {
            log::warn!(
                "the caches of {together} sequences can be bound at once, with {context} tokens each: fewer than {most} write together"
            );
        }
        let mut benches = Vec::new();
        let mut left = most;
        while left > 0 {
            let seats = left.min(together.max(1));
            benches.push(Bench { seats, held: Mutex::default() });
            left -= seats;
        }
        let sizes = sizes(most).into_iter().filter(|size| *size <= together).collect();
        Ok(Seats { function, draws, device, sizes, kinds, benches })
    }

    /// Whether the device can draw tokens of several sequences.
    pub fn can_draw(&self) -> bool {
        self.draws.is_some()
    }

    /// The first seat that is free, with zeros; `None` where all are taken, or there is no memory for the others.
    pub fn take(self: &Arc<Self>) -> Result<Option<Seat>> {
        for (bench, own) in self.benches.iter().enumerate() {
            let mut held = own.held.lock();
            if held.is_refused {
                continue;
            }
            if held.taken.is_empty() {
                held.parts = match self.memory(own.seats) {
                    // One alone may have room all the same.
                    Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                        log::warn!(
                            "no memory for the caches of {} sequences that write together: {error}",
                            own.seats
                        );
                        held.is_refused = true;
                        continue;
                    }
                    made => made?,
                };
                (held.taken, held.used) = (vec![false; own.seats], vec![false; own.seats]);
            }
            let Some(place) = held.taken.iter().position(|taken| !taken) else { continue };
            let parts = parts(&held.parts, place..place + 1)?;
            if held.used[place] {
                // Nobody finds what another sequence left.
                parts.values().try_for_each(Tensor::clear)?;
            }
            (held.taken[place], held.used[place]) = (true, true);
            return Ok(Some(Seat { seats: self.clone(), bench, place, parts }));
        }
        Ok(None)
    }

    fn memory(&self, seats: usize) -> Result<Parts> {
        let one = |kind: &Kind| {
            let shape = [&[seats], &kind.dims[..]].concat();
            Ok((kind.name.clone(), Tensor::zeros_on(&self.device, kind.element, &shape)?))
        };
        self.kinds.iter().map(one).collect()
    }

    /// The fewest neighbouring seats of a bench that have all these places, and for which there is a version. `None` where a call
    /// for one sequence serves, or there is no such version.
    pub fn window(&self, bench: usize, places: &[usize]) -> Option<Range<usize>> {
        window(places, self.benches[bench].seats, &self.sizes)
    }

    /// What a step of neighbours needs, for which tokens are drawn or not.
    pub fn ready(&self, bench: usize, window: &Range<usize>, draws: bool) -> Result<Ready> {
        let mut held = self.benches[bench].held.lock();
        let is_it = |(own, ready): &(Range<usize>, Ready)| own == window && ready.draws == draws;
        if let Some(place) = held.ready.iter().position(is_it) {
            return Ok(held.ready.swap_remove(place).1);
        }
        let parts = parts(&held.parts, window.clone())?;
        let function = self.draws.as_ref().filter(|_| draws).unwrap_or(&self.function);
        Ok(Ready { draws, state: State::over(function.clone(), &parts)?, parts })
    }

    /// Gives it back for the next step of the same seats, of which one is taken still.
    pub fn keep(&self, bench: usize, window: Range<usize>, ready: Ready) {
        self.benches[bench].held.lock().ready.push((window, ready));
    }
}

impl Kind {
    /// Bytes of a sequence.
    fn seat_bytes(&self) -> usize {
        self.dims.iter().product::<usize>() * self.element.byte_count() as usize
    }
}

/// Parts of the memory of a bench.
fn parts(all: &Parts, seats: Range<usize>) -> Result<Parts> {
    all.iter().map(|(name, tensor)| Ok((name.clone(), tensor.part(seats.clone())?))).collect()
}

/// The fewest neighbouring seats of a bench that have these places, of one of the sizes.
fn window(places: &[usize], seats: usize, sizes: &[usize]) -> Option<Range<usize>> {
    let (first, last) = (*places.iter().min()?, *places.iter().max()?);
    let size = sizes.iter().copied().find(|size| *size > last - first && *size <= seats)?;
    let first = first.min(seats - size);
    (places.len() > 1).then_some(first..first + size)
}

/// The caches of a function, for sequences of so many tokens.
fn kinds(function: &Function, context: usize) -> Result<Vec<Kind>> {
    let info = function.info();
    let one = |name: &str| {
        let input = info.all_inputs().find(|input| input.name == name);
        let ValueType::Tensor { element_type: Some(element), shape: Some(shape) } = &input?.value_type else {
            return None;
        };
        let size = |dimension: &Dimension| match dimension {
            Dimension::Fixed(size) => Some(*size),
            _ => Some(context),
        };
        let dims: Option<Vec<usize>> = shape.get(1..)?.iter().map(size).collect();
        Some(Kind { name: name.to_owned(), element: *element, dims: dims? })
    };
    let kinds: Option<Vec<Kind>> = info.states.iter().map(|pair| one(&pair.input)).collect();
    kinds.ok_or_else(|| {
        Error::new(ErrorKind::Other, format!("'{}' does not say what its caches are", info.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_versions_up_to_as_many_as_write() {
        assert!(sizes(1).is_empty() && sizes(0).is_empty());
        assert_eq!(sizes(2), [2]);
        assert_eq!(sizes(6), [2, 4, 6]);
        assert_eq!(sizes(10), [2, 4, 8]);
        assert_eq!(sizes(16), [2, 4, 8, 16]);
        assert_eq!(sizes(40), [2, 4, 8, 16]);
    }

    #[test]
    fn windows_are_as_small_as_they_can_be() {
        let of = |places: &[usize]| window(places, 7, &[2, 4, 7]);
        assert_eq!(of(&[0, 1]), Some(0..2));
        assert_eq!(of(&[6, 5]), Some(5..7));
        assert_eq!(of(&[2, 4]), Some(2..6));
        assert_eq!(of(&[4, 5, 6]), Some(3..7), "it ends where the bench does");
        assert_eq!(of(&[1, 5]), Some(0..7));
        assert_eq!(of(&[3]), None, "one alone has a call of its own");
        assert_eq!(window(&[0, 2], 3, &[2, 4, 7]), None, "no version fits");
    }
}
