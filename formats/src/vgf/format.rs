//! The Vulkan formats and descriptor types that VGF files use for tensors.

use std::fmt;

use crate::tosa::ElementType;

/// A number of `VkFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format(pub u32);

/// Formats of one component: number, name, element type.
const TENSORS: [(u32, &str, ElementType); 13] = [
    (13, "R8_UINT", ElementType::I8),
    (14, "R8_SINT", ElementType::I8),
    (74, "R16_UINT", ElementType::I16),
    (75, "R16_SINT", ElementType::I16),
    (98, "R32_UINT", ElementType::I32),
    (99, "R32_SINT", ElementType::I32),
    (111, "R64_SINT", ElementType::I48),
    (76, "R16_SFLOAT", ElementType::F16),
    (100, "R32_SFLOAT", ElementType::F32),
    (1_000_460_000, "R8_BOOL_ARM", ElementType::Bool),
    (1_000_460_001, "R16_SFLOAT_FPENCODING_BFLOAT16_ARM", ElementType::BF16),
    (1_000_460_002, "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM", ElementType::F8E4M3),
    (1_000_460_003, "R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM", ElementType::F8E5M2),
];

/// What a component of a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
    /// Floats.
    Float,
}

/// What a texel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texel {
    /// Components.
    pub components: u32,
    /// Bits of each.
    pub bits: u32,
    /// What they are.
    pub kind: Component,
}

/// The components of colours that names begin with, in the order that texels have.
const COLOURS: [&str; 4] = ["R", "G", "B", "A"];

/// Formats that images have besides, with several components or normalized values: number, name.
const IMAGES: [(u32, &str); 30] = [
    (9, "R8_UNORM"),
    (10, "R8_SNORM"),
    (16, "R8G8_UNORM"),
    (17, "R8G8_SNORM"),
    (20, "R8G8_UINT"),
    (21, "R8G8_SINT"),
    (37, "R8G8B8A8_UNORM"),
    (38, "R8G8B8A8_SNORM"),
    (41, "R8G8B8A8_UINT"),
    (42, "R8G8B8A8_SINT"),
    (43, "R8G8B8A8_SRGB"),
    (44, "B8G8R8A8_UNORM"),
    (70, "R16_UNORM"),
    (71, "R16_SNORM"),
    (77, "R16G16_UNORM"),
    (78, "R16G16_SNORM"),
    (81, "R16G16_UINT"),
    (82, "R16G16_SINT"),
    (83, "R16G16_SFLOAT"),
    (91, "R16G16B16A16_UNORM"),
    (92, "R16G16B16A16_SNORM"),
    (95, "R16G16B16A16_UINT"),
    (96, "R16G16B16A16_SINT"),
    (97, "R16G16B16A16_SFLOAT"),
    (101, "R32G32_UINT"),
    (102, "R32G32_SINT"),
    (103, "R32G32_SFLOAT"),
    (107, "R32G32B32A32_UINT"),
    (108, "R32G32B32A32_SINT"),
    (109, "R32G32B32A32_SFLOAT"),
];

/// Descriptor types of Vulkan that resources have.
const DESCRIPTORS: [(u32, &str); 10] = [
    (0, "sampler"),
    (1, "combined image sampler"),
    (2, "sampled image"),
    (3, "storage image"),
    (4, "uniform texel buffer"),
    (5, "storage texel buffer"),
    (6, "uniform buffer"),
    (DESCRIPTOR_STORAGE_BUFFER, "storage buffer"),
    (DESCRIPTOR_TENSOR, "tensor"),
    (10, "input attachment"),
];

/// The descriptor type of storage buffers.
const DESCRIPTOR_STORAGE_BUFFER: u32 = 7;
/// The descriptor type of tensors.
const DESCRIPTOR_TENSOR: u32 = 1_000_460_000;

impl Format {
    /// The type of the elements of a tensor or buffer of this format; `None` for formats that only images have.
    ///
    /// Types of 4 and 64 bits are not told apart from those of 8 and 48.
    pub fn element(self) -> Option<ElementType> {
        TENSORS.iter().find(|(number, ..)| *number == self.0).map(|(.., element)| *element)
    }

    /// Whether programs hold its elements as unsigned integers. Graphs know no such types.
    pub fn is_unsigned(self) -> bool {
        self.name().is_some_and(|name| name.ends_with("_UINT"))
    }

    /// What a texel of an image of this format is made of; `None` for formats that are not R, RG or RGBA with 8, 16 or 32 bits
    /// each.
    pub fn texel(self) -> Option<Texel> {
        let (mut sizes, kind) = self.name()?.rsplit_once('_')?;
        let kind = match kind {
            "UNORM" => Component::Unorm,
            "SNORM" => Component::Snorm,
            "UINT" => Component::Uint,
            "SINT" => Component::Sint,
            "SFLOAT" => Component::Float,
            _ => return None,
        };
        let bits = sizes.strip_prefix('R')?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let mut components = 0;
        for colour in COLOURS {
            let Some(rest) = sizes.strip_prefix(&format!("{colour}{bits}")) else { break };
            (sizes, components) = (rest, components + 1);
        }
        let is_known = matches!((components, bits), (1 | 2 | 4, 8 | 16 | 32)) && sizes.is_empty();
        is_known.then_some(Texel { components, bits, kind })
    }

    /// Its name in Vulkan, without `VK_FORMAT_`.
    pub fn name(self) -> Option<&'static str> {
        let tensors = TENSORS.iter().map(|(number, name, _)| (*number, *name));
        tensors.chain(IMAGES).find(|(number, _)| *number == self.0).map(|(_, name)| name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "format {}", self.0),
        }
    }
}

impl super::Resource {
    /// What kind of descriptor it is, such as `storage buffer`; `none` where it has none.
    pub fn descriptor_name(&self) -> String {
        let Some(descriptor) = self.descriptor else { return "none".to_owned() };
        match DESCRIPTORS.iter().find(|(number, _)| *number == descriptor) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("descriptor type {descriptor}"),
        }
    }

    /// Whether it is an image.
    pub fn is_image(&self) -> bool {
        matches!(self.descriptor, Some(1..=3))
    }

    /// Whether it is a tensor.
    pub fn is_tensor(&self) -> bool {
        self.descriptor == Some(DESCRIPTOR_TENSOR)
    }

    /// Whether it is a storage buffer.
    pub fn is_storage_buffer(&self) -> bool {
        self.descriptor == Some(DESCRIPTOR_STORAGE_BUFFER)
    }

    /// Its sizes, if all are known.
    pub fn sizes(&self) -> Option<Vec<u64>> {
        self.shape.iter().map(|size| u64::try_from(*size).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_are_told_by_names() {
        let texel = |number| Format(number).texel().map(|t| (t.components, t.bits, t.kind));
        assert_eq!(texel(109), Some((4, 32, Component::Float)));
        assert_eq!(texel(38), Some((4, 8, Component::Snorm)));
        assert_eq!(texel(9), Some((1, 8, Component::Unorm)));
        assert_eq!(texel(82), Some((2, 16, Component::Sint)));
        // Another order of colours, another curve, 64 bits, no image, unknown.
        for number in [44, 43, 111, 1_000_460_000, 7] {
            assert_eq!(texel(number), None, "{number}");
        }
    }
}
