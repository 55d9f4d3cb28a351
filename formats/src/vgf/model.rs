//! What a VGF file says, as plain data.

use bytes::Bytes;

use super::{Format, Section};

/// A VGF file. The reader has checked that every index between its parts is in range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vgf {
    /// Major, minor, patch of the format.
    pub version: [u8; 3],
    /// Where the sections lie in the file: modules, sequence, resources, constants.
    pub sections: [Section; 4],
    /// Code.
    pub modules: Vec<Module>,
    /// What code reads and writes.
    pub resources: Vec<Resource>,
    /// What runs, in order; each sees all that those before it wrote.
    pub segments: Vec<Segment>,
    /// What the caller hands in. A slot's binding is the number of the model's input, which may be above the slot's place:
    /// inputs that nothing reads have a name and no slot.
    pub inputs: Vec<Binding>,
    /// What the caller gets, in the order of the model's outputs, whatever the bindings are.
    pub outputs: Vec<Binding>,
    /// Names of all of the model's inputs, by their numbers; may be shorter than these.
    pub input_names: Vec<String>,
    /// Names of the outputs, by their places; may be shorter than these.
    pub output_names: Vec<String>,
    /// Constants of graphs.
    pub constants: Vec<Constant>,
}

/// What a module or a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    /// A compute kernel.
    Compute,
    /// A neural graph.
    Graph,
}

/// Code that segments run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// What it is.
    pub kind: ModuleKind,
    /// Its name; may be empty.
    pub name: String,
    /// The entry point that segments run.
    pub entry_point: String,
    /// The code itself.
    pub code: Code,
}

/// The code of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// None: the program that runs the file has to bring it. With the language that it would have, if the file says one.
    Missing(Option<&'static str>),
    /// The words of a SPIR-V module, little-endian.
    SpirV(Bytes),
    /// Source text.
    Glsl(String),
    /// Source text.
    Hlsl(String),
}

/// What a resource is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The caller hands it in.
    Input,
    /// The caller gets it.
    Output,
    /// It passes from a segment to another.
    Intermediate,
    /// It has a constant's data.
    Constant,
}

/// A tensor, buffer or image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// What it is to the model.
    pub category: Category,
    /// The number of its Vulkan descriptor type; constants have none.
    pub descriptor: Option<u32>,
    /// The type of its elements.
    pub format: Format,
    /// Its sizes; empty for a scalar. Sizes below zero are open.
    pub shape: Vec<i64>,
    /// Bytes from an element to the next along each axis; empty where elements are packed, row-major.
    pub strides: Vec<i64>,
    /// How an image is read.
    pub sampler: Option<Sampler>,
    /// Resources with the same number are the same memory.
    pub alias_group: Option<u32>,
}

/// How an image is read, in Vulkan's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// `VkFilter`.
    pub min_filter: u32,
    /// `VkFilter`.
    pub mag_filter: u32,
    /// `VkSamplerAddressMode` of u, v.
    pub address: [u32; 2],
    /// `VkBorderColor`.
    pub border: u32,
}

/// A number under which a resource is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The number.
    pub binding: u32,
    /// Place of the resource.
    pub resource: usize,
}

/// What a module binds in a descriptor set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorSet {
    /// Number of the set.
    pub index: u32,
    /// What it binds; numbers are those of the module.
    pub bindings: Vec<Binding>,
}

/// A run of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is; the same as its module.
    pub kind: ModuleKind,
    /// Its name; may be empty.
    pub name: String,
    /// Place of the module.
    pub module: usize,
    /// What it binds.
    pub sets: Vec<DescriptorSet>,
    /// What it reads; bindings are numbers of the whole model.
    pub inputs: Vec<Binding>,
    /// What it writes; bindings are numbers of the whole model.
    pub outputs: Vec<Binding>,
    /// Which constants the graph's numbers mean.
    pub constants: Vec<ConstantBinding>,
    /// Workgroups of a compute kernel in x, y, z; zeros for graphs.
    pub dispatch: [u32; 3],
    /// Push constants; files have no values for them.
    pub push_constants: Vec<PushConstants>,
}

/// Which constant a graph's `OpGraphConstantARM` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBinding {
    /// The number in the graph.
    pub id: u32,
    /// Place of the constant.
    pub constant: usize,
}

/// A range of push constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushConstants {
    /// `VkShaderStageFlags`.
    pub stages: u32,
    /// Bytes before it.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// The data of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Place of the resource that says its type and sizes.
    pub resource: usize,
    /// The axis along which of every four elements two are zero. A hint: the data has all elements.
    pub sparse_axis: Option<u32>,
    /// Its elements, row-major.
    pub data: Bytes,
}

impl ModuleKind {
    /// `compute` or `graph`.
    pub fn name(self) -> &'static str {
        match self {
            ModuleKind::Compute => "compute",
            ModuleKind::Graph => "graph",
        }
    }
}

impl Category {
    /// `input`, `output`, `intermediate` or `constant`.
    pub fn name(self) -> &'static str {
        match self {
            Category::Input => "input",
            Category::Output => "output",
            Category::Intermediate => "intermediate",
            Category::Constant => "constant",
        }
    }
}

impl Code {
    /// The language, for messages.
    pub fn language(&self) -> &'static str {
        match self {
            Code::Missing(language) => language.unwrap_or("no language"),
            Code::SpirV(_) => "SPIR-V",
            Code::Glsl(_) => "GLSL",
            Code::Hlsl(_) => "HLSL",
        }
    }
}
