//! Limits of calls, and calls whose work goes on while the caller does something else.

use std::{fmt, sync::Arc};

use halite_abi::{Result as StatusResult, ResultExt, Status, status};
use halite_hal::{Deadline, Fence};
use halite_vm::{Invocation, Value as VmValue};

use crate::{
    Result, cancel::CancelToken, hal_module::wait_for_fence, info::FunctionInfo, shared::Shared, values,
    view::Value,
};

/// Limits of one call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// When the call gives up with DEADLINE_EXCEEDED. Work that the device has begun runs to its end.
    pub deadline: Deadline,
    /// Stops the call with CANCELLED when it is triggered, within about 50 ms.
    pub cancel: Option<CancelToken>,
    /// What the device is to have done before it begins: the fence of an earlier call ([`PendingCall::unready`]) whose results this one
    /// takes, or whose tensors it writes over.
    pub after: Option<Fence>,
    /// Whether [`Function::start`](crate::Function::start) leaves it to the caller to hand its work to the device
    /// ([`halite_hal::Device::queue_flush`]), who has more to add to it.
    pub held: bool,
}

impl Default for CallOptions {
    fn default() -> Self {
        CallOptions { deadline: Deadline::Never, cancel: None, after: None, held: false }
    }
}

impl CallOptions {
    pub(crate) fn invocation(&self) -> Invocation {
        let deadline = match self.deadline {
            Deadline::Now => Some(std::time::Instant::now()),
            Deadline::At(instant) => Some(instant),
            Deadline::Never => None,
        };
        Invocation { deadline, cancel: self.cancel.as_ref().map(CancelToken::flag) }
    }
}

/// A call under way, from [`Function::start`](crate::Function::start). Any thread may ask it and wait for it, several at one time too. Dropping it
/// gives up the results; what the device has begun runs to its end, and memory is kept until then.
pub struct PendingCall {
    info: Arc<FunctionInfo>,
    /// Reached when the results are there; `None` when they were from the start.
    signal: Option<Fence>,
    results: Vec<VmValue>,
    /// Fences of the work that it began; none where others need the work as well.
    begun: Vec<Fence>,
    /// Keeps the session's state alive, which the work may use. Goes last: results may be objects of the session.
    shared: Arc<Shared>,
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall")
            .field("function", &self.info.full_name())
            .field("done", &self.is_done())
            .finish_non_exhaustive()
    }
}

impl PendingCall {
    /// `signal` is reached when the results are there; `None` when they are.
    pub(crate) fn new(
        shared: Arc<Shared>,
        info: Arc<FunctionInfo>,
        signal: Option<Fence>,
        results: Vec<VmValue>,
    ) -> Self {
        PendingCall { shared, info, signal, results, begun: Vec::new() }
    }

    pub(crate) fn with_begun(mut self, begun: Vec<Fence>) -> Self {
        self.begun = begun;
        self
    }

    pub(crate) fn with_results(mut self, results: Vec<VmValue>) -> Self {
        self.results = results;
        self
    }

    /// Nobody will wait for it any more: what the device has not begun is left out, if its driver can do that and no other call
    /// shares state with this one. Waits fail with the reason then.
    pub fn abandon(&self, reason: &Status) {
        self.begun.iter().for_each(|fence| fence.abandon(reason));
    }

    /// Whether a wait would return at once, with the results or with what went wrong.
    pub fn is_done(&self) -> bool {
        self.signal.as_ref().is_none_or(|fence| !matches!(fence.query(), Ok(false)))
    }

    /// Waits for the results. A wait that ends at its deadline or is cancelled (within 50 ms) leaves the call as it is:
    /// wait again, or drop it. Every wait gives the same results; tensors are shared, not copied.
    pub fn wait(&self, options: &CallOptions) -> Result<Vec<Value>> {
        let results = self.results(&options.invocation());
        results.context(|| format!("`{}`", self.info.brief())).map_err(Into::into)
    }

    /// Results that are not there yet, and the fence that is reached when they are; `None` where nothing has to be waited for.
    pub fn unready(&self) -> Option<(&Fence, Vec<Value>)> {
        let signal = self.signal.as_ref()?;
        let results: StatusResult<Vec<_>> = self.results.iter().cloned().map(values::from_vm).collect();
        Some((signal, results.ok()?))
    }

    /// Waits and gives the results away.
    pub(crate) fn finish(mut self, invocation: &Invocation) -> StatusResult<Vec<Value>> {
        self.settle(invocation).inspect_err(|error| self.abandon(error))?;
        std::mem::take(&mut self.results).into_iter().map(values::from_vm).collect()
    }

    fn results(&self, invocation: &Invocation) -> StatusResult<Vec<Value>> {
        self.settle(invocation)?;
        self.results.iter().cloned().map(values::from_vm).collect()
    }

    fn settle(&self, invocation: &Invocation) -> StatusResult<()> {
        let Some(fence) = &self.signal else { return self.shared.check_files() };
        let reached = wait_for_fence(fence, Deadline::Never, invocation)
            .context(|| format!("invoking function '{}'", self.info.full_name()))?;
        if !reached {
            return Err(status!(Internal, "an endless wait ended before its fence was reached"));
        }
        self.shared.check_files()
    }
}
