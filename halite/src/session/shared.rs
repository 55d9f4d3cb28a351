//! Versions of a model's functions that many sizes share: how they are compiled and loaded.

use std::{collections::BTreeSet, sync::Arc};

use halite_cache::Digest;
use halite_compiler::{
    self as compiler, Coverage, Steps,
    signature::{Signature, open_name},
};

use super::{
    ahead::{Shapes, after},
    growth::{growing, stepped},
    lists::shape_of,
    model::{ModelProgram, OpenModel},
    tries::OpenWork,
    versions::Version,
};
use crate::{
    Result, Value, compile,
    kept::{Kept, Lookup, Request},
    options::Limits,
};

/// How many calls before its sizes a version is compiled ahead: most generations end before the next range.
const NEAR: u64 = 128;

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
        let before = self.open.count();
        let version = self.open.get(place, &shapes, limits, || self.make_open(place, &shapes, limits))?;
        if version.is_some() {
            self.compile_ahead(place, &shapes, limits);
        }
        // Where it gets a version of its own, this thread makes that meanwhile.
        if version.is_none() || self.open.count() != before {
            self.compile_step(place, &shapes, limits);
        }
        Ok(version)
    }

    /// Has the version compiled for the step that comes behind a call with these sizes, where its caches show which that is.
    fn compile_step(&self, place: usize, shapes: &[Vec<u64>], limits: &Limits) {
        let function = &self.functions[place];
        // What comes behind a call for one value of a switch may be one for the other.
        if function.caches.is_empty() || function.bound.is_some() || !self.ahead.is_for(true) {
            return;
        }
        let Some(next) = stepped(&function.inputs, (&function.caches, &function.totals), shapes) else {
            return;
        };
        if compiler::can_be_open(&function.inputs, &next)
            && self.ahead.lacks(place, &next)
            && !self.open.has(place, &next)
        {
            self.begin_ahead(place, next, None, limits);
        }
    }

    /// Has a thread compile a version, unless an earlier process did. Whether there will be one.
    fn begin_ahead(&self, place: usize, shapes: Shapes, step: Option<&Shapes>, limits: &Limits) -> bool {
        // What cannot be bound, the call with these sizes says.
        let Ok(Some(work)) = self.open_work(place, &shapes, step) else { return false };
        match self.is_kept(&work.model, place, &shapes, limits) {
            true => self.ahead.note_kept(place, shapes),
            false => self.ahead.begin(place, shapes, move |limits| work.run(limits)),
        }
        true
    }

    /// Whether the cache of compiled models has a version for inputs of these shapes.
    fn is_kept(&self, open: &OpenModel, place: usize, shapes: &[Vec<u64>], limits: &Limits) -> bool {
        let (Some(store), Ok(digest)) = (&self.store, self.open_digest(open, place)) else { return false };
        let request = Request { label: &self.name, files: &open.files, digest };
        let values = |_: &[usize]| Ok(Digest::of(b""));
        Lookup { store, request: &request, values: &values, limits }.find_open(shapes).is_some()
    }

    /// Loads what was compiled for calls to come, while the device works for one that was started: its pipelines are built from then on.
    pub(super) fn load_ahead(&self, place: usize, limits: &Limits) {
        let Some(shapes) = self.ahead.next_loadable(place) else { return };
        if let Err(error) = self.open.get(place, &shapes, limits, || self.make_open(place, &shapes, limits)) {
            // The call that needs it says it.
            log::debug!("loading ahead: {error}");
        }
    }

    /// What is asked for of the cache of compiled models for versions with open sizes of a function.
    fn open_digest(&self, open: &OpenModel, place: usize) -> Result<Digest> {
        let function = &self.functions[place];
        let sizes = self.bindings_of(function, std::iter::empty())?;
        self.request_digest(open, function, "open sizes", &[sizes])
    }

    /// Has the version behind the range at hand compiled, once sizes that grow step by step are near it, and one more where that range is
    /// short.
    fn compile_ahead(&self, place: usize, shapes: &[Vec<u64>], limits: &Limits) {
        let step = self.ahead.step(place, shapes);
        let is_for = || self.ahead.is_for(!self.functions[place].caches.is_empty());
        let Some(step) = step.filter(|_| is_for()) else { return };
        let first = self.open.steps_without(place, shapes, &step, &|_| false);
        let next = self.open.steps_without(place, shapes, &step, &|later| self.ahead.has(place, later));
        let (Some(first), Some(next)) = (first, next) else { return self.ahead.rest(place, u64::MAX) };
        if next > NEAR {
            return self.ahead.rest(place, first.min(next - NEAR));
        }
        let later = after(shapes, &step, next);
        if self.ahead.is_without(place, &later) {
            return self.ahead.rest(place, first);
        }
        if !self.begin_ahead(place, later, Some(&step), limits) {
            self.ahead.rest(place, first);
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
        let digest = self.open_digest(&open, place)?;
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

    /// The dimensions that had several sizes in calls so far, by their names among open ones.
    fn varied(&self, place: usize, shapes: &[Vec<u64>]) -> BTreeSet<String> {
        let inputs = self.functions[place].inputs.iter().zip(shapes).enumerate();
        let of = |(index, (input, dims)): (usize, (&Signature, &Vec<u64>))| {
            let varied = (0..dims.len()).filter(move |axis| self.open.has_varied(place, index, *axis));
            varied.map(|axis| open_name(input, axis)).collect::<Vec<_>>()
        };
        inputs.flat_map(of).collect()
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
        // What stays as it is while caches grow, as what an encoder gave, gets the best kernels for its size.
        let varied: BTreeSet<String> = self.varied(place, shapes);
        let varies = |name: &str| growing.is_empty() || growing.contains(name) || varied.contains(name);
        let unbounded = |name: &str| varies(name).then_some((0, MOST_SIZE));
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
            if growing.is_empty() {
                let units = self.open.units(place, &example);
                made.holds.extend(compiler::neighbours(&made, &function.inputs, &example, &units));
            }
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
