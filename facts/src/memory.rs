//! A device's memory heaps and types.

use serde::{Deserialize, Serialize};

/// A memory heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHeap {
    /// Bytes.
    pub size: u64,
    /// Whether the device calls it its own.
    pub device_local: bool,
}

/// A memory type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTypeFacts {
    /// Index of its heap.
    pub heap: u32,
    /// `VkMemoryPropertyFlags`.
    pub flags: u32,
}

impl MemoryTypeFacts {
    /// `VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT`.
    pub const DEVICE_LOCAL: u32 = 1;
    /// `VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT`.
    pub const HOST_VISIBLE: u32 = 2;
    /// `VK_MEMORY_PROPERTY_HOST_COHERENT_BIT`.
    pub const HOST_COHERENT: u32 = 4;
    /// `VK_MEMORY_PROPERTY_HOST_CACHED_BIT`.
    pub const HOST_CACHED: u32 = 8;
    /// Bits of types that ordinary buffers may use; protected, lazily allocated and vendor types are left
    /// out.
    pub const ORDINARY: u32 =
        Self::DEVICE_LOCAL | Self::HOST_VISIBLE | Self::HOST_COHERENT | Self::HOST_CACHED;

    /// Whether the memory is the device's own.
    pub fn device_local(&self) -> bool {
        self.flags & Self::DEVICE_LOCAL != 0
    }

    /// Whether it can be mapped.
    pub fn host_visible(&self) -> bool {
        self.flags & Self::HOST_VISIBLE != 0
    }

    /// Whether mapped accesses need no flush or invalidate.
    pub fn host_coherent(&self) -> bool {
        self.flags & Self::HOST_COHERENT != 0
    }

    /// Whether mapped reads go through the CPU cache.
    pub fn host_cached(&self) -> bool {
        self.flags & Self::HOST_CACHED != 0
    }

    /// Whether ordinary buffers may use it.
    pub fn ordinary(&self) -> bool {
        self.flags & !Self::ORDINARY == 0
    }
}

/// The memory of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Heaps, by index.
    pub heaps: Vec<MemoryHeap>,
    /// Types, by index.
    pub types: Vec<MemoryTypeFacts>,
}

impl Memory {
    /// Size of a type's heap; 0 for an index that does not exist.
    pub fn heap_size(&self, type_index: u32) -> u64 {
        let heap = self.types.get(type_index as usize).map(|t| t.heap as usize);
        heap.and_then(|h| self.heaps.get(h)).map_or(0, |h| h.size)
    }

    /// Size of the largest heap that the device calls its own.
    pub fn largest_device_local_heap(&self) -> u64 {
        self.heaps.iter().filter(|h| h.device_local).map(|h| h.size).max().unwrap_or(0)
    }
}
