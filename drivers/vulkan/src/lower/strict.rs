//! Extra barriers for runs under the layer's synchronization validation.
//!
//! A compiler may bind a whole slab of temporaries to several dispatches, tell each through constants which part is
//! its own, and put no barrier between them: they may run at once. The layer sees only that the bound ranges overlap
//! and reports a hazard. Under validation such commands are therefore put in order, so that what remains is a hazard
//! between commands that the program did order, which is the driver's own mistake.

use ash::vk;
use halite_hal::{BufferRef, Command, Result};

use super::Resolver;

/// Ranges that were accessed since the last barrier.
#[derive(Default)]
pub(super) struct Accessed {
    ranges: Vec<Range>,
}

struct Range {
    buffer: vk::Buffer,
    start: u64,
    end: u64,
    written: bool,
}

impl Accessed {
    /// Adds the ranges of a command. `true` when a barrier has to come before it, because it shares bytes with an
    /// earlier command since the last barrier, and one of the two may write them.
    pub fn needs_barrier(&mut self, command: &Command, resolver: &Resolver<'_>) -> Result<bool> {
        if matches!(command, Command::Barrier) {
            self.ranges.clear();
            return Ok(false);
        }
        let mut own = Vec::new();
        for (reference, written) in references(command) {
            if let Some(place) = resolver.place(reference)? {
                // Bindings are rounded up to whole words.
                let end = (place.start() + place.length).next_multiple_of(4);
                own.push(Range { buffer: place.buffer(), start: place.start(), end, written });
            }
        }
        let clash = own.iter().any(|a| self.ranges.iter().any(|b| a.clashes(b)));
        if clash {
            self.ranges.clear();
        }
        self.ranges.extend(own);
        Ok(clash)
    }
}

impl Range {
    fn clashes(&self, other: &Range) -> bool {
        (self.written || other.written)
            && self.buffer == other.buffer
            && self.start < other.end
            && other.start < self.end
    }
}

/// The ranges of a command, and whether it may write them.
fn references(command: &Command) -> Vec<(&BufferRef, bool)> {
    match command {
        Command::Fill { target, .. } | Command::Update { target, .. } => vec![(target, true)],
        Command::Copy { source, target } => vec![(source, false), (target, true)],
        Command::Dispatch { bindings, .. } => bindings.iter().map(|b| (b, true)).collect(),
        Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => Vec::new(),
    }
}
