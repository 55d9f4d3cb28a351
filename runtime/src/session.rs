//! Owns sessions: modules that are loaded and linked against devices and parameters. Does not own: building one
//! (`builder` does), calling functions (`function` does).

use std::sync::Arc;

use halite_hal::Device;

use crate::{
    Error, Result,
    builder::SessionBuilder,
    function::{Function, FunctionInfo, Shared},
};

/// Facts about a loaded module.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// Name.
    pub name: String,
    /// Version.
    pub version: u32,
    /// Functions that may be called by name, in the order of the module. The module's own hooks (`__init`, …) are
    /// not among them.
    pub functions: Vec<Arc<FunctionInfo>>,
}

/// Modules linked together with their state (global variables, weights on the device). Dropping the session and all
/// its functions and results gives everything back.
///
/// Any thread may use it; calls run one after the other. For parallel calls, build several sessions over the same
/// devices.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) modules: Vec<ModuleInfo>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.modules.iter().map(|m| m.name.as_str()).collect();
        let devices: Vec<_> = self.devices().iter().map(|d| d.info().uri()).collect();
        f.debug_struct("Session").field("modules", &names).field("devices", &devices).finish()
    }
}

impl Session {
    /// Begins a session.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// The loaded modules in the order they were given.
    pub fn modules(&self) -> &[ModuleInfo] {
        &self.modules
    }

    /// The devices, in the order that programs see them. Empty when no module needs one.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.shared.devices
    }

    /// The device that inputs belong on: the first. `None` when no module needs one.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.shared.devices.first()
    }

    /// A function by `name`, looked for in the last module, or by `module.name`.
    pub fn function(&self, name: &str) -> Result<Function> {
        let last = self.modules.last().into_iter().flat_map(|m| &m.functions).find(|f| f.name == name);
        let found = last.or_else(|| self.functions().find(|f| f.full_name() == name));
        match found {
            Some(info) => self.bind(info),
            None => Err(Error::FunctionNotFound { name: name.to_owned(), available: self.function_names() }),
        }
    }

    /// The function to run when none is named: the only one of the last module.
    pub fn default_function(&self) -> Result<Function> {
        match self.modules.last().map(|m| m.functions.as_slice()) {
            Some([only]) => self.bind(only),
            _ => Err(Error::FunctionAmbiguous { available: self.function_names() }),
        }
    }

    fn functions(&self) -> impl Iterator<Item = &Arc<FunctionInfo>> {
        self.modules.iter().flat_map(|m| &m.functions)
    }

    fn function_names(&self) -> Vec<String> {
        self.functions().map(|f| f.full_name()).collect()
    }

    fn bind(&self, info: &Arc<FunctionInfo>) -> Result<Function> {
        let handle = self.shared.context.lookup(&info.module, &info.name)?;
        Ok(Function { shared: self.shared.clone(), handle, info: info.clone() })
    }
}
