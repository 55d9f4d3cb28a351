//! What a file's segments read and write, as tensors of the graph.

use std::collections::HashMap;

use halite_formats::vgf::{Binding, Category, Component, Format, Resource, Segment, Vgf};
use halite_ops::DType;

use super::Result;
use crate::{
    CompileError, SourceLocation,
    build::Builder,
    frontends::tosa::element_of,
    graph::{ElementType, TensorId},
    signature::{Arity, Dim, Signature},
};

/// Most bytes of push constants of a segment; devices have 128 to 4096.
const MOST_PUSHED: u64 = 4096;

/// What a resource is called in messages.
fn location(index: usize) -> SourceLocation {
    SourceLocation::new(format!("resource {index}"))
}

/// Its sizes, and the type that callers and kernels see.
pub(super) fn tensor_of(resource: &Resource, index: usize) -> Result<(ElementType, Vec<u64>)> {
    let unsupported = |what: String| CompileError::unsupported(&location(index), what);
    let Some((held, size)) = element_in(resource.format) else {
        let what = format!("a {} of the format {}", resource.descriptor_name(), resource.format);
        return Err(unsupported(format!(
            "{what}: tensors and buffers with one number an element, and images with R, RG or RGBA of 8, 16 or 32 bits \
             are supported"
        )));
    };
    let Some(dims) = resource.sizes() else {
        return Err(unsupported(format!("the sizes {:?}, of which some are open", resource.shape)));
    };
    let packed = packed_strides(&dims, size);
    if !resource.strides.is_empty() && packed.as_ref() != Some(&resource.strides) {
        return Err(unsupported(format!(
            "the strides {:?} of {dims:?}: elements have to be packed, row-major",
            resource.strides
        )));
    }
    Ok((held, dims))
}

/// The type that callers and kernels see of a format, and its bytes: of images that of a component, of normalized ones its bits.
fn element_in(format: Format) -> Option<(ElementType, u64)> {
    if let Some(element) = format.element() {
        let held = match (element_of(element), format.is_unsigned()) {
            (ElementType::Of(DType::I8), true) => DType::U8.into(),
            (ElementType::Of(DType::I16), true) => DType::U16.into(),
            (ElementType::Of(DType::I32), true) => DType::U32.into(),
            (other, _) => other,
        };
        return Some((held, element.size()));
    }
    let texel = format.texel()?;
    let held = match (texel.kind, texel.bits) {
        (Component::Float, 16) => DType::F16,
        (Component::Float, 32) => DType::F32,
        (Component::Sint | Component::Snorm, 8) => DType::I8,
        (Component::Sint | Component::Snorm, 16) => DType::I16,
        (Component::Sint, 32) => DType::I32,
        (Component::Uint | Component::Unorm, 8) => DType::U8,
        (Component::Uint | Component::Unorm, 16) => DType::U16,
        (Component::Uint, 32) => DType::U32,
        _ => return None,
    };
    Some((held.into(), u64::from(texel.bits / 8)))
}

/// Bytes from an element to the next along each axis, of packed elements.
fn packed_strides(dims: &[u64], size: u64) -> Option<Vec<i64>> {
    let (mut strides, mut step) = (Vec::new(), size);
    for dim in dims.iter().rev() {
        strides.push(i64::try_from(step).ok()?);
        step = step.checked_mul((*dim).max(1))?;
    }
    strides.reverse();
    Some(strides)
}

/// What the caller hands in or gets for a slot.
pub(super) fn signature(file: &Vgf, slot: &Binding, name: String) -> Result<Signature> {
    let (element, dims) = tensor_of(&file.resources[slot.resource], slot.resource)?;
    let dims = Some(dims.into_iter().map(Dim::Known).collect());
    Ok(Signature { name, arity: Arity::Tensor, is_optional: false, element: Some(element), dims })
}

/// The push constants of a segment as an input: files have no values for them.
///
/// # Errors
/// There are more than devices have.
pub(super) fn pushed(segment: &Segment, index: usize) -> Result<Option<Signature>> {
    let ends = segment.push_constants.iter().map(|range| u64::from(range.offset) + u64::from(range.size));
    let Some(bytes) = ends.max().filter(|bytes| *bytes > 0) else { return Ok(None) };
    let name = match segment.name.is_empty() {
        true => format!("segment{index}.push_constants"),
        false => format!("{}.push_constants", segment.name),
    };
    if bytes > MOST_PUSHED {
        let location = SourceLocation::new(format!("segment {index}"));
        return Err(CompileError::unsupported(
            &location,
            format!("{bytes} bytes of push constants; {MOST_PUSHED} are supported"),
        ));
    }
    let dims = Some(vec![Dim::Known(bytes.div_ceil(4))]);
    let element = Some(DType::U32.into());
    Ok(Some(Signature { name, arity: Arity::Tensor, is_optional: false, element, dims }))
}

/// The name of the input in a slot: the one that the original model gave it.
pub(super) fn input_name(file: &Vgf, slot: usize) -> String {
    let number = |slot: &Binding| slot.binding as usize;
    let name = |slot: &Binding| file.input_names.get(number(slot)).filter(|name| !name.is_empty());
    let own = name(&file.inputs[slot]);
    match own {
        Some(own) if file.inputs.iter().filter(|other| name(other) == Some(own)).count() == 1 => own.clone(),
        _ => format!("input{}", number(&file.inputs[slot])),
    }
}

/// The name of an output.
pub(super) fn output_name(file: &Vgf, place: usize) -> String {
    let name = |place: usize| file.output_names.get(place).filter(|name| !name.is_empty());
    match name(place) {
        Some(own) if (0..file.outputs.len()).filter(|other| name(*other) == Some(own)).count() == 1 => {
            own.clone()
        }
        _ => format!("output{place}"),
    }
}

/// Which memory a resource is: those of an alias group are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Memory {
    /// That of an alias group.
    Group(u32),
    /// That of a resource of its own.
    Own(usize),
}

/// The memory of a resource.
pub(super) fn memory_of(file: &Vgf, resource: usize) -> Memory {
    match file.resources[resource].alias_group {
        Some(group) => Memory::Group(group),
        None => Memory::Own(resource),
    }
}

/// What is known of the contents of resources.
pub(super) struct Contents<'a> {
    file: &'a Vgf,
    held: HashMap<Memory, TensorId>,
}

impl<'a> Contents<'a> {
    /// Nothing is known yet.
    pub(super) fn new(file: &'a Vgf) -> Self {
        Contents { file, held: HashMap::new() }
    }

    /// Says what a resource holds from now on.
    pub(super) fn set(&mut self, resource: usize, tensor: TensorId) {
        self.held.insert(memory_of(self.file, resource), tensor);
    }

    /// What a resource holds, in a type and under sizes of the same bytes.
    pub(super) fn get(
        &mut self,
        builder: &mut Builder,
        resource: usize,
        element: ElementType,
        dims: &[u64],
    ) -> Result<TensorId> {
        let memory = memory_of(self.file, resource);
        let held = match self.held.get(&memory) {
            Some(held) => *held,
            None => {
                let constant = self.constant(builder, resource)?;
                self.held.insert(memory, constant);
                constant
            }
        };
        builder.view(held, element, dims)
    }

    /// A constant that a kernel reads.
    fn constant(&self, builder: &mut Builder, index: usize) -> Result<TensorId> {
        let resource = &self.file.resources[index];
        let data = self.file.constants.iter().find(|constant| constant.resource == index);
        let Some(data) = data.filter(|_| resource.category == Category::Constant) else {
            let category = resource.category.name();
            return Err(
                builder.invalid(format!("resource {index} ({category}) is read before it is written"))
            );
        };
        let (element, dims) = tensor_of(resource, index)?;
        builder.constant(&format!("resource {index}"), element, &dims, data.data.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_have_these_strides() {
        assert_eq!(packed_strides(&[2, 3, 4], 2), Some(vec![24, 8, 2]));
        assert_eq!(packed_strides(&[], 2), Some(vec![]));
        assert_eq!(packed_strides(&[2, u64::MAX, 4], 2), None);
    }
}
