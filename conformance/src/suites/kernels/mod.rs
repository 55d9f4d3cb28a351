//! Every variant of the kernel library against its reference on the CPU, on the device under test.
//!
//! A case is a variant with one of the sample operations. Outputs and scratch memory are poisoned before each run,
//! with guard words around them that no kernel may write, inputs are new for each case, and a variant that the device cannot run is skipped with what the device lacks.

mod long;

use std::sync::Arc;

use halite_abi::{format, query};
use halite_facts::Feature;
use halite_hal::{Deadline, Device};
use halite_ops::{Operation, Values};
use halite_shaders::{Needs, Plan, Variant, variants_of};
use halite_testing::{
    Random,
    library::{
        Prepared,
        data::{self, Inputs},
    },
};
use halite_tools::kernels::capabilities;

use super::{Case, Cases, Context, Outcome, Stop, case::same_bytes};

/// Bytes that no right result consists of.
const POISON: u8 = 0xA5;

/// Turns of loops that every device does: llvmpipe ends those that turn more often, and skips such a case.
const LEAST_TURNS: u64 = 65_535;

/// The cases of all operations whose variants' names contain `filter`.
pub fn cases(seed: u64, filter: &str) -> Vec<Case> {
    let mut cases = Cases::new("kernels");
    for name in Operation::NAMES {
        for operation in Operation::samples(name) {
            for variant in variants_of(name).filter(|v| v.name.contains(filter)) {
                // What a variant cannot compute anywhere is no case.
                let Ok(plan) = variant.plan(&operation) else { continue };
                add(&mut cases, seed, variant, &operation, (&plan, &Inputs::ALL));
            }
        }
    }
    for operation in long::operations() {
        for variant in variants_of(operation.name()).filter(|v| v.name.contains(filter)) {
            let Ok(plan) = variant.plan(&operation) else { continue };
            add(&mut cases, seed, variant, &operation, (&plan, &[Inputs::Plain]));
        }
    }
    cases.finish()
}

fn add(
    cases: &mut Cases,
    seed: u64,
    variant: &'static Variant,
    operation: &Operation,
    (plan, kinds): (&Plan, &[Inputs]),
) {
    let floats = operation.inputs().iter().any(|t| t.dtype.is_float());
    for kind in kinds.iter().copied() {
        if kind != Inputs::Plain && !floats {
            continue;
        }
        let name = format!("{}:{}{}", variant.name, parameters(operation), kind.suffix());
        let (operation, own) = (operation.clone(), plan.clone());
        let body = move |t: &Context| run(t, variant, &operation, &own, kind, seed);
        let mut tags = tags(&variant.needs);
        tags.extend((plan.turns > LEAST_TURNS).then_some("long"));
        cases.add_tagged(name, &[], tags, body);
    }
}

/// An operation's parameters as names of cases have them: `n=1;dtype=f16`, without the operation's own name.
fn parameters(operation: &Operation) -> String {
    let text = operation.to_string();
    let parameters = text.split_once(':').map_or("", |(_, parameters)| parameters);
    // Programs of elementwise kernels have semicolons of their own.
    parameters.replace("; ", " / ").replace(',', ";")
}

/// What a device must have for a variant, by the names of levels.
fn tags(needs: &Needs) -> Vec<&'static str> {
    let all = [
        ("baseline", needs.is_baseline()),
        ("f16", needs.has(Feature::ShaderFloat16) || needs.has(Feature::StorageBuffer16BitAccess)),
        ("bf16", needs.has(Feature::ShaderBFloat16Type)),
        ("int8", needs.has(Feature::ShaderInt8) || needs.has(Feature::StorageBuffer8BitAccess)),
        ("dot", needs.packed_dot_product),
        ("int16", needs.has(Feature::ShaderInt16)),
        ("int64", needs.has(Feature::ShaderInt64)),
        ("subgroup", !needs.subgroup.is_empty()),
        ("sized", needs.subgroup_size > 0),
        ("large", needs.invocations > 128 || needs.shared_bytes > 16384),
        ("coopmat", needs.matrix.is_some()),
        ("processor", needs.processor),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

fn run(
    t: &Context,
    variant: &Variant,
    operation: &Operation,
    plan: &Plan,
    kind: Inputs,
    seed: u64,
) -> Outcome {
    let device = t.device();
    if device.query_i64(query::EXECUTABLE_FORMAT, format::VULKAN_SPIRV) != Some(1) {
        return Err(Stop::Skip("the device takes no SPIR-V".to_owned()));
    }
    let target = capabilities(device.info()).map_err(Stop::Skip)?;
    let missing = variant.needs.missing(&target);
    if !missing.is_empty() {
        return Err(Stop::Skip(format!("the device lacks {}", missing.join("; "))));
    }
    let turns = plan.turns.value();
    if turns > u64::from(target.max_loop_turns) {
        let most = target.max_loop_turns;
        return Err(Stop::Skip(format!(
            "the device ends loops after {most} turns, and these turn {turns} times"
        )));
    }
    trial(device, operation, plan, kind, seed, t.deadline())
}

/// Runs a plan once, until a deadline, and compares what it leaves, in outputs, inputs and guard words, with what its
/// operation should leave.
pub fn trial(
    device: &Arc<dyn Device>,
    operation: &Operation,
    plan: &Plan,
    kind: Inputs,
    seed: u64,
    deadline: Deadline,
) -> Outcome {
    let mut random = Random::new(seed);
    let inputs = data::inputs(operation, kind, &mut random);
    let outputs = operation.outputs();
    // Only for outputs that are updated.
    let before: Vec<_> = outputs.iter().map(|tensor| data::values(tensor, kind, &mut random)).collect();
    let prepared = Prepared::guarded(device, operation, plan)?;
    let tensors = operation.inputs();
    let bytes: Vec<_> = inputs.iter().zip(&tensors).map(|(values, t)| values.to_bytes(t.dtype)).collect();
    for (index, bytes) in bytes.iter().enumerate() {
        prepared.write_input(index, bytes)?;
    }
    prepared.poison(POISON)?;
    for (index, tensor) in outputs.iter().enumerate().filter(|(index, _)| operation.updates(*index)) {
        prepared.write_output(index, &before[index].to_bytes(tensor.dtype))?;
    }
    prepared.run(deadline)?;
    for (index, bytes) in bytes.iter().enumerate() {
        let left = prepared.read_input(index)?;
        same_bytes(&format!("input {index} after the run"), &left[..bytes.len()], bytes)?;
    }
    if let Some(damage) = prepared.damage()? {
        return Err(Stop::Fail(damage));
    }
    let magnitudes: Vec<f64> = inputs.iter().map(Values::magnitude).collect();
    for (index, (tensor, expected)) in
        outputs.iter().zip(operation.reference_over(&inputs, &before)).enumerate()
    {
        let tolerance = operation.output_tolerance(index, &magnitudes);
        data::compare(tensor, &prepared.read_output(index)?, &expected, tolerance)?;
    }
    Ok(())
}
