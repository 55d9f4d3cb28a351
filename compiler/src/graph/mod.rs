//! Graphs: tensors and the nodes that compute them.
//!
//! A graph is in single-assignment form: a tensor is an input, a constant, a parameter of the region that it is in, or
//! the output of one node. Nodes are in an order in which they can be computed. All sizes are known: a model with symbolic
//! dimensions gives one graph for each set of sizes that it is compiled for.

mod check;
mod evaluate;
mod expose;
mod foreign;
mod host;
mod ids;
mod shape;
mod state;
mod text;
mod types;

use std::sync::Arc;

use bytes::Bytes;
use halite_ops::Operation;
use halite_sizes::{Entered, Size, Trace};

use crate::SourceLocation;
pub use expose::Expected;
pub use foreign::{ForeignBinding, ForeignKernel};
pub use host::HostWork;
pub(crate) use ids::ById;
pub use shape::Shape;
pub use state::{Growing, StatePort};
pub use types::{ElementType, elements, storage_bytes};

/// A tensor of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub(crate) u32);

impl TensorId {
    /// Its place in [`Graph::tensors`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a tensor is. Dense and row-major; booleans are bytes of 0 and 1.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its name in the model, or where it comes from; not unique.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Dimensions, the innermost last; none for a scalar.
    pub shape: Shape,
    /// Its elements as little-endian bytes, if they are known. May be a part of a mapped file.
    pub constant: Option<Bytes>,
    /// The elements of a few integers or booleans, where they are known as they are computed of symbols. Nothing on a device
    /// holds them.
    pub values: Option<Arc<[Size]>>,
}

impl Tensor {
    /// A tensor that nothing defines yet.
    pub fn new(name: impl Into<String>, element: ElementType, shape: Shape) -> Tensor {
        Tensor { name: name.into(), element, shape, constant: None, values: None }
    }

    /// Dimensions as numbers, to which the graph is fixed from here on.
    pub fn dims(&self) -> &[u64] {
        self.shape.exact()
    }

    /// Dimensions as they are computed.
    pub fn sizes(&self) -> &[Size] {
        self.shape.sizes()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.sizes().len()
    }

    /// Number of elements, to which the graph is fixed; `u64::MAX` when it does not fit.
    pub fn elements(&self) -> u64 {
        elements(self.dims())
    }

    /// Number of elements, as it is computed.
    pub fn count(&self) -> Size {
        self.sizes().iter().product()
    }

    /// Bytes of its elements, to which the graph is fixed; `u64::MAX` when it does not fit.
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.element.storage().size())
    }

    /// Bytes of its elements, as they are computed.
    pub fn byte_size(&self) -> Size {
        self.count() * self.element.storage().size()
    }
}

/// What a node does.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all nodes are operations")]
pub enum NodeOp {
    /// An operation by its meaning; inputs and outputs in its order. How it is computed is the back end's matter.
    Operation(Operation),
    /// A kernel that the model brings along as SPIR-V; inputs and outputs as its bindings count them.
    Foreign(Arc<ForeignKernel>),
    /// The bytes of its one input under other dimensions, or as another type of the same size. Costs nothing.
    View,
    /// One of two regions, by its one input, a boolean scalar: the first when it is true. Regions have no parameters and as
    /// many results as the node has outputs, of their types and dimensions.
    If(Box<[Region; 2]>),
    /// A region again and again. Inputs: the most runs (`i64` scalar), whether to run at all (boolean scalar), initial
    /// values of what is carried. The region's parameters: the number of the run (`i64` scalar), the condition, what is
    /// carried; its results: the next condition, what is carried. Outputs: the final values of what is carried. Where sizes of
    /// that change from run to run, those of outputs are symbols that a [`HostWork::Set`] gives the first values before the node, and
    /// another those of the run at the body's end; those of parameters are symbols that the body's first nodes set to these.
    Loop(Box<Region>),
    /// Work of the host between two recordings: it waits for the inputs, and nodes behind it may have sizes that it gives. It
    /// has no outputs.
    Host(HostWork),
}

/// A node: computes its outputs from its inputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub op: NodeOp,
    /// What it reads.
    pub inputs: Vec<TensorId>,
    /// What it defines.
    pub outputs: Vec<TensorId>,
    /// Where in the model it comes from.
    pub location: SourceLocation,
}

impl Node {
    /// All tensors that it reads, those of its regions too.
    pub fn reads(&self) -> Vec<TensorId> {
        let mut read = self.inputs.clone();
        let mut of = |region: &Region| {
            each_region(region, &mut |inner| {
                read.extend(inner.nodes.iter().flat_map(|node| &node.inputs));
                read.extend(&inner.results);
            });
        };
        match &self.op {
            NodeOp::If(branches) => branches.iter().for_each(&mut of),
            NodeOp::Loop(body) => of(body),
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
        }
        read
    }
}

/// Nodes that are run together. Regions inside of nodes may read the tensors of those around them.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Tensors that whoever runs it defines.
    pub parameters: Vec<TensorId>,
    /// The nodes, in an order in which they can be computed.
    pub nodes: Vec<Node>,
    /// What it computes. May repeat tensors, and may name parameters, constants and tensors of regions around it.
    pub results: Vec<TensorId>,
}

/// A tensor that the caller hands in or gets.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name in the model.
    pub name: String,
    /// The tensor.
    pub tensor: TensorId,
    /// For inputs: the elements that the graph was built for, if it was built for some. Nothing reads the tensor then; the
    /// module checks that it is what was promised.
    pub value: Option<Bytes>,
    /// Its dimensions as callers know them, where the tensor has rows to spare.
    pub shape: Option<Shape>,
}

/// A function of a model for one set of sizes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All tensors, those of inner regions too.
    pub tensors: Vec<Tensor>,
    /// What is computed. Its parameters and results are those of the ports.
    pub body: Region,
    /// What the caller hands in, in order; `body.parameters` under their names.
    pub inputs: Vec<Port>,
    /// What the caller gets, in order; `body.results` under their names.
    pub outputs: Vec<Port>,
    /// Inputs whose buffers take the elements of outputs.
    pub states: Vec<StatePort>,
    /// Inputs that outputs of other sizes replace, and that may become states with rows to spare.
    pub growing: Vec<Growing>,
    /// Whether there are states whose windows could move over their rows, for which no step of rows is given.
    pub windows: bool,
    /// The sizes that are open, where some are.
    pub open: Option<OpenSizes>,
    /// Most bytes of weights that a kernel binds at once, if more than every device binds.
    pub largest_binding: Option<u64>,
    /// Whether convolutions of 16-bit floats over images with their channels last run on matrix units of all devices that this is for.
    pub matrix_units: bool,
}

/// Sizes of a graph that callers decide.
#[derive(Clone, Debug)]
pub struct OpenSizes {
    /// What the sizes are computed of, and for which of their values the graph is.
    pub trace: Trace,
    /// For each symbol of the trace the input and the dimension that give its value.
    pub symbols: Vec<(usize, usize)>,
    /// The symbols behind those, which data decide.
    pub data: Vec<DataSymbol>,
}

/// A size that data decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// What it counts, and where in the model.
    pub name: String,
    /// The least value that it may have.
    pub least: i64,
    /// The largest.
    pub most: i64,
}

impl OpenSizes {
    /// Lets this thread compute with the sizes, until what comes back is dropped.
    pub fn enter(&self) -> Entered {
        self.trace.enter()
    }

    /// Number of symbols.
    pub fn count(&self) -> usize {
        self.symbols.len() + self.data.len()
    }
}

/// Most bytes that every device binds at once: the least that Vulkan allows.
pub const BOUND_BY_ALL: u64 = 1 << 27;

impl Graph {
    /// Most bytes of weights that a kernel binds at once.
    pub fn most_bound(&self) -> u64 {
        self.largest_binding.unwrap_or(BOUND_BY_ALL)
    }

    /// A tensor.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
    }

    /// Dimensions of an input or output, as callers know them.
    pub fn port_sizes<'a>(&'a self, port: &'a Port) -> &'a [Size] {
        port.shape.as_ref().map_or_else(|| self.tensor(port.tensor).sizes(), Shape::sizes)
    }

    /// A new tensor that nothing defines yet.
    pub fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        let id = u32::try_from(self.tensors.len())
            .expect("a model has fewer tensors than bytes, and fewer than 4 billion");
        self.tensors.push(tensor);
        TensorId(id)
    }

    /// Lets this thread compute with the graph's sizes, until what comes back is dropped.
    pub fn enter(&self) -> Option<Entered> {
        self.open.as_ref().map(OpenSizes::enter)
    }

    /// Calls `visit` for every region, outer ones first.
    pub fn each_region(&self, visit: &mut dyn FnMut(&Region)) {
        each_region(&self.body, visit);
    }
}

/// Calls `visit` for a region and those inside of it, outer ones first.
pub fn each_region(region: &Region, visit: &mut dyn FnMut(&Region)) {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        visit(region);
        for node in &region.nodes {
            match &node.op {
                NodeOp::If(branches) => open.extend(branches.iter()),
                NodeOp::Loop(body) => open.push(body),
                NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
            }
        }
    }
}
