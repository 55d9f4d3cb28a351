//! Segments that run a compute kernel: the SPIR-V of the file on buffers that resources are.

use std::{collections::BTreeMap, sync::Arc};

use halite_formats::vgf::{Segment, Vgf};
use halite_spirv::{BindingFacts, EntryFacts, analyze, move_bindings};

use super::{
    Result,
    opaque::with_buffers,
    resources::{Contents, memory_of, tensor_of},
    segment::{bound, words},
};
use crate::{
    build::Builder,
    graph::{ElementType, ForeignBinding, ForeignKernel, TensorId},
};

/// The buffers of a kernel, and what lies in them.
#[derive(Default)]
struct Bound {
    /// Which of `bindings` a set and a number lead to.
    places: BTreeMap<(u32, u32), u32>,
    bindings: Vec<ForeignBinding>,
    inputs: Vec<TensorId>,
    outputs: Vec<(ElementType, Vec<u64>)>,
    /// The resources of `outputs`.
    written: Vec<usize>,
}

/// Runs a segment. `push` has the words of its push constants.
pub(super) fn run(
    builder: &mut Builder,
    file: &Vgf,
    segment: &Segment,
    push: Option<TensorId>,
    contents: &mut Contents<'_>,
) -> Result<()> {
    let module = &file.modules[segment.module];
    let words = words(builder, module)?;
    let (words, pushed) = with_buffers(builder, file, segment, words)?;
    let facts = analyze(&words).map_err(|e| builder.invalid(e.to_string()))?;
    let Some(entry) = facts.entry(&module.entry_point) else {
        let all: Vec<_> = facts.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        return Err(builder.invalid(format!(
            "the module has no entry point '{}'; it has: {}",
            module.entry_point,
            all.join(", ")
        )));
    };
    if pushed.is_some() && push.is_none() {
        return Err(
            builder.unsupported("push constants without a range of the segment: nothing gives their values")
        );
    }
    let pushed = pushed.zip(push);
    let bound = bind(builder, file, segment, entry, pushed, contents)?;
    let moved = move_bindings(&words, &bound.places).map_err(|e| builder.unsupported(e.to_string()))?;
    let kernel = ForeignKernel {
        name: builder.location().as_str().to_owned(),
        module: Arc::from(moved),
        entry_point: module.entry_point.clone(),
        constants: BTreeMap::new(),
        push_constants: Vec::new(),
        bindings: bound.bindings,
        workgroups: segment.dispatch,
    };
    let results = builder.foreign(kernel, &bound.inputs, &bound.outputs)?;
    for (resource, result) in bound.written.into_iter().zip(results) {
        contents.set(resource, result);
    }
    Ok(())
}

/// Binds what an entry point uses to the segment's resources.
fn bind(
    builder: &mut Builder,
    file: &Vgf,
    segment: &Segment,
    entry: &EntryFacts,
    pushed: Option<(u32, TensorId)>,
    contents: &mut Contents<'_>,
) -> Result<Bound> {
    let mut made = Bound::default();
    for used in &entry.bindings {
        let (set, number) = (used.set, used.binding);
        if let Some((_, tensor)) = pushed.filter(|(binding, _)| set == 0 && number == *binding) {
            made.places.insert((set, number), made.bindings.len() as u32);
            let bytes = builder.tensor(tensor).bytes();
            made.bindings.push(ForeignBinding::Input { index: made.inputs.len(), bytes });
            made.inputs.push(tensor);
            continue;
        }
        let Some(resource) = bound(segment, set, number) else {
            return Err(builder.invalid(format!("binding {number} of set {set} is bound to no resource")));
        };
        check_kind(builder, file, used, resource)?;
        let (element, dims) = tensor_of(&file.resources[resource], resource)?;
        let bytes = crate::graph::elements(&dims).saturating_mul(element.storage().size());
        let memory = memory_of(file, resource);
        let is_output = segment.outputs.iter().any(|slot| memory_of(file, slot.resource) == memory);
        if is_output && segment.inputs.iter().any(|slot| memory_of(file, slot.resource) == memory) {
            return Err(builder.unsupported(format!(
                "resource {resource} is read and written by the same kernel: results have to be resources of their own"
            )));
        }
        made.places.insert((set, number), made.bindings.len() as u32);
        if is_output {
            made.bindings.push(ForeignBinding::Output { index: made.outputs.len(), bytes });
            made.outputs.push((element, dims));
            made.written.push(resource);
        } else {
            made.bindings.push(ForeignBinding::Input { index: made.inputs.len(), bytes });
            made.inputs.push(contents.get(builder, resource, element, &dims)?);
        }
    }
    Ok(made)
}

/// Whether a descriptor of the kernel is one that is supported.
fn check_kind(builder: &Builder, file: &Vgf, used: &BindingFacts, index: usize) -> Result<()> {
    let resource = &file.resources[index];
    let is_known = resource.is_storage_buffer()
        || resource.is_image()
        || resource.is_tensor()
        || resource.descriptor.is_none();
    if is_known && matches!(used.class.as_str(), "StorageBuffer" | "Uniform") {
        return Ok(());
    }
    Err(builder.unsupported(format!(
        "the kernel binds resource {index} as a {} ({}): storage buffers, tensors, storage images, and sampled images with \
         their sampler are supported",
        resource.descriptor_name(),
        resource.format
    )))
}
