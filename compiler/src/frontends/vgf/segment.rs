//! What every segment says, of a graph or a kernel: the words of its module, and the resources of its descriptors.

use halite_formats::vgf::{Code, Module, Segment};
use halite_spirv::words_from_bytes;

use super::Result;
use crate::build::Builder;

/// The words of a segment's module.
pub(super) fn words(builder: &Builder, module: &Module) -> Result<Vec<u32>> {
    let Code::SpirV(bytes) = &module.code else {
        return Err(builder.unsupported(format!("a module with {}", module.code.language())));
    };
    words_from_bytes(bytes).map_err(|e| builder.invalid(e.to_string()))
}

/// The resource that a module's descriptor is bound to.
pub(super) fn bound(segment: &Segment, set: u32, binding: u32) -> Option<usize> {
    let sets = segment.sets.iter().filter(|known| known.index == set);
    let mut slots = sets.flat_map(|known| &known.bindings).filter(|slot| slot.binding == binding);
    slots.next().map(|slot| slot.resource)
}
