//! The memory of a plan: its buffers, and guard words around those that kernels write, which tell when one wrote more
//! than it should.

use std::sync::Arc;

use halite_hal::{Binding, Buffer, BufferParams, BufferSpan, Device, Result, status};
use halite_shaders::{Plan, Slot};

/// Bytes of guard words around a buffer's own bytes, a multiple of 4 each. Both lie in the same buffer; those behind are
/// bound together with the bytes, because what is written beyond a binding may be dropped by the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    before: u64,
    behind: u64,
}

impl Guards {
    /// None.
    pub const NONE: Guards = Guards { before: 0, behind: 0 };
    /// A page behind. Before, what a binding's offset may have to be a multiple of at most (Vulkan's required limit of
    /// `minStorageBufferOffsetAlignment`).
    pub const AROUND: Guards = Guards { before: 256, behind: 4096 };
}

/// The buffer of one tensor, or of one scratch memory. Clones are the same buffer.
#[derive(Clone, Debug)]
struct Room {
    buffer: Arc<dyn Buffer>,
    /// Its own bytes: whole words, as kernels write words.
    bytes: u64,
    guards: Guards,
}

impl Room {
    fn new(device: &dyn Device, bytes: u64, guards: Guards) -> Result<Self> {
        let size = |bytes: u64| {
            let own = bytes.checked_next_multiple_of(4)?;
            Some((own, own.checked_add(guards.before)?.checked_add(guards.behind)?))
        };
        let (bytes, all) = size(bytes)
            .ok_or_else(|| status!(ResourceExhausted, "a buffer of {bytes} bytes is too large"))?;
        // There are no empty buffers.
        let buffer = device.allocate_buffer(&BufferParams::DEVICE, all.max(4))?;
        Ok(Room { buffer, bytes, guards })
    }

    /// What a kernel gets: all but the guard words before.
    fn binding(&self) -> Binding {
        let length = self.buffer.byte_length() - self.guards.before;
        Binding::from(BufferSpan { buffer: self.buffer.clone(), offset: self.guards.before, length })
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        self.buffer.write(self.guards.before, bytes)
    }

    /// Fills its own bytes with one, and sets the guard words.
    fn poison(&self, byte: u8) -> Result<()> {
        if self.guards == Guards::NONE {
            return self.buffer.write(0, &vec![byte; host_size(self.buffer.byte_length())?]);
        }
        let mut all = pattern(host_size(self.buffer.byte_length())?);
        let start = host_size(self.guards.before)?;
        all[start..start + host_size(self.bytes)?].fill(byte);
        self.buffer.write(0, &all)
    }

    fn read(&self) -> Result<Vec<u8>> {
        let span = BufferSpan { buffer: self.buffer.clone(), offset: self.guards.before, length: self.bytes };
        span.read_all()
    }

    /// What was written outside of its own bytes since it was poisoned.
    fn damage(&self) -> Result<Option<String>> {
        if self.guards == Guards::NONE {
            return Ok(None);
        }
        let all = BufferSpan::whole(self.buffer.clone()).read_all()?;
        Ok(damage(&all, host_size(self.guards.before)?, host_size(self.bytes)?))
    }
}

fn host_size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| status!(ResourceExhausted, "{bytes} bytes do not fit in host memory"))
}

/// Guard words. No two near each other are the same, so that words that were copied from elsewhere are seen too.
fn pattern(length: usize) -> Vec<u8> {
    (0..length.div_ceil(4) as u32).flat_map(|word| (0x5EED_0000 ^ word).to_le_bytes()).take(length).collect()
}

/// Compares all but `bytes` bytes from `start` on with the guard words.
fn damage(all: &[u8], start: usize, bytes: usize) -> Option<String> {
    let wanted = pattern(all.len());
    let outside = (0..all.len()).filter(|at| !(start..start + bytes).contains(at));
    let changed: Vec<usize> = outside.filter(|at| all[*at] != wanted[*at]).collect();
    let (first, last) = (changed.first()?, changed.last()?);
    let place = |at: usize| at as i64 - start as i64;
    Some(format!(
        "{} bytes outside of its {bytes} were written, from byte {} to byte {}",
        changed.len(),
        place(*first),
        place(*last)
    ))
}

/// Memory of an operation.
#[derive(Debug)]
pub(super) struct Memory {
    inputs: Vec<Room>,
    outputs: Vec<Room>,
    scratch: Vec<Room>,
}

impl Memory {
    /// Allocates buffers of as many bytes, with guard words where kernels write.
    pub fn new(
        device: &dyn Device,
        inputs: &[u64],
        outputs: &[u64],
        plan: &Plan,
        guards: Guards,
    ) -> Result<Self> {
        let all = |bytes: &[u64], guards| {
            bytes.iter().map(|bytes| Room::new(device, *bytes, guards)).collect::<Result<Vec<_>>>()
        };
        let (inputs, outputs) = (all(inputs, Guards::NONE)?, all(outputs, guards)?);
        Ok(Memory { inputs, outputs, scratch: scratch(device, plan, guards)? })
    }

    /// The same inputs and outputs, with scratch memory for another plan.
    pub fn beside(&self, device: &dyn Device, plan: &Plan, guards: Guards) -> Result<Self> {
        let scratch = scratch(device, plan, guards)?;
        Ok(Memory { inputs: self.inputs.clone(), outputs: self.outputs.clone(), scratch })
    }

    /// The buffer that a plan means.
    pub fn binding(&self, slot: &Slot) -> Result<Binding> {
        let room = match *slot {
            Slot::Input(i) => self.inputs.get(i),
            Slot::Output(i) => self.outputs.get(i),
            Slot::Scratch(i) => self.scratch.get(i),
        };
        let room = room.ok_or_else(|| status!(Internal, "a plan names {slot:?}, which is not there"))?;
        Ok(room.binding())
    }

    /// Writes the bytes of an input.
    pub fn write_input(&self, index: usize, bytes: &[u8]) -> Result<()> {
        self.inputs[index].write(bytes)
    }

    /// The bytes of an input, to the end of its last word.
    pub fn read_input(&self, index: usize) -> Result<Vec<u8>> {
        self.inputs[index].read()
    }

    /// Writes the bytes that an output has before a run.
    pub fn write_output(&self, index: usize, bytes: &[u8]) -> Result<()> {
        self.outputs[index].write(bytes)
    }

    /// Fills outputs and scratch memory with a byte, and sets the guard words around them.
    pub fn poison(&self, byte: u8) -> Result<()> {
        self.outputs.iter().chain(&self.scratch).try_for_each(|room| room.poison(byte))
    }

    /// The bytes of an output, to the end of its last word.
    pub fn read_output(&self, index: usize) -> Result<Vec<u8>> {
        self.outputs[index].read()
    }

    /// The first buffer whose guard words were written since it was poisoned, in words.
    pub fn damage(&self) -> Result<Option<String>> {
        let outputs = self.outputs.iter().enumerate().map(|(index, room)| ("output", index, room));
        let scratch = self.scratch.iter().enumerate().map(|(index, room)| ("scratch buffer", index, room));
        for (what, index, room) in outputs.chain(scratch) {
            if let Some(found) = room.damage()? {
                return Ok(Some(format!("{what} {index}: {found}")));
            }
        }
        Ok(None)
    }
}

fn scratch(device: &dyn Device, plan: &Plan, guards: Guards) -> Result<Vec<Room>> {
    plan.scratch.iter().map(|bytes| Room::new(device, bytes.exact(), guards)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_on_either_side_is_seen() {
        let mut all = pattern(24);
        all[8..16].fill(0xA5);
        assert_eq!(damage(&all, 8, 8), None);
        all[16] ^= 1;
        assert_eq!(
            damage(&all, 8, 8).as_deref(),
            Some("1 bytes outside of its 8 were written, from byte 8 to byte 8")
        );
        all[4..8].fill(0);
        let told = damage(&all, 8, 8).expect("two places are wrong");
        assert!(told.ends_with("from byte -4 to byte 8"), "{told}");
    }
}
