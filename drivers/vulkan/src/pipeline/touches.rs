//! What a kernel's code says about the memory that its dispatches touch.

use halite_hal::{ByteRuns, Footprint};
use halite_spirv::touch::{Launch, Resource, Touch, TouchPlan};

use super::Kernel;
use crate::lower::ROOT_WORDS;

impl Kernel {
    /// What a dispatch touches; `None` when its code does not tell.
    pub fn footprints(&self, constants: &[u32], workgroups: Option<[u32; 3]>) -> Option<Vec<Footprint>> {
        let plan = self.touches.get_or_init(|| {
            let entry = self.source.entry_point.to_str().ok()?;
            TouchPlan::new(&self.source.words, entry).ok()
        });
        let root = if self.layout.addresses { ROOT_WORDS } else { 0 };
        let push_constants: Vec<u32> =
            std::iter::repeat_n(0, root).chain(constants.iter().copied()).collect();
        let touches = plan.as_ref()?.of(&Launch { push_constants: &push_constants, workgroups })?;
        touches.into_iter().map(|touch| self.footprint(touch)).collect()
    }

    fn footprint(&self, touch: Touch) -> Option<Footprint> {
        let binding = match touch.resource {
            Resource::Address(index) => index,
            Resource::Descriptor { set, binding } => {
                let found = self.layout.bindings.iter().position(|b| (b.set, b.binding) == (set, binding));
                u32::try_from(found?).ok()?
            }
        };
        let bytes = touch.bytes.map(|bytes| ByteRuns {
            start: bytes.start,
            width: bytes.width,
            strides: bytes.strides.into(),
        });
        Some(Footprint { binding, write: touch.write, bytes })
    }
}
