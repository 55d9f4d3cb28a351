//! Functions of loaded modules, and calling them.

use std::{fmt, sync::Arc};

use halite_abi::{Result as StatusResult, ResultExt, status};
use halite_formats::vmfb::RecordingNotes;
use halite_hal::{Deadline, Fence};
use halite_vm::{Entered, FunctionHandle, Invocation, Kind, Ref, Value as VmValue};

use crate::{
    Result, begun,
    call::{CallOptions, PendingCall},
    declaration::TypeInfo,
    hal_module::{CommandBufferObject, FenceObject, wait_for_fence},
    info::FunctionInfo,
    shared::Shared,
    values,
    view::Value,
};

/// An exported function of a loaded module. Cheap to clone; keeps the session's state alive.
#[derive(Clone)]
pub struct Function {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: FunctionHandle,
    /// What to call instead to get the results before the work is done.
    pub(crate) launch: Option<FunctionHandle>,
    /// What makes the recordings of calls to come.
    pub(crate) recorder: Option<FunctionHandle>,
    pub(crate) info: Arc<FunctionInfo>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Function {
    /// Name within its module.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Facts about it.
    pub fn info(&self) -> &FunctionInfo {
        &self.info
    }

    /// What the session's modules tell of the recording whose debug group has this name: which operations its commands
    /// compute. Modules of other compilers tell nothing.
    pub fn notes(&self, group: &str) -> Option<RecordingNotes> {
        self.shared.notes(group)
    }

    /// The source signature, if the compiler left it.
    pub fn declaration(&self) -> Option<&str> {
        self.info.declaration.as_deref()
    }

    /// Calls the function and waits for its results, for as long as that takes.
    ///
    /// Any thread may call. Where [`FunctionInfo::can_overlap`] says so, calls of one session overlap: one at a time
    /// records its work, and all wait for the device together. Elsewhere they run one after the other.
    pub fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        self.call_with(args, &CallOptions::default())
    }

    /// Calls the function within limits. Where one of them ends the call, what the device has not begun is left out, if its
    /// driver can do that and the function shares no state with other calls.
    pub fn call_with(&self, args: &[Value], options: &CallOptions) -> Result<Vec<Value>> {
        let invocation = options.invocation();
        let called = self.begin(args, options, &invocation).and_then(|call| call.finish(&invocation));
        called.context(|| format!("`{}`", self.info.brief())).map_err(Into::into)
    }

    /// Calls the function and returns as soon as its work is handed to the device, within limits that hold for that.
    /// Where [`FunctionInfo::can_overlap`] says no, the work is done before this returns; so it is on devices that work
    /// on their callers' threads.
    ///
    /// The arguments' tensors must not be written before the call is done. Memory of a call is given back when it is
    /// done and its results are dropped: bound the number of calls that are under way.
    pub fn start(&self, args: &[Value], options: &CallOptions) -> Result<PendingCall> {
        let invocation = options.invocation();
        let started = self.begin(args, options, &invocation).and_then(|call| {
            let devices = if options.held || call.is_done() { &[] } else { self.shared.devices.as_slice() };
            devices.iter().try_for_each(|device| device.queue_flush(halite_hal::QueueAffinity::ANY))?;
            Ok(call)
        });
        started.context(|| format!("`{}`", self.info.brief())).map_err(Into::into)
    }

    /// Makes the recordings that a call needs whose open sizes are these, in the order of the module's symbols, so that it finds them.
    /// Waits for no call: it is meant to be called while the device works for one. Does nothing where the module cannot
    /// ([`FunctionInfo::can_record`]).
    ///
    /// # Errors
    /// The module's function fails, or has another number of sizes.
    pub fn record(&self, sizes: &[i64], options: &CallOptions) -> Result<()> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        let sizes: Vec<VmValue> = sizes.iter().copied().map(VmValue::I64).collect();
        let invocation = options.invocation();
        let made = self.shared.context.invoke(recorder, &sizes, &invocation).and_then(|made| prepare(&made));
        made.context(|| format!("`{}`", self.info.brief())).map_err(Into::into)
    }

    /// Runs the program as far as it goes without waiting for the device.
    fn begin(
        &self,
        args: &[Value],
        options: &CallOptions,
        invocation: &Invocation,
    ) -> StatusResult<PendingCall> {
        let mut vm_args =
            self.arguments(args).context(|| format!("invoking function '{}'", self.info.full_name()))?;
        let shared = &self.shared;
        let launchable = self.info.is_async || !shared.devices.is_empty();
        let Some(launch) = self.launch.as_ref().filter(|_| launchable) else {
            let mut entered = shared.context.enter(invocation)?;
            for before in shared.pending().iter().chain(&options.after) {
                wait_for_fence(before, Deadline::Never, invocation)?;
            }
            let results = entered.invoke(&self.handle, &vm_args, invocation)?;
            drop(entered);
            return Ok(self.under_way(None, results));
        };
        let independent = self.info.is_independent();
        // Of a call that shares state with others, all has to be done.
        let begun = independent.then(begun::watch);
        let signal = self.signal_fence()?;
        let entered = shared.context.enter(invocation)?;
        let own = if independent { None } else { shared.pending() };
        let wait = match (own, &options.after) {
            (Some(own), Some(after)) => Some(Fence::join([&own, after])),
            (own, after) => own.or_else(|| after.clone()),
        };
        vm_args.push(VmValue::Ref(wait.map_or(Ref::NULL, |fence| Ref::new(FenceObject(fence)))));
        vm_args.push(VmValue::Ref(Ref::new(FenceObject(signal.clone()))));
        let results = self.launch(entered, launch, &vm_args, invocation, (!independent).then_some(&signal));
        let fences = begun.map(begun::Begun::end).unwrap_or_default();
        let call = self.under_way(Some(signal), Vec::new()).with_begun(fences);
        match results {
            Ok(results) => Ok(call.with_results(results)),
            Err(error) => {
                call.abandon(&error);
                Err(error)
            }
        }
    }

    fn under_way(&self, signal: Option<Fence>, results: Vec<VmValue>) -> PendingCall {
        PendingCall::new(self.shared.clone(), self.info.clone(), signal, results)
    }

    /// Invokes the function; later calls wait for `chained`.
    fn launch(
        &self,
        mut entered: Entered<'_>,
        launch: &FunctionHandle,
        args: &[VmValue],
        invocation: &Invocation,
        chained: Option<&Fence>,
    ) -> StatusResult<Vec<VmValue>> {
        let results = entered.invoke(launch, args, invocation)?;
        if let Some(signal) = chained {
            self.shared.set_last(signal);
        }
        Ok(results)
    }

    fn arguments(&self, args: &[Value]) -> StatusResult<Vec<VmValue>> {
        let kinds = self.info.input_kinds();
        if kinds.len() != args.len() {
            return Err(status!(
                InvalidArgument,
                "input list and function mismatch; expected {} arguments but passed {}",
                kinds.len(),
                args.len()
            ));
        }
        let check = |(i, (value, kind)): (usize, (&Value, &Kind))| {
            if let (Some(TypeInfo::Tensor { .. }), Value::Buffer(_) | Value::List(_) | Value::Bytes(_)) =
                (self.info.input_type(i), value)
            {
                return Err(status!(InvalidArgument, "expected a tensor but got {}", value.kind()))
                    .context(|| format!("passing argument {i}"));
            }
            values::to_vm(value, *kind).context(|| format!("passing argument {i}"))
        };
        args.iter().zip(kinds).enumerate().map(check).collect()
    }

    /// The fence that the call signals when its results are there.
    fn signal_fence(&self) -> StatusResult<Fence> {
        let device = self.shared.devices.first().ok_or_else(|| {
            status!(FailedPrecondition, "an asynchronous function needs a device; give the session one")
        })?;
        let fence = Fence::new(device.create_semaphore(0)?, 1);
        begun::note(&fence);
        Ok(fence)
    }
}

/// Has devices get ready for recordings, pairs of the one before and the new one, as for those that they replace.
fn prepare(recordings: &[VmValue]) -> StatusResult<()> {
    let recording = |value: &VmValue| match value {
        VmValue::Ref(reference) => {
            reference.downcast_ref::<CommandBufferObject>().map(|own| own.finished().cloned())
        }
        _ => None,
    };
    for pair in recordings.chunks_exact(2) {
        let (Some(before), Some(new)) = (recording(&pair[0]), recording(&pair[1])) else { continue };
        let (before, new) = (before?, new?);
        if !Arc::ptr_eq(&before, &new) {
            new.prepare_as(&*before)?;
        }
    }
    Ok(())
}
