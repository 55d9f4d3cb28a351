//! What the functions of a session have in common.

use std::sync::Arc;

use bytes::Bytes;
use halite_abi::{Result, status};
use halite_formats::vmfb::RecordingNotes;
use halite_hal::{Device, Fence};
use halite_vm::{Context, Module};
use parking_lot::Mutex;

use crate::{
    mapping::{is_any_cut, is_cut},
    parameters::ParameterModule,
};

/// What functions keep alive: the linked modules with their state, and the devices.
pub(crate) struct Shared {
    pub(crate) context: Context,
    pub(crate) devices: Vec<Arc<dyn Device>>,
    /// The linked modules, for what they tell of themselves.
    modules: Vec<Arc<Module>>,
    /// Signalled by the last of the calls that may share state on the device: each waits for the one before.
    last: Mutex<Option<Fence>>,
    /// The files that it was made from: modules by their names, and parameters.
    files: Files,
}

/// Files whose bytes may be mapped.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) modules: Vec<(String, Bytes)>,
    pub(crate) parameters: Option<Arc<ParameterModule>>,
}

impl Files {
    /// DATA_LOSS names a file that was cut short while it was used: what was read of it is not what it held.
    pub(crate) fn check(&self) -> Result<()> {
        // Each call asks, and there may be thousands of parameters.
        if !is_any_cut() {
            return Ok(());
        }
        let module = self.modules.iter().find(|(_, bytes)| is_cut(bytes));
        let module = module.map(|(name, _)| format!("the module '{name}'"));
        let parameters = || self.parameters.as_ref()?.index().cut();
        match module.or_else(parameters) {
            None => Ok(()),
            Some(what) => Err(status!(
                DataLoss,
                "{what} was cut short while it was used, so what was read of it is not what it held; load it again (or use \
                 LoadMode::Preload for files that change)"
            )),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        context: Context,
        devices: Vec<Arc<dyn Device>>,
        modules: Vec<Arc<Module>>,
        files: Files,
    ) -> Self {
        Shared { context, devices, modules, last: Mutex::default(), files }
    }

    /// Fails when a file was cut that this was made from; see [`Files::check`].
    pub(crate) fn check_files(&self) -> Result<()> {
        self.files.check()
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
