//! Owns what a module does, decided before anything is written: kernels for each target, memory, barriers, what is computed
//! at load. Pure. Does not own: how modules are written ([`crate::emit`]).
//!
//! A graph becomes a line of acts ([`flow`]), the same for all targets; a line becomes commands for one target ([`lower`]).

pub mod choose;
pub mod flow;
pub mod group;
mod load;
pub mod lower;
pub mod memory;
mod order;
pub mod pool;
pub mod schedule;
pub mod slabs;
#[cfg(test)]
mod tests;

use halite_targets::{Capabilities, Target};

use self::{
    choose::{Chooser, Codes, Kernel, Kernels},
    flow::Flow,
    group::Groups,
    lower::{Lowered, Lowering},
    pool::Pool,
    slabs::Slabs,
};
use crate::{BASELINE, CompileError, CompileOptions, Program, Progress};

/// What a module does.
#[derive(Debug)]
pub struct ModulePlan {
    /// Constants, and what is computed of them at load.
    pub pool: Pool,
    /// Where they lie.
    pub slabs: Slabs,
    /// Each function's versions.
    pub functions: Vec<Vec<Flow>>,
    /// Which versions of each function are alike.
    pub groups: Vec<Groups>,
    /// What is computed at load, as a line.
    pub load: Flow,
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
/// There is no target, or no kernel for an operation on one.
pub fn plan(
    program: &Program,
    options: &CompileOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<ModulePlan, CompileError> {
    let (targets, baseline) = targets(options)?;
    let mut pool = Pool::default();
    let mut functions = Vec::new();
    for function in &program.functions {
        let flows: Result<Vec<_>, _> =
            function.versions.iter().map(|graph| flow::flow(graph, &mut pool)).collect();
        functions.push(flows?);
    }
    let slabs = Slabs::of(&pool);
    let load = load::flow(&pool);
    let mut codes = Codes::default();
    let mut plans = Vec::new();
    for target in &targets {
        let stage = format!("choosing kernels for {}", target.target);
        let mut done = 0;
        let total = functions.iter().map(Vec::len).sum::<usize>() + 1;
        let mut chooser = Chooser::new(target, &options.tuning);
        let mut kernels = Kernels::default();
        let mut lower = |flow: &Flow| {
            progress(Progress { stage: &stage, done, total });
            done += 1;
            let (chooser, codes, kernels) = (&mut chooser, &mut codes, &mut kernels);
            Lowering { chooser, codes, kernels, slabs: &slabs }.lower(flow)
        };
        let load = lower(&load)?;
        let versions: Result<Vec<Vec<Lowered>>, _> =
            functions.iter().map(|flows| flows.iter().map(&mut lower).collect()).collect();
        plans.push(TargetPlan { target: target.target, kernels: kernels.all, load, functions: versions? });
    }
    let alike = |(f, function): (usize, &crate::Function)| group::groups(function, &functions[f], &plans, f);
    let groups = program.functions.iter().enumerate().map(alike).collect();
    Ok(ModulePlan { pool, slabs, functions, groups, load, codes, targets: plans, baseline })
}

impl ModulePlan {
    /// Whether a function's recordings are made when the module is loaded: those of a single version. Of several versions a
    /// program may need few, so these are recorded at their first call.
    pub fn is_recorded_at_load(&self, function: usize) -> bool {
        self.functions[function].len() == 1
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
    if targets.is_empty() {
        return Err(CompileError::Request(
            "there is no target to compile for: name one, or include the baseline".to_owned(),
        ));
    }
    Ok((targets, baseline))
}
