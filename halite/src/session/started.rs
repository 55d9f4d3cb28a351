//! A call that was started, with its results as the function declares them: a model's list is one of them.

use std::sync::Arc;

use halite_abi::Status;
use halite_hal::Fence;
use halite_runtime as runtime;

use crate::tensor::Capacity;

/// What a result of a function is among those of the program that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "compiler"), expect(dead_code, reason = "the results of modules are never grouped"))]
pub(crate) enum Group {
    /// One of them.
    One,
    /// So many of them: a list.
    List(usize),
    /// None: an optional value that is not there.
    Absent,
}

/// A call on its way.
pub(crate) struct Started {
    call: runtime::PendingCall,
    /// What each result of the function is; `None` where each is one of the program's.
    groups: Option<Arc<[Group]>>,
    /// The results that have rows to spare in their buffers.
    grown: Vec<(usize, Capacity)>,
}

impl Started {
    /// A call of a program whose results are grouped so, some of which have rows to spare in their buffers.
    pub fn new(
        call: runtime::PendingCall,
        groups: Option<Arc<[Group]>>,
        grown: Vec<(usize, Capacity)>,
    ) -> Started {
        Started { call, groups, grown }
    }

    /// The rows that a result has in its buffer, where these are more than count.
    pub fn capacity(&self, output: usize) -> Option<Capacity> {
        self.grown.iter().find(|(own, _)| *own == output).map(|(_, capacity)| *capacity)
    }

    pub fn is_done(&self) -> bool {
        self.call.is_done()
    }

    pub fn abandon(&self, reason: &Status) {
        self.call.abandon(reason);
    }

    /// The function's results, once they are there.
    pub fn wait(&self, options: &runtime::CallOptions) -> runtime::Result<Vec<runtime::Value>> {
        self.call.wait(options).map(|results| self.grouped(results))
    }

    /// The function's results that are not there yet; see [`runtime::PendingCall::unready`].
    pub fn unready(&self) -> Option<(&Fence, Vec<runtime::Value>)> {
        let (ready, results) = self.call.unready()?;
        Some((ready, self.grouped(results)))
    }

    fn grouped(&self, results: Vec<runtime::Value>) -> Vec<runtime::Value> {
        let Some(groups) = &self.groups else { return results };
        let mut results = results.into_iter();
        let one = |group: &Group| match group {
            Group::One => results.next().unwrap_or(runtime::Value::Null),
            Group::List(count) => runtime::Value::List(results.by_ref().take(*count).collect()),
            Group::Absent => runtime::Value::Null,
        };
        groups.iter().map(one).collect()
    }
}
