//! Versions with open sizes: a few graphs that hold for many sizes each, found by trying sizes one after the other.

use std::collections::{BTreeMap, BTreeSet};

use halite_sizes::Region;
use serde::{Deserialize, Serialize};

use crate::{
    CompileError, CompileOptions, Compiled, Control, Function, Model, Program,
    backend::vulkan::Vulkan,
    compile::of_plan,
    graph::Graph,
    passes::{HalfPrecision, Precision},
    plan::{self, ModulePlan},
    signature::{Bindings, Dim, Signature, open_name},
};

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

/// Sizes are near an example that are at most 2 to the power of this away.
const NEAR: u32 = 7;

/// After so many versions for sizes that could share one, the next is for as many of them as it can be.
const ENOUGH: usize = 2;

/// By how much sizes that grow are larger in calls to come: with others, kernels for multiples of a number are not for all of them.
const NEXT: [u64; 4] = [1, 2, 3, 5];

/// Of so many sizes that no guard fixes, all sets are tried for one that moves.
const MOST_TOGETHER: usize = 6;

/// For which inputs a graph is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The dimensions of each input.
    inputs: Vec<Vec<Dimension>>,
    /// The values of symbols.
    region: Region,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Dimension {
    /// This size.
    Size(u64),
    /// The value of a symbol.
    Symbol(usize),
}

impl Coverage {
    /// Of a graph that was planned for its targets: planning adds to the guards.
    pub fn of(graph: &Graph) -> Coverage {
        let symbols = graph.open.as_ref().map_or(&[][..], |open| &open.symbols);
        let input = |port: &crate::graph::Port| {
            let sizes = graph.tensor(port.tensor).sizes();
            let one = |size: &halite_sizes::Size| {
                let same = |(input, axis): &(usize, usize)| {
                    let other = graph.tensor(graph.inputs[*input].tensor).sizes()[*axis];
                    !size.is_constant() && other.is(*size)
                };
                let symbol = symbols.iter().position(same);
                symbol.map_or(Dimension::Size(size.value()), Dimension::Symbol)
            };
            sizes.iter().map(one).collect()
        };
        let inputs = graph.inputs.iter().map(input).collect();
        let region = graph.open.as_ref().map_or_else(Region::default, |open| open.trace.region());
        Coverage { inputs, region }
    }

    /// Whether inputs of these dimensions are among them.
    pub fn has<'a>(&self, shapes: impl ExactSizeIterator<Item = &'a [u64]>) -> bool {
        let mut values: BTreeMap<usize, u64> = BTreeMap::new();
        if shapes.len() != self.inputs.len() {
            return false;
        }
        for (own, dims) in self.inputs.iter().zip(shapes) {
            let fits = own.len() == dims.len()
                && own.iter().zip(dims).all(|(own, size)| match own {
                    Dimension::Size(known) => known == size,
                    Dimension::Symbol(symbol) => values.insert(*symbol, *size).is_none_or(|old| old == *size),
                });
            if !fits {
                return false;
            }
        }
        let symbols: Vec<u64> = values.into_values().collect();
        self.region.has(&symbols)
    }

    /// Why inputs of these dimensions are not among them, as far as guards say it.
    pub fn why_not<'a>(&self, shapes: impl Iterator<Item = &'a [u64]>) -> Option<String> {
        let mut values: BTreeMap<usize, u64> = BTreeMap::new();
        for (own, size) in self.inputs.iter().zip(shapes).flat_map(|(own, dims)| own.iter().zip(dims)) {
            match own {
                Dimension::Symbol(symbol) => drop(values.insert(*symbol, *size)),
                Dimension::Size(known) if known != size => {
                    return Some(format!("the size {size} is {known}"));
                }
                Dimension::Size(_) => {}
            }
        }
        self.region.why_not(&values.into_values().collect::<Vec<u64>>())
    }
    /// Whether sizes near those of an example are among them: guards may leave nothing but the example.
    fn has_others(&self, example: &[Vec<u64>]) -> bool {
        let count = self.region.symbols().len();
        let mut values = vec![0; count];
        for (own, dims) in self.inputs.iter().zip(example) {
            for (own, size) in own.iter().zip(dims) {
                if let Dimension::Symbol(symbol) = own {
                    values[*symbol] = *size;
                }
            }
        }
        let steps = || (0..NEAR).flat_map(|bit| [1i64 << bit, -(1i64 << bit)]);
        let moved = |which: &dyn Fn(usize) -> bool, step: i64| {
            let one = |(i, size): (usize, &u64)| {
                if which(i) { size.saturating_add_signed(step) } else { *size }
            };
            values.iter().enumerate().map(one).collect::<Vec<u64>>()
        };
        let has = |which: &dyn Fn(usize) -> bool| steps().any(|step| self.region.has(&moved(which, step)));
        let fixed = self.region.fixed();
        let free: Vec<usize> = (0..count).filter(|symbol| !fixed.contains(symbol)).collect();
        // Sizes may depend on each other, as those of a cache before and after a call: they move together.
        match free.len() {
            0..=MOST_TOGETHER => (1u32..1 << free.len()).any(|set| {
                has(&|i| free.iter().position(|own| *own == i).is_some_and(|at| set >> at & 1 == 1))
            }),
            _ => has(&|i| free.contains(&i)) || free.iter().any(|symbol| has(&|i| i == *symbol)),
        }
    }
}

/// Whether inputs of these dimensions are not among the sizes of [`CompileError::OtherSizes`]: what failed then fails for them too.
pub fn refuses(region: &Region, inputs: &[Signature], shapes: &[Vec<u64>]) -> bool {
    let size = |name: &String| {
        let axes = inputs.iter().zip(shapes).flat_map(|(input, dims)| {
            dims.iter().enumerate().map(move |(axis, size)| (open_name(input, axis), *size))
        });
        axes.into_iter().find(|(own, _)| own == name).map(|(_, size)| size)
    };
    let values: Option<Vec<u64>> = region.symbols().iter().map(size).collect();
    values.is_some_and(|values| !region.has(&values))
}

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
                let (low, high) = steps.range(&name, (*size).max(1));
                open.open.insert(name, (low.max(least), high.min(most.min(bound))));
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
    let fits = |(input, (own, dims)): (&Signature, (&Vec<u64>, &Vec<u64>))| {
        let one = |(axis, (own, size)): (usize, (&u64, &u64))| {
            let range = bindings.open.get(&open_name(input, axis));
            own == size || range.is_some_and(|(low, high)| (low..=high).contains(&size))
        };
        own.len() == dims.len() && own.iter().zip(dims).enumerate().all(one)
    };
    let all = |shapes: &&Vec<Vec<u64>>| {
        shapes.len() == example.len() && inputs.iter().zip(example.iter().zip(shapes.iter())).all(fits)
    };
    let near: Vec<Vec<Vec<u64>>> = asked.iter().filter(all).cloned().collect();
    if near.len() < ENOUGH { Vec::new() } else { near }
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
        let by_sizes = versions.iter().all(|one| one.values.is_empty());
        let cover = Cover { model: self, name, inputs, precision, options, control };
        let found = if versions.len() < FEWEST || !by_sizes { None } else { cover.function(versions)? };
        match found {
            Some(found) => Ok(found),
            None if versions.len() > MOST_APART => Err(CompileError::Request(format!(
                "{} combinations of sizes, which do not share plans: {MOST_APART} versions of '{name}' are the most. Give \
                 lower bounds or fewer sizes, to which inputs are padded",
                versions.len()
            ))),
            None => self.function(name, versions, precision, control),
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
    ) -> Result<Option<(Compiled, Coverage)>, CompileError> {
        let inputs = self.inputs(name)?;
        let cover = Cover { model: self, name, inputs, precision, options, control };
        let (program, plan, _) = cover.planned(bindings)?;
        let graph = &program.functions[0].versions[0];
        if graph.open.as_ref().is_none_or(|open| open.symbols.is_empty()) {
            return Ok(None);
        }
        let coverage = Coverage::of(graph);
        let has_wanted = coverage.has(wanted.iter().map(Vec::as_slice));
        if !has_wanted || !coverage.has_others(&bindings.resolve(&cover.inputs)?) {
            return Ok(None);
        }
        Ok(Some((of_plan(&program, &plan, options, control)?, coverage)))
    }
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
    /// The function, unless sizes do not join.
    fn function(&self, versions: &[Bindings]) -> Result<Option<(Function, HalfPrecision)>, CompileError> {
        let shapes: Result<Vec<_>, _> = versions.iter().map(|one| one.resolve(&self.inputs)).collect();
        let shapes = shapes?;
        let ranges = self.ranges(&shapes);
        let varies = |name: &str| ranges.get(name).copied().filter(|(least, most)| least < most);
        let (mut left, mut graphs): (Vec<usize>, Vec<Graph>) = ((0..versions.len()).collect(), Vec::new());
        let mut half = HalfPrecision::default();
        // The last are the largest, for which it matters most which kernels are chosen.
        while let Some(example) = left.pop() {
            let bindings = opened(&versions[example], &self.inputs, &varies, Steps::None)?;
            let (graph, own_half) = match self.graph(&bindings) {
                // Not all that is done with one size is done with many.
                Err(error) if error.is_unsupported() => return Ok(None),
                made => made?,
            };
            let coverage = Coverage::of(&graph);
            left.retain(|other| !coverage.has(shapes[*other].iter().map(Vec::as_slice)));
            graphs.push(graph);
            half.add(own_half);
            let joined = versions.len() - left.len();
            if graphs.len() >= TRIES && joined < graphs.len() * 2 {
                return Ok(None);
            }
        }
        Ok(Some((Function { name: self.name.to_owned(), versions: graphs }, half)))
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

    /// The graph for a set of bindings, planned once for the guards of the targets.
    fn graph(&self, bindings: &Bindings) -> Result<(Graph, HalfPrecision), CompileError> {
        let (mut program, _, half) = self.planned(bindings)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Arity, Dim};

    fn input(name: &str, dims: &[&str]) -> Signature {
        let dim = |text: &&str| text.parse().map_or_else(|_| Dim::Symbol((*text).to_owned()), Dim::Known);
        let dims = Some(dims.iter().map(dim).collect());
        Signature { name: name.to_owned(), arity: Arity::Tensor, is_optional: false, element: None, dims }
    }

    #[test]
    fn caches_that_grow_share_plans_for_long() {
        let names: BTreeSet<String> = ["past".to_owned(), "total".to_owned()].into();
        let steps = Steps::Grow(&names);
        assert_eq!((steps.range("past", 5), steps.range("past", 1022)), ((1, 1023), (1, 1023)));
        // The call in which a cache goes to the next sizes is for both.
        assert_eq!((steps.range("past", 1023), steps.range("total", 1024)), ((1023, 65_535), (1024, 65_535)));
        assert_eq!((steps.range("batch", 5), steps.range("batch", 3)), ((4, 15), (3, 15)));
        assert_eq!((Steps::None.range("past", 3), Steps::None.range("past", 1)), ((1, 3), (1, 3)));
        steps.range("past", u64::MAX);
    }

    #[test]
    fn kernels_are_chosen_for_sizes_that_caches_will_have() {
        let inputs = [
            input("ids", &["batch", "1"]),
            input("mask", &["batch", "total"]),
            input("past", &["batch", "past"]),
        ];
        let names: BTreeSet<String> = ["past".to_owned(), "total".to_owned()].into();
        let shapes = |total, past| vec![vec![3, 1], vec![3, total], vec![3, past]];
        assert_eq!(grown(&inputs, &shapes(6, 5), &names), Some(shapes(257, 256)));
        assert_eq!(grown(&inputs, &shapes(1024, 1023), &names), Some(shapes(16_385, 16_384)));
        // What has far more rows, as the keys of an encoder may, stays.
        assert_eq!(grown(&inputs, &shapes(u64::MAX, 5), &names), Some(shapes(u64::MAX, 256)));
        for (total, past) in [(300, 299), (2, 1), (1000, 5)] {
            assert_eq!(grown(&inputs, &shapes(total, past), &names), None, "{total}");
        }
        assert_eq!(grown(&inputs, &shapes(6, 5), &BTreeSet::new()), None);
    }
}
