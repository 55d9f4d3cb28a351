//! Which bytes of its bindings a dispatch of a kernel accesses, by the kernel's code.

use halite_hal::{ByteRuns, Footprint};
use halite_spirv::access::{Access, AccessPlan, Launch, Resource};

use super::Kernel;
use crate::lower::ROOT_WORDS;

impl Kernel {
    /// What a dispatch accesses; `None` when its code does not tell.
    pub fn footprints(&self, constants: &[u32], workgroups: Option<[u32; 3]>) -> Option<Vec<Footprint>> {
        let plan = self.access_plan.get_or_init(|| {
            let entry = self.source.entry_point.to_str().ok()?;
            AccessPlan::new(&self.source.words, entry).ok()
        });
        let root = if self.layout.addresses { ROOT_WORDS } else { 0 };
        let push_constants: Vec<u32> =
            std::iter::repeat_n(0, root).chain(constants.iter().copied()).collect();
        let accesses = plan.as_ref()?.of(&Launch { push_constants: &push_constants, workgroups })?;
        accesses.into_iter().map(|access| self.footprint(access)).collect()
    }

    fn footprint(&self, access: Access) -> Option<Footprint> {
        let binding = match access.resource {
            Resource::Address(index) => index,
            Resource::Descriptor { set, binding } => {
                let found = self.layout.bindings.iter().position(|b| (b.set, b.binding) == (set, binding));
                u32::try_from(found?).ok()?
            }
        };
        let bytes = access.bytes.map(|bytes| ByteRuns {
            start: bytes.start,
            width: bytes.width,
            strides: bytes.strides.into(),
        });
        Some(Footprint { binding, write: access.write, bytes })
    }
}
