//! What the functions of a session have in common.

use std::sync::Arc;

use halite_formats::vmfb::RecordingNotes;
use halite_hal::{Device, Fence};
use halite_vm::{Context, Module};
use parking_lot::Mutex;

/// What functions keep alive: the linked modules with their state, and the devices.
pub(crate) struct Shared {
    pub(crate) context: Context,
    pub(crate) devices: Vec<Arc<dyn Device>>,
    /// The linked modules, for what they tell of themselves.
    modules: Vec<Arc<Module>>,
    /// Signalled by the last of the calls that may share state on the device: each waits for the one before.
    last: Mutex<Option<Fence>>,
}

impl Shared {
    pub(crate) fn new(context: Context, devices: Vec<Arc<dyn Device>>, modules: Vec<Arc<Module>>) -> Self {
        Shared { context, devices, modules, last: Mutex::default() }
    }

    /// What a module tells of the recording with this debug group.
    pub(crate) fn notes(&self, group: &str) -> Option<RecordingNotes> {
        self.modules.iter().find_map(|module| RecordingNotes::find(module.def(), group))
    }

    /// What a call has to wait for that may use what calls before it write. A call that failed holds up nobody.
    pub(crate) fn pending(&self) -> Option<Fence> {
        self.last.lock().clone().filter(|fence| matches!(fence.query(), Ok(false)))
    }

    /// Lets later calls that may share state wait for this fence.
    pub(crate) fn set_last(&self, signal: &Fence) {
        *self.last.lock() = Some(signal.clone());
    }
}
