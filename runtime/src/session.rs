//! Sessions: modules that are loaded and linked against devices and parameters.

use std::{collections::HashMap, sync::Arc};

use halite_abi::export;
use halite_hal::Device;

use crate::{Error, Result, function::Function, info::FunctionInfo, shared::Shared};

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
/// Any thread may use it. Calls overlap where functions can ([`FunctionInfo::can_overlap`]); elsewhere they run one after
/// the other, and parallel calls take several sessions over the same devices.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    modules: Vec<ModuleInfo>,
    by_name: HashMap<String, Arc<FunctionInfo>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.modules.iter().map(|m| m.name.as_str()).collect();
        let devices: Vec<_> = self.devices().iter().map(|d| d.info().uri()).collect();
        f.debug_struct("Session").field("modules", &names).field("devices", &devices).finish()
    }
}

/// Functions by the names that they are asked for: those of the last module by their own, all by their full name. Of two
/// with one name the first counts.
fn by_name(modules: &[ModuleInfo]) -> HashMap<String, Arc<FunctionInfo>> {
    let last = modules.last().into_iter().flat_map(|m| &m.functions).map(|f| (f.name.clone(), f));
    let all = modules.iter().flat_map(|m| &m.functions).map(|f| (f.full_name(), f));
    let mut names = HashMap::new();
    for (name, info) in last.chain(all) {
        names.entry(name).or_insert_with(|| info.clone());
    }
    names
}

impl Session {
    pub(crate) fn new(shared: Shared, modules: Vec<ModuleInfo>) -> Self {
        Session { shared: Arc::new(shared), by_name: by_name(&modules), modules }
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
        match self.by_name.get(name) {
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
        let lookup = |name: &str| self.shared.context.lookup(&info.module, name);
        let recorder = info.can_record().then(|| format!("{}{}", info.name, export::RECORD_SUFFIX));
        let launch = info.launch().map(|launch| lookup(&launch.name)).transpose()?;
        Ok(Function {
            shared: self.shared.clone(),
            handle: lookup(&info.name)?,
            recorder: recorder.map(|name| lookup(&name)).transpose()?,
            launch: launch.map(|handle| handle.shown_as(&info.full_name())),
            info: info.clone(),
        })
    }
}
