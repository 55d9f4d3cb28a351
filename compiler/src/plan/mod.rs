//! What a module does, decided before anything is written: kernels for each target, memory, barriers, what is computed at
//! load. Pure.
//!
//! A graph becomes a line of steps ([`flow`]), the same for all targets; a line becomes commands for one target ([`lower`]).

mod addresses;
pub mod flow;
mod fragments;
mod from_graph;
pub mod group;
mod in_place;
pub mod kernels;
mod lives;
mod load;
mod loops;
pub mod lower;
pub mod memory;
mod order;
mod parts;
pub mod pool;
mod row_sums;
mod rows;
mod runs;
pub mod schedule;
#[cfg(test)]
mod seat_tests;
mod seated;
mod seats;
pub mod shared;
pub mod slabs;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod tests;

use halite_targets::{Capabilities, Target};

use crate::{
    BASELINE, CompileError, CompileOptions, Control, ParameterStorage, Program, Stage, backend::Backend,
    control::Watch, graph::Graph,
};
use flow::Flow;
use group::Groups;
use kernels::{Chooser, Codes, Kernel, Kernels, Takers};
use lower::{Lowered, Lowering};
use pool::Pool;
use shared::Shared;
use slabs::Slabs;

/// What a module does.
#[derive(Debug)]
pub struct ModulePlan {
    /// Constants, and what is computed of them at load.
    pub pool: Pool,
    /// What versions of a model share of what is computed at load.
    pub shared: Shared,
    /// Where they lie.
    pub slabs: Slabs,
    /// Each function's versions.
    pub functions: Vec<Vec<Flow>>,
    /// Which versions of each function have the same code.
    pub groups: Vec<Groups>,
    /// What is computed at load, as a line.
    pub load: Flow,
    /// The operation of the pool that each step of this line is.
    pub load_packings: Vec<Option<usize>>,
    /// Codes of all kernels.
    pub codes: Codes,
    /// The targets, in the order in which they were asked for; the baseline last.
    pub targets: Vec<TargetPlan>,
    /// The target for devices that do not know targets, or that none fits: the baseline.
    pub baseline: Option<usize>,
}

/// What is done on one target.
#[derive(Debug)]
pub struct TargetPlan {
    /// The target.
    pub target: Target,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
    /// What is done at load.
    pub load: Lowered,
    /// Each function's versions.
    pub functions: Vec<Vec<Lowered>>,
}

/// Plans a program.
///
/// # Errors
/// There is no target, no kernel for an operation on one, or `control` ended the work.
pub fn plan(
    program: &Program,
    options: &CompileOptions,
    backend: &dyn Backend,
    control: &Control,
) -> Result<ModulePlan, CompileError> {
    let (targets, baseline) = targets(options)?;
    let watch = control.at(Stage::Planning);
    let mut pool = Pool::default();
    let takers = Takers::new(backend, &targets);
    let functions = flows(program, &mut pool, &takers, watch)?;
    let external = matches!(options.parameters, ParameterStorage::External { .. });
    let is_shared = external && options.shares_results;
    let shared = if is_shared { Shared::of(&pool) } else { Shared::nothing(&pool) };
    let slabs = Slabs::of(&pool, external, &shared, watch)?;
    let (load, load_packings) = load::flow(&pool, watch)?;
    let mut codes = Codes::default();
    let mut plans = Vec::new();
    for target in &targets {
        plans.push(lowered(target, backend, (program, &load, &functions, &slabs), &mut codes, control)?);
    }
    let mut groups = Vec::new();
    for (f, function) in program.functions.iter().enumerate() {
        groups.push(group::groups(function, &functions[f], &plans, f, watch)?);
    }
    Ok(ModulePlan {
        pool,
        shared,
        slabs,
        functions,
        groups,
        load,
        load_packings,
        codes,
        targets: plans,
        baseline,
    })
}

/// The flow of each version of each function.
fn flows(
    program: &Program,
    pool: &mut Pool,
    takers: &Takers<'_>,
    watch: Watch<'_>,
) -> Result<Vec<Vec<Flow>>, CompileError> {
    let total = program.functions.iter().map(|function| function.versions.len()).sum();
    let (mut functions, mut done) = (Vec::new(), 0);
    for function in &program.functions {
        let mut flows = Vec::new();
        for graph in &function.versions {
            watch.step(done, total)?;
            let _entered = graph.enter();
            let takes = |operation: &_| takers.take(operation);
            let prefers = |one: &_, other: &_| takers.prefer(one, other);
            flows.push(from_graph::flow(graph, pool, &takes, &prefers, watch)?);
            crate::error::unpinned(&crate::SourceLocation::default())?;
            done += 1;
        }
        functions.push(flows);
    }
    watch.step(total, total)?;
    Ok(functions)
}

/// What is done on a target: at load, and by the flows of each function.
fn lowered(
    target: &Capabilities,
    backend: &dyn Backend,
    (program, load, functions, slabs): (&Program, &Flow, &[Vec<Flow>], &Slabs),
    codes: &mut Codes,
    control: &Control,
) -> Result<TargetPlan, CompileError> {
    let watch = control.at(Stage::ChoosingKernels(target.target));
    let total = load.steps.len() + functions.iter().flatten().map(|flow| flow.steps.len()).sum::<usize>();
    let mut chooser = Chooser::new(backend, target);
    let (mut kernels, mut done, mut was_open) = (Kernels::default(), 0, false);
    let mut lower = |flow: &Flow, is_open: bool| {
        if is_open || was_open {
            // Sizes of other traces look the same.
            chooser.forget();
        }
        was_open = is_open;
        let (chooser, codes, kernels) = (&mut chooser, &mut *codes, &mut kernels);
        let made = Lowering { chooser, codes, kernels, slabs, watch, before: done, total }.lower(flow);
        done += flow.steps.len();
        made
    };
    let load = lower(load, false)?;
    let mut of_graph = |(graph, flow): (&Graph, &Flow)| {
        let _entered = graph.enter();
        lower(flow, graph.open.is_some())
    };
    let versions: Result<Vec<Vec<Lowered>>, _> = program
        .functions
        .iter()
        .zip(functions)
        .map(|(function, flows)| function.versions.iter().zip(flows).map(&mut of_graph).collect())
        .collect();
    watch.step(total, total)?;
    Ok(TargetPlan { target: target.target, kernels: kernels.all, load, functions: versions? })
}

impl ModulePlan {
    /// Whether a function's recordings are made when the module is loaded: those of a single version. Of several versions a
    /// program may need few, so these are recorded at their first call.
    pub fn is_recorded_at_load(&self, function: usize) -> bool {
        matches!(&self.functions[function][..], [only] if only.symbols == 0)
    }
}

/// The targets, and which of them is the baseline.
fn targets(options: &CompileOptions) -> Result<(Vec<Capabilities>, Option<usize>), CompileError> {
    let mut targets: Vec<Capabilities> = Vec::new();
    for wanted in &options.targets {
        if targets.iter().any(|target| target.target == wanted.target) {
            return Err(CompileError::Request(format!("the target {} is asked for twice", wanted.target)));
        }
        targets.push(wanted.clone());
    }
    let mut baseline = targets.iter().position(|target| target.target.to_string() == BASELINE);
    if options.baseline && baseline.is_none() {
        let target = Target::parse(BASELINE).map_err(|e| CompileError::Request(e.to_string()))?;
        baseline = Some(targets.len());
        targets.push(Capabilities::of(target));
    }
    if options.at_hand && baseline.is_none() && !targets.is_empty() {
        baseline = Some(0);
    }
    if targets.is_empty() {
        return Err(CompileError::Request(
            "there is no target to compile for: name one, or include the baseline".to_owned(),
        ));
    }
    Ok((targets, baseline))
}
