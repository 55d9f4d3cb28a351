//! Calls of the extensions that take and make handles.

use std::ffi::c_void;

use ash::vk;
use bytes::Bytes;
use halite_hal::{ExternalHandle, ExternalKind, Result, Status, status};

use super::{ExternalPlan, way};
use crate::context::DeviceContext;

/// Functions of the extensions that a device was opened with.
#[derive(Default)]
pub(crate) struct Handles {
    #[cfg(unix)]
    fd: Option<ash::khr::external_memory_fd::Device>,
    #[cfg(windows)]
    win32: Option<ash::khr::external_memory_win32::Device>,
    #[cfg(target_os = "android")]
    android: Option<ash::android::external_memory_android_hardware_buffer::Device>,
    host: Option<ash::ext::external_memory_host::Device>,
}

impl Handles {
    /// The functions for the kinds of a plan, whose extensions were enabled.
    pub fn new(instance: &ash::Instance, device: &ash::Device, plan: &[ExternalPlan]) -> Self {
        let mut handles = Handles::default();
        for plan in plan {
            match plan.support.kind {
                #[cfg(unix)]
                ExternalKind::OpaqueFd | ExternalKind::DmaBuf => {
                    handles.fd = Some(ash::khr::external_memory_fd::Device::new(instance, device));
                }
                #[cfg(windows)]
                ExternalKind::OpaqueWin32 => {
                    handles.win32 = Some(ash::khr::external_memory_win32::Device::new(instance, device));
                }
                #[cfg(target_os = "android")]
                ExternalKind::AndroidHardwareBuffer => {
                    use ash::android::external_memory_android_hardware_buffer::Device as Buffers;
                    handles.android = Some(Buffers::new(instance, device));
                }
                ExternalKind::Host => {
                    handles.host = Some(ash::ext::external_memory_host::Device::new(instance, device));
                }
                // Plans have no kinds that this system does not know.
                _ => {}
            }
        }
        handles
    }
}

/// What a device says of memory that it is asked to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Bits of the memory types that it can be; `None` where whoever made it has to know.
    pub type_bits: Option<u32>,
    /// Its bytes, where the device knows them.
    pub size: Option<u64>,
}

/// Asks a device about memory of a kind that its plan has.
pub(crate) fn ask(ctx: &DeviceContext, handle: &ExternalHandle) -> Result<Told> {
    match handle {
        ExternalHandle::OpaqueFd(_) | ExternalHandle::OpaqueWin32(_) => {
            Ok(Told { type_bits: None, size: None })
        }
        ExternalHandle::Host(bytes) => ask_host(ctx, bytes),
        #[cfg(unix)]
        ExternalHandle::DmaBuf(file) => ask_dma_buf(ctx, file),
        #[cfg(target_os = "android")]
        ExternalHandle::AndroidHardwareBuffer(buffer) => ask_android(ctx, *buffer),
        #[cfg(not(all(unix, target_os = "android")))]
        _ => Err(absent(handle.kind())),
    }
}

fn absent(kind: ExternalKind) -> Status {
    status!(Unimplemented, "this system has no memory of the kind {kind}")
}

fn ask_host(ctx: &DeviceContext, bytes: &Bytes) -> Result<Told> {
    let Some(functions) = &ctx.external.host else { return Err(absent(ExternalKind::Host)) };
    let mut told = vk::MemoryHostPointerPropertiesEXT::default();
    // SAFETY: the extension is enabled; the address is that of memory that is there and as aligned as the device asks.
    let result = unsafe {
        (functions.fp().get_memory_host_pointer_properties_ext)(
            ctx.device.handle(),
            vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT,
            bytes.as_ptr().cast(),
            &raw mut told,
        )
    };
    result
        .result()
        .map_err(|e| ctx.error("vkGetMemoryHostPointerPropertiesEXT", e, "memory of the process"))?;
    Ok(Told { type_bits: Some(told.memory_type_bits), size: None })
}

#[cfg(unix)]
fn ask_dma_buf(ctx: &DeviceContext, file: &std::os::fd::OwnedFd) -> Result<Told> {
    use std::os::fd::AsRawFd as _;
    let Some(functions) = &ctx.external.fd else { return Err(absent(ExternalKind::DmaBuf)) };
    let kind = vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;
    let mut told = vk::MemoryFdPropertiesKHR::default();
    // SAFETY: the extension is enabled, and the descriptor is open; a call that only asks leaves it to its owner.
    unsafe { functions.get_memory_fd_properties(kind, file.as_raw_fd(), &mut told) }
        .map_err(|e| ctx.error("vkGetMemoryFdPropertiesKHR", e, "a dma-buf"))?;
    Ok(Told { type_bits: Some(told.memory_type_bits), size: None })
}

#[cfg(target_os = "android")]
fn ask_android(ctx: &DeviceContext, buffer: halite_hal::external::HardwareBuffer) -> Result<Told> {
    let Some(functions) = &ctx.external.android else {
        return Err(absent(ExternalKind::AndroidHardwareBuffer));
    };
    let mut told = vk::AndroidHardwareBufferPropertiesANDROID::default();
    // SAFETY: the extension is enabled; whoever named the buffer vouched that it is alive.
    unsafe {
        functions.get_android_hardware_buffer_properties(
            std::ptr::with_exposed_provenance(buffer.address().get()),
            &mut told,
        )
    }
    .map_err(|e| ctx.error("vkGetAndroidHardwareBufferPropertiesANDROID", e, "an AHardwareBuffer"))?;
    Ok(Told { type_bits: Some(told.memory_type_bits), size: Some(told.allocation_size) })
}

/// What names a handle when memory is allocated from it.
#[derive(Default)]
pub(crate) struct Import {
    #[cfg(unix)]
    fd: vk::ImportMemoryFdInfoKHR<'static>,
    host: vk::ImportMemoryHostPointerInfoEXT<'static>,
    #[cfg(target_os = "android")]
    android: vk::ImportAndroidHardwareBufferInfoANDROID<'static>,
    #[cfg(windows)]
    win32: vk::ImportMemoryWin32HandleInfoKHR<'static>,
}

impl Import {
    /// The same allocation, from this handle. The handle must live until the allocation was made.
    pub fn of<'a>(
        &'a mut self,
        handle: &ExternalHandle,
        info: vk::MemoryAllocateInfo<'a>,
    ) -> vk::MemoryAllocateInfo<'a> {
        let handle_type = way(handle.kind()).handle_type;
        match handle {
            #[cfg(unix)]
            ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => {
                use std::os::fd::AsRawFd as _;
                self.fd = self.fd.handle_type(handle_type).fd(file.as_raw_fd());
                info.push_next(&mut self.fd)
            }
            ExternalHandle::Host(bytes) => {
                let address = bytes.as_ptr().cast_mut().cast::<c_void>();
                self.host = self.host.handle_type(handle_type).host_pointer(address);
                info.push_next(&mut self.host)
            }
            #[cfg(target_os = "android")]
            ExternalHandle::AndroidHardwareBuffer(buffer) => {
                self.android.buffer = std::ptr::with_exposed_provenance_mut(buffer.address().get());
                info.push_next(&mut self.android)
            }
            #[cfg(windows)]
            ExternalHandle::OpaqueWin32(handle) => {
                use std::os::windows::io::AsRawHandle as _;
                self.win32 = self.win32.handle_type(handle_type).handle(handle.as_raw_handle() as vk::HANDLE);
                info.push_next(&mut self.win32)
            }
            // Of kinds that this system does not know there are no handles.
            #[cfg(not(all(unix, windows)))]
            _ => info,
        }
    }
}

/// What has to live as long as memory that was taken.
pub(crate) enum Taken {
    /// Memory of the process.
    Host {
        /// The bytes.
        _bytes: Bytes,
    },
    /// The device has what it needs.
    Nothing,
}

impl Taken {
    /// What is left of a handle once memory was allocated from it: descriptors are Vulkan's now, of others it has a reference.
    pub fn from(handle: ExternalHandle) -> Self {
        match handle {
            #[cfg(unix)]
            ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => {
                use std::os::fd::IntoRawFd as _;
                _ = file.into_raw_fd();
                Taken::Nothing
            }
            ExternalHandle::Host(bytes) => Taken::Host { _bytes: bytes },
            _ => Taken::Nothing,
        }
    }
}

/// A handle for memory that was allocated to be given away as this kind.
pub(crate) fn export(
    ctx: &DeviceContext,
    memory: vk::DeviceMemory,
    kind: ExternalKind,
) -> Result<ExternalHandle> {
    match kind {
        #[cfg(unix)]
        ExternalKind::OpaqueFd | ExternalKind::DmaBuf => {
            use std::os::fd::{FromRawFd as _, OwnedFd};
            let Some(functions) = &ctx.external.fd else { return Err(absent(kind)) };
            let info = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(way(kind).handle_type);
            // SAFETY: the extension is enabled, and the memory is alive and was allocated for export as this kind.
            let file = unsafe { functions.get_memory_fd(&info) }
                .map_err(|e| ctx.error("vkGetMemoryFdKHR", e, kind.name()))?;
            if file < 0 {
                return Err(status!(Internal, "vkGetMemoryFdKHR gave {file}, which is no descriptor"));
            }
            // SAFETY: each call gives a new descriptor, which is the caller's.
            let file = unsafe { OwnedFd::from_raw_fd(file) };
            Ok(match kind {
                ExternalKind::OpaqueFd => ExternalHandle::OpaqueFd(file),
                _ => ExternalHandle::DmaBuf(file),
            })
        }
        #[cfg(windows)]
        ExternalKind::OpaqueWin32 => {
            use std::os::windows::io::{FromRawHandle as _, OwnedHandle};
            let Some(functions) = &ctx.external.win32 else { return Err(absent(kind)) };
            let info =
                vk::MemoryGetWin32HandleInfoKHR::default().memory(memory).handle_type(way(kind).handle_type);
            // SAFETY: the extension is enabled, and the memory is alive and was allocated for export as this kind.
            let handle = unsafe { functions.get_memory_win32_handle(&info) }
                .map_err(|e| ctx.error("vkGetMemoryWin32HandleKHR", e, kind.name()))?;
            // SAFETY: each call gives a new handle, which is the caller's.
            Ok(ExternalHandle::OpaqueWin32(unsafe { OwnedHandle::from_raw_handle(handle as *mut c_void) }))
        }
        _ => {
            let _ = memory;
            Err(absent(kind))
        }
    }
}

/// Bytes behind a descriptor, where the system tells.
#[cfg(unix)]
pub(crate) fn descriptor_size(file: &std::os::fd::OwnedFd) -> Option<u64> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = std::fs::File::from(file.try_clone().ok()?);
    let stated = file.metadata().map_or(0, |metadata| metadata.len());
    if stated > 0 {
        return Some(stated);
    }
    // Older kernels tell the size of a dma-buf in this way only; it has no position that could change.
    file.seek(SeekFrom::End(0)).ok().filter(|size| *size > 0)
}
