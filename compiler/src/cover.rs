//! Versions with open sizes: a few graphs that hold for many sizes each, found by trying sizes one after the other.

use std::collections::BTreeMap;

use halite_sizes::Region;

use crate::{
    CompileError, CompileOptions, Control, Function, Model, Program,
    backend::vulkan::Vulkan,
    graph::Graph,
    passes::{HalfPrecision, Precision},
    plan,
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

/// Sizes are near an example that are at most 2 to the power of this away.
const NEAR: u32 = 7;

/// Of so many sizes that no guard fixes, all sets are tried for one that moves.
const MOST_TOGETHER: usize = 6;

/// For which inputs a graph is.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The dimensions of each input.
    inputs: Vec<Vec<Dimension>>,
    /// The values of symbols.
    region: Region,
}

#[derive(Clone, Copy, Debug)]
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
}

impl Coverage {
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

/// The bindings with every dimension open that `varies` and that the model does not fix, within its bound and the sizes that
/// share a plan with the example's. Where sizes `grow` from call to call, the last of those is the first of the next ones: a cache
/// then goes from one plan to the next in one call, before and after it.
pub fn opened(
    bindings: &Bindings,
    inputs: &[Signature],
    varies: &dyn Fn(&str) -> Option<(u64, u64)>,
    grow: bool,
) -> Result<Bindings, CompileError> {
    let shapes = bindings.resolve(inputs)?;
    let mut open = bindings.clone();
    for (input, dims) in inputs.iter().zip(&shapes) {
        for (axis, size) in dims.iter().enumerate() {
            let Some(bound) = bound(input, axis, *size) else { continue };
            let name = open_name(input, axis);
            if let Some((least, most)) = varies(&name) {
                let most = most.min(bound);
                let size = (*size).max(1);
                let next = size.saturating_add(u64::from(grow)).ilog(BUCKET);
                let first = BUCKET.pow(next);
                let (low, high) = (first.min(size), first.saturating_mul(BUCKET) - 1);
                open.open.insert(name, (low.max(least), high.min(most)));
            }
        }
    }
    Ok(open)
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

    /// A version of a function with open sizes, and the inputs that it is for; `None` where its front end or its operators
    /// fix every size.
    ///
    /// # Errors
    /// As [`Model::function`], and those of planning.
    pub fn open_version(
        &self,
        name: &str,
        bindings: &Bindings,
        precision: Precision,
        options: &CompileOptions,
        control: &Control,
    ) -> Result<Option<(Function, Coverage)>, CompileError> {
        let inputs = self.inputs(name)?;
        let cover = Cover { model: self, name, inputs, precision, options, control };
        let (graph, _) = cover.graph(bindings)?;
        if graph.open.as_ref().is_none_or(|open| open.symbols.is_empty()) {
            return Ok(None);
        }
        let coverage = Coverage::of(&graph);
        if !coverage.has_others(&bindings.resolve(&cover.inputs)?) {
            return Ok(None);
        }
        Ok(Some((Function { name: name.to_owned(), versions: vec![graph] }, coverage)))
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
            let bindings = opened(&versions[example], &self.inputs, &varies, false)?;
            let (graph, own_half) = self.graph(&bindings)?;
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
        let quiet = self.control.without_progress();
        let one = std::slice::from_ref(bindings);
        let (function, half) = self.model.function(self.name, one, self.precision, &quiet)?;
        let program = Program { functions: vec![function], model: None };
        let backend = Vulkan::new(&self.options.tuning);
        plan::plan(&program, self.options, &backend, &quiet)?;
        let mut functions = program.functions;
        let mut versions = functions.swap_remove(0).versions;
        Ok((versions.swap_remove(0), half))
    }
}
