//! The choice of a kernel of the library for an operation on a target.

use std::cell::OnceCell;

use halite_ops::Operation;
use halite_shaders::{Module, Step, Tuning, Variant, Verdict, ranked, variants_of};
use halite_targets::Capabilities;

use crate::backend::{Binary, Choice, Dispatch, Slot};

/// Reasons that are named when no candidate of an operation can run.
const MOST_REASONS: usize = 8;

/// The first variant that computes an operation on a target.
///
/// # Errors
/// There is none.
pub(super) fn choose(
    operation: &Operation,
    target: &Capabilities,
    tuning: &Tuning,
) -> Result<Choice, String> {
    let mut refused: Vec<(&Variant, String)> = Vec::new();
    for candidate in ranked(operation, target, tuning) {
        let estimate = candidate.estimate(operation, target);
        match candidate.verdict {
            Verdict::Runs { plan, why } => {
                let one_step = plan.steps.len() == 1;
                let steps = plan.steps.into_iter().filter(|step| step.grid.iter().all(|groups| *groups != 0));
                return Ok(Choice {
                    variant: candidate.variant.name.clone(),
                    why,
                    elementwise: matches!(operation, Operation::Elementwise(_)) && one_step,
                    dispatches: steps.map(dispatch).collect(),
                    independent: plan.independent,
                    updates: plan.updates,
                    scratch: plan.scratch,
                    estimate,
                    work: operation.work(),
                    text: OnceCell::new(),
                });
            }
            Verdict::RuledOut(reason) => refused.push((candidate.variant, reason)),
        }
    }
    Err(reasons(refused, &operation.signature()))
}

fn dispatch(step: Step) -> Dispatch {
    let slot = |slot: &halite_shaders::Slot| match slot {
        halite_shaders::Slot::Input(index) => Slot::Input(*index),
        halite_shaders::Slot::Output(index) => Slot::Output(*index),
        halite_shaders::Slot::Scratch(index) => Slot::Scratch(*index),
    };
    Dispatch {
        bindings: step.bindings.iter().map(slot).collect(),
        binary: match step.module {
            Module::Compiled { name, bytes } => Binary::Library { name, bytes },
            Module::Emitted(words) => Binary::Made(words),
        },
        constants: step.constants,
        push: step.push,
        grid: step.grid,
        subgroup_size: step.subgroup_size,
    }
}

/// Why no candidate can run: what the plainest lack first, and nothing of those for other types.
fn reasons(mut refused: Vec<(&Variant, String)>, signature: &str) -> String {
    if refused.iter().any(|(variant, _)| variant.signatures.iter().any(|own| own == signature)) {
        refused.retain(|(variant, _)| variant.signatures.iter().any(|own| own == signature));
    }
    refused.sort_by_key(|(variant, _)| !variant.needs.is_baseline());
    let mut grouped: Vec<(String, Vec<&str>)> = Vec::new();
    for (variant, reason) in refused {
        match grouped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&variant.name),
            None => grouped.push((reason, vec![&variant.name])),
        }
    }
    let more = grouped.len().saturating_sub(MOST_REASONS);
    let listed = grouped.iter().take(MOST_REASONS).map(|(reason, names)| {
        let others = names.len() - 1;
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        format!("{}{others}: {reason}", names[0])
    });
    let text = listed.collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{text}; and {more} other reasons") } else { text }
}

/// Whether a kernel for every Vulkan 1.1 device computes an operation.
pub(super) fn runs_everywhere(operation: &Operation) -> bool {
    let runs = |variant: &Variant| variant.needs.is_baseline() && variant.plan(operation).is_ok();
    variants_of(operation.name()).any(runs)
}
