//! Versions of a model's functions that many sizes share: how they are compiled and loaded.

use std::sync::Arc;

use halite_compiler::{self as compiler, Coverage, signature::Bindings};

use super::{
    ahead::{Compiled, after},
    model::{ModelProgram, OpenModel, shape_of},
    versions::Version,
};
use crate::{Result, Value, compile, kept::Kept, options::Limits};

/// How many calls before its sizes a second version is compiled ahead.
const NEAR: u64 = 64;

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
        let version = self.open.get(place, &shapes, limits, || self.make_open(place, &shapes, limits))?;
        if version.is_some() {
            self.compile_ahead(place, &shapes);
        }
        Ok(version)
    }

    /// Has the version behind the range at hand compiled, once sizes grow step by step, and one more where that range is short.
    fn compile_ahead(&self, place: usize, shapes: &[Vec<u64>]) {
        let Some(step) = self.ahead.step(place, shapes) else { return };
        let first = self.open.steps_without(place, shapes, &step, &|_| false);
        let next = self.open.steps_without(place, shapes, &step, &|later| self.ahead.has(place, later));
        let (Some(first), Some(next)) = (first, next) else { return self.ahead.rest(place, u64::MAX) };
        if next > first && next > NEAR {
            return self.ahead.rest(place, first.min(next - NEAR));
        }
        let later = after(shapes, &step, next);
        if self.ahead.is_without(place, &later) {
            return self.ahead.rest(place, first);
        }
        // What cannot be bound, the call with these sizes says.
        match self.open_work(place, &later) {
            Ok(Some(work)) => self.ahead.begin(place, later, move |limits| work.run(limits)),
            _ => self.ahead.rest(place, first),
        }
    }

    /// Compiles and loads a version with open sizes. `None` where the model cannot be had so.
    fn make_open(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        limits: &Limits,
    ) -> Result<Option<(Version, Coverage)>> {
        let made = match self.ahead.take(place, shapes, limits)? {
            Some(made) => Some(made),
            None => match self.open_work(place, shapes)? {
                Some(work) => work.run(limits)?,
                None => None,
            },
        };
        let Some((kept, coverage)) = made else { return Ok(None) };
        Ok(Some((self.load(&self.functions[place], &kept, limits)?, coverage)))
    }

    /// What compiling a version with open sizes takes; none when the model is gone.
    fn open_work(&self, place: usize, shapes: &[Vec<u64>]) -> Result<Option<OpenWork>> {
        let Some(model) = self.model.lock().clone() else { return Ok(None) };
        let function = &self.functions[place];
        let bindings = self.bindings_of(function, shapes.iter().map(|shape| Some(shape.clone())))?;
        let unbounded = |_: &str| Some((0, MOST_SIZE));
        let bindings =
            compiler::opened(&bindings, &function.inputs, &unbounded, true).map_err(compile::error)?;
        Ok(Some(OpenWork {
            model,
            name: self.name.clone(),
            function: function.name.clone(),
            bindings,
            precision: self.precision().into(),
            options: self.compile_options(),
        }))
    }
}

/// The compilation of a version with open sizes, which any thread can do: no device is in it.
struct OpenWork {
    model: Arc<OpenModel>,
    name: String,
    function: String,
    bindings: Bindings,
    precision: compiler::Precision,
    options: compiler::CompileOptions,
}

impl OpenWork {
    /// `None` where the model cannot be had so.
    fn run(self, limits: &Limits) -> Result<Option<Compiled>> {
        let control = compile::control(limits);
        let OpenWork { model, name, function, bindings, precision, options } = self;
        let made = model.model.open_version(&function, &bindings, precision, &options, &control);
        let (built, coverage) = match made {
            Ok(Some(found)) => found,
            // What fails, the version for these sizes says, which is made next.
            Ok(None) | Err(compiler::CompileError::NeedsValues { .. }) => return Ok(None),
            Err(error) => return Err(compile::error(error).while_doing(format!("compiling '{name}'"))),
        };
        let program = compiler::Program { functions: vec![built], model: None };
        let compiled = compiler::compile(&program, &options, &control).map_err(compile::error)?;
        let parameters = compiled.parameters.map(|archive| archive.entries).unwrap_or_default();
        Ok(Some((Kept { module: compiled.module.to_vec().into(), parameters, bound: Vec::new() }, coverage)))
    }
}
