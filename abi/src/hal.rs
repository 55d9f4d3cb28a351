//! Bit sets, limits and small values of the HAL interface, as the arguments of imported functions carry them.

use std::fmt;

use bitflags::bitflags;

/// The timeout in milliseconds of a wait without an end; any negative number means that.
pub const WAIT_FOREVER: i32 = -1;
/// The length of a range that goes to the end of its buffer.
pub const REST_OF_BUFFER: i64 = -1;
/// What the offset of a binding is a multiple of, in bytes: no Vulkan device asks for more
/// (<https://registry.khronos.org/vulkan/specs/latest/html/vkspec.html#limits-required>,
/// `minStorageBufferOffsetAlignment`).
pub const BINDING_ALIGNMENT: u64 = 256;
/// Devices pad the memory of a buffer to a multiple of this, in bytes: kernels may read and write back the last partial
/// word or vector.
pub const BUFFER_PADDING: u64 = 64;

bitflags! {
    /// Where memory lives and who sees it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MemoryType: u32 {
        /// The driver picks what is best for the usage.
        const OPTIMAL = 1;
        /// The host can read and write it.
        const HOST_VISIBLE = 2;
        /// Host writes need no flush.
        const HOST_COHERENT = 4;
        /// Host reads go through the CPU cache.
        const HOST_CACHED = 8;
        /// On the host, visible to it, coherent.
        const HOST_LOCAL = 0x46;
        /// The device can read and write it.
        const DEVICE_VISIBLE = 0x10;
        /// On the device, and visible to it.
        const DEVICE_LOCAL = 0x30;
        const _ = !0;
    }

    /// What may be done to a buffer through a reference.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MemoryAccess: u32 {
        /// Read.
        const READ = 1;
        /// Write.
        const WRITE = 2;
        /// Old contents need not be kept.
        const DISCARD = 4;
        /// May alias another binding.
        const MAY_ALIAS = 8;
        /// Offsets may be unaligned.
        const UNALIGNED = 0x10;
        /// Any access.
        const ANY = 0x20;
        const _ = !0;
    }

    /// What a buffer may be used for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct BufferUsage: u32 {
        /// Source of copies.
        const TRANSFER_SOURCE = 1;
        /// Target of fills, updates and copies.
        const TRANSFER_TARGET = 2;
        /// Source and target of transfers.
        const TRANSFER = 3;
        /// Workgroup counts of an indirect dispatch.
        const DISPATCH_INDIRECT_PARAMETERS = 0x100;
        /// Uniform binding.
        const DISPATCH_UNIFORM_READ = 0x200;
        /// Storage binding that is read.
        const DISPATCH_STORAGE_READ = 0x400;
        /// Storage binding that is written.
        const DISPATCH_STORAGE_WRITE = 0x800;
        /// Storage binding.
        const DISPATCH_STORAGE = 0xC00;
        /// Image read.
        const DISPATCH_IMAGE_READ = 0x1000;
        /// Image write.
        const DISPATCH_IMAGE_WRITE = 0x2000;
        /// May be exported to another API.
        const SHARING_EXPORT = 0x1_0000;
        /// May be replicated on several devices.
        const SHARING_REPLICATE = 0x2_0000;
        /// Used by several queues at once.
        const SHARING_CONCURRENT = 0x4_0000;
        /// Contents never change after the first write.
        const SHARING_IMMUTABLE = 0x8_0000;
        /// Mapped for the time of an access.
        const MAPPING_SCOPED = 0x100_0000;
        /// Mapped as long as the buffer lives.
        const MAPPING_PERSISTENT = 0x200_0000;
        /// Mapping is wished for, not required.
        const MAPPING_OPTIONAL = 0x400_0000;
        /// Host access in no order.
        const MAPPING_ACCESS_RANDOM = 0x800_0000;
        /// Host writes in order.
        const MAPPING_ACCESS_SEQUENTIAL_WRITE = 0x1000_0000;
        /// What the tools use for inputs.
        const DEFAULT = Self::TRANSFER.bits() | Self::DISPATCH_STORAGE.bits();
        const _ = !0;
    }

    /// How a command buffer will be used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CommandBufferMode: u32 {
        /// Executed at most once; without it the buffer is reusable, also while in flight.
        const ONE_SHOT = 1;
        /// May execute while it is recorded.
        const ALLOW_INLINE_EXECUTION = 0x10;
        /// The recorder vouches for it. A hint that Halite does not follow: the recorder may be an untrusted module.
        const UNVALIDATED = 0x20;
        /// The caller keeps all resources alive.
        const UNRETAINED = 0x40;
        const _ = !0;
    }

    /// What kinds of commands a command buffer holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CommandCategory: u32 {
        /// Fills, updates, copies.
        const TRANSFER = 1;
        /// Dispatches.
        const DISPATCH = 2;
        /// Both.
        const ANY = 3;
        const _ = !0;
    }

    /// What a barrier of a recording waits for and what it holds back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ExecutionStage: u32 {
        /// Commands begin to be issued.
        const COMMAND_ISSUE = 1;
        /// Commands are processed.
        const COMMAND_PROCESS = 2;
        /// Dispatches.
        const DISPATCH = 4;
        /// Transfers.
        const TRANSFER = 8;
        /// Commands are done.
        const COMMAND_RETIRE = 0x10;
        /// Work of the host.
        const HOST = 0x20;
        const _ = !0;
    }

    /// How a dispatch takes its counts and arguments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct DispatchFlags: u64 {
        /// Workgroup counts are read from a buffer when the dispatch executes.
        const DYNAMIC_INDIRECT_PARAMETERS = 1;
        /// Workgroup counts are in a buffer that no longer changes after submission.
        const STATIC_INDIRECT_PARAMETERS = 2;
        /// Arguments are raw bytes in the executable's own layout.
        const CUSTOM_DIRECT_ARGUMENTS = 4;
        /// Arguments are read from a buffer when the dispatch executes.
        const DYNAMIC_INDIRECT_ARGUMENTS = 8;
        /// Arguments are in a buffer that no longer changes after submission.
        const STATIC_INDIRECT_ARGUMENTS = 0x10;
        /// The dispatch may run inline with recording.
        const ALLOW_INLINE_EXECUTION = 0x20;
        /// The caller keeps bound resources alive.
        const BORROW_RESOURCE_LIFETIMES = 0x40;
        const _ = !0;
    }
}

macro_rules! display_names {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            /// The names of the bits with ` | ` between them; `none` for the empty set.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_empty() { f.write_str("none") } else { bitflags::parser::to_writer(self, f) }
            }
        }
    )*};
}

display_names!(
    MemoryType,
    MemoryAccess,
    BufferUsage,
    CommandBufferMode,
    CommandCategory,
    DispatchFlags,
    ExecutionStage
);

/// A set of queues: bit n stands for queue n; all bits mean any queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueAffinity(pub u64);

impl QueueAffinity {
    /// Any queue of the device.
    pub const ANY: QueueAffinity = QueueAffinity(u64::MAX);

    /// The lowest queue in the set among `queue_count` queues; queue 0 when the set names none of them.
    pub fn pick(self, queue_count: u32) -> u32 {
        let first = self.0.trailing_zeros();
        if first < queue_count { first } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_print_their_names() {
        assert_eq!(BufferUsage::empty().to_string(), "none");
        assert_eq!(BufferUsage::TRANSFER.to_string(), "TRANSFER_SOURCE | TRANSFER_TARGET");
        assert_eq!(BufferUsage::from_bits_retain(0x8001).to_string(), "TRANSFER_SOURCE | 0x8000");
    }

    #[test]
    fn affinity_picks_the_lowest_existing_queue() {
        assert_eq!(QueueAffinity::ANY.pick(2), 0);
        assert_eq!(QueueAffinity(0b10).pick(2), 1);
        assert_eq!(QueueAffinity(0b100).pick(2), 0);
        assert_eq!(QueueAffinity(0).pick(2), 0);
    }
}
