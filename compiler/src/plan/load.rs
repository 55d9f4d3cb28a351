//! What is done at load as a line of steps.

use std::collections::HashMap;

use halite_sizes::Size;

use super::{
    flow::{Flow, Item, Step, Storage, StorageClass, StorageId},
    order::by_level,
    pool::{ConstantId, Known, PackedId, Pool},
};
use crate::{CompileError, backend::Computation, control::Watch};

/// The operations of a pool as one segment, and the operation that each step is. What calls do not need is transient.
///
/// # Errors
/// The work was ended.
pub(crate) fn flow(pool: &Pool, watch: Watch<'_>) -> Result<(Flow, Vec<Option<usize>>), CompileError> {
    let mut builder =
        FlowBuilder { pool, flow: Flow::default(), constants: HashMap::new(), packed: HashMap::new() };
    let mut makers = HashMap::new();
    for (index, packing) in pool.packings.iter().enumerate() {
        watch.check()?;
        let inputs = packing.inputs.iter().map(|known| builder.known(*known)).collect();
        let outputs: Vec<StorageId> = packing.outputs.iter().map(|id| builder.packed(*id)).collect();
        makers.extend(outputs.iter().map(|id| (*id, index)));
        let computation = Computation::Operation(Box::new(packing.operation.clone()));
        let location = packing.location.clone();
        builder.flow.steps.push(Step::Compute { computation, inputs, outputs, location });
    }
    let mut flow = builder.flow;
    if !flow.steps.is_empty() {
        flow.segments.push(0..flow.steps.len());
        flow.items.push(Item::Segment(0));
        by_level(&mut flow, watch)?;
    }
    let maker = |step: &Step| step.writes().first().and_then(|id| makers.get(id)).copied();
    let packings = flow.steps.iter().map(maker).collect();
    Ok((flow, packings))
}

struct FlowBuilder<'a> {
    pool: &'a Pool,
    flow: Flow,
    constants: HashMap<ConstantId, StorageId>,
    packed: HashMap<PackedId, StorageId>,
}

impl FlowBuilder<'_> {
    fn known(&mut self, known: Known) -> StorageId {
        match known {
            Known::Constant(id) => {
                if let Some(storage) = self.constants.get(&id) {
                    return *storage;
                }
                let bytes = self.pool.constants[id.index()].bytes.len() as u64;
                let storage = self.storage(StorageClass::Constant(id), bytes.into());
                self.constants.insert(id, storage);
                storage
            }
            Known::Packed(id) => self.packed(id),
        }
    }

    fn packed(&mut self, id: PackedId) -> StorageId {
        if let Some(storage) = self.packed.get(&id) {
            return *storage;
        }
        let packed = &self.pool.packed[id.index()];
        let class = if packed.resident { StorageClass::Packed(id) } else { StorageClass::Transient };
        let storage = self.storage(class, packed.bytes.into());
        self.packed.insert(id, storage);
        storage
    }

    fn storage(&mut self, class: StorageClass, bytes: Size) -> StorageId {
        let id = StorageId(self.flow.storages.len() as u32);
        self.flow.storages.push(Storage { class, bytes });
        id
    }
}
