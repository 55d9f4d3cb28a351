//! Memory that is shared with others, as Vulkan knows it: the kinds, what a device does with each, and calls that make and take handles.

mod handles;

use ash::vk;
use halite_facts::DeviceFacts;
use halite_hal::{ExternalKind, ExternalSupport};

#[cfg(unix)]
pub(crate) use handles::descriptor_size;
pub(crate) use handles::{Handles, Import, Taken, Told, ask, export};

/// How Vulkan names a kind.
pub(crate) struct Way {
    /// The kind.
    pub kind: ExternalKind,
    /// Its name in Vulkan.
    pub handle_type: vk::ExternalMemoryHandleTypeFlags,
    /// The extension that has it.
    pub extension: &'static str,
    /// What that extension needs beside Vulkan 1.1.
    needs: &'static [&'static str],
    /// The extension that is enabled with it where it is there.
    better: Option<&'static str>,
    /// Systems on which this driver can handle it.
    here: bool,
}

/// Queues of other devices than those of this driver, which may have written to memory.
const FOREIGN: &str = "VK_EXT_queue_family_foreign";

/// All kinds.
pub(crate) const KINDS: [Way; 5] = [
    Way {
        kind: ExternalKind::OpaqueFd,
        handle_type: vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD,
        extension: "VK_KHR_external_memory_fd",
        needs: &[],
        better: None,
        here: cfg!(unix),
    },
    Way {
        kind: ExternalKind::DmaBuf,
        handle_type: vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT,
        extension: "VK_EXT_external_memory_dma_buf",
        needs: &["VK_KHR_external_memory_fd"],
        better: Some(FOREIGN),
        here: cfg!(unix),
    },
    Way {
        kind: ExternalKind::Host,
        handle_type: vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT,
        extension: "VK_EXT_external_memory_host",
        needs: &[],
        better: None,
        here: true,
    },
    Way {
        kind: ExternalKind::AndroidHardwareBuffer,
        handle_type: vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID,
        extension: "VK_ANDROID_external_memory_android_hardware_buffer",
        needs: &[FOREIGN],
        better: None,
        here: cfg!(target_os = "android"),
    },
    Way {
        kind: ExternalKind::OpaqueWin32,
        handle_type: vk::ExternalMemoryHandleTypeFlags::OPAQUE_WIN32,
        extension: "VK_KHR_external_memory_win32",
        needs: &[],
        better: None,
        here: cfg!(windows),
    },
];

/// How Vulkan names this kind.
pub(crate) fn way(kind: ExternalKind) -> &'static Way {
    KINDS.iter().find(|way| way.kind == kind).expect("all kinds are in the table")
}

/// What a device does with one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalPlan {
    /// For callers.
    pub support: ExternalSupport,
    /// Whether each allocation must be for one buffer alone.
    pub dedicated_only: bool,
    /// The queue family that stands for whoever else has the memory; `None` where nobody's caches are between.
    pub other_owner: Option<u32>,
}

/// What a device does with the kinds that it and this system have. What others must keep alive, `AHardwareBuffer`s, is only taken.
pub(crate) fn plan(facts: &DeviceFacts) -> Vec<ExternalPlan> {
    let told = KINDS.iter().filter(|way| way.here && way.is_there(facts)).filter_map(|way| {
        let raw = way.handle_type.as_raw();
        let buffers = facts.external_buffers.iter().find(|buffers| buffers.handle_type == raw)?;
        let gives = !matches!(way.kind, ExternalKind::Host | ExternalKind::AndroidHardwareBuffer);
        let foreign = facts.has_extension(FOREIGN);
        let other_owner = match way.kind {
            ExternalKind::Host => None,
            ExternalKind::DmaBuf | ExternalKind::AndroidHardwareBuffer if foreign => {
                Some(vk::QUEUE_FAMILY_FOREIGN_EXT)
            }
            _ => Some(vk::QUEUE_FAMILY_EXTERNAL),
        };
        let alignment = match way.kind {
            ExternalKind::Host => facts.limits.min_imported_host_pointer_alignment.max(1),
            _ => 1,
        };
        let (import, export) = (buffers.importable(), buffers.exportable() && gives);
        let support = ExternalSupport { kind: way.kind, import, export, alignment };
        Some(ExternalPlan { support, dedicated_only: buffers.dedicated_only(), other_owner })
    });
    told.filter(|plan| plan.support.import || plan.support.export).collect()
}

/// The extensions that a plan needs, or is better with.
pub(crate) fn extensions(facts: &DeviceFacts, plan: &[ExternalPlan]) -> Vec<&'static str> {
    let ways = plan.iter().map(|plan| way(plan.support.kind));
    let names =
        ways.flat_map(|way| [way.extension].into_iter().chain(way.needs.iter().copied()).chain(way.better));
    names.filter(|name| facts.has_extension(name)).collect()
}

impl Way {
    fn is_there(&self, facts: &DeviceFacts) -> bool {
        facts.has_extension(self.extension) && self.needs.iter().all(|name| facts.has_extension(name))
    }
}

#[cfg(test)]
mod tests {
    use halite_facts::ExternalBuffers;

    use super::*;
    use crate::plan::tests::recorded;

    fn with(extensions: &[&str], buffers: &[(vk::ExternalMemoryHandleTypeFlags, u32)]) -> DeviceFacts {
        let mut facts = recorded("llvmpipe");
        facts.extensions = extensions.iter().map(|name| (*name).to_owned()).collect();
        facts.extensions.sort_unstable();
        let of = |(kind, features): &(vk::ExternalMemoryHandleTypeFlags, u32)| ExternalBuffers {
            handle_type: kind.as_raw(),
            features: *features,
        };
        facts.external_buffers = buffers.iter().map(of).collect();
        facts
    }

    #[test]
    fn a_kind_needs_its_extensions_and_a_device_that_uses_it() {
        use vk::ExternalMemoryHandleTypeFlags as H;
        let all = [(H::OPAQUE_FD, 6), (H::DMA_BUF_EXT, 7), (H::HOST_ALLOCATION_EXT, 4)];
        assert_eq!(plan(&with(&[], &all)), []);
        let (fd, dma, host) =
            ("VK_KHR_external_memory_fd", "VK_EXT_external_memory_dma_buf", "VK_EXT_external_memory_host");
        assert_eq!(plan(&with(&[dma], &all)), [], "it needs the other one");
        assert_eq!(plan(&with(&[fd, dma, host], &[])), [], "the device does nothing with it");
        let facts = with(&[fd, dma, host], &all);
        let found = plan(&facts);
        let kinds: Vec<_> = found.iter().map(|plan| plan.support.kind).collect();
        let files = if cfg!(unix) { 2 } else { 0 };
        assert_eq!(kinds.len(), files + 1);
        let host = found.last().unwrap();
        assert!(host.support.import && !host.support.export && host.other_owner.is_none());
        assert!(host.support.alignment > 1, "as the device says");
        if let Some(dma) = found.iter().find(|plan| plan.support.kind == ExternalKind::DmaBuf) {
            assert!(dma.dedicated_only && dma.other_owner == Some(vk::QUEUE_FAMILY_EXTERNAL));
        }
        assert!(extensions(&facts, &found).iter().all(|name| facts.has_extension(name)));
    }

    #[test]
    fn other_devices_are_foreign_where_vulkan_can_say_so() {
        use vk::ExternalMemoryHandleTypeFlags as H;
        let names = ["VK_KHR_external_memory_fd", "VK_EXT_external_memory_dma_buf", FOREIGN];
        let facts = with(&names, &[(H::OPAQUE_FD, 6), (H::DMA_BUF_EXT, 6)]);
        let found = plan(&facts);
        if cfg!(unix) {
            let owners: Vec<_> = found.iter().map(|plan| plan.other_owner).collect();
            assert_eq!(owners, [Some(vk::QUEUE_FAMILY_EXTERNAL), Some(vk::QUEUE_FAMILY_FOREIGN_EXT)]);
            assert!(extensions(&facts, &found).contains(&FOREIGN));
        }
    }
}
