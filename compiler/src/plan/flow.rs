//! A graph as a line of steps with the places that its tensors have: views share the place of what they view, control flow
//! is a tree over parts of the line. The same for all targets.

use std::ops::Range;

use halite_ops::runs::Runs;
use halite_sizes::Size;

use super::pool::{ConstantId, PackedId};
use crate::{SourceLocation, backend::Computation};

/// Bytes at the beginning of the transient memory for the number of each loop's run.
pub(super) const COUNTER_BYTES: u64 = 256;

/// The storage class of a [`Storage`]: where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StorageClass {
    /// In a buffer of the caller.
    Input(u32),
    /// In the caller's buffer for a state, which is read and written; the input that it is.
    State(u32),
    /// In a buffer for the caller.
    Output(u32),
    /// In the module.
    Constant(ConstantId),
    /// Computed at load.
    Packed(PackedId),
    /// In the transient memory.
    Transient,
    /// In another storage, which is no part itself, from this byte on.
    Part(StorageId, u64),
    /// In runs of bytes of another storage, which is no part itself.
    Runs(StorageId, Runs),
    /// At an offset of the transient memory.
    Counter(u64),
    /// At an offset of the memory that the host reads.
    Readback(u64),
}

/// Some bytes that tensors live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(pub u32);

impl StorageId {
    /// Its place in [`Flow::storages`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bytes of a tensor, and of its views.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// Where they are.
    pub class: StorageClass,
    /// How many; the place has whole words.
    pub bytes: Size,
}

/// Something that is done.
#[derive(Clone, Debug)]
pub enum Step {
    /// A computation.
    Compute {
        /// What is computed.
        computation: Computation,
        /// What is read, in the computation's order.
        inputs: Vec<StorageId>,
        /// What is written, in the computation's order.
        outputs: Vec<StorageId>,
        /// Where in the model it comes from.
        location: SourceLocation,
    },
    /// Bytes are copied.
    Copy {
        /// From here,
        from: StorageId,
        /// to here; as large.
        to: StorageId,
    },
    /// The host writes a storage. Not part of a segment.
    HostWrites(StorageId),
}

/// A number that control flow depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// Known when the module is written.
    Known(i64),
    /// Read by the host, at this offset of the readback memory.
    Read(u64),
}

/// A part of a function's control flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// Steps that are recorded together: an index into [`Flow::segments`].
    Segment(usize),
    /// One of two control flows: the first when the number is not 0.
    If {
        /// What decides.
        condition: Number,
        /// The two.
        branches: Box<[Vec<Item>; 2]>,
    },
    /// The host reads numbers: the values of symbols from `first` on.
    Read {
        /// The first symbol.
        first: u32,
        /// How many there are.
        count: u32,
        /// Where they are in the readback memory, 8 bytes each.
        offset: u64,
    },
    /// Symbols from `first` on get values that are computed of others.
    Set {
        /// The first symbol.
        first: u32,
        /// The values.
        values: Vec<Size>,
    },
    /// A control flow again and again: while `next` is not 0, and at most `most` times.
    Loop {
        /// The most runs.
        most: Number,
        /// Whether to run at all.
        first: Number,
        /// Whether to run again, after each run.
        next: Number,
        /// Where the number of the run goes, as an offset of the transient memory, if anything reads it.
        counter: Option<u64>,
        /// What is run.
        body: Vec<Item>,
    },
}

/// A version of a function.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// All places.
    pub storages: Vec<Storage>,
    /// All steps, in the order in which they are done; a loop's body once.
    pub steps: Vec<Step>,
    /// The time of each step: steps of one time do not depend on each other.
    pub levels: Vec<usize>,
    /// Parts of `steps` without control flow between them.
    pub segments: Vec<Range<usize>>,
    /// The control flow over the segments.
    pub items: Vec<Item>,
    /// The steps of each loop's body.
    pub loops: Vec<Range<usize>>,
    /// Bytes at the beginning of the transient memory that are taken.
    pub reserved_bytes: u64,
    /// Bytes that the host reads.
    pub readback_bytes: u64,
    /// The symbols that each [`Item::Read`] gives, and those that [`Item::Set`] does, in order: an era of memory begins behind
    /// each.
    pub reads: Vec<Range<u32>>,
    /// Which inputs anything reads.
    pub inputs_used: Vec<bool>,
    /// Number of symbols that open sizes are computed of.
    pub symbols: usize,
    /// Bytes of each output; none of those that are states.
    pub outputs: Vec<Size>,
    /// The states, in the order of the graph.
    pub states: Vec<State>,
}

/// A state of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The input whose buffer it is.
    pub input: usize,
    /// The output that is in the buffer afterwards.
    pub output: usize,
    /// Why its new value is copied there, where it is not computed there.
    pub copied: Option<String>,
}

impl Flow {
    /// The era that something of this size belongs to: the one in which the size becomes known. Its memory is allocated when that
    /// begins. The first era is that of sizes that no data decide.
    pub fn era(&self, size: Size) -> usize {
        let of_symbol = |symbol: u32| self.reads.iter().rposition(|read| read.contains(&symbol));
        size.symbols().into_iter().filter_map(of_symbol).map(|read| read + 1).max().unwrap_or(0)
    }

    /// Notes that an era begins when symbols from `first` on have values. Both branches of an if may give them.
    pub(super) fn begin_era(&mut self, first: u32, count: usize) {
        let symbols = first..first + count as u32;
        if !self.reads.contains(&symbols) {
            self.reads.push(symbols);
        }
        // What stands for memory that is not there.
        self.readback_bytes = self.readback_bytes.max(8);
    }

    /// The era that begins when the symbols from this one on have values.
    pub fn era_of(&self, first: u32) -> usize {
        self.reads.iter().position(|read| read.start == first).map_or(0, |read| read + 1)
    }

    /// The input whose buffer an output is in: that of its state.
    pub fn state_input(&self, output: usize) -> Option<usize> {
        self.states.iter().find(|state| state.output == output).map(|state| state.input)
    }

    /// The storage whose memory a storage is in: itself, or what it is a part of.
    pub fn root(&self, id: StorageId) -> StorageId {
        match self.storages[id.index()].class {
            StorageClass::Part(of, _) | StorageClass::Runs(of, _) => of,
            _ => id,
        }
    }

    /// The bytes of its [`root`](Self::root) that a storage is; all that may be there, if it is the root or runs of it.
    pub fn range(&self, id: StorageId) -> Range<u64> {
        let storage = &self.storages[id.index()];
        match storage.class {
            StorageClass::Part(_, at) => at..at + storage.bytes.value(),
            _ => 0..u64::MAX,
        }
    }

    /// Whether an input is a state.
    pub fn is_state(&self, input: usize) -> bool {
        self.states.iter().any(|state| state.input == input)
    }
}

impl Step {
    /// What it reads.
    pub fn reads(&self) -> &[StorageId] {
        match self {
            Step::Compute { inputs, .. } => inputs,
            Step::Copy { from, .. } => std::slice::from_ref(from),
            Step::HostWrites(_) => &[],
        }
    }

    /// What it writes.
    pub fn writes(&self) -> &[StorageId] {
        match self {
            Step::Compute { outputs, .. } => outputs,
            Step::Copy { to, .. } => std::slice::from_ref(to),
            Step::HostWrites(id) => std::slice::from_ref(id),
        }
    }
}
