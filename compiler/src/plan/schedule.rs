//! Commands: dispatches and copies at addresses, and barriers where one has to wait for another.

use std::collections::HashMap;

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
    /// Offset and bytes, of which one is open.
    Open(Size, Size),
}

impl Extent {
    fn of(span: &Span) -> Extent {
        if span.offset.is_constant() && span.bytes.is_constant() {
            let from = span.offset.value();
            return Extent::Known(from, from.saturating_add(span.bytes.value()));
        }
        Extent::Open(span.offset, span.bytes)
    }

    /// Whether both have bytes in common. Open offsets are those of slots, which are the same or apart.
    fn meets(&self, other: &Extent) -> bool {
        match (self, other) {
            (Extent::Known(from, to), Extent::Known(other_from, other_to)) => {
                from < other_to && other_from < to
            }
            (own, other) => own.offset().is(other.offset()),
        }
    }

    fn offset(&self) -> Size {
        match self {
            Extent::Known(from, _) => Size::from(*from),
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
    /// Whether the kernel writes it; it may read it then, too.
    pub written: bool,
}

impl Command {
    /// What it reads or writes, and whether it writes it.
    fn accesses(&self) -> Vec<Binding> {
        match self {
            Command::Dispatch { bindings, .. } => bindings.clone(),
            Command::Copy { from, to } => {
                vec![Binding { span: *from, written: false }, Binding { span: *to, written: true }]
            }
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
        let clashes = |access: &Binding| self.clashes(&access.span, access.written);
        if self.accesses >= MOST_ACCESSES || accesses.iter().flatten().any(clashes) {
            self.barrier();
        }
        for Binding { span, written } in accesses.into_iter().flatten() {
            if !span.memory.is_written() {
                continue;
            }
            let touched = self.since.entry(span.memory).or_default();
            let extent = Extent::of(&span);
            let list = if written { &mut touched.written } else { &mut touched.read };
            // What is taken apart is read again and again.
            if list.last() != Some(&extent) {
                list.push(extent);
                self.accesses += 1;
            }
        }
        self.commands.extend(commands);
    }

    fn clashes(&self, span: &Span, written: bool) -> bool {
        let Some(touched) = self.since.get(&span.memory) else { return false };
        let extent = Extent::of(span);
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
}
