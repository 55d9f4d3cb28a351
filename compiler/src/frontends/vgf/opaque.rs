//! Kernels of a file with nothing but storage buffers: what their images, samplers, tensors and push constants are.

use std::collections::BTreeMap;

use halite_formats::vgf::{self, Component, Resource, Segment, Vgf};
use halite_spirv::{
    ChangeError, modern_buffers,
    opaque::{Image, Numbers, Opaque, Outside, Sampler, buffers_for},
    push_constants_as_buffer,
};

use super::Result;
use crate::{CompileError, build::Builder};

/// Most elements of an image or a tensor.
const MOST_ELEMENTS: u32 = 1 << 30;

/// A segment's kernel with storage buffers instead of all that is none; and at which binding of set 0 its push constants are,
/// if it has some.
pub(super) fn with_buffers(
    builder: &Builder,
    file: &Vgf,
    segment: &Segment,
    words: Vec<u32>,
) -> Result<(Vec<u32>, Option<u32>)> {
    let refused = |error: ChangeError| builder.unsupported(error.to_string());
    let words = modern_buffers(&words).map_err(refused)?.unwrap_or(words);
    let mut opaque = BTreeMap::new();
    let mut free = 0;
    for set in &segment.sets {
        for slot in &set.bindings {
            free = free.max(slot.binding.saturating_add(1));
            let resource = &file.resources[slot.resource];
            if let Some(what) = opaque_of(builder, resource, slot.resource)? {
                opaque.insert((set.index, slot.binding), what);
            }
        }
    }
    let words = buffers_for(&words, &opaque).map_err(refused)?.unwrap_or(words);
    match push_constants_as_buffer(&words, free).map_err(refused)? {
        Some(words) => Ok((words, Some(free))),
        None => Ok((words, None)),
    }
}

/// What a resource is that is no buffer.
fn opaque_of(builder: &Builder, resource: &Resource, index: usize) -> Result<Option<Opaque>> {
    let invalid = |what: String| builder.invalid(format!("resource {index}: {what}"));
    if resource.is_storage_buffer() {
        return Ok(None);
    }
    let sizes = resource.sizes().unwrap_or_default();
    let sizes: Option<Vec<u32>> = sizes.into_iter().map(|size| u32::try_from(size).ok()).collect();
    let Some(mut sizes) = sizes.filter(|sizes| sizes.len() == resource.shape.len()) else {
        return Err(invalid(format!("the sizes {:?} are open or too large", resource.shape)));
    };
    // Kernels count elements in 32 bits.
    let count = sizes.iter().try_fold(1u32, |count, size| count.checked_mul(*size));
    if !count.is_some_and(|count| (1..MOST_ELEMENTS).contains(&count)) {
        return Err(invalid(format!("a kernel cannot have {sizes:?} elements as an image or a tensor")));
    }
    if !resource.is_image() {
        // Scalars are tensors of one element.
        if sizes.is_empty() {
            sizes.push(1);
        }
        return Ok(Some(Opaque::Tensor(sizes)));
    }
    let Some(texel) = resource.format.texel() else {
        return Err(
            builder.unsupported(format!("resource {index}: images of the format {}", resource.format))
        );
    };
    let (height, width) = match sizes[..] {
        [1, height, width, components] | [height, width, components] if components == texel.components => {
            (height, width)
        }
        _ => {
            return Err(invalid(format!(
                "an image of the format {} has the sizes {sizes:?}; height, width and {} components are meant",
                resource.format, texel.components
            )));
        }
    };
    let numbers = match texel.kind {
        Component::Unorm => Numbers::Unorm,
        Component::Snorm => Numbers::Snorm,
        Component::Uint => Numbers::Uint,
        Component::Sint => Numbers::Sint,
        Component::Float => Numbers::Float,
    };
    let sampler = resource.sampler.map(|sampler| sampler_of(builder, index, sampler)).transpose()?;
    Ok(Some(Opaque::Image(Image {
        size: [width, height],
        components: texel.components,
        bits: texel.bits,
        numbers,
        sampler,
    })))
}

/// A sampler in words.
fn sampler_of(builder: &Builder, index: usize, sampler: vgf::Sampler) -> Result<Sampler> {
    let unknown = |what: &str, number: u32| -> CompileError {
        builder.unsupported(format!("resource {index}: a sampler with the {what} {number}"))
    };
    let filter = |number| match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(unknown("filter", number)),
    };
    let outside = |number| match number {
        0 => Ok(Outside::Repeat),
        1 => Ok(Outside::Mirror),
        2 => Ok(Outside::Edge),
        3 => Ok(Outside::Border),
        4 => Ok(Outside::MirrorOnce),
        _ => Err(unknown("address mode", number)),
    };
    let border = match sampler.border {
        0 | 1 => [0, 0],
        2 | 3 => [0, 1],
        4 | 5 => [1, 1],
        other => return Err(unknown("border colour", other)),
    };
    Ok(Sampler {
        linear: [filter(sampler.mag_filter)?, filter(sampler.min_filter)?],
        outside: [outside(sampler.address[0])?, outside(sampler.address[1])?],
        border,
    })
}
