//! Command buffers on their way through the interface.

use std::{any::Any, sync::Arc};

use super::{
    abi::*,
    guard,
    object::{self, Arrival, Count, Exported, Handle, Shared, table},
    peer::{Peer, Side},
};
use halite_hal::{CommandBuffer, CommandList, Result, bail};

table!(counted HaliteCommandBufferVtable of HaliteCommandBuffer: device_id);

static TABLE: HaliteCommandBufferVtable = HaliteCommandBufferVtable {
    struct_size: size_of::<HaliteCommandBufferVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<dyn CommandBuffer>),
    release: Some(object::release::<dyn CommandBuffer>),
    device_id: Some(device_id),
};

impl Shared for dyn CommandBuffer {
    const NOUN: &'static str = "command buffer";
    type Table = HaliteCommandBufferVtable;
    fn table() -> &'static HaliteCommandBufferVtable {
        &TABLE
    }
}

unsafe extern "C" fn device_id(command_buffer: *mut HaliteCommandBuffer) -> u64 {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn CommandBuffer, _>(command_buffer, "device_id", 0, |c| c.inner.device_id()) }
}

/// A command buffer of the far end, with the recording that it was made from.
#[derive(Debug)]
struct CommandBufferProxy {
    handle: Handle<HaliteCommandBufferVtable>,
    device_id: u64,
    list: CommandList,
}

impl CommandBuffer for CommandBufferProxy {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn list(&self) -> &CommandList {
        &self.list
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The command buffer that the far end made of `list` on device `device_id`.
///
/// # Safety
/// As for [`object::receive`] with [`Count::Given`].
pub(super) unsafe fn receive_made(
    command_buffer: *mut HaliteCommandBuffer,
    device_id: u64,
    list: CommandList,
    peer: Peer,
) -> Result<Arc<dyn CommandBuffer>> {
    // SAFETY: the caller's promise.
    match unsafe { object::receive::<dyn CommandBuffer>(command_buffer, Count::Given, peer)? } {
        Arrival::Own(command_buffer) => Ok(command_buffer),
        Arrival::Foreign(handle) => Ok(Arc::new(CommandBufferProxy { handle, device_id, list })),
    }
}

/// The command buffer of ours that is to be executed. INVALID_ARGUMENT for somebody else's: only its maker can.
///
/// # Safety
/// As for [`object::receive`] with [`Count::Borrowed`].
pub(super) unsafe fn receive_own(
    command_buffer: *mut HaliteCommandBuffer,
    peer: Peer,
) -> Result<Arc<dyn CommandBuffer>> {
    // SAFETY: the caller's promise.
    match unsafe { object::own::<dyn CommandBuffer>(peer.side, command_buffer) } {
        Some(exported) => Ok(exported.inner.clone()),
        None => {
            bail!(InvalidArgument, "the command buffer was recorded through another driver; record it here")
        }
    }
}

/// A command buffer for the far end, with a count that it owns.
pub(super) fn give(command_buffer: Arc<dyn CommandBuffer>, side: Side) -> *mut HaliteCommandBuffer {
    Exported::give(Exported::new(side, command_buffer))
}

/// The handle of a command buffer that the far end made, lent as long as `command_buffer` lives. INVALID_ARGUMENT for any
/// other.
pub(super) fn lend(command_buffer: &dyn CommandBuffer) -> Result<*mut HaliteCommandBuffer> {
    match command_buffer.as_any().downcast_ref::<CommandBufferProxy>() {
        Some(proxy) => Ok(proxy.handle.raw()),
        None => {
            bail!(InvalidArgument, "the command buffer was recorded through another driver; record it here")
        }
    }
}
