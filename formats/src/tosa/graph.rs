//! Graphs of TOSA operators: tensors, nodes, and what goes in and out.

use bytes::Bytes;

use super::{ElementType, Operator};

/// Place of a tensor in [`Graph::tensors`].
pub type TensorId = usize;
/// Place of a graph in [`Program::graphs`].
pub type GraphId = usize;
/// Place of a variable in [`Program::variables`].
pub type VariableId = usize;

/// Graphs that refer to each other, and the state that they share.
///
/// Readers guarantee: every id is in range, a node reads only tensors that are constants, inputs of its graph or results of
/// earlier nodes, every tensor has one origin at most, operands and attributes have the number and the element type class
/// that the operator takes (see [`Operator`]), and a constant has the bytes of its shape. Sizes of results are what the file
/// says: whoever gives the operators meaning checks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The first is the one that is called; others are bodies of control flow.
    pub graphs: Vec<Graph>,
    /// State that outlives a call.
    pub variables: Vec<Variable>,
}

/// One graph. Nodes are in an order in which they can be computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// What the file calls it; may be empty.
    pub name: String,
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// All computations.
    pub nodes: Vec<Node>,
    /// Tensors that the caller hands in.
    pub inputs: Vec<TensorId>,
    /// Tensors that the caller gets: results of nodes, inputs or constants.
    pub outputs: Vec<TensorId>,
}

/// A tensor of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// What the file calls it; may be empty, and need not be unique.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Its sizes; none for a scalar.
    pub shape: Vec<u64>,
    /// The elements of a constant, row-major, encoded as [`ElementType`] says.
    pub constant: Option<Constant>,
}

/// The elements of a constant tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// All elements.
    Dense(Bytes),
    /// One element, which all are equal to.
    Splat(Bytes),
}

/// A computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What is computed.
    pub operator: Operator,
    /// What it reads, in the order that [`Operator`] tells for each.
    pub inputs: Vec<TensorId>,
    /// What it makes.
    pub outputs: Vec<TensorId>,
    /// Where it comes from, for messages: `CONV2D %12`, `graph main, ADD 'sum'`.
    pub location: String,
}

/// State that outlives a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name, like no other.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Its sizes.
    pub shape: Vec<u64>,
    /// What it is before the first call; unset without.
    pub initial: Option<Constant>,
}

impl Tensor {
    /// Number of its elements; `None` if 64 bits do not hold it.
    pub fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
    }

    /// The values of a constant of integers or booleans, with their signs. `None` for other tensors.
    ///
    /// A constant of one element that repeats gives as many values as the tensor has, so ask for small tensors only.
    pub fn integers(&self) -> Option<Vec<i64>> {
        let decode = |bytes: &[u8]| self.element.integer(bytes);
        let size = self.element.size() as usize;
        match self.constant.as_ref()? {
            Constant::Dense(bytes) => bytes.chunks(size).map(decode).collect(),
            Constant::Splat(bytes) => Some(vec![decode(bytes)?; usize::try_from(self.elements()?).ok()?]),
        }
    }
}

impl Constant {
    /// Its bytes: all elements, or the one that repeats.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Constant::Dense(bytes) | Constant::Splat(bytes) => bytes,
        }
    }
}
