//! Owns calls of modules. Does not own: loading them (`builder`).

use std::sync::OnceLock;

use halite_runtime as runtime;

#[allow(unused_imports)]
use super::shim::{Named as _, Start as _};
use crate::{Device, FunctionInfo, Limits, Result, Value};

/// A module that is loaded.
pub(crate) struct ModuleProgram {
    session: runtime::Session,
    /// `module.name` and handle of each function; looked up when it is first called.
    functions: Vec<(String, OnceLock<runtime::Function>)>,
}

impl ModuleProgram {
    pub fn new(session: runtime::Session) -> Self {
        let named = session.modules().iter().flat_map(|module| &module.functions);
        let functions = named.map(|function| (function.full_name(), OnceLock::new())).collect();
        ModuleProgram { session, functions }
    }

    /// The functions, in the order of their places.
    pub fn infos(&self) -> Vec<FunctionInfo> {
        let named = self.session.modules().iter().flat_map(|module| &module.functions);
        named.map(|info| FunctionInfo::of_module(info)).collect()
    }

    /// Place of the function that runs when none is named.
    pub fn default_place(&self) -> Option<usize> {
        let last = self.session.modules().last()?.functions.len();
        (last == 1).then(|| self.functions.len() - 1)
    }

    pub fn start(
        &self,
        place: usize,
        values: &[Value],
        device: Option<&Device>,
        limits: &Limits,
    ) -> Result<super::shim::PendingCall> {
        let (name, handle) = &self.functions[place];
        let function = match handle.get() {
            Some(function) => function,
            None => {
                let found = self.session.function(name)?;
                handle.get_or_init(|| found)
            }
        };
        limits.check("copying inputs")?;
        let arguments = values.iter().map(|value| value.lower(device)).collect::<Result<Vec<_>>>()?;
        Ok(function.start(&arguments, &limits.call_options())?)
    }
}
