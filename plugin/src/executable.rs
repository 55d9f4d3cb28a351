//! Executables on their way through the interface.

use std::{any::Any, ffi::c_void, sync::Arc};

use super::{
    abi::*,
    guard,
    object::{self, Arrival, Count, Exported, Handle, Shared, present, table},
    once, panics,
    peer::{Peer, Side},
    raw::{self, Grows},
    status, time,
};
use halite_hal::{Deadline, Executable, ExecutableDesc, FunctionInfo, Result, bail};

table!(counted HaliteExecutableVtable of HaliteExecutable: device_id, functions);

static TABLE: HaliteExecutableVtable = HaliteExecutableVtable {
    struct_size: size_of::<HaliteExecutableVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<dyn Executable>),
    release: Some(object::release::<dyn Executable>),
    device_id: Some(device_id),
    functions: Some(functions),
    wait_built: Some(wait_built),
};

impl Shared for dyn Executable {
    const NOUN: &'static str = "executable";
    type Table = HaliteExecutableVtable;
    fn table() -> &'static HaliteExecutableVtable {
        &TABLE
    }
}

type VisitFunction = unsafe extern "C" fn(context: *mut c_void, function: *const HaliteFunctionInfo);

unsafe extern "C" fn device_id(executable: *mut HaliteExecutable) -> u64 {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn Executable, _>(executable, "device_id", 0, |e| e.inner.device_id()) }
}

unsafe extern "C" fn functions(
    executable: *mut HaliteExecutable,
    context: *mut c_void,
    visit: Option<VisitFunction>,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and its visitor takes what is lent for the visit.
    unsafe {
        guard::call::<dyn Executable>(executable, "functions", |e| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'functions' needs a visitor") };
            for function in e.inner.functions() {
                let info = HaliteFunctionInfo {
                    struct_size: HaliteFunctionInfo::SIZE,
                    binding_count: function.binding_count,
                    constant_count: function.constant_count,
                    workgroup_size: function.workgroup_size,
                    name: raw::lend(&function.name),
                };
                visit(context, &raw const info);
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn wait_built(
    executable: *mut HaliteExecutable,
    functions: *const u32,
    function_count: usize,
    timeout_ns: u64,
    out_built: *mut usize,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, lends the numbers, and has a place for the result.
    unsafe {
        guard::call::<dyn Executable>(executable, "wait_built", |e| {
            let peer = Peer::of(e.side);
            let functions = raw::array(functions, function_count, "functions", peer)?;
            raw::put(out_built, e.inner.wait_built(functions, time::deadline(timeout_ns))?, peer)
        })
    }
}

/// What the visitor gathers.
struct Gathered {
    functions: Result<Vec<FunctionInfo>>,
    peer: Peer,
}

unsafe extern "C" fn gather(context: *mut c_void, function: *const HaliteFunctionInfo) {
    panics::swallow("visiting a function", || {
        // SAFETY: the context is the `Gathered` of `functions_of`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<Gathered>().as_mut() }) else { return };
        let Ok(functions) = &mut gathered.functions else { return };
        // SAFETY: the entry is lent for the visit.
        match unsafe { function_info(function, gathered.peer) } {
            Ok(info) => functions.push(info),
            Err(e) => gathered.functions = Err(e),
        }
    });
}

/// # Safety
/// `function` is null or there for the visit.
unsafe fn function_info(function: *const HaliteFunctionInfo, peer: Peer) -> Result<FunctionInfo> {
    // SAFETY: the caller's promise.
    let info = unsafe { raw::structure(function, peer)? };
    Ok(FunctionInfo {
        // SAFETY: the caller's promise.
        name: unsafe { raw::text(info.name, "a function's name", peer)? }.to_owned(),
        binding_count: info.binding_count,
        constant_count: info.constant_count,
        workgroup_size: info.workgroup_size,
    })
}

fn functions_of(handle: &Handle<HaliteExecutableVtable>) -> Result<Vec<FunctionInfo>> {
    let mut gathered = Gathered { functions: Ok(Vec::new()), peer: handle.peer };
    let context = (&raw mut gathered).cast::<c_void>();
    // SAFETY: the handle is live, its table was checked, and the visitor gets its own context; a failure is ours.
    unsafe {
        let outcome = present(handle.table().functions)(handle.raw(), context, Some(gather));
        status::outcome(outcome, handle.peer)?;
    }
    gathered.functions
}

/// An executable of the far end, with the facts about its functions.
#[derive(Debug)]
struct ExecutableProxy {
    handle: Handle<HaliteExecutableVtable>,
    device_id: u64,
    functions: Vec<FunctionInfo>,
}

impl Executable for ExecutableProxy {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn wait_built(&self, functions: &[u32], deadline: Deadline) -> Result<usize> {
        let Some(wait) = self.handle.table().wait_built else { return Ok(functions.len()) };
        let (timeout, mut built) = (time::timeout(deadline), 0);
        // SAFETY: the handle is live and its table was checked; the numbers and the result live until the call returns.
        unsafe {
            let outcome =
                wait(self.handle.raw(), functions.as_ptr(), functions.len(), timeout, &raw mut built);
            status::outcome(outcome, self.handle.peer)?;
        }
        Ok(built.min(functions.len()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An executable that came in.
///
/// # Safety
/// As for [`object::receive`].
#[inline]
pub(super) unsafe fn receive(
    executable: *mut HaliteExecutable,
    count: Count,
    peer: Peer,
) -> Result<Arc<dyn Executable>> {
    // Recordings bring thousands of our own: they are looked at without a call.
    if count == Count::Borrowed {
        // SAFETY: the caller's promise.
        if let Some(exported) = unsafe { object::own::<dyn Executable>(peer.side, executable) } {
            return Ok(exported.inner.clone());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { receive_any(executable, count, peer) }
}

/// # Safety
/// As for [`object::receive`].
unsafe fn receive_any(
    executable: *mut HaliteExecutable,
    count: Count,
    peer: Peer,
) -> Result<Arc<dyn Executable>> {
    // SAFETY: the caller's promise.
    match unsafe { object::receive::<dyn Executable>(executable, count, peer)? } {
        Arrival::Own(executable) => Ok(executable),
        Arrival::Foreign(handle) => {
            // SAFETY: the handle is live and its table was checked.
            let device_id = unsafe { present(handle.table().device_id)(handle.raw()) };
            let functions = functions_of(&handle)?;
            Ok(Arc::new(ExecutableProxy { handle, device_id, functions }))
        }
    }
}

/// An executable for the far end, with a count that it owns.
pub(super) fn give(executable: Arc<dyn Executable>, side: Side) -> *mut HaliteExecutable {
    match executable.as_any().downcast_ref::<ExecutableProxy>() {
        Some(proxy) => {
            // SAFETY: the handle is live and its table was checked.
            unsafe { present(proxy.handle.table().retain)(proxy.handle.raw()) };
            proxy.handle.raw()
        }
        None => Exported::give(Exported::new(side, executable)),
    }
}

/// An executable that is lent for a call; `made` keeps what had to be made for it.
pub(super) fn lend(
    executable: &Arc<dyn Executable>,
    side: Side,
    made: &mut Vec<Arc<Exported<dyn Executable>>>,
) -> *mut HaliteExecutable {
    match executable.as_any().downcast_ref::<ExecutableProxy>() {
        Some(proxy) => proxy.handle.raw(),
        None => {
            let object = Exported::new(side, executable.clone());
            let handle = Exported::handle(&object);
            made.push(object);
            handle
        }
    }
}

/// Calls `body` with a description for the far end, which takes the code over.
pub(super) fn lend_desc<R>(desc: &ExecutableDesc, body: impl FnOnce(&HaliteExecutableDesc) -> R) -> R {
    body(&HaliteExecutableDesc {
        struct_size: HaliteExecutableDesc::SIZE,
        reserved: 0,
        format: raw::lend(&desc.format),
        data: once::give_blob(desc.data.clone()),
        constants: desc.constants.as_ptr(),
        constant_count: desc.constants.len(),
        label: raw::lend(&desc.label),
        subgroup_sizes: desc.subgroup_sizes.as_ptr(),
        subgroup_size_count: desc.subgroup_sizes.len(),
    })
}

/// A description that came in; its code is ours from then on.
///
/// # Safety
/// `desc` is null or there for the call, and so is what it points to.
pub(super) unsafe fn receive_desc(desc: *const HaliteExecutableDesc, peer: Peer) -> Result<ExecutableDesc> {
    // SAFETY: the caller's promise. The code comes first: it is given back also when something else is wrong.
    unsafe {
        let desc = raw::structure(desc, peer)?;
        Ok(ExecutableDesc {
            data: once::take_blob(desc.data, "the code of an executable", peer)?,
            format: raw::text(desc.format, "an executable's format", peer)?.to_owned(),
            constants: raw::array(desc.constants, desc.constant_count, "constants", peer)?.to_vec(),
            label: raw::text(desc.label, "an executable's label", peer)?.to_owned(),
            subgroup_sizes: raw::array(
                desc.subgroup_sizes,
                desc.subgroup_size_count,
                "subgroup sizes",
                peer,
            )?
            .to_vec(),
        })
    }
}
