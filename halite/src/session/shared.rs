//! Versions of a model's functions that many sizes share: how they are compiled and loaded.

use std::sync::Arc;

use halite_compiler::{self as compiler, Coverage, signature::Bindings};

use super::{
    model::{ModelFunction, ModelProgram, shape_of},
    versions::Version,
};
use crate::{Result, Value, compile, kept::Kept, options::Limits};

/// The largest size of an open dimension.
const MOST_SIZE: u64 = 1 << 31;

impl ModelProgram {
    /// A version for these and other sizes, once more than one size was seen; `None` where a version of their own is better.
    pub(super) fn open_version_for(
        &self,
        place: usize,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Option<Arc<Version>>> {
        let function = &self.functions[place];
        let shapes: Option<Vec<Vec<u64>>> = values.iter().map(shape_of).collect();
        // Lists and inputs that are left out, and values that decide sizes, make graphs of their own.
        let Some(shapes) = shapes.filter(|_| !self.options.sizes.has_values()) else { return Ok(None) };
        if !compiler::can_be_open(&function.inputs, &shapes) {
            return Ok(None);
        }
        self.open.get(place, &shapes, limits, || {
            let bindings = self.bindings_of(function, values)?;
            self.make_open(function, &bindings, limits)
        })
    }

    /// Compiles and loads a version with open sizes. `None` where the model cannot be had so.
    fn make_open(
        &self,
        function: &ModelFunction,
        bindings: &Bindings,
        limits: &Limits,
    ) -> Result<Option<(Version, Coverage)>> {
        let open = self.model.lock().clone();
        let Some(open) = open else { return Ok(None) };
        let control = compile::control(limits);
        let options = self.compile_options();
        let unbounded = |_: &str| Some((0, MOST_SIZE));
        let bindings =
            compiler::opened(bindings, &function.inputs, &unbounded, true).map_err(compile::error)?;
        let precision = self.precision().into();
        let made = open.model.open_version(&function.name, &bindings, precision, &options, &control);
        let (built, coverage) = match made {
            Ok(Some(found)) => found,
            // What fails, the version for these sizes says, which is made next.
            Ok(None) | Err(compiler::CompileError::NeedsValues { .. }) => return Ok(None),
            Err(error) => return Err(compile::error(error).while_doing(format!("compiling '{}'", self.name))),
        };
        let program = compiler::Program { functions: vec![built], model: None };
        let compiled = compiler::compile(&program, &options, &control).map_err(compile::error)?;
        let parameters = compiled.parameters.map(|archive| archive.entries).unwrap_or_default();
        let kept = Kept { module: compiled.module.to_vec().into(), parameters, bound: Vec::new() };
        Ok(Some((self.load(function, &kept, limits)?, coverage)))
    }
}
