//! The bytes of buffers that each command of a segment accesses.

use std::sync::Arc;

use super::Basis;
use halite_hal::{
    BindingTable, BufferRef, ByteRuns, Command, CommandTarget, DispatchCounts, Footprint, Result,
    WHOLE_BUFFER, status,
};

/// What a command does to a range of a buffer.
#[derive(Clone, Debug)]
pub struct Access {
    /// Identity of the buffer: its address.
    pub buffer: usize,
    /// First byte in the buffer.
    pub from: u64,
    /// The byte behind the last.
    pub to: u64,
    /// The bytes in that range, counted from the buffer's first; `None` for all.
    pub runs: Option<ByteRuns>,
    /// Whether the command writes; it reads otherwise.
    pub write: bool,
    /// The command's index in the recording.
    pub command: usize,
    /// `None` for commands without bindings, and for workgroup counts.
    pub binding: Option<usize>,
    /// How the bytes are known.
    pub basis: Basis,
}

/// A range of a buffer.
struct BufferRange {
    buffer: usize,
    offset: u64,
    length: u64,
}

/// The accesses of commands, the first of which has this index in its recording.
pub(super) fn of_segment(segment: &[Command], first: usize, table: &BindingTable) -> Result<Vec<Access>> {
    let mut gatherer = Gatherer { table, command: first, accesses: Vec::new() };
    for command in segment {
        gatherer.command(command)?;
        gatherer.command += 1;
    }
    Ok(gatherer.accesses)
}

struct Gatherer<'a> {
    table: &'a BindingTable,
    command: usize,
    accesses: Vec<Access>,
}

impl Gatherer<'_> {
    fn command(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::Fill { target, .. } | Command::Update { target, .. } => self.transfer(target, true),
            Command::Copy { source, target } => {
                self.transfer(source, false)?;
                self.transfer(target, true)
            }
            Command::Dispatch { .. } => self.dispatch(command),
            Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => Ok(()),
        }
    }

    fn transfer(&mut self, reference: &BufferRef, write: bool) -> Result<()> {
        if let Some(place) = self.place(reference)? {
            self.all_of(&place, write, None, Basis::Exact);
        }
        Ok(())
    }

    fn dispatch(&mut self, command: &Command) -> Result<()> {
        let Command::Dispatch { executable, function, counts, constants, bindings, .. } = command else {
            return Ok(());
        };
        let workgroups = match counts {
            DispatchCounts::Direct(counts) if counts.contains(&0) => return Ok(()),
            DispatchCounts::Direct(counts) => Some(*counts),
            DispatchCounts::Indirect(reference) => {
                self.transfer(&BufferRef { length: 12, ..reference.clone() }, false)?;
                None
            }
        };
        let places = bindings.iter().map(|b| self.place(b)).collect::<Result<Vec<_>>>()?;
        let known = executable.footprints(*function, constants, workgroups);
        match known {
            Some(footprints) => {
                for footprint in &footprints {
                    let binding = usize::try_from(footprint.binding).unwrap_or(usize::MAX);
                    if let Some(Some(place)) = places.get(binding) {
                        self.footprint(place, binding, footprint);
                    }
                }
            }
            None => {
                for (binding, place) in places.iter().enumerate() {
                    for write in [false, true] {
                        place.iter().for_each(|p| self.all_of(p, write, Some(binding), Basis::Unknown));
                    }
                }
            }
        }
        Ok(())
    }

    fn footprint(&mut self, place: &BufferRange, binding: usize, footprint: &Footprint) {
        let Some(runs) = &footprint.bytes else {
            self.all_of(place, footprint.write, Some(binding), Basis::Binding);
            return;
        };
        // What lies outside of the binding is not accessed.
        let limit = i64::try_from(place.length).unwrap_or(i64::MAX);
        let (from, to) = runs.ends();
        // A range that goes beyond tells that an address was not computed to the end.
        let basis = if from < 0 || to > limit { Basis::Binding } else { Basis::Code };
        let (from, to) = (from.clamp(0, limit).unsigned_abs(), to.clamp(0, limit).unsigned_abs());
        let base = i64::try_from(place.offset).ok().and_then(|offset| runs.start.checked_add(offset));
        let Some(start) = base.filter(|_| from < to) else { return };
        self.accesses.push(Access {
            buffer: place.buffer,
            from: place.offset + from,
            to: place.offset + to,
            runs: (!runs.strides.is_empty()).then(|| ByteRuns { start, ..runs.clone() }),
            write: footprint.write,
            command: self.command,
            binding: Some(binding),
            basis,
        });
    }

    fn all_of(&mut self, place: &BufferRange, write: bool, binding: Option<usize>, basis: Basis) {
        let (buffer, command, runs) = (place.buffer, self.command, None);
        let (from, to) = (place.offset, place.offset.saturating_add(place.length));
        self.accesses.push(Access { buffer, from, to, runs, write, command, binding, basis });
    }

    /// Where a reference lies; `None` when it has no bytes.
    fn place(&self, reference: &BufferRef) -> Result<Option<BufferRange>> {
        let slot = |slot: u32| self.table.entries.get(usize::try_from(slot).ok()?)?.as_ref();
        let (buffer, base, limit) = match &reference.target {
            CommandTarget::Direct(buffer) => (buffer, 0, buffer.byte_length()),
            CommandTarget::Slot(number) => match slot(*number) {
                Some(span) => (&span.buffer, span.offset, span.length),
                None => return Ok(None),
            },
        };
        let outside = || {
            let (offset, length) = (reference.offset, reference.length);
            status!(OutOfRange, "{length} bytes at offset {offset} lie outside of {limit} bytes")
        };
        let rest = limit.checked_sub(reference.offset).ok_or_else(outside)?;
        let length = if reference.length == WHOLE_BUFFER { rest } else { reference.length };
        if length > rest {
            return Err(outside());
        }
        let offset = base.checked_add(reference.offset).ok_or_else(outside)?;
        let buffer = Arc::as_ptr(buffer).cast::<()>().addr();
        Ok((length > 0).then_some(BufferRange { buffer, offset, length }))
    }
}
