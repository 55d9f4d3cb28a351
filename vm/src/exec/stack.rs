//! The frames and register storage of a context.

use halite_abi::{Result, bail};

use crate::{Ref, code::Function};

/// A function under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub module: u32,
    pub function: u32,
    /// Index of the next instruction.
    pub pc: u32,
    /// First cell.
    pub cells: usize,
    /// First ref register.
    pub refs: usize,
}

/// Most frames, cells and ref registers in use at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackLimits {
    pub frames: usize,
    pub cells: usize,
    pub refs: usize,
}

/// Frames and their registers. Ref registers above the top frame are null.
#[derive(Debug)]
pub(crate) struct Stack {
    pub frames: Vec<Frame>,
    pub cells: Vec<u32>,
    pub refs: Vec<Ref>,
    cells_top: usize,
    refs_top: usize,
    limits: StackLimits,
}

impl Stack {
    pub(crate) fn new(frames: usize) -> Self {
        // 16 MiB of cells and 16 MiB of refs: no frame needs more than 32768 and 16384 of them.
        let limits = StackLimits { frames, cells: 1 << 22, refs: 1 << 20 };
        let (frames, cells, refs) = (Vec::new(), Vec::new(), Vec::new());
        Stack { frames, cells, refs, cells_top: 0, refs_top: 0, limits }
    }

    /// Drops all frames.
    pub(crate) fn clear(&mut self) {
        self.refs[..self.refs_top].fill(Ref::NULL);
        self.frames.clear();
        (self.cells_top, self.refs_top) = (0, 0);
    }

    /// Adds a frame with zeroed registers. RESOURCE_EXHAUSTED when a limit is reached.
    pub(crate) fn push(&mut self, module: u32, ordinal: u32, function: &Function) -> Result<Frame> {
        let (cells, refs) = (self.cells_top, self.refs_top);
        let (cells_top, refs_top) = (cells + function.cells as usize, refs + function.refs as usize);
        let limits = &self.limits;
        if self.frames.len() >= limits.frames || cells_top > limits.cells || refs_top > limits.refs {
            bail!(
                ResourceExhausted,
                "the call stack is full at {} frames; the limits are {} frames, {} cells and {} refs",
                self.frames.len(),
                limits.frames,
                limits.cells,
                limits.refs
            );
        }
        if self.cells.len() < cells_top {
            self.cells.resize(cells_top, 0);
        }
        self.cells[cells..cells_top].fill(0);
        if self.refs.len() < refs_top {
            self.refs.resize(refs_top, Ref::NULL);
        }
        (self.cells_top, self.refs_top) = (cells_top, refs_top);
        let frame = Frame { module, function: ordinal, pc: 0, cells, refs };
        self.frames.push(frame);
        Ok(frame)
    }

    /// Removes the top frame and releases its refs.
    pub(crate) fn pop(&mut self) {
        if let Some(frame) = self.frames.pop() {
            for slot in &mut self.refs[frame.refs..self.refs_top] {
                if !slot.is_null() {
                    *slot = Ref::NULL;
                }
            }
            (self.cells_top, self.refs_top) = (frame.cells, frame.refs);
        }
    }
}
