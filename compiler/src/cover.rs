//! Versions with open sizes: a few graphs that hold for many sizes each, found by trying sizes one after the other.

mod senseless;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Capacities, CompileError, CompileOptions, Compiled, Control, Function, Model, Program,
    backend::vulkan::Vulkan,
    compile::of_plan,
    coverage::Coverage,
    graph::Graph,
    passes::{HalfPrecision, Precision},
    plan::{self, ModulePlan},
    signature::{Bindings, Dim, Signature, open_name},
};
use senseless::{Senseless, with_sizes};

/// Fewest versions that are worth the look for open ones.
const FEWEST: usize = 4;

/// Most versions that are for one combination of sizes each.
const MOST_APART: usize = 1024;

/// Graphs after which sizes that do not join are left to versions of their own.
const TRIES: usize = 4;

/// Sizes from a power of this to the next share a plan: kernels are chosen for one of them.
const BUCKET: u64 = 4;

/// Sizes of caches that grow below this share a plan, then those up to [`FARTHER`] times as many, and so on: little but the reading of
/// keys depends on them, and a call that needs another plan waits for it.
const FAR: u64 = 1024;

const FARTHER: u64 = 64;

/// Of the sizes of caches that share a plan, kernels are chosen for one that is so many times smaller than the end.
const BEFORE_END: u64 = 4;

/// After so many versions for sizes that could share one, the next is for as many of them as it can be.
const ENOUGH: usize = 2;

/// And of sizes that are listed, for about so many of them.
const MOST_HELD: usize = 32;

/// By how much sizes that grow are larger in calls to come: with others, kernels for multiples of a number are not for all of them.
const NEXT: [u64; 4] = [1, 2, 3, 5];

/// Sizes beside an example are so many units away from it: with these all rests of divisions by 2 and 4 come about.
const BESIDE: [u64; 3] = [1, 2, 3];

/// So many dimensions move by themselves.
const MOST_BESIDE: usize = 6;

/// And one is a multiple of so many units: with it, kernels that are for other numbers alone are not for all.
const WHOLE: u64 = 16;

/// The dimensions that are open, with their least and largest sizes.
type Open = BTreeMap<String, (u64, u64)>;

/// The bound of a dimension that may have other sizes than this one; none where the model fixes it. What is as large as a bound
/// is taken for fixed: files bound all dimensions of an input of which one varies.
fn bound(input: &Signature, axis: usize, size: u64) -> Option<u64> {
    match input.dims.as_ref().and_then(|dims| dims.get(axis)) {
        Some(Dim::Known(_)) => None,
        Some(Dim::UpTo(bound)) => (size < *bound).then_some(*bound),
        _ => Some(u64::MAX),
    }
}

/// Whether inputs of these dimensions have one that can be open: it may have other sizes, and is neither 0 nor 1, which mean
/// other graphs.
pub fn can_be_open(inputs: &[Signature], shapes: &[Vec<u64>]) -> bool {
    inputs.iter().zip(shapes).any(|(input, dims)| {
        dims.iter().enumerate().any(|(axis, size)| *size >= 2 && bound(input, axis, *size).is_some())
    })
}

/// How sizes go on from one call to the next.
#[derive(Clone, Copy, Debug)]
pub enum Steps<'a> {
    /// All are known now.
    None,
    /// They may grow; those that do so by every call, as those of caches, by their [`open_name`].
    Grow(&'a BTreeSet<String>),
}

impl Steps<'_> {
    /// The sizes that share a plan with one of them, the first and the last. Where sizes grow, the last of those is the first of the
    /// next ones: a cache then goes from one plan to the next in one call, before and after it.
    fn range(self, name: &str, size: u64) -> (u64, u64) {
        let next = size.saturating_add(u64::from(matches!(self, Steps::Grow(_))));
        let (first, end) = match self {
            Steps::Grow(names) if names.contains(name) => far(next),
            _ => {
                let first = BUCKET.pow(next.ilog(BUCKET));
                (first, first.saturating_mul(BUCKET))
            }
        };
        (first.min(size), end - 1)
    }

    /// The same, where no size is above `most`. The largest one by itself shares the plan of those below it: bounds are often powers of two.
    fn range_below(self, name: &str, size: u64, most: u64) -> (u64, u64) {
        let (first, last) = self.range(name, if size == most { most.saturating_sub(1).max(1) } else { size });
        (first.min(size), if last.saturating_add(1) == most { most } else { last.min(most) })
    }
}

/// The sizes of caches that share a plan with one: the first, and the one behind the last.
fn far(size: u64) -> (u64, u64) {
    let (mut first, mut end) = (1, FAR);
    while size >= end && end < u64::MAX {
        (first, end) = (end, end.saturating_mul(FARTHER));
    }
    (first, end)
}

/// Sizes of inputs for which kernels are chosen, where those of the dimensions `growing` go on: larger by the same number, and still
/// among those that share a plan. None where the sizes themselves will do.
pub fn grown(inputs: &[Signature], shapes: &[Vec<u64>], growing: &BTreeSet<String>) -> Option<Vec<Vec<u64>>> {
    let sizes = |(input, dims): (&Signature, &Vec<u64>)| -> Vec<u64> {
        let own = dims.iter().enumerate().filter(move |(axis, _)| growing.contains(&open_name(input, *axis)));
        own.map(|(_, size)| *size).collect()
    };
    let all: Vec<u64> = inputs.iter().zip(shapes).flat_map(sizes).collect();
    let least = *all.iter().min().filter(|least| **least >= 2)?;
    let (_, end) = far(least.saturating_add(1));
    let most = *all.iter().filter(|size| **size < end).max()?;
    let more = (end / BEFORE_END).checked_sub(least).filter(|more| *more > 0 && most + more < end)?;
    let one = |(input, dims): (&Signature, &Vec<u64>)| {
        let size = |(axis, size): (usize, &u64)| {
            let grows = *size < end && growing.contains(&open_name(input, axis));
            if grows { size + more } else { *size }
        };
        dims.iter().enumerate().map(size).collect()
    };
    Some(inputs.iter().zip(shapes).map(one).collect())
}

/// Sizes of inputs that calls behind one with these will have, where those of the dimensions `growing` go on: the next few, and the last
/// of those that share a plan.
pub fn likely(inputs: &[Signature], shapes: &[Vec<u64>], growing: &BTreeSet<String>) -> Vec<Vec<Vec<u64>>> {
    let all = inputs.iter().zip(shapes).flat_map(|(input, dims)| {
        dims.iter().enumerate().filter(move |(axis, _)| growing.contains(&open_name(input, *axis)))
    });
    let (least, most) =
        all.fold((u64::MAX, 0), |(least, most), (_, size)| (least.min(*size), most.max(*size)));
    let (_, end) = far(least.max(1).saturating_add(1));
    let Some(room) = end.checked_sub(most.saturating_add(1)).filter(|_| least <= most) else {
        return Vec::new();
    };
    let after = |more: u64| {
        let one = |(input, dims): (&Signature, &Vec<u64>)| {
            let size = |(axis, size): (usize, &u64)| {
                if growing.contains(&open_name(input, axis)) { size + more } else { *size }
            };
            dims.iter().enumerate().map(size).collect()
        };
        inputs.iter().zip(shapes).map(one).collect()
    };
    NEXT.into_iter().filter(|more| *more < room).chain([room]).map(after).collect()
}

/// The bindings with every dimension open that `varies` and that the model does not fix, within its bound and the sizes that
/// share a plan with the example's.
pub fn opened(
    bindings: &Bindings,
    inputs: &[Signature],
    varies: &dyn Fn(&str) -> Option<(u64, u64)>,
    steps: Steps<'_>,
) -> Result<Bindings, CompileError> {
    let shapes = bindings.resolve(inputs)?;
    let mut open = bindings.clone();
    for (input, dims) in inputs.iter().zip(&shapes) {
        for (axis, size) in dims.iter().enumerate() {
            let Some(bound) = bound(input, axis, *size) else { continue };
            let name = open_name(input, axis);
            if let Some((least, most)) = varies(&name) {
                let range = steps.range_below(&name, (*size).max(1), most.min(bound));
                open.open.insert(name, (range.0.max(least), range.1));
            }
        }
    }
    Ok(open)
}

/// Of sizes for which versions were made, those that a version with these bindings may be for too. The first versions have the best kernels
/// for the sizes that they were made for; where several have not been enough, the next is for all of these if it can be.
pub fn together(
    bindings: &Bindings,
    inputs: &[Signature],
    example: &[Vec<u64>],
    asked: &[Vec<Vec<u64>>],
) -> Vec<Vec<Vec<u64>>> {
    let near = asked.iter().filter(|shapes| is_within(bindings, inputs, example, shapes));
    let near: Vec<Vec<Vec<u64>>> = near.cloned().collect();
    if near.len() < ENOUGH { Vec::new() } else { near }
}

/// Whether sizes are those of an example but for what is open, and that is within its range.
fn is_within(bindings: &Bindings, inputs: &[Signature], example: &[Vec<u64>], shapes: &[Vec<u64>]) -> bool {
    let fits = |(input, (own, dims)): (&Signature, (&Vec<u64>, &Vec<u64>))| {
        let one = |(axis, (own, size)): (usize, (&u64, &u64))| {
            let range = bindings.open.get(&open_name(input, axis));
            own == size || range.is_some_and(|(low, high)| (low..=high).contains(&size))
        };
        own.len() == dims.len() && own.iter().zip(dims).enumerate().all(one)
    };
    shapes.len() == example.len() && inputs.iter().zip(example.iter().zip(shapes.iter())).all(fits)
}

/// Sizes that calls with other inputs are likely to have, within what is open: those of the example moved by a few of the `units` of which its
/// sizes were multiples so far, each dimension by itself and all together. A kernel for multiples of more than these is no reason
/// for a version of its own.
pub fn neighbours(
    bindings: &Bindings,
    inputs: &[Signature],
    example: &[Vec<u64>],
    units: &[Vec<u64>],
) -> Vec<Vec<Vec<u64>>> {
    // What several inputs call the same has one unit.
    let mut open: BTreeMap<String, (u64, (u64, u64))> = BTreeMap::new();
    for ((input, dims), units) in inputs.iter().zip(example).zip(units) {
        for (axis, (size, unit)) in dims.iter().zip(units).enumerate() {
            let name = open_name(input, axis);
            let range = bindings.open.get(&name).filter(|_| *size >= 2);
            if let Some(range) = range {
                open.entry(name).or_insert(((*unit).max(1), *range));
            }
        }
    }
    let moved = |new: &dyn Fn(&str, u64, u64) -> Option<u64>| {
        let mut differs = false;
        let mut one = |(input, dims): (&Signature, &Vec<u64>)| {
            let mut size = |(axis, size): (usize, &u64)| {
                let name = open_name(input, axis);
                let to = open.get(&name).and_then(|(unit, (low, high))| {
                    new(&name, *size, *unit).filter(|to| (*low.max(&2)..=*high).contains(to))
                });
                differs |= to.is_some_and(|to| to != *size);
                to.unwrap_or(*size)
            };
            dims.iter().enumerate().map(&mut size).collect::<Vec<u64>>()
        };
        let shapes: Vec<Vec<u64>> = inputs.iter().zip(example).map(&mut one).collect();
        differs.then_some(shapes)
    };
    let by = |size: u64, more: u64| Some(size.saturating_add(more));
    let mut found = Vec::new();
    for count in BESIDE {
        found.extend(moved(&|_, size, unit| by(size, unit.saturating_mul(count))));
    }
    found.extend(moved(&|_, size, unit| Some(size.next_multiple_of(unit.saturating_mul(WHOLE)))));
    if open.len() > 1 {
        for name in open.keys().take(MOST_BESIDE) {
            found.extend(moved(&|own, size, unit| if own == name { by(size, unit) } else { None }));
        }
    }
    found
}

impl Model {
    /// A function with as few versions as hold for all of `versions`, where these differ in sizes; else as [`Model::function`].
    /// Ranges of sizes become a few plans whose numbers are computed when they are called.
    ///
    /// # Errors
    /// As [`Model::function`], and those of planning.
    pub fn open_function(
        &self,
        name: &str,
        versions: &[Bindings],
        precision: Precision,
        options: &CompileOptions,
        control: &Control,
    ) -> Result<(Function, HalfPrecision), CompileError> {
        let inputs = self.inputs(name)?;
        let versions = &options.bound(versions)[..];
        let by_sizes = versions.iter().all(|one| one.values.is_empty());
        let cover = Cover { model: self, name, inputs, precision, options, control };
        let found = if versions.len() < FEWEST || !by_sizes {
            Err("inputs whose values are bound share none".to_owned())
        } else {
            cover.function(versions)?
        };
        match found {
            Ok(found) => Ok(found),
            Err(why) if versions.len() > MOST_APART => Err(CompileError::Request(format!(
                "{} combinations of sizes, which do not share plans ({why}): {MOST_APART} versions of '{name}' are the most. \
                 Give lower bounds or fewer sizes, to which inputs are padded",
                versions.len()
            ))),
            Err(_) => self.function(name, versions, precision, control),
        }
    }

    /// A version of a function with open sizes as a module of its own, and the inputs that it is for; `None` where its front end or
    /// its operators fix every size, or inputs of the dimensions `wanted` are not among them.
    ///
    /// # Errors
    /// As [`Model::function`], and those of planning. [`CompileError::OtherSizes`] where it cannot be for what [`Bindings::holds`] names
    /// first: that ends the work as soon as it is known.
    pub fn open_version(
        &self,
        name: &str,
        (bindings, wanted): (&Bindings, &[Vec<u64>]),
        precision: Precision,
        options: &CompileOptions,
        control: &Control,
    ) -> Result<Option<OpenVersion>, CompileError> {
        let inputs = self.inputs(name)?;
        let cover = Cover { model: self, name, inputs, precision, options, control };
        let bindings = options.bound_one(bindings);
        let (program, plan, _) = cover.planned(&bindings)?;
        let graph = &program.functions[0].versions[0];
        if graph.open.as_ref().is_none_or(|open| open.symbols.is_empty()) {
            return Ok(None);
        }
        let coverage = Coverage::of(graph);
        let has_wanted = coverage.has(wanted.iter().map(Vec::as_slice));
        if !has_wanted || !coverage.has_others(&bindings.resolve(&cover.inputs)?) {
            return Ok(None);
        }
        let capacities = Capacities::of(graph);
        let compiled = of_plan(&program, &plan, options, control)?;
        Ok(Some(OpenVersion { compiled, coverage, capacities }))
    }
}

/// A version of a function for sizes that callers decide.
#[derive(Debug)]
pub struct OpenVersion {
    /// The module of the one version.
    pub compiled: Compiled,
    /// The sizes that it is for.
    pub coverage: Coverage,
    /// Its states that grow in place.
    pub capacities: Capacities,
}

/// The search for versions.
struct Cover<'a> {
    model: &'a Model,
    name: &'a str,
    inputs: Vec<Signature>,
    precision: Precision,
    options: &'a CompileOptions,
    control: &'a Control,
}

impl Cover<'_> {
    /// The function; or why sizes do not join.
    fn function(
        &self,
        versions: &[Bindings],
    ) -> Result<Result<(Function, HalfPrecision), String>, CompileError> {
        let shapes: Result<Vec<_>, _> = versions.iter().map(|one| one.resolve(&self.inputs)).collect();
        let shapes = shapes?;
        let ranges = self.ranges(&shapes);
        let varies = |name: &str| ranges.get(name).copied().filter(|(least, most)| least < most);
        let (mut left, mut graphs): (Vec<usize>, Vec<Graph>) = ((0..versions.len()).collect(), Vec::new());
        let mut half = HalfPrecision::default();
        // The last are the largest, for which it matters most which kernels are chosen.
        let mut tries: Vec<Open> = Vec::new();
        let mut out = Senseless::default();
        while let Some(example) = left.pop() {
            let mut bindings = opened(&versions[example], &self.inputs, &varies, Steps::None)?;
            let before = tries.iter().filter(|open| **open == bindings.open).count();
            if before >= ENOUGH {
                self.hold_some(&mut bindings, &shapes[example], left.iter().map(|other| &shapes[*other]));
            }
            tries.push(bindings.open.clone());
            let (graph, own_half) = match self.graph(bindings) {
                // Not all that is done with one size is done with many.
                Err(error) if error.is_unsupported() => return Ok(Err(error.to_string())),
                Err(error @ CompileError::Invalid { .. }) => {
                    // The numbers that it was found with are these sizes, open or not.
                    tries.pop();
                    out.add(with_sizes(error, &self.inputs, &shapes[example]), graphs.len())?;
                    continue;
                }
                made => made?,
            };
            let coverage = Coverage::of(&graph);
            left.retain(|other| !coverage.has(shapes[*other].iter().map(Vec::as_slice)));
            graphs.push(graph);
            half.add(own_half);
            let joined = versions.len() - left.len();
            if graphs.len() >= TRIES && joined < graphs.len() * 2 {
                return Ok(Err(format!("{} plans are for {joined} of them", graphs.len())));
            }
        }
        let left_out = out.finish(graphs.len())?;
        Ok(Ok((Function { left_out, ..Function::new(self.name, graphs) }, half)))
    }

    /// Has a version hold for some more of the sizes that are left, if it can.
    fn hold_some<'b>(
        &self,
        bindings: &mut Bindings,
        example: &[Vec<u64>],
        left: impl Iterator<Item = &'b Vec<Vec<u64>>>,
    ) {
        let near: Vec<Vec<Vec<u64>>> =
            left.filter(|shapes| is_within(bindings, &self.inputs, example, shapes)).cloned().collect();
        // An odd number, so that all rests come about where sizes are in order.
        let step = near.len().div_ceil(MOST_HELD) | 1;
        bindings.holds = vec![example.to_vec()];
        bindings.holds.extend(near.into_iter().rev().step_by(step));
    }

    /// The least and the largest size of each dimension, by name.
    fn ranges(&self, shapes: &[Vec<Vec<u64>>]) -> BTreeMap<String, (u64, u64)> {
        let mut ranges: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (input, dims) in shapes.iter().flat_map(|version| self.inputs.iter().zip(version)) {
            for (axis, size) in dims.iter().enumerate() {
                let range = ranges.entry(open_name(input, axis)).or_insert((*size, *size));
                *range = (range.0.min(*size), range.1.max(*size));
            }
        }
        ranges
    }

    /// The graph for a set of bindings, planned once for the guards of the targets. Where it cannot be for what these should hold, it is for
    /// what it can be, and other sizes are for the next one.
    fn graph(&self, mut bindings: Bindings) -> Result<(Graph, HalfPrecision), CompileError> {
        let made = match self.planned(&bindings) {
            Err(CompileError::OtherSizes { .. }) if !bindings.holds.is_empty() => {
                bindings.holds.clear();
                self.planned(&bindings)
            }
            made => made,
        };
        let (mut program, _, half) = made?;
        let mut versions = program.functions.swap_remove(0).versions;
        Ok((versions.swap_remove(0), half))
    }

    /// A program of that graph alone, and its plan.
    fn planned(&self, bindings: &Bindings) -> Result<(Program, ModulePlan, HalfPrecision), CompileError> {
        let quiet = self.control.without_progress();
        let one = std::slice::from_ref(bindings);
        let (function, half) = self.model.function(self.name, one, self.precision, &quiet)?;
        let program = Program { functions: vec![function], model: None };
        program.check()?;
        let plan = plan::plan(&program, self.options, &Vulkan::new(&self.options.tuning), &quiet)?;
        Ok((program, plan, half))
    }
}
