//! Versions of a model's functions that many sizes share: how they are compiled and loaded.

use std::sync::Arc;

use halite_cache::Digest;
use halite_compiler::{self as compiler, Coverage, Steps};

use super::{
    ahead::{Shapes, after},
    growth::growing,
    model::{ModelProgram, shape_of},
    tries::OpenWork,
    versions::Version,
};
use crate::{
    Result, Value, compile,
    kept::{Kept, Lookup, Request},
    options::Limits,
};

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
        match self.open_work(place, &later, Some(&step)) {
            Ok(Some(work)) => self.ahead.begin(place, later, move |limits| work.run(limits)),
            _ => self.ahead.rest(place, first),
        }
    }

    /// Finds or compiles a version with open sizes, and loads it. `None` where the model cannot be had so.
    fn make_open(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        limits: &Limits,
    ) -> Result<Option<(Version, Coverage)>> {
        let function = &self.functions[place];
        let Some(open) = self.model.lock().clone() else { return Ok(None) };
        let sizes = self.bindings_of(function, std::iter::empty())?;
        let digest = self.request_digest(&open, function, "open sizes", &[sizes])?;
        let request = Request { label: &self.name, files: &open.files, digest };
        let none = |_: &[usize]| Ok(Digest::of(b""));
        let lookup =
            self.store.as_ref().map(|store| Lookup { store, request: &request, values: &none, limits });
        let kept = match lookup.as_ref().and_then(|lookup| lookup.find_open(shapes)) {
            Some(kept) => Some(kept),
            None => {
                let made = self.made_open(place, shapes, limits)?;
                if let (Some(made), Some(lookup)) = (&made, &lookup) {
                    lookup.keep(made);
                }
                made
            }
        };
        let Some(kept) = kept else { return Ok(None) };
        let version = self.load(function, &kept, limits)?;
        open.files.check_unchanged(&self.name)?;
        Ok(kept.coverage.map(|coverage| (version, coverage)))
    }

    /// Compiles a version with open sizes, unless a thread did.
    fn made_open(&self, place: usize, shapes: &[Vec<u64>], limits: &Limits) -> Result<Option<Kept>> {
        if let Some(made) = self.ahead.take(place, shapes, limits)? {
            return Ok(Some(made));
        }
        let step = self.ahead.same_step(place, shapes);
        self.open_work(place, shapes, step.as_ref())?.map_or(Ok(None), |work| work.run(limits))
    }

    /// What compiling a version with open sizes takes, of calls that grow by a step; none when the model is gone.
    fn open_work(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        step: Option<&Shapes>,
    ) -> Result<Option<OpenWork>> {
        let Some(model) = self.model.lock().clone() else { return Ok(None) };
        let function = &self.functions[place];
        let growing = growing(&function.inputs, &function.caches, shapes, step.map(Vec::as_slice));
        let unbounded = |_: &str| Some((0, MOST_SIZE));
        let examples =
            compiler::grown(&function.inputs, shapes, &growing).into_iter().chain([shapes.to_vec()]);
        let mut holds = vec![shapes.to_vec()];
        holds.extend(compiler::likely(&function.inputs, shapes, &growing));
        let asked = if growing.is_empty() { self.open.asked(place) } else { Vec::new() };
        let open = |example: Shapes| {
            let bindings = self.bindings_of(function, example.iter().cloned().map(Some))?;
            let made = compiler::opened(&bindings, &function.inputs, &unbounded, Steps::Grow(&growing));
            let mut made = made.map_err(compile::error)?;
            made.holds.clone_from(&holds);
            made.holds.extend(compiler::together(&made, &function.inputs, &example, &asked));
            Ok((example, made))
        };
        Ok(Some(OpenWork {
            model,
            name: self.name.clone(),
            function: function.name.clone(),
            inputs: function.inputs.clone(),
            refused: (place, self.open.refused.clone()),
            examples: examples.map(open).collect::<Result<_>>()?,
            wanted: shapes.to_vec(),
            precision: self.precision().into(),
            options: self.compile_options(),
        }))
    }
}
