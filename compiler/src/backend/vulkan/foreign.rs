//! Kernels that a model brings along: whether a target can run them.

use std::cell::OnceCell;

use halite_facts::{Need, required_features};
use halite_ops::Work;
use halite_sizes::Size;
use halite_spirv::ModuleFacts;
use halite_targets::Capabilities;

use crate::{
    backend::{Binary, Choice, Dispatch, Slot},
    graph::{ForeignBinding, ForeignKernel, storage_bytes},
};

/// The dispatch of a foreign kernel.
///
/// # Errors
/// The kernel breaks a rule, or the target lacks what it needs.
pub(super) fn choose(kernel: &ForeignKernel, target: &Capabilities, work: Work) -> Result<Choice, String> {
    let facts = kernel.check()?;
    features(&facts, target)?;
    limits(kernel, &facts, target)?;
    let slot = |binding: &ForeignBinding| match binding {
        ForeignBinding::Input { index, .. } => Slot::Input(*index),
        ForeignBinding::Output { index, .. } => Slot::Output(*index),
    };
    let dispatch = Dispatch {
        binary: Binary::Made(kernel.module.clone()),
        constants: kernel.all_constants(&facts),
        push: kernel.push_constants.iter().map(|word| Size::from(*word)).collect(),
        bindings: kernel.bindings.iter().map(slot).collect(),
        grid: kernel.workgroups.map(Size::from),
        subgroup_size: 0,
    };
    Ok(Choice {
        variant: kernel.name.clone(),
        why: "the model's own kernel".to_owned(),
        dispatches: vec![dispatch],
        independent: false,
        scratch: Vec::new(),
        elementwise: false,
        updates: false,
        estimate: None,
        work,
        text: OnceCell::new(),
    })
}

/// Whether the target has the features that the module declares.
fn features(facts: &ModuleFacts, target: &Capabilities) -> Result<(), String> {
    let capabilities = facts.capabilities.iter().map(String::as_str);
    for required in required_features(capabilities, &facts.memory_model) {
        // Of features that kernels of the library do not choose by, nothing is known of targets.
        let there = matches!(required.need, Need::Feature(feature) if target.features.has(feature));
        if !there {
            let (feature, why) = (required.need.vulkan_name(), required.needed_by);
            return Err(format!("it needs {feature} ({why}), which the target is not known to have"));
        }
    }
    let entry = facts.entry_points.first();
    match entry.is_some_and(|entry| !entry.subgroup_ops.is_empty()) {
        true => Err("it uses operations of subgroups, whose size is not the same on all devices of a target"
            .to_owned()),
        false => Ok(()),
    }
}

/// Whether the kernel keeps the limits of the target.
fn limits(kernel: &ForeignKernel, facts: &ModuleFacts, target: &Capabilities) -> Result<(), String> {
    let within = |what: &str, wanted: u64, most: u64| match wanted <= most {
        true => Ok(()),
        false => Err(format!("it has {wanted} {what}, and the target takes {most}")),
    };
    for entry in &facts.entry_points {
        let invocations = entry.local_size.iter().map(|size| u64::from(*size)).product();
        within("invocations in a workgroup", invocations, target.max_workgroup_invocations.into())?;
        for (size, most) in entry.local_size.iter().zip(target.max_workgroup_size) {
            within("invocations along an axis", (*size).into(), most.into())?;
        }
        within("bytes of workgroup memory", entry.workgroup_memory_bytes, target.shared_memory_bytes.into())?;
    }
    for (count, most) in kernel.workgroups.iter().zip(target.max_workgroup_count) {
        within("workgroups along an axis", (*count).into(), most.into())?;
    }
    let push = kernel.push_constants.len() as u64 * 4;
    within("bytes of push constants", push, target.max_push_constants_bytes.into())?;
    within("storage buffers", kernel.bindings.len() as u64, target.max_storage_buffers.into())?;
    for binding in &kernel.bindings {
        within("bytes in one buffer", storage_bytes(binding.bytes()), target.max_storage_buffer_bytes)?;
    }
    Ok(())
}
