//! Memory that programs share with devices: what it is known by, and which of it a device takes and gives.
//!
//! A handle never changes owners on its way in: a driver that wants to keep one keeps a duplicate or a reference of its own. What
//! [`Device::export_buffer`](crate::Device::export_buffer) gives is the caller's.

use std::{fmt, num::NonZeroUsize};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{DeviceInfo, Status, status};

/// A file descriptor, owned.
#[cfg(unix)]
pub type Descriptor = std::os::fd::OwnedFd;
/// A file descriptor, of which this system has none.
#[cfg(not(unix))]
pub type Descriptor = Absent;

/// A handle of Windows, owned.
#[cfg(windows)]
pub type SystemHandle = std::os::windows::io::OwnedHandle;
/// A handle of Windows, of which this system has none.
#[cfg(not(windows))]
pub type SystemHandle = Absent;

/// What cannot be there on this system.
#[derive(Clone, Copy, Debug)]
pub enum Absent {}

/// What memory from elsewhere is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExternalKind {
    /// A file descriptor that only the same driver of the same device understands, such as another Vulkan device or CUDA.
    OpaqueFd,
    /// A file descriptor of Linux's dma-buf, which cameras, decoders and other devices understand.
    DmaBuf,
    /// Memory of the process.
    Host,
    /// Android's `AHardwareBuffer`, of the format `BLOB`.
    AndroidHardwareBuffer,
    /// A handle of Windows that only the same driver of the same device understands, such as Direct3D or CUDA.
    OpaqueWin32,
}

impl ExternalKind {
    /// All kinds.
    pub const ALL: [ExternalKind; 5] = [
        ExternalKind::OpaqueFd,
        ExternalKind::DmaBuf,
        ExternalKind::Host,
        ExternalKind::AndroidHardwareBuffer,
        ExternalKind::OpaqueWin32,
    ];

    /// Its name in reports and messages.
    pub fn name(self) -> &'static str {
        match self {
            ExternalKind::OpaqueFd => "opaque-fd",
            ExternalKind::DmaBuf => "dma-buf",
            ExternalKind::Host => "host",
            ExternalKind::AndroidHardwareBuffer => "android-hardware-buffer",
            ExternalKind::OpaqueWin32 => "opaque-win32",
        }
    }
}

impl fmt::Display for ExternalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a device does with one kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalSupport {
    /// The kind.
    pub kind: ExternalKind,
    /// Whether it takes such memory.
    pub import: bool,
    /// Whether it makes memory that can be given away as such.
    pub export: bool,
    /// What addresses of [`ExternalKind::Host`] and all sizes of that kind are multiples of; 1 for others.
    pub alignment: u64,
}

/// An `AHardwareBuffer`, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareBuffer(NonZeroUsize);

impl HardwareBuffer {
    /// Names one. Whoever makes this vouches that the buffer is alive until it was imported; the device then has a reference of its own.
    pub fn from_address(address: NonZeroUsize) -> Self {
        HardwareBuffer(address)
    }

    /// The address.
    pub fn address(self) -> NonZeroUsize {
        self.0
    }
}

/// A handle of memory from elsewhere.
#[derive(Debug)]
pub enum ExternalHandle {
    /// See [`ExternalKind::OpaqueFd`].
    OpaqueFd(Descriptor),
    /// See [`ExternalKind::DmaBuf`].
    DmaBuf(Descriptor),
    /// See [`ExternalKind::Host`]. The device reads it, and work may not write to it.
    Host(Bytes),
    /// See [`ExternalKind::AndroidHardwareBuffer`].
    AndroidHardwareBuffer(HardwareBuffer),
    /// See [`ExternalKind::OpaqueWin32`].
    OpaqueWin32(SystemHandle),
}

impl ExternalHandle {
    /// Its kind.
    pub fn kind(&self) -> ExternalKind {
        match self {
            ExternalHandle::OpaqueFd(_) => ExternalKind::OpaqueFd,
            ExternalHandle::DmaBuf(_) => ExternalKind::DmaBuf,
            ExternalHandle::Host(_) => ExternalKind::Host,
            ExternalHandle::AndroidHardwareBuffer(_) => ExternalKind::AndroidHardwareBuffer,
            ExternalHandle::OpaqueWin32(_) => ExternalKind::OpaqueWin32,
        }
    }
}

/// Memory from elsewhere, or on its way there.
#[derive(Debug)]
pub struct ExternalMemory {
    /// What it is known by.
    pub handle: ExternalHandle,
    /// All of its bytes, as it was allocated.
    pub size: u64,
    /// Index of the Vulkan memory type that it was allocated from, which opaque handles have to state where the device would not choose
    /// the same for a buffer of its own. Handles of other kinds tell it themselves.
    pub memory_type: Option<u32>,
    /// Whether it was allocated for one buffer alone (`VkMemoryDedicatedAllocateInfo`).
    pub dedicated: bool,
}

impl ExternalMemory {
    /// Memory of this many bytes of which no more is known.
    pub fn new(handle: ExternalHandle, size: u64) -> Self {
        ExternalMemory { handle, size, memory_type: None, dedicated: false }
    }

    /// All bytes of memory of the process.
    pub fn host(bytes: Bytes) -> Self {
        let size = bytes.len() as u64;
        Self::new(ExternalHandle::Host(bytes), size)
    }
}

/// The error for memory of a kind that a device does not take (`takes`) or give: names what it has.
pub fn unsupported(info: &DeviceInfo, kind: ExternalKind, takes: bool) -> Status {
    let does = |support: &&ExternalSupport| if takes { support.import } else { support.export };
    let names: Vec<_> = info.external_memory.iter().filter(does).map(|s| s.kind.name()).collect();
    let verb = if takes { "import" } else { "export" };
    let has = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
    status!(
        Unimplemented,
        "device '{}' cannot {verb} memory of the kind {kind}; it can {verb} {has}",
        info.uri()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_tell_what_there_is() {
        let support = |kind, import, export| ExternalSupport { kind, import, export, alignment: 1 };
        let external_memory =
            vec![support(ExternalKind::OpaqueFd, true, true), support(ExternalKind::Host, true, false)];
        let info = DeviceInfo { driver: "x".into(), external_memory, ..DeviceInfo::default() };
        let text = unsupported(&info, ExternalKind::DmaBuf, true).to_string();
        assert!(text.contains("dma-buf") && text.contains("it can import opaque-fd, host"), "{text}");
        let text = unsupported(&info, ExternalKind::Host, false).to_string();
        assert!(text.ends_with("it can export opaque-fd"), "{text}");
        let text = unsupported(&DeviceInfo::default(), ExternalKind::Host, true).to_string();
        assert!(text.ends_with("none at all"), "{text}");
    }

    #[test]
    fn names_are_those_of_reports() {
        for kind in ExternalKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
