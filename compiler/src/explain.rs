//! The account of a compilation: which kernels were chosen and why, memory, and sizes; as data and as text.

mod edges;
mod text;

use serde::Serialize;

use crate::{
    CompileOptions, Program, SourceLocation,
    emit::Emitted,
    graph::Graph,
    plan::{
        ModulePlan, TargetPlan,
        flow::{Flow, Step},
        lower::Lowered,
        schedule::Command,
    },
};

/// Most versions of a function that are all reported in full.
const MOST_VERSIONS: usize = 8;

/// What was decided, and what it costs. In JSON as it is here; as text through `Display`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Name of the module.
    pub module: String,
    /// What was decided for each target.
    pub targets: Vec<TargetReport>,
    /// The constants, which all targets share.
    pub constants: ConstantReport,
    /// The sizes of the file's parts.
    pub sizes: SizeReport,
}

/// What was decided for a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetReport {
    /// The target's triple.
    pub target: String,
    /// Whether it is for devices that no other target fits.
    pub baseline: bool,
    /// Kernels: code and specialization constants.
    pub kernels: usize,
    /// Operations that these kernels serve, of all versions and of loading: all of them, as what has no kernel is refused.
    pub served: usize,
    /// What is done once, when the module is loaded.
    pub load: WorkReport,
    /// What is done in calls.
    pub functions: Vec<FunctionReport>,
}

/// A function on a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FunctionReport {
    /// Its name.
    pub name: String,
    /// How many versions it has.
    pub version_count: usize,
    /// How many kinds of versions: those of a kind do the same with other numbers, and share host code.
    pub groups: usize,
    /// Bytes of memory that a call takes for values in between: what the version with the most needs.
    pub transient_bytes: u64,
    /// What is wrong with sizes that were asked for and that it does not take, as the model makes no sense for them.
    pub left_out: Option<String>,
    /// Its versions; where they are many, the first and the one with the most work.
    pub versions: Vec<WorkReport>,
}

/// What is done in a call of a version, or at load. Parts of loops and branches count once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkReport {
    /// The inputs as text.
    pub inputs: Vec<String>,
    /// The outputs as text.
    pub outputs: Vec<String>,
    /// Arithmetic operations at least.
    pub flops: f64,
    /// Bytes that operations read and write at least.
    pub bytes: f64,
    /// Dispatches.
    pub dispatches: usize,
    /// Copies.
    pub copies: usize,
    /// Barriers.
    pub barriers: usize,
    /// Recordings that are executed one after another.
    pub segments: usize,
    /// Bytes of memory for values between operations.
    pub transient_bytes: u64,
    /// What it would be if no two values shared memory.
    pub unshared_bytes: u64,
    /// Results that are written over an input.
    pub in_place: usize,
    /// Bytes of the outputs.
    pub output_bytes: u64,
    /// The states: what becomes of inputs whose buffers are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateReport>,
    /// The operations in their order.
    pub operations: Vec<OperationReport>,
}

/// What becomes of a state in a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StateReport {
    /// The input that it is, with type and dimensions.
    pub input: String,
    /// Name of the output that replaces it.
    pub output: String,
    /// Whether its new value is computed in its memory; it is copied there otherwise.
    pub in_place: bool,
    /// Why it is copied; empty where it is not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// An operation and what computes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OperationReport {
    /// Where in the model it comes from.
    #[serde(rename = "place")]
    pub location: String,
    /// The operation as text.
    pub operation: String,
    /// Name of the variant.
    pub variant: String,
    /// Why this one.
    pub why: String,
    /// Dispatches.
    pub dispatches: usize,
    /// Arithmetic operations at least.
    pub flops: f64,
    /// Bytes read and written at least.
    pub bytes: f64,
    /// Places in the list of operations whose results it reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<usize>,
    /// Bytes of values between operations that are needed while it runs.
    pub live_bytes: u64,
}

/// Constants, each once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConstantReport {
    /// How many there are.
    pub count: usize,
    /// Bytes that are stored in the module or beside it.
    pub stored_bytes: u64,
    /// Bytes on the device that calls read, as they were stored.
    pub resident_bytes: u64,
    /// Bytes on the device that calls read, computed at load.
    pub packed_bytes: u64,
    /// Whether they are in an archive beside the module.
    pub external: bool,
}

/// Bytes of a module's parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeReport {
    /// The file.
    pub module: u64,
    /// Constants in it.
    pub constants: u64,
    /// Kernels.
    pub executables: u64,
    /// Host code.
    pub bytecode: u64,
    /// Numbers in which versions differ.
    pub tables: u64,
    /// Each kernel's code by name, the largest first.
    pub kernels: Vec<(String, u64)>,
}

/// The account of a module that was written.
pub(crate) fn report(
    program: &Program,
    plan: &ModulePlan,
    options: &CompileOptions,
    emitted: &Emitted,
) -> Report {
    let targets = plan.targets.iter().enumerate();
    let sizes = sizes(plan, emitted);
    Report {
        module: options.module_name.clone(),
        targets: targets.map(|(i, t)| target(program, plan, t, plan.baseline == Some(i))).collect(),
        constants: constants(plan, emitted),
        sizes,
    }
}

fn target(program: &Program, plan: &ModulePlan, target: &TargetPlan, baseline: bool) -> TargetReport {
    let functions = program.functions.iter().enumerate().map(|(f, function)| {
        let version = |v: usize| {
            let graph = &function.versions[v];
            WorkReport {
                inputs: ports(graph, &graph.inputs),
                outputs: ports(graph, &graph.outputs),
                states: states(graph, &plan.functions[f][v]),
                ..work_report(&plan.functions[f][v], &target.functions[f][v])
            }
        };
        FunctionReport {
            name: function.name.clone(),
            version_count: function.versions.len(),
            groups: plan.groups[f].len(),
            transient_bytes: target.functions[f].iter().map(|l| l.transient_bytes.value()).max().unwrap_or(0),
            left_out: function.left_out.as_ref().map(ToString::to_string),
            versions: shown(&target.functions[f]).into_iter().map(version).collect(),
        }
    });
    TargetReport {
        target: target.target.to_string(),
        baseline,
        kernels: target.kernels.len(),
        served: served(target),
        functions: functions.collect(),
        load: work_report(&plan.load, &target.load),
    }
}

/// Operations for which a kernel was chosen.
fn served(target: &TargetPlan) -> usize {
    let versions = target.functions.iter().flatten().chain([&target.load]);
    versions.map(|lowered| lowered.choices.iter().flatten().count()).sum()
}

/// The versions that are reported in full.
fn shown(versions: &[Lowered]) -> Vec<usize> {
    if versions.len() <= MOST_VERSIONS {
        return (0..versions.len()).collect();
    }
    let work =
        |lowered: &Lowered| lowered.choices.iter().flatten().map(|c| c.work.flops + c.work.bytes).sum();
    let works: Vec<f64> = versions.iter().map(work).collect();
    let most = (0..versions.len()).max_by(|a, b| works[*a].total_cmp(&works[*b]));
    [Some(0), most.filter(|most| *most != 0)].into_iter().flatten().collect()
}

fn ports(graph: &Graph, ports: &[crate::graph::Port]) -> Vec<String> {
    let one = |port: &crate::graph::Port| {
        let tensor = graph.tensor(port.tensor);
        let dims: Vec<_> = graph.port_sizes(port).iter().map(ToString::to_string).collect();
        format!("{} {}[{}]", port.name, tensor.element, dims.join("x"))
    };
    ports.iter().map(one).collect()
}

fn states(graph: &Graph, flow: &Flow) -> Vec<StateReport> {
    let inputs = ports(graph, &graph.inputs);
    let one = |state: &crate::plan::flow::State| StateReport {
        input: inputs[state.input].clone(),
        output: graph.outputs[state.output].name.clone(),
        in_place: state.copied.is_none(),
        why: state.copied.clone().unwrap_or_default(),
    };
    flow.states.iter().map(one).collect()
}

fn work_report(flow: &Flow, lowered: &Lowered) -> WorkReport {
    let commands = || lowered.segments.iter().flatten();
    let places = edges::of(flow);
    let is_operation = |step: usize| {
        matches!(flow.steps[step], Step::Compute { .. })
            && lowered.choices.get(step).is_some_and(Option::is_some)
    };
    let mut numbers = vec![None; flow.steps.len()];
    for (number, step) in (0..flow.steps.len()).filter(|step| is_operation(*step)).enumerate() {
        numbers[step] = Some(number);
    }
    let operations =
        flow.steps.iter().zip(&lowered.choices).zip(places).filter_map(|((step, choice), place)| {
            let (Step::Compute { computation, location, .. }, Some(choice)) = (step, choice) else {
                return None;
            };
            Some(OperationReport {
                location: named(location),
                operation: choice.text(computation).to_owned(),
                variant: choice.variant.clone(),
                why: choice.why.clone(),
                dispatches: choice.dispatches.len(),
                flops: choice.work.flops,
                bytes: choice.work.bytes,
                reads: place.reads.iter().filter_map(|step| numbers[*step]).collect(),
                live_bytes: place.live_bytes,
            })
        });
    let operations: Vec<_> = operations.collect();
    WorkReport {
        inputs: Vec::new(),
        outputs: Vec::new(),
        states: Vec::new(),
        flops: operations.iter().fold(0.0, |sum, o| sum + o.flops),
        bytes: operations.iter().fold(0.0, |sum, o| sum + o.bytes),
        dispatches: commands().filter(|c| matches!(c, Command::Dispatch { .. })).count(),
        copies: commands().filter(|c| matches!(c, Command::Copy { .. })).count(),
        barriers: lowered.barriers,
        segments: lowered.segments.len(),
        transient_bytes: lowered.transient_bytes.value(),
        unshared_bytes: lowered.unshared_bytes.value(),
        in_place: lowered.in_place,
        output_bytes: flow.outputs.iter().map(|bytes| bytes.value()).sum(),
        operations,
    }
}

fn named(location: &SourceLocation) -> String {
    location.as_str().to_owned()
}

fn constants(plan: &ModulePlan, emitted: &Emitted) -> ConstantReport {
    let slabs = &plan.slabs;
    let stored = || slabs.constant_slabs.iter();
    ConstantReport {
        count: stored().map(|slab| slab.items.len()).sum(),
        stored_bytes: stored().map(|slab| slab.bytes).sum(),
        resident_bytes: stored().filter(|slab| slab.resident).map(|slab| slab.bytes).sum(),
        packed_bytes: slabs.packed_slabs.iter().map(|slab| slab.bytes).sum(),
        external: emitted.parameters.is_some(),
    }
}

fn sizes(plan: &ModulePlan, emitted: &Emitted) -> SizeReport {
    let mut kernels = emitted.executables.clone();
    kernels.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
    let constants = match emitted.parameters {
        Some(_) => 0,
        None => plan.slabs.constant_slabs.iter().map(|slab| slab.bytes).sum(),
    };
    SizeReport {
        module: emitted.module.len(),
        constants,
        executables: kernels.iter().map(|(_, bytes)| bytes).sum(),
        bytecode: emitted.def.bytecode.len() as u64,
        tables: emitted.table_bytes,
        kernels,
    }
}
