//! The JSON form of variants and plans. Fields are only ever added.

use halite_ops::Operation;
use halite_shaders::{Candidate, Plan, Variant, Verdict, variants_of};
use serde_json::{Value, json};

use super::{survey::Ranking, text};
use crate::console::VERSION;

/// Every operation on every target.
pub(super) fn report(operations: &[Operation], rankings: &[Vec<Ranking<'_>>]) -> Value {
    let each = operations.iter().zip(rankings).map(|(operation, rankings)| {
        let work = operation.work();
        json!({
            "operation": operation.to_string(),
            "fields": operation,
            "name": operation.name(),
            "signature": operation.signature(),
            "flops": work.flops,
            "bytes": work.bytes,
            "targets": rankings.iter().map(|r| ranking(operation, r)).collect::<Vec<_>>(),
        })
    });
    json!({"version": VERSION, "operations": each.collect::<Vec<_>>()})
}

fn ranking(operation: &Operation, ranking: &Ranking<'_>) -> Value {
    let place = ranking.place;
    let (uri, name) = place.device.clone().unzip();
    let candidates = ranking.candidates.iter().enumerate();
    json!({
        "target": place.triple(),
        "device": uri,
        "device_name": name,
        "chosen": ranking.choice().map(|(c, _)| c.variant.name.as_str()),
        "variants": candidates.map(|(index, c)| candidate(operation, index, c)).collect::<Vec<_>>(),
    })
}

fn candidate(operation: &Operation, index: usize, candidate: &Candidate) -> Value {
    let name = &candidate.variant.name;
    match &candidate.verdict {
        Verdict::RuledOut(why) => json!({"variant": name, "runs": false, "why": why}),
        Verdict::Runs { plan, why } => json!({
            "variant": name, "runs": true, "place": index + 1, "why": why,
            "steps": steps(operation, plan), "scratch_bytes": plan.scratch,
        }),
    }
}

fn steps(operation: &Operation, plan: &Plan) -> Vec<Value> {
    let each = plan.steps.iter().map(|step| {
        let (name, length) = text::code(&step.module);
        json!({
            "module": name,
            "spirv_bytes": length,
            "grid": step.grid,
            "constants": step.constants,
            "push": step.push,
            "bindings": step.bindings.iter().map(|slot| text::binding(operation, *slot)).collect::<Vec<_>>(),
            "subgroup_size": (step.subgroup_size > 0).then_some(step.subgroup_size),
        })
    });
    each.collect()
}

/// The operations of these names, or all, with their variants.
pub(super) fn list(names: &[String]) -> Value {
    let wanted = Operation::NAMES.iter().filter(|name| names.is_empty() || names.iter().any(|n| n == *name));
    let operations = wanted.map(|name| {
        json!({
            "name": name,
            "example": Operation::example(name),
            "variants": variants_of(name).map(variant).collect::<Vec<_>>(),
        })
    });
    json!({"version": VERSION, "operations": operations.collect::<Vec<_>>()})
}

fn variant(variant: &Variant) -> Value {
    let params: serde_json::Map<_, _> =
        variant.params.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    json!({
        "variant": variant.name,
        "signatures": variant.signatures,
        "template": variant.template,
        "build": variant.build,
        "params": params,
        "order": variant.order,
        "note": variant.note,
        "needs": variant.needs.listed(),
    })
}
