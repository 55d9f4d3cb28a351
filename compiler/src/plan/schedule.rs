//! Commands: dispatches and copies at addresses, and barriers where one has to wait for another.

use std::collections::HashMap;

use halite_ops::runs::Runs;
use halite_sizes::Size;

/// A piece of memory that commands work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// A buffer of the caller.
    Input(u32),
    /// The caller's buffer for a state: an input that is written.
    State(u32),
    /// A buffer for the caller.
    Output(u32),
    /// Memory for one call, or for loading: of an era.
    Transient(u32),
    /// What the host reads.
    Readback,
    /// A slab of constants.
    Constants(u32),
    /// A slab of what was computed at load.
    Packed(u32),
}

/// A part of a memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The memory.
    pub memory: Memory,
    /// Where it begins.
    pub offset: Size,
    /// How long it is.
    pub bytes: Size,
}

/// Where a span lies: as plain numbers wherever these are known, since many are compared with many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The first byte, and the one behind the last.
    Known(u64, u64),
    /// The same, and the runs in between.
    InRuns(u64, u64, Runs),
    /// Offset and bytes, of which one is open.
    Open(Size, Size),
}

impl Extent {
    fn of(access: &Binding) -> Extent {
        let span = &access.span;
        if span.offset.is_constant() && span.bytes.is_constant() {
            let from = span.offset.value();
            let to = from.saturating_add(span.bytes.value());
            return access.runs.map_or(Extent::Known(from, to), |runs| Extent::InRuns(from, to, runs));
        }
        Extent::Open(span.offset, span.bytes)
    }

    /// Whether both have bytes in common. Open offsets are those of slots, which are the same or apart.
    fn meets(&self, other: &Extent) -> bool {
        match (self, other) {
            // Runs of one whole, side by side.
            (Extent::InRuns(from, _, own), Extent::InRuns(other_from, _, other))
                if from == other_from && own.pitch == other.pitch =>
            {
                own.offset < other.offset + other.length && other.offset < own.offset + own.length
            }
            (
                Extent::Known(from, to) | Extent::InRuns(from, to, _),
                Extent::Known(other_from, other_to) | Extent::InRuns(other_from, other_to, _),
            ) => from < other_to && other_from < to,
            (own, other) => own.offset().is(other.offset()),
        }
    }

    fn offset(&self) -> Size {
        match self {
            Extent::Known(from, _) | Extent::InRuns(from, ..) => Size::from(*from),
            Extent::Open(offset, _) => *offset,
        }
    }
}

/// What was read and what was written of a memory.
#[derive(Debug, Default)]
struct Touched {
    read: Vec<Extent>,
    written: Vec<Extent>,
}

/// What a recording has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A kernel runs.
    Dispatch {
        /// An index into the target's kernels.
        kernel: usize,
        /// Workgroups.
        grid: [Size; 3],
        /// Push constants, wrapped to 32 bits.
        push: Vec<Size>,
        /// What is bound: binding n is entry n.
        bindings: Vec<Binding>,
    },
    /// Bytes are copied.
    Copy {
        /// From here,
        from: Span,
        /// to here; as long.
        to: Span,
    },
    /// What follows waits for what is before, and sees what it wrote.
    Barrier,
}

/// A span that a kernel is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The span.
    pub span: Span,
    /// The runs of it that the kernel touches, in bytes, where that is not all of it.
    pub runs: Option<Runs>,
    /// Whether the kernel writes it; it may read it then, too.
    pub written: bool,
}

impl Command {
    /// What it reads or writes, and whether it writes it.
    fn accesses(&self) -> Vec<Binding> {
        match self {
            Command::Dispatch { bindings, .. } => bindings.clone(),
            Command::Copy { from, to } => [(from, false), (to, true)]
                .map(|(span, written)| Binding { span: *span, runs: None, written })
                .into(),
            Command::Barrier => Vec::new(),
        }
    }
}

/// Most accesses between two barriers: each further one is compared with all of them. A barrier after so much work costs nothing that
/// could be measured.
const MOST_ACCESSES: usize = 2048;

/// A recording in the making: puts barriers between commands of which one writes what the other reads or writes.
#[derive(Debug, Default)]
pub struct Schedule {
    commands: Vec<Command>,
    /// What was read and written since the last barrier.
    since: HashMap<Memory, Touched>,
    /// How many spans these are.
    accesses: usize,
    barriers: usize,
}

impl Schedule {
    /// Appends commands that do not wait for each other.
    pub fn push(&mut self, commands: Vec<Command>) {
        let accesses: Vec<Vec<Binding>> = commands.iter().map(Command::accesses).collect();
        let clashes = |access: &Binding| self.clashes(access);
        if self.accesses >= MOST_ACCESSES || accesses.iter().flatten().any(clashes) {
            self.barrier();
        }
        for access in accesses.into_iter().flatten() {
            if !access.span.memory.is_written() {
                continue;
            }
            let touched = self.since.entry(access.span.memory).or_default();
            let extent = Extent::of(&access);
            let list = if access.written { &mut touched.written } else { &mut touched.read };
            // What is taken apart is read again and again.
            if list.last() != Some(&extent) {
                list.push(extent);
                self.accesses += 1;
            }
        }
        self.commands.extend(commands);
    }

    fn clashes(&self, access: &Binding) -> bool {
        let Some(touched) = self.since.get(&access.span.memory) else { return false };
        let (extent, written) = (Extent::of(access), access.written);
        let meets = |other: &Extent| extent.meets(other);
        touched.written.iter().any(meets) || (written && touched.read.iter().any(meets))
    }

    fn barrier(&mut self) {
        self.since.clear();
        self.accesses = 0;
        self.barriers += 1;
        self.commands.push(Command::Barrier);
    }

    /// How many commands do work: all but barriers.
    pub fn working(&self) -> usize {
        self.commands.len() - self.barriers
    }

    /// The commands, with a barrier at the end: whoever comes next sees everything. And how many barriers there are.
    pub fn finish(mut self) -> (Vec<Command>, usize) {
        if !self.commands.is_empty() {
            self.barrier();
        }
        (self.commands, self.barriers)
    }
}

impl Memory {
    /// Whether recordings write it; nothing has to wait for reads of the rest.
    fn is_written(self) -> bool {
        !matches!(self, Memory::Input(_) | Memory::Constants(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, bytes: u64) -> Span {
        Span { memory: Memory::Transient(0), offset: offset.into(), bytes: bytes.into() }
    }

    fn copies(pairs: &[(Span, Span)]) -> String {
        let mut schedule = Schedule::default();
        for (from, to) in pairs {
            schedule.push(vec![Command::Copy { from: *from, to: *to }]);
        }
        let (commands, _) = schedule.finish();
        commands.iter().map(|c| if matches!(c, Command::Barrier) { '|' } else { 'c' }).collect()
    }

    #[test]
    fn only_what_touches_waits() {
        let input = Span { memory: Memory::Input(0), offset: 0.into(), bytes: 64.into() };
        assert_eq!(copies(&[(input, span(0, 64)), (input, span(64, 64))]), "cc|", "two of one input");
        assert_eq!(copies(&[(input, span(0, 64)), (span(0, 64), span(64, 64))]), "c|c|", "read after write");
        assert_eq!(copies(&[(span(0, 64), span(64, 64)), (input, span(0, 64))]), "c|c|", "write after read");
        assert_eq!(copies(&[(input, span(0, 64)), (input, span(60, 64))]), "c|c|", "write after write");
        assert_eq!(copies(&[(span(0, 64), span(64, 64)), (span(0, 64), span(128, 64))]), "cc|", "two reads");
        let three = [(input, span(0, 64)), (span(0, 64), span(64, 64)), (input, span(128, 4))];
        assert_eq!(copies(&three), "c|cc|", "a barrier is enough for all that was before");
        assert_eq!(copies(&[]), "");
    }

    #[test]
    fn runs_side_by_side_do_not_wait_for_each_other() {
        let write = |span: Span, length, offset| Command::Dispatch {
            kernel: 0,
            grid: [1; 3].map(Size::constant),
            push: Vec::new(),
            bindings: vec![Binding { span, runs: Some(Runs { length, pitch: 64, offset }), written: true }],
        };
        let barriers = |commands: Vec<Command>| {
            let mut schedule = Schedule::default();
            commands.into_iter().for_each(|command| schedule.push(vec![command]));
            schedule.finish().1
        };
        let all = span(0, 256);
        assert_eq!(barriers(vec![write(all, 16, 0), write(all, 48, 16)]), 1, "only the one at the end");
        assert_eq!(barriers(vec![write(all, 32, 0), write(all, 48, 16)]), 2, "they meet");
        assert_eq!(
            barriers(vec![write(all, 16, 0), write(span(64, 256), 16, 16)]),
            2,
            "of two wholes that meet"
        );
        let read = Command::Copy { from: all, to: span(512, 256) };
        assert_eq!(barriers(vec![write(all, 16, 0), read]), 2, "all of it is read");
    }
}
