//! A device of the far end.

use std::{any::Any, ffi::c_void, ptr, sync::Arc};

use crate::{
    abi::*,
    buffer, command, command_buffer, executable, external, info,
    object::{self, Arrival, Count, Handle, present},
    peer::Peer,
    profile, queue, raw, semaphore, status, time,
};
use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, DeviceProfile,
    Executable, ExecutableDesc, ExternalKind, ExternalMemory, Fence, MemoryStats, QueueAffinity, QueueOp,
    Result, Semaphore, bail, external::unsupported,
};

/// A device of the far end, with the facts that never change.
#[derive(Debug)]
struct DeviceProxy {
    handle: Handle<HaliteDeviceVtable>,
    id: u64,
    queue_count: u32,
    info: DeviceInfo,
}

/// A device that the driver `driver` opened.
///
/// # Safety
/// As for [`object::receive`] with [`Count::Given`].
pub(crate) unsafe fn receive_opened(
    device: *mut HaliteDevice,
    driver: &str,
    peer: Peer,
) -> Result<Arc<dyn Device>> {
    // SAFETY: the caller's promise.
    let handle = match unsafe { object::receive::<dyn Device>(device, Count::Given, peer)? } {
        Arrival::Own(device) => return Ok(device),
        Arrival::Foreign(handle) => handle,
    };
    // SAFETY: the handle is live and its table was checked.
    let (id, queue_count) = unsafe {
        (present(handle.table().id)(handle.raw()), present(handle.table().queue_count)(handle.raw()))
    };
    if id == 0 || queue_count == 0 {
        return Err(peer.broke(format_args!(
            "a device has the identity {id} and {queue_count} queues; both begin at 1"
        )));
    }
    let info = info_of(&handle, driver)?;
    Ok(Arc::new(DeviceProxy { handle, id, queue_count, info }))
}

fn info_of(handle: &Handle<HaliteDeviceVtable>, driver: &str) -> Result<DeviceInfo> {
    let mut gathered = info::Gathered { driver, peer: handle.peer, infos: Ok(Vec::new()) };
    let context = (&raw mut gathered).cast::<c_void>();
    // SAFETY: the handle is live, its table was checked, and the visitor gets its own context; a failure is ours.
    unsafe {
        let outcome = present(handle.table().info)(handle.raw(), context, Some(info::gather));
        status::outcome(outcome, handle.peer)?;
    }
    match <[DeviceInfo; 1]>::try_from(gathered.infos?) {
        Ok([info]) => Ok(info),
        Err(infos) => {
            Err(handle.peer.broke(format_args!("'info' told of {} devices instead of one", infos.len())))
        }
    }
}

impl DeviceProxy {
    fn table(&self) -> &'static HaliteDeviceVtable {
        self.handle.table()
    }

    /// Calls a function that makes something: `function` gets the place for its handle.
    fn make<O>(&self, function: impl FnOnce(*mut *mut O) -> *mut HaliteStatus) -> Result<*mut O> {
        let mut made = ptr::null_mut();
        let outcome = function(&raw mut made);
        // SAFETY: a failure is ours.
        unsafe { status::outcome(outcome, self.handle.peer) }.map(|()| made)
    }
}

impl Device for DeviceProxy {
    fn id(&self) -> u64 {
        self.id
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn queue_count(&self) -> u32 {
        self.queue_count
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        let mut value = 0;
        // SAFETY: the handle is live, its table was checked, the texts are there, and the value may be written.
        let known = unsafe {
            let query = present(self.table().query_i64);
            query(self.handle.raw(), raw::lend(category), raw::lend(key), &raw mut value)
        };
        (known == 1).then_some(value)
    }

    fn memory_stats(&self) -> MemoryStats {
        let mut stats = info::lend_stats(&MemoryStats::default());
        // SAFETY: the handle is live, its table was checked, and the result tells its size.
        unsafe { present(self.table().memory_stats)(self.handle.raw(), &raw mut stats) };
        info::receive_stats(&stats)
    }

    fn trim(&self) {
        // SAFETY: the handle is live and its table was checked.
        unsafe { present(self.table().trim)(self.handle.raw()) };
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        let params = buffer::lend_params(params);
        let allocate = present(self.table().allocate_buffer);
        // SAFETY: the handle is live, its table was checked; the result brings a count.
        unsafe {
            let made = self.make(|out| allocate(self.handle.raw(), &raw const params, byte_length, out))?;
            buffer::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>> {
        let Some(import) = self.table().import_buffer else {
            return Err(unsupported(&self.info, memory.handle.kind(), true));
        };
        let (params, lent) = (buffer::lend_params(params), external::lend(&memory));
        // SAFETY: the handle is live, its table was checked, the arguments outlive the call; the result brings a count.
        unsafe {
            let made = self.make(|out| import(self.handle.raw(), &raw const params, &raw const lent, out))?;
            buffer::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn allocate_exportable(
        &self,
        params: &BufferParams,
        byte_length: u64,
        kind: ExternalKind,
    ) -> Result<Arc<dyn Buffer>> {
        let Some(allocate) = self.table().allocate_exportable else {
            return Err(unsupported(&self.info, kind, false));
        };
        let params = buffer::lend_params(params);
        let kind = external::number(kind);
        // SAFETY: the handle is live, its table was checked; the result brings a count.
        unsafe {
            let made =
                self.make(|out| allocate(self.handle.raw(), &raw const params, byte_length, kind, out))?;
            buffer::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn export_buffer(&self, buffer: &Arc<dyn Buffer>, kind: ExternalKind) -> Result<ExternalMemory> {
        let Some(export) = self.table().export_buffer else {
            return Err(unsupported(&self.info, kind, false));
        };
        let (mut made, mut memory) = (Vec::new(), external::NO_MEMORY);
        let lent = buffer::lend(buffer, self.handle.peer.side, &mut made);
        // SAFETY: the handle is live, its table was checked, the buffer outlives the call; what is given is ours.
        unsafe {
            let outcome = export(self.handle.raw(), lent, external::number(kind), &raw mut memory);
            status::outcome(outcome, self.handle.peer)?;
            external::receive(&raw const memory, true, self.handle.peer)
        }
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        let create = present(self.table().create_semaphore);
        // SAFETY: the handle is live, its table was checked; the result brings a count.
        unsafe {
            let made = self.make(|out| create(self.handle.raw(), initial, out))?;
            semaphore::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        let create = present(self.table().create_executable);
        // SAFETY: the handle is live, its table was checked; the result brings a count.
        unsafe {
            let made = executable::lend_desc(&desc, |desc| {
                self.make(|out| create(self.handle.raw(), &raw const *desc, out))
            })?;
            executable::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        let create = present(self.table().create_command_buffer);
        // SAFETY: the handle is live, its table was checked; the result brings a count.
        unsafe {
            let made = command::lend_list(&list, self.handle.peer.side, |list| {
                self.make(|out| create(self.handle.raw(), &raw const *list, out))
            })?;
            command_buffer::receive_made(made, self.id, list, self.handle.peer)
        }
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        let side = self.handle.peer.side;
        let (wait, signal) = (semaphore::LentFence::new(wait, side), semaphore::LentFence::new(signal, side));
        let params = buffer::lend_params(params);
        let alloca = present(self.table().queue_alloca);
        // SAFETY: the handle is live, its table was checked, the arguments outlive the call; the result brings a count.
        unsafe {
            let made = self.make(|out| {
                let (wait, signal) = (wait.raw(), signal.raw());
                alloca(self.handle.raw(), affinity.0, wait, signal, &raw const params, byte_length, out)
            })?;
            buffer::receive(made, Count::Given, self.handle.peer)
        }
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let side = self.handle.peer.side;
        let (wait, signal) = (semaphore::LentFence::new(wait, side), semaphore::LentFence::new(signal, side));
        let submit = present(self.table().queue_submit);
        queue::lend_op(&op, side, |op| {
            // SAFETY: the handle is live, its table was checked, the arguments outlive the call; a failure is ours.
            unsafe {
                let outcome = submit(self.handle.raw(), affinity.0, wait.raw(), signal.raw(), &raw const *op);
                status::outcome(outcome, self.handle.peer)
            }
        })
    }

    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()> {
        // SAFETY: the handle is live and its table was checked; a failure is ours.
        unsafe {
            let outcome = present(self.table().queue_flush)(self.handle.raw(), affinity.0);
            status::outcome(outcome, self.handle.peer)
        }
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        // SAFETY: the handle is live and its table was checked; a failure is ours.
        unsafe {
            let outcome = present(self.table().wait_idle)(self.handle.raw(), time::timeout(deadline));
            status::outcome(outcome, self.handle.peer)
        }
    }

    fn start_profiling(&self) -> Result<()> {
        let Some(start) = self.table().start_profiling.filter(|_| self.table().stop_profiling.is_some())
        else {
            return Err(profile::unsupported(&self.info));
        };
        // SAFETY: the handle is live and its table was checked; a failure is ours.
        unsafe { status::outcome(start(self.handle.raw()), self.handle.peer) }
    }

    fn stop_profiling(&self, deadline: Deadline) -> Result<DeviceProfile> {
        let Some(stop) = self.table().stop_profiling else {
            bail!(FailedPrecondition, "device '{}' is not being profiled", self.info.uri());
        };
        let mut gathered = profile::Gathered::new(self.handle.peer);
        let mut summary = profile::lend_summary(&DeviceProfile::default());
        let context = (&raw mut gathered).cast::<c_void>();
        // SAFETY: the handle is live, its table was checked, the visitor gets its own context, and the summary tells its
        // size; a failure is ours.
        unsafe {
            let visit = Some(profile::gather as profile::VisitTime);
            let (device, timeout) = (self.handle.raw(), time::timeout(deadline));
            let outcome = stop(device, timeout, context, visit, &raw mut summary);
            status::outcome(outcome, self.handle.peer)?;
        }
        gathered.finish(&summary)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
