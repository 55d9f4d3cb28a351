//! Neural graphs in SPIR-V (`SPV_ARM_graph`): their operations and constants, as plain data.
//!
//! An operation is an extended instruction of some set, such as `TOSA.001000.1`; what it means is not known here.

mod constants;
mod debug;
mod interface;
mod read;
#[cfg(test)]
mod tests;
mod types;

pub use debug::DebugName;
pub use read::read;

use std::sync::Arc;

/// The graphs of a module, with what they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphModule {
    /// Major and minor version of SPIR-V.
    pub version: (u8, u8),
    /// Names of the sets of operations, and of other extended instructions, that the module imports.
    pub sets: Vec<String>,
    /// All tensors and numbers of all graphs. A constant that several graphs use is here once.
    pub values: Vec<Value>,
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// What can be run.
    pub entry_points: Vec<GraphEntry>,
    /// What debug information says of graphs, operations and tensors.
    pub debug: Vec<DebugName>,
}

/// Type of the elements of a tensor. Integers have no signs of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Boolean.
    Bool,
    /// Integer of 8, 16, 32 or 64 bits.
    Int(u32),
    /// IEEE 754 float of 16, 32 or 64 bits.
    Float(u32),
    /// The upper half of a 32-bit float.
    BFloat16,
    /// 8-bit float of four exponent bits.
    Float8E4M3,
    /// 8-bit float of five exponent bits.
    Float8E5M2,
}

/// A tensor, or a number that is no tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its id in the module; 0 for an input that the graph never names.
    pub id: u32,
    /// Its name, from debug information or `OpName`; may be empty.
    pub name: Arc<str>,
    /// Type of its elements.
    pub element: Element,
    /// Its sizes; `None` for a number that is no tensor.
    pub shape: Option<Vec<u32>>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The input of its graph with this number.
    Input(usize),
    /// An operation makes it.
    Result,
    /// A constant outside of the module, by its number.
    GraphConstant(u32),
    /// All elements, little-endian and row-major; booleans as bytes of 0 and 1.
    Elements(Vec<u8>),
    /// One element, which all are equal to.
    Splat(Vec<u8>),
}

/// A graph. Operations are in an order in which they can be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its id in the module.
    pub id: u32,
    /// Its inputs, as places in [`GraphModule::values`].
    pub inputs: Vec<usize>,
    /// What it computes.
    pub operations: Vec<Operation>,
    /// Its outputs, as places in [`GraphModule::values`].
    pub outputs: Vec<usize>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its id in the module.
    pub id: u32,
    /// Its name from debug information; may be empty.
    pub name: Arc<str>,
    /// Place of its set in [`GraphModule::sets`].
    pub set: usize,
    /// Its number in the set.
    pub number: u32,
    /// What it reads, as places in [`GraphModule::values`].
    pub operands: Vec<usize>,
    /// What it makes, as places in [`GraphModule::values`].
    pub results: Vec<usize>,
}

/// A graph that can be run, and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEntry {
    /// Its name.
    pub name: String,
    /// Place in [`GraphModule::graphs`].
    pub graph: usize,
    /// What its inputs are bound to, in their order.
    pub inputs: Vec<Port>,
    /// What its outputs are bound to, in their order.
    pub outputs: Vec<Port>,
}

/// A descriptor that a graph reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The variable's name; may be empty.
    pub name: Arc<str>,
    /// Number of the descriptor set.
    pub set: u32,
    /// Number in the set.
    pub binding: u32,
}

impl Element {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Element::Bool | Element::Float8E4M3 | Element::Float8E5M2 => 1,
            Element::BFloat16 => 2,
            Element::Int(width) | Element::Float(width) => width as usize / 8,
        }
    }
}

impl std::fmt::Display for Element {
    /// `bool`, `i8`, `f16`, `bf16`, `f8e4m3`, …
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Element::Bool => f.write_str("bool"),
            Element::Int(width) => write!(f, "i{width}"),
            Element::Float(width) => write!(f, "f{width}"),
            Element::BFloat16 => f.write_str("bf16"),
            Element::Float8E4M3 => f.write_str("f8e4m3"),
            Element::Float8E5M2 => f.write_str("f8e5m2"),
        }
    }
}

impl GraphModule {
    /// The entry point with this name.
    pub fn entry(&self, name: &str) -> Option<&GraphEntry> {
        self.entry_points.iter().find(|entry| entry.name == name)
    }
}
