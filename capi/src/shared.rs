//! Memory that a program shares with devices.

use std::ffi::c_void;

use halite::{ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport, SharedMemory};

use crate::{
    device::halite_device,
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    raw::{self, Grows, Out},
    source::{self, Release, halite_release_fn},
    tensor::{self, halite_element_type, halite_tensor},
};

/// What memory from elsewhere is known by: one of `HALITE_MEMORY_…`.
pub type halite_memory_kind = u32;

/// A file descriptor that only the same driver of the same device understands, such as another Vulkan device or CUDA: compare
/// `halite_device_get_uuids`.
pub const HALITE_MEMORY_OPAQUE_FD: halite_memory_kind = 1;
/// A file descriptor of Linux's dma-buf, which cameras, decoders and other devices understand.
pub const HALITE_MEMORY_DMA_BUF: halite_memory_kind = 2;
/// Memory of the process. The device reads it where it lies, and does not write to it.
pub const HALITE_MEMORY_HOST: halite_memory_kind = 3;
/// Android's `AHardwareBuffer`, of the format `BLOB`.
pub const HALITE_MEMORY_ANDROID_HARDWARE_BUFFER: halite_memory_kind = 4;
/// A `HANDLE` of Windows that only the same driver of the same device understands, such as Direct3D or CUDA.
pub const HALITE_MEMORY_OPAQUE_WIN32: halite_memory_kind = 5;

/// Memory from elsewhere, or for others. Begin with `HALITE_EXTERNAL_MEMORY_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_external_memory {
    /// `sizeof(halite_external_memory)`.
    pub struct_size: usize,
    /// What it is known by.
    pub kind: halite_memory_kind,
    /// The descriptor, of kinds that have one.
    pub fd: i32,
    /// The `HANDLE`, the `AHardwareBuffer *`, or the first byte of memory of the process.
    pub handle: *mut c_void,
    /// All of its bytes, as it was allocated.
    pub size: u64,
    /// Whether `memory_type` is set.
    pub has_memory_type: bool,
    /// Whether it was allocated for one buffer alone (`VkMemoryDedicatedAllocateInfo`).
    pub is_dedicated: bool,
    /// Index of the Vulkan memory type that it was allocated from, for opaque handles. Where it is not set, it is the type that the
    /// device takes for buffers of its own.
    pub memory_type: u32,
    /// Called with `context` when memory of the process is not used any more, also when the call fails; other kinds have none.
    pub release: halite_release_fn,
    /// Handed to `release`.
    pub context: *mut c_void,
}

// SAFETY: the size comes first; zeros are what is not set.
unsafe impl Grows for halite_external_memory {
    const NAME: &'static str = "halite_external_memory";
    const FIRST: usize = std::mem::offset_of!(halite_external_memory, context) + 1;
}

/// What a device does with memory of one kind. Begin with `HALITE_MEMORY_SUPPORT_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_memory_support {
    /// `sizeof(halite_memory_support)`.
    pub struct_size: usize,
    /// What addresses of memory of the process, and its sizes, are multiples of; 1 for other kinds.
    pub alignment: u64,
    /// Whether the device takes such memory.
    pub can_import: bool,
    /// Whether it makes memory that can be given away as such.
    pub can_export: bool,
}

// SAFETY: the size comes first; all others are numbers.
unsafe impl Grows for halite_memory_support {
    const NAME: &'static str = "halite_memory_support";
    const FIRST: usize = std::mem::offset_of!(halite_memory_support, can_export) + 1;
}

/// Memory that others also use. Either the device has it, as after it was imported or created, or the others do, between
/// `halite_memory_release` and `halite_memory_acquire`. Calls with its tensors fail while the others have it.
pub struct halite_memory(SharedMemory);

/// All kinds with their numbers.
const KINDS: [(halite_memory_kind, ExternalKind); 5] = [
    (HALITE_MEMORY_OPAQUE_FD, ExternalKind::OpaqueFd),
    (HALITE_MEMORY_DMA_BUF, ExternalKind::DmaBuf),
    (HALITE_MEMORY_HOST, ExternalKind::Host),
    (HALITE_MEMORY_ANDROID_HARDWARE_BUFFER, ExternalKind::AndroidHardwareBuffer),
    (HALITE_MEMORY_OPAQUE_WIN32, ExternalKind::OpaqueWin32),
];

fn kind_of(number: halite_memory_kind) -> Result<ExternalKind> {
    let found = KINDS.iter().find(|(own, _)| *own == number).map(|(_, kind)| *kind);
    found.ok_or_else(|| {
        Failure::invalid(format!("there is no kind of memory {number}; take one of HALITE_MEMORY_…"))
    })
}

fn number_of(kind: ExternalKind) -> halite_memory_kind {
    KINDS.iter().find(|(_, own)| *own == kind).map_or(0, |(number, _)| *number)
}

/// A duplicate of the caller's descriptor.
///
/// # Safety
/// The number is none or that of an open descriptor.
#[cfg(unix)]
unsafe fn duplicate(fd: i32) -> Result<halite::hal::external::Descriptor> {
    if fd < 0 {
        return Err(Failure::invalid(format!("{fd} is no descriptor")));
    }
    // SAFETY: the caller's promise; -1 was excluded.
    let lent = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    lent.try_clone_to_owned()
        .map_err(|e| Failure::invalid(format!("descriptor {fd} cannot be duplicated: {e}")))
}

#[cfg(not(unix))]
unsafe fn duplicate(_: i32) -> Result<halite::hal::external::Descriptor> {
    Err(Failure::unsupported("this system has no memory that descriptors stand for"))
}

/// # Safety
/// The pointer is null or an open handle.
#[cfg(windows)]
unsafe fn duplicate_handle(handle: *mut c_void) -> Result<ExternalHandle> {
    // SAFETY: the caller's promise.
    let lent = unsafe { std::os::windows::io::BorrowedHandle::borrow_raw(handle) };
    let own = lent.try_clone_to_owned();
    own.map(ExternalHandle::OpaqueWin32)
        .map_err(|e| Failure::invalid(format!("the handle cannot be duplicated: {e}")))
}

#[cfg(not(windows))]
unsafe fn duplicate_handle(_: *mut c_void) -> Result<ExternalHandle> {
    Err(Failure::unsupported("only Windows has handles of this kind"))
}

/// The memory that a caller states.
///
/// # Safety
/// The structure keeps the contract.
unsafe fn stated(memory: &halite_external_memory) -> Result<ExternalMemory> {
    // From here on it is released, whatever happens.
    let release = Release::new(memory.release, memory.context);
    let kind = kind_of(memory.kind)?;
    if kind != ExternalKind::Host && memory.release.is_some() {
        return Err(Failure::invalid("'release' is for memory of the process; other kinds are not borrowed"));
    }
    // SAFETY: the caller's promise, for each kind.
    let handle = unsafe {
        match kind {
            ExternalKind::OpaqueFd => ExternalHandle::OpaqueFd(duplicate(memory.fd)?),
            ExternalKind::DmaBuf => ExternalHandle::DmaBuf(duplicate(memory.fd)?),
            ExternalKind::Host => host(memory, release)?,
            ExternalKind::AndroidHardwareBuffer => {
                let address = std::num::NonZeroUsize::new(memory.handle.expose_provenance());
                let address = address.ok_or_else(|| Failure::invalid("'handle' is NULL"))?;
                let buffer = halite::hal::external::HardwareBuffer::from_address(address);
                ExternalHandle::AndroidHardwareBuffer(buffer)
            }
            ExternalKind::OpaqueWin32 => duplicate_handle(memory.handle)?,
        }
    };
    let memory_type = memory.has_memory_type.then_some(memory.memory_type);
    Ok(ExternalMemory { handle, size: memory.size, memory_type, dedicated: memory.is_dedicated })
}

/// Memory of the process that is lent.
///
/// # Safety
/// As for [`stated`].
unsafe fn host(memory: &halite_external_memory, release: Release) -> Result<ExternalHandle> {
    if memory.release.is_none() {
        return Err(Failure::invalid(
            "'release' is NULL: memory of the process is borrowed, and 'release' tells when that ends",
        ));
    }
    let size = usize::try_from(memory.size)
        .map_err(|_| Failure::invalid(format!("the process has no {} bytes", memory.size)))?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { source::lend(memory.handle.cast(), size, release, "handle") }?;
    Ok(ExternalHandle::Host(bytes))
}

/// What a device does with memory of a kind: nothing, where both answers are false.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_get_memory_support(
    device: *const halite_device,
    kind: halite_memory_kind,
    support: *mut halite_memory_support,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_get_memory_support", || unsafe {
        let info = raw::handle(device, "device")?.device.info();
        let kind = kind_of(kind)?;
        let found = info.external_memory().iter().find(|support| support.kind == kind).copied();
        let found = found.unwrap_or(ExternalSupport { kind, import: false, export: false, alignment: 1 });
        let value = halite_memory_support {
            struct_size: 0,
            alignment: found.alignment,
            can_import: found.import,
            can_export: found.export,
        };
        raw::fill(support, value)
    })
}

/// Vulkan's UUIDs of a device and of its driver (`deviceUUID` and `driverUUID`), 16 bytes each; either pointer may be NULL. Opaque
/// handles have a meaning only between parts that have both in common. CUDA tells the first as `cuDeviceGetUuid`. Fails for devices
/// that have none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_get_uuids(
    device: *const halite_device,
    device_uuid: *mut u8,
    driver_uuid: *mut u8,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_get_uuids", || unsafe {
        let uuids = raw::handle(device, "device")?.device.info().uuids();
        let (own, driver) = uuids.ok_or_else(|| Failure::not_found("the device has no UUIDs of Vulkan"))?;
        for (place, uuid) in [(device_uuid, own), (driver_uuid, driver)] {
            if !place.is_null() {
                raw::target(place, uuid.len(), "uuid")?.copy_from_slice(&uuid);
            }
        }
        Ok(())
    })
}

/// Takes memory from elsewhere, for a device, which has it then. The handle stays yours, whatever comes of the call: the device gets a
/// duplicate of a descriptor or a `HANDLE`, and a reference to an `AHardwareBuffer`. Memory of the process is borrowed until `release` is
/// called, and nobody may change it while a call uses it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_import(
    device: *const halite_device,
    memory: *const halite_external_memory,
    out: *mut *mut halite_memory,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_import", || unsafe {
        // It is released whatever is wrong, and `out` is NULL then.
        let out = Out::handle(out, "out");
        let memory = stated(&raw::structure(memory)?);
        let out = out?;
        let device = &raw::handle(device, "device")?.device;
        out.give(halite_memory(SharedMemory::import(device, memory?)?));
        Ok(())
    })
}

/// Makes memory of at least `size` bytes on a device, to be given away as this kind. What it holds is not defined.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_create(
    device: *const halite_device,
    kind: halite_memory_kind,
    size: usize,
    out: *mut *mut halite_memory,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_create", || unsafe {
        let out = Out::handle(out, "out")?;
        let device = &raw::handle(device, "device")?.device;
        out.give(halite_memory(SharedMemory::create(device, kind_of(kind)?, size)?));
        Ok(())
    })
}

/// A handle of memory that `halite_memory_create` made, for others. It is yours: close it, or give it to an API that takes it over. Each
/// call gives a new one. The memory lives as long as either side uses it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_export(
    memory: *const halite_memory,
    kind: halite_memory_kind,
    exported: *mut halite_external_memory,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_export", || unsafe {
        raw::handle(exported, "exported")?;
        let memory = raw::handle(memory, "memory")?.0.export(kind_of(kind)?)?;
        let mut value: halite_external_memory = std::mem::zeroed();
        value.kind = number_of(memory.handle.kind());
        value.size = memory.size;
        value.has_memory_type = memory.memory_type.is_some();
        value.memory_type = memory.memory_type.unwrap_or_default();
        value.is_dedicated = memory.dedicated;
        value.fd = -1;
        match memory.handle {
            #[cfg(unix)]
            ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => {
                value.fd = std::os::fd::IntoRawFd::into_raw_fd(file);
            }
            #[cfg(windows)]
            ExternalHandle::OpaqueWin32(handle) => {
                value.handle = std::os::windows::io::IntoRawHandle::into_raw_handle(handle);
            }
            _ => return Err(Failure::internal("the device gave memory of a kind that nobody asked for")),
        }
        raw::fill(exported, value)
    })
}

/// Bytes that tensors can lie in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_size(memory: *const halite_memory) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_memory_size", 0, || unsafe { Ok(raw::handle(memory, "memory")?.0.size()) })
}

/// A tensor of the bytes from `offset` on, a multiple of 256, in the byte order of the machine. Nothing is copied: while a call uses the
/// tensor, nobody may change them. It keeps the memory.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_tensor(
    memory: *const halite_memory,
    element: halite_element_type,
    shape: *const usize,
    rank: usize,
    offset: usize,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_tensor", || unsafe {
        let out = Out::handle(out, "out")?;
        let (element, shape) = (tensor::element_type(element)?, raw::slice(shape, rank, "shape")?);
        out.give(halite_tensor(raw::handle(memory, "memory")?.0.tensor(element, shape, offset)?));
        Ok(())
    })
}

/// Copies a tensor to the bytes from `offset` on, a multiple of 4, and waits for that. From the same device, nothing goes through the
/// host.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_write(
    memory: *const halite_memory,
    offset: usize,
    tensor: *const halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_write", || unsafe {
        let tensor = &raw::handle(tensor, "tensor")?.0;
        Ok(raw::handle(memory, "memory")?.0.write(offset, tensor)?)
    })
}

/// Takes the memory back from the others, who must have finished; calls that begin afterwards see what they wrote. Does nothing where the
/// device has it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_acquire(memory: *const halite_memory) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_acquire", || unsafe { Ok(raw::handle(memory, "memory")?.0.acquire()?) })
}

/// Gives the memory to the others, who see what calls that have returned wrote, and may write. Waits for the device. Does nothing where
/// they have it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_release(memory: *const halite_memory) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_memory_release", || unsafe { Ok(raw::handle(memory, "memory")?.0.release()?) })
}

/// Frees a handle to memory. The memory stays as long as a tensor of it, or a call that uses one, is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_memory_free(memory: *mut halite_memory) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_memory_free", memory) }
}
