//! How the host waits for a device.

use std::time::Duration;

use halite_abi::{Result, ResultExt};
use halite_hal::{Code, Deadline, Fence};
use halite_vm::Invocation;

/// Longest wait between two looks at the caller's cancellation.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// Waits until the fence is reached (`true`) or `timeout` passes (`false`). The failure of the fence, CANCELLED, and
/// DEADLINE_EXCEEDED of the whole call are errors; cancellation is seen within 50 ms.
pub(crate) fn wait_for_fence(fence: &Fence, timeout: Deadline, invocation: &Invocation) -> Result<bool> {
    let deadline = timeout.min(invocation.deadline.map_or(Deadline::Never, Deadline::At));
    loop {
        let until = match invocation.cancel {
            Some(_) => deadline.min(Deadline::after(SLICE)),
            None => deadline,
        };
        let late = match fence.wait(until) {
            Ok(()) => return Ok(true),
            Err(e) if e.code() != Code::DeadlineExceeded => return Err(e),
            Err(late) => late,
        };
        // A fence that failed with this very code has failed, not timed out.
        if fence.query()? {
            return Ok(true);
        }
        invocation.check().context(|| format!("while it waited for the device: {}", late.message()))?;
        if timeout.remaining().is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
    }
}
