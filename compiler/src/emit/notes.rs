//! What a module tells of its recordings, for profiles: which operation each command computes, and what that costs.

use halite_sizes::Size;

use halite_formats::vmfb::{Attr, OperationNote, RecordingNotes, VersionNote};

use crate::{
    backend::Computation,
    plan::{ModulePlan, TargetPlan, flow::Step, schedule::Command},
};

/// Most versions of a function whose costs are told; profiles of others lack them.
const MOST_VERSIONS: usize = 16;
/// Most characters of an operation's text.
const MOST_TEXT: usize = 160;

/// The attribute of the function that records a segment of a group's versions.
pub fn attribute(
    plan: &ModulePlan,
    target: &TargetPlan,
    function: usize,
    versions: &[usize],
    segment: usize,
) -> Attr {
    let mut notes = RecordingNotes::default();
    let Some(first) = versions.first() else { return notes.to_attr() };
    let (flow, lowered) = (&plan.functions[function][*first], &target.functions[function][*first]);
    let mut steps: Vec<usize> = Vec::new();
    for step in &lowered.sources[segment] {
        let (Step::Compute { computation, location, .. }, Some(choice)) =
            (&flow.steps[*step], &lowered.choices[*step])
        else {
            notes.commands.push(None);
            continue;
        };
        if steps.last() != Some(step) {
            steps.push(*step);
            notes.operations.push(OperationNote {
                location: location.as_str().to_owned(),
                kind: kind(computation).to_owned(),
                text: choice.text(computation).chars().take(MOST_TEXT).collect(),
                variant: choice.variant.clone(),
            });
        }
        notes.commands.push(Some(steps.len() as u32 - 1));
    }
    let version = |version: &usize| {
        let lowered = &target.functions[function][*version];
        let work = |step: &usize| {
            lowered.choices[*step].as_ref().map_or((0.0, 0.0), |c| (c.work.flops, c.work.bytes))
        };
        VersionNote {
            grids: if versions.len() > 1 { grids(&lowered.segments[segment]) } else { Vec::new() },
            work: steps.iter().map(work).collect(),
        }
    };
    notes.versions = versions.iter().take(MOST_VERSIONS).map(version).collect();
    notes.to_attr()
}

fn kind(computation: &Computation) -> &str {
    match computation {
        Computation::Operation(operation) => operation.name(),
        Computation::Foreign(_) => "kernel of the model",
    }
}

/// Workgroups of each command that does work.
fn grids(commands: &[Command]) -> Vec<[u32; 3]> {
    let grid = |command: &Command| match command {
        Command::Dispatch { grid, .. } => Some(grid.map(Size::exact_word)),
        Command::Copy { .. } => Some([0; 3]),
        Command::Barrier => None,
    };
    commands.iter().filter_map(grid).collect()
}
