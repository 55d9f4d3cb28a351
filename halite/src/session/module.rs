//! Calls of modules.

use std::sync::OnceLock;

use halite_runtime as runtime;

use super::{Started, states::lowered};
use crate::{
    Device, Error, FunctionInfo, Result, Value,
    options::{Handed, Limits},
};

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

    /// The handle of a function.
    pub fn function(&self, place: usize) -> Result<&runtime::Function> {
        let (name, handle) = &self.functions[place];
        Ok(match handle.get() {
            Some(function) => function,
            None => {
                let found = self.session.function(name).map_err(Error::of_runtime)?;
                handle.get_or_init(|| found)
            }
        })
    }

    pub fn start(
        &self,
        place: usize,
        values: &[Value],
        devices: &[Device],
        handed: Handed,
        limits: &Limits,
    ) -> Result<Started> {
        let function = self.function(place)?;
        limits.check("copying inputs")?;
        let arguments = lowered(values.iter(), function.info().states(), handed.kept, devices)?;
        let options =
            runtime::CallOptions { after: handed.after, held: handed.held, ..limits.call_options() };
        let call = function.start(&arguments, &options).map_err(Error::of_runtime)?;
        Ok(Started::new(call, None, Vec::new()))
    }
}
