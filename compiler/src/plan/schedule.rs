//! Commands: dispatches and copies at addresses, and barriers where one has to wait for another.

use std::collections::HashMap;

/// A piece of memory that commands work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// A buffer of the caller.
    Input(u32),
    /// A buffer for the caller.
    Output(u32),
    /// Memory for one call, or for loading.
    Transient,
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
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// What a recording has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A kernel runs.
    Dispatch {
        /// An index into the target's kernels.
        kernel: usize,
        /// Workgroups.
        grid: [u32; 3],
        /// Push constants.
        push: Vec<u32>,
        /// What is bound: binding n is entry n.
        bindings: Vec<Span>,
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

/// A command and the memory that it touches.
#[derive(Debug)]
pub struct Use {
    /// The command.
    pub command: Command,
    /// What it reads.
    pub reads: Vec<Span>,
    /// What it writes, and may read.
    pub writes: Vec<Span>,
}

impl Use {
    fn spans(&self) -> impl Iterator<Item = (&Span, bool)> {
        self.reads.iter().map(|span| (span, false)).chain(self.writes.iter().map(|span| (span, true)))
    }
}

/// A recording in the making: puts barriers between commands of which one writes what the other reads or writes.
#[derive(Debug, Default)]
pub struct Schedule {
    commands: Vec<Command>,
    /// What was read and written since the last barrier: (start, end, whether written).
    since: HashMap<Memory, Vec<(u64, u64, bool)>>,
    barriers: usize,
}

impl Schedule {
    /// Appends commands that do not wait for each other.
    pub fn push(&mut self, commands: Vec<Use>) {
        if commands.iter().any(|one| one.spans().any(|(span, written)| self.clashes(span, written))) {
            self.barrier();
        }
        for one in commands {
            for (span, written) in one.spans().filter(|(span, _)| span.memory.is_written()) {
                let range = (span.offset, span.offset + span.bytes, written);
                self.since.entry(span.memory).or_default().push(range);
            }
            self.commands.push(one.command);
        }
    }

    fn clashes(&self, span: &Span, written: bool) -> bool {
        let end = span.offset + span.bytes;
        let meets =
            |(start, stop, was): &(u64, u64, bool)| (written || *was) && *start < end && span.offset < *stop;
        self.since.get(&span.memory).is_some_and(|ranges| ranges.iter().any(meets))
    }

    fn barrier(&mut self) {
        self.since.clear();
        self.barriers += 1;
        self.commands.push(Command::Barrier);
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
        Span { memory: Memory::Transient, offset, bytes }
    }

    fn copies(pairs: &[(Span, Span)]) -> String {
        let mut schedule = Schedule::default();
        for (from, to) in pairs {
            let command = Command::Copy { from: *from, to: *to };
            schedule.push(vec![Use { command, reads: vec![*from], writes: vec![*to] }]);
        }
        let (commands, _) = schedule.finish();
        commands.iter().map(|c| if matches!(c, Command::Barrier) { '|' } else { 'c' }).collect()
    }

    #[test]
    fn only_what_touches_waits() {
        let input = Span { memory: Memory::Input(0), offset: 0, bytes: 64 };
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
