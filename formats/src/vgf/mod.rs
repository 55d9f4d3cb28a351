//! VGF files of Arm's ML SDK: neural graphs and compute kernels as SPIR-V, what they bind, in which order they run, and
//! constants, as plain data.
//!
//! A file has four sections: *modules* (SPIR-V, GLSL or HLSL), *resources* (tensors, buffers, images), the *sequence* of
//! *segments* that run modules on resources, and *constants*. The first three are FlatBuffers of their own. The layout is that
//! of Arm's public vgf-library, versions 0.3 to 0.5. Large data are slices of the file, which may be a mapping.

mod container;
mod error;
mod format;
mod model;
mod read;
mod read_constants;
mod schema;
mod tables;
#[cfg(test)]
mod tests;

pub use container::{Section, is_vgf};
pub use error::VgfError;
pub use format::{Component, Format, Texel};
pub use model::{
    Binding, Category, Code, Constant, ConstantBinding, DescriptorSet, Module, ModuleKind, PushConstants,
    Resource, Sampler, Segment, Vgf,
};

type Result<T, E = VgfError> = std::result::Result<T, E>;
