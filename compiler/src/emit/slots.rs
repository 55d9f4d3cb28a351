//! The binding table of a version: which memory is in which slot. The same for all targets.

use std::collections::HashMap;

use crate::plan::{flow::Flow, schedule::Memory};

/// What an input is bound as.
fn of_input(flow: &Flow, index: u32) -> Memory {
    if flow.is_state(index as usize) { Memory::State(index) } else { Memory::Input(index) }
}

/// The memories of a binding table, by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    memories: Vec<Memory>,
    /// The slot of each: models may have very many inputs and outputs.
    slots: HashMap<Memory, u32>,
}

impl Slots {
    /// The slots of a version: inputs that it reads, outputs with anything in them, transient memory, what the host reads.
    pub fn of(flow: &Flow, transient: &[bool]) -> Self {
        let inputs = (0..).zip(&flow.inputs_used).filter(|(_, used)| **used);
        let outputs = (0..).zip(&flow.outputs).filter(|(_, bytes)| !bytes.is_constant() || bytes.value() > 0);
        let mut slots: Vec<_> = inputs.map(|(index, _)| of_input(flow, index)).collect();
        slots.extend(outputs.map(|(index, _)| Memory::Output(index)));
        let eras = (0..).zip(transient).filter(|(_, needed)| **needed);
        slots.extend(eras.map(|(era, _)| Memory::Transient(era)));
        slots.extend((flow.readback_bytes > 0).then_some(Memory::Readback));
        Slots { slots: slots.iter().copied().zip(0..).collect(), memories: slots }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.memories.len() as u32
    }

    /// The memories in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = Memory> {
        self.memories.iter().copied()
    }

    /// The slot of a memory.
    ///
    /// # Panics
    /// Never for memory of the version that the table is of.
    pub fn slot(&self, memory: Memory) -> u32 {
        *self.slots.get(&memory).expect("commands name memory that the version has")
    }
}
