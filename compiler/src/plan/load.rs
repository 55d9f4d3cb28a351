//! Owns what is done at load as a line of acts. Does not own: which operations these are ([`super::pool`]).

use std::collections::HashMap;

use super::{
    flow::{Act, Flow, Home, Item, Storage, StorageId},
    order::by_level,
    pool::{ConstantId, Known, PackedId, Pool},
};
use crate::{CompileError, control::Watch};

/// The operations of a pool as one segment. What calls do not need is transient.
///
/// # Errors
/// The work was ended.
pub(crate) fn flow(pool: &Pool, watch: Watch<'_>) -> Result<Flow, CompileError> {
    let mut maker = Maker { pool, flow: Flow::default(), constants: HashMap::new(), packed: HashMap::new() };
    for packing in &pool.packings {
        watch.check()?;
        let inputs = packing.inputs.iter().map(|known| maker.known(*known)).collect();
        let outputs = packing.outputs.iter().map(|id| maker.packed(*id)).collect();
        let (operation, place) = (Box::new(packing.operation.clone()), packing.place.clone());
        maker.flow.acts.push(Act::Kernel { operation, inputs, outputs, place });
    }
    let mut flow = maker.flow;
    if !flow.acts.is_empty() {
        flow.segments.push(0..flow.acts.len());
        flow.items.push(Item::Segment(0));
        by_level(&mut flow, watch)?;
    }
    Ok(flow)
}

struct Maker<'a> {
    pool: &'a Pool,
    flow: Flow,
    constants: HashMap<ConstantId, StorageId>,
    packed: HashMap<PackedId, StorageId>,
}

impl Maker<'_> {
    fn known(&mut self, known: Known) -> StorageId {
        match known {
            Known::Constant(id) => {
                if let Some(storage) = self.constants.get(&id) {
                    return *storage;
                }
                let bytes = self.pool.constants[id.index()].bytes.len() as u64;
                let storage = self.storage(Home::Constant(id), bytes);
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
        let home = if packed.resident { Home::Packed(id) } else { Home::Local };
        let storage = self.storage(home, packed.bytes);
        self.packed.insert(id, storage);
        storage
    }

    fn storage(&mut self, home: Home, bytes: u64) -> StorageId {
        let id = StorageId(self.flow.storages.len() as u32);
        self.flow.storages.push(Storage { home, bytes });
        id
    }
}
