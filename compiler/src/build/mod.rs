//! How front ends make graphs: a builder whose methods are the operations of models, with broadcasting, any number of
//! dimensions and any types, in terms of the kernel library's operations.
//!
//! What depends on constants alone is computed at once when it is small ([`FOLD_LIMIT`]), so that a front end can ask for
//! the values of shape arithmetic with [`Builder::ints`].

mod affine;
mod attention;
pub(crate) mod budget;
mod cache;
mod codes;
mod conv;
mod data;
mod elementwise;
mod experts;
mod flat;
mod floats;
mod further;
mod gather;
mod known_values;
mod late;
mod line_codes;
mod linear;
mod nhwc;
mod norm;
mod order;
mod pad;
mod part;
mod pool;
mod quant_conv;
mod quant_product;
mod quant_rows;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod repeat;
mod resize;
mod rows;
mod sample;
mod shape;
mod sizes;
#[cfg(test)]
mod tests;
mod types;

pub use affine::{Choice, Codes};
pub use attention::{MOST_ATTENDED, Scores, Stages};
pub use codes::Coded;
pub use conv::Sliding;
pub use data::{MOST_SIZE, Number};
pub use experts::ExpertMatrices;
pub use nhwc::BytesLess;
pub use norm::Normalization;
pub use quant_conv::{Quantum, Requantized};
pub use quant_product::QuantWeights;
pub use quant_rows::QuantRows;
pub use recurrent::RecurrentLayer;
pub use resize::{OpenAxis, Placement, ResizedAxis, Resizing, fraction};
pub use rows::{RowFormat, RowMatrix};
pub use sample::{Between, Outside, SizeOperand};
pub use shape::Range;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use halite_ops::{Operation, Values};
use halite_sizes::{Size, Trace};

use self::budget::{Budget, Cost};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    control::Watch,
    graph::{ElementType, ForeignKernel, Graph, Node, NodeOp, Port, Region, Shape, Tensor, TensorId},
};

/// Most bytes of results that are computed while a graph is built. Larger constants are computed by the device at load.
pub const FOLD_LIMIT: u64 = 1 << 16;
/// Most bytes of such results in all: repeated bodies fold again and again.
const FOLD_BUDGET: u64 = 1 << 26;

/// Most arithmetic of such results in all. Beyond it only what is as small as the arithmetic of shapes is computed here.
const FOLD_WORK: u64 = 1 << 26;

/// Most arithmetic operations of what is as small as the arithmetic of shapes.
const SMALL_FLOPS: f64 = 4096.0;
/// Most arithmetic operations of what is computed so: a fraction of a second, as the host computes one number at a time.
const MOST_FOLD_FLOPS: f64 = (1 << 24) as f64;
/// Inputs of an operation that count with it; each further one is counted for itself.
const FEW_INPUTS: u64 = 8;
/// Most elements that a result may have: more cannot be the size of anything that runs.
const MOST_ELEMENTS: u64 = 1 << 40;

type Result<T, E = CompileError> = std::result::Result<T, E>;

/// Builds a graph. Nodes go to the region that is open; see [`Builder::region`].
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    /// The regions that are open, the innermost last.
    open: Vec<Region>,
    location: SourceLocation,
    /// Bytes of results that were computed so far.
    folded: u64,
    /// What was spent so far.
    pub(crate) budget: Budget,
    /// Where random numbers come from.
    random: random::Random,
    /// Ends the building from outside.
    control: Control,
    /// Where sizes that data decide come about, in a front end that has them.
    trace: Option<Trace>,
    data: Vec<crate::graph::DataSymbol>,
    /// The places for which a tensor holds, where they were looked for in the body.
    places_of: HashMap<TensorId, TensorId>,
    /// What tensors repeat that were expanded.
    repeated: gather::Repeats,
    /// A line of places that is a constant.
    line: Option<TensorId>,
    /// Single numbers that were read in the body, as sizes.
    numbers: HashMap<TensorId, Size>,
    /// Floats that are made of codes, scales and zero points; see [`Builder::remember_codes`].
    codes: HashMap<TensorId, (TensorId, TensorId, Option<TensorId>)>,
    /// Matrices that were taken by index, of which ones, and the places; see [`Builder::remember_picked`].
    picked: HashMap<TensorId, (TensorId, TensorId)>,
    /// What was left to devices of what sizes decide.
    late: HashMap<TensorId, late::Late>,
    /// Of what was left to devices, the few floats that are known as they are computed of sizes.
    floats_of_sizes: HashMap<TensorId, Vec<halite_sizes::Float>>,
    /// What floats are made of, for those that make codes of them.
    known: codes::Known,
    /// Recurrent layers, for those that read them.
    stacks: Vec<recurrent::Stack>,
    /// Last states of some layers, those of more layers, and how many of these they are.
    last_states: Vec<(TensorId, TensorId, u64)>,
}

/// How far a graph was built; see [`Builder::mark`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    open: usize,
    nodes: usize,
    promises: usize,
}

impl Builder {
    /// A builder of an empty graph.
    pub fn new() -> Self {
        Self::controlled(&Control::default())
    }

    /// The same, which fails with the control's error once that ends the work.
    pub fn controlled(control: &Control) -> Self {
        Builder { open: vec![Region::default()], control: control.clone(), ..Builder::default() }
    }

    /// The same for a model whose files have so many bytes: what it may cost grows with them.
    pub(crate) fn of_file(control: &Control, bytes: u64) -> Self {
        let mut builder = Self::controlled(control);
        builder.budget.of_file(bytes);
        builder
    }

    /// The control in the stage of building.
    pub(crate) fn watch(&self) -> Watch<'_> {
        self.control.at(Stage::Importing)
    }

    /// Says where in the model the nodes that follow come from.
    pub fn at(&mut self, location: SourceLocation) {
        self.location = location;
    }

    /// Where the nodes come from now.
    pub fn location(&self) -> &SourceLocation {
        &self.location
    }

    /// The error that the model is wrong here.
    pub fn invalid(&self, reason: impl Into<String>) -> CompileError {
        CompileError::invalid(&self.location, reason)
    }

    /// The error that the model asks here for what is not supported.
    pub fn unsupported(&self, reason: impl Into<String>) -> CompileError {
        CompileError::unsupported(&self.location, reason)
    }

    /// Counts what making the graph costs.
    ///
    /// # Errors
    /// It is more than a model may cost.
    pub(crate) fn spend(&self, cost: Cost, count: u64) -> Result<()> {
        self.budget.count(cost, count);
        self.budget.check().map_err(|reason| self.unsupported(reason))
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A tensor.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        self.graph.tensor(id)
    }

    /// Dimensions of a tensor as numbers, to which the graph is fixed from here on. Importers that can do with sizes ask for
    /// [`Builder::sizes`].
    pub fn dims(&self, id: TensorId) -> &[u64] {
        self.graph.tensor(id).dims()
    }

    /// Dimensions of a tensor.
    pub fn sizes(&self, id: TensorId) -> &[Size] {
        self.graph.tensor(id).sizes()
    }

    /// Number of dimensions of a tensor.
    pub fn rank(&self, id: TensorId) -> usize {
        self.graph.tensor(id).rank()
    }

    /// Type of a tensor's elements.
    pub fn element(&self, id: TensorId) -> ElementType {
        self.graph.tensor(id).element
    }

    /// Describes tensors for messages.
    pub fn describe(&self, ids: &[TensorId]) -> String {
        ids.iter().map(|id| self.graph.describe(*id)).collect::<Vec<_>>().join(", ")
    }

    /// An input of the function.
    pub fn input(&mut self, name: &str, element: ElementType, dims: &[u64]) -> Result<TensorId> {
        self.input_of(name, element, dims)
    }

    /// The same, where dimensions may be open.
    pub fn input_of(
        &mut self,
        name: &str,
        element: ElementType,
        dims: &[impl Into<Size> + Copy],
    ) -> Result<TensorId> {
        let id = self.define(name, element, dims)?;
        self.budget.add_input(self.tensor(id).count().value());
        self.graph.inputs.push(Port { name: name.to_owned(), tensor: id, value: None, shape: None });
        self.open[0].parameters.push(id);
        Ok(id)
    }

    /// An input of the function whose elements the caller has promised: a constant for the graph. The module that is made
    /// checks that the caller keeps the promise.
    pub fn bound_input(
        &mut self,
        name: &str,
        element: ElementType,
        dims: &[u64],
        bytes: Bytes,
    ) -> Result<TensorId> {
        self.input(name, element, dims)?;
        let constant = self.constant(name, element, dims, bytes.clone())?;
        self.graph.inputs.last_mut().expect("one was added").value = Some(bytes);
        Ok(constant)
    }

    /// Makes a tensor an output of the function.
    pub fn output(&mut self, name: &str, tensor: TensorId) {
        self.graph.outputs.push(Port { name: name.to_owned(), tensor, value: None, shape: None });
        self.open[0].results.push(tensor);
    }

    /// Appends an operation of the kernel library. `outputs` are the types and dimensions of its outputs as the model sees
    /// them: as many bytes as the operation says.
    ///
    /// # Errors
    /// The operation's numbers do not go together.
    pub fn kernel(
        &mut self,
        operation: Operation,
        inputs: &[TensorId],
        outputs: &[(ElementType, Vec<impl Into<Size> + Copy>)],
    ) -> Result<Vec<TensorId>> {
        crate::backend::check(&operation).map_err(|reason| self.invalid(reason))?;
        let outputs: Vec<(ElementType, Shape)> =
            outputs.iter().map(|(element, dims)| (*element, Shape::new(dims.iter().copied()))).collect();
        if outputs.iter().all(|(_, shape)| shape.count() == 0) {
            return outputs.iter().map(|(element, shape)| self.empty(*element, shape.sizes())).collect();
        }
        let is_open =
            outputs.iter().any(|(_, shape)| !shape.is_constant()) || halite_sizes::is_open(&operation);
        let is_left = matches!(&outputs[..], [(element, _)] if self.is_left(inputs, *element));
        if !is_open
            && !is_left
            && let ([(element, shape)], Some(bytes)) = (&outputs[..], self.part(&operation, inputs))
        {
            return Ok(vec![self.constant("", *element, shape.exact(), bytes)?]);
        }
        if let ([(element, shape)], Some(values)) = (&outputs[..], self.fold_sizes(&operation, inputs)) {
            return Ok(vec![self.computed(*element, shape.exact(), values)?]);
        }
        if !is_open
            && !is_left
            && let Some(values) = self.fold(&operation, inputs)
        {
            let made = operation.outputs();
            self.folded =
                made.iter().fold(self.folded, |sum, tensor| sum.saturating_add(tensor.bytes().exact()));
            let made = values
                .iter()
                .zip(&outputs)
                .map(|(v, (element, shape))| self.values(*element, shape.exact(), v));
            return made.collect();
        }
        if let ([(element, shape)], true) = (&outputs[..], is_left) {
            return self.left(operation, inputs, *element, shape.sizes());
        }
        let outputs: Vec<_> = outputs.iter().map(|(e, shape)| (*e, shape.sizes().to_vec())).collect();
        self.push(NodeOp::Operation(operation), inputs, &outputs)
    }

    /// An operation with one output.
    pub fn kernel1(
        &mut self,
        operation: Operation,
        inputs: &[TensorId],
        element: ElementType,
        dims: &[impl Into<Size> + Copy],
    ) -> Result<TensorId> {
        Ok(self.kernel(operation, inputs, &[(element, dims.to_vec())])?[0])
    }

    /// A kernel that the model brings along. Its bindings name `inputs` and `outputs` by their places.
    ///
    /// # Errors
    /// It breaks a rule of [`ForeignKernel::check`], or a tensor has not the bytes that its binding says.
    pub fn foreign(
        &mut self,
        kernel: ForeignKernel,
        inputs: &[TensorId],
        outputs: &[(ElementType, Vec<impl Into<Size> + Copy>)],
    ) -> Result<Vec<TensorId>> {
        kernel.check().map_err(|reason| self.invalid(format!("{kernel}: {reason}")))?;
        let made = self.push(NodeOp::Foreign(Arc::new(kernel)), inputs, outputs)?;
        let node = self.open.last().and_then(|region| region.nodes.last());
        self.graph.check_node(node.expect("one was appended"))?;
        Ok(made)
    }

    /// Appends a node.
    ///
    /// # Errors
    /// An output is too large, or there are too many nodes.
    pub fn push(
        &mut self,
        op: NodeOp,
        inputs: &[TensorId],
        outputs: &[(ElementType, Vec<impl Into<Size> + Copy>)],
    ) -> Result<Vec<TensorId>> {
        self.spend(Cost::Operation, 1)?;
        self.spend(Cost::Part, (inputs.len() as u64).saturating_sub(FEW_INPUTS))?;
        let name = self.location.as_str().to_owned();
        let made: Result<Vec<_>> =
            outputs.iter().map(|(element, dims)| self.define(&name, *element, dims)).collect();
        let outputs = made?;
        let inputs: Result<Vec<TensorId>> = inputs.iter().map(|id| self.stored(*id)).collect();
        let node = Node { op, inputs: inputs?, outputs: outputs.clone(), location: self.location.clone() };
        self.open.last_mut().expect("the body stays open until the end").nodes.push(node);
        Ok(outputs)
    }

    /// The same bytes under other dimensions, or as another type of the same size.
    pub fn view(
        &mut self,
        tensor: TensorId,
        element: ElementType,
        dims: &[impl Into<Size> + Copy],
    ) -> Result<TensorId> {
        let (from, shape) = (self.tensor(tensor), Shape::new(dims.iter().copied()));
        if from.element == element && from.sizes() == shape.sizes() {
            return Ok(tensor);
        }
        // A constant has numbers for sizes. One without elements can have any that are open.
        let is_open = shape.sizes().iter().any(|size| {
            size.is_data() || from.constant.as_ref().is_some_and(Bytes::is_empty) && !size.is_constant()
        });
        if let Some(bytes) = from.constant.clone().filter(|_| !is_open) {
            let name = from.name.clone();
            return self.constant(&name, element, shape.exact(), bytes);
        }
        if let Some(values) = from.values.clone().filter(|_| !is_open && from.element == element) {
            return self.computed(element, shape.exact(), values.to_vec());
        }
        let id = self.push(NodeOp::View, &[tensor], &[(element, dims.to_vec())])?[0];
        if !self.tensor(id).byte_size().agrees(self.tensor(tensor).byte_size()) {
            return Err(self.invalid(format!("{} does not have as many bytes", self.describe(&[tensor, id]))));
        }
        if self.late.contains_key(&tensor) && self.element(tensor) == element {
            self.leave(id, late::Late::View(tensor));
        }
        Ok(id)
    }

    /// Opens a region; nodes go there until [`Builder::close`]. Regions see the tensors of those around them.
    pub fn region<N: Into<Size> + Copy>(
        &mut self,
        parameters: &[(ElementType, Vec<N>)],
    ) -> Result<Vec<TensorId>> {
        let made: Result<Vec<_>> =
            parameters.iter().map(|(element, dims)| self.define("", *element, dims)).collect();
        let parameters = made?;
        self.open.push(Region { parameters: parameters.clone(), ..Region::default() });
        Ok(parameters)
    }

    /// Closes the region that [`Builder::region`] opened.
    pub fn close(&mut self, results: &[TensorId]) -> Region {
        let mut region = self.open.pop().expect("a region was opened");
        region.results = results.to_vec();
        region
    }

    /// A point to which [`Builder::rollback`] can go back.
    pub fn mark(&self) -> Mark {
        let promises = self.trace.as_ref().map_or(0, Trace::count_promises);
        Mark {
            open: self.open.len(),
            nodes: self.open.last().map_or(0, |region| region.nodes.len()),
            promises,
        }
    }

    /// Forgets the nodes, and closes the regions, that came after a mark. Nothing may use their tensors any more.
    pub fn rollback(&mut self, mark: Mark) {
        self.places_of.clear();
        self.repeated.clear();
        if let Some(trace) = &self.trace {
            trace.forget_promises(mark.promises);
        }
        self.numbers.clear();
        self.open.truncate(mark.open);
        if let Some(region) = self.open.last_mut() {
            region.nodes.truncate(mark.nodes);
        }
    }

    /// Number of nodes in the regions that are open.
    pub fn nodes(&self) -> usize {
        self.open.iter().map(|region| region.nodes.len()).sum()
    }

    /// The graph, when all is said.
    ///
    /// # Errors
    /// The graph breaks a rule, which is a fault of the front end.
    pub fn finish(mut self) -> Result<Graph> {
        self.share_last_states()?;
        self.graph.body = self.open.pop().expect("the body is open");
        self.graph.check_while(self.control.at(Stage::Importing))?;
        Ok(self.graph)
    }

    /// Every tensor comes about here, so this is where building is ended from outside.
    fn define(
        &mut self,
        name: &str,
        element: ElementType,
        dims: &[impl Into<Size> + Copy],
    ) -> Result<TensorId> {
        self.watch().check()?;
        self.budget.count(Cost::Name, name.len() as u64);
        self.spend(Cost::Tensor, 1 + dims.len() as u64 / 6)?;
        let shape = Shape::new(dims.iter().copied());
        if data::places(&shape) > MOST_ELEMENTS {
            return Err(self.unsupported(format!("a tensor of {:?} elements is too large", shape.sizes())));
        }
        let tensor = Tensor::new(name, element, shape);
        Ok(self.graph.add_tensor(tensor))
    }

    /// The results of an operation whose inputs are all known, if they are small.
    fn fold(&self, operation: &Operation, inputs: &[TensorId]) -> Option<Vec<Values>> {
        let sizes = |tensors: Vec<halite_ops::TensorDesc>| {
            tensors.iter().map(|tensor| tensor.bytes().value()).fold(0, u64::saturating_add)
        };
        let work = sizes(operation.outputs()).saturating_add(sizes(operation.inputs()) / 16);
        let flops = operation.work().flops;
        let is_spent = self.folded > FOLD_BUDGET || self.budget.spent(Cost::Folding) > FOLD_WORK;
        if work > FOLD_LIMIT || flops > MOST_FOLD_FLOPS || is_spent && flops > SMALL_FLOPS {
            return None;
        }
        // Sizes are fixed only where all is known.
        let known = inputs.iter().all(|id| self.is_known(*id)).then_some(inputs)?;
        let known: Option<Vec<_>> = known.iter().map(|id| self.known(*id)).collect();
        let known = known?;
        self.budget.count(Cost::Folding, 32 + flops as u64);
        Some(operation.reference(&known))
    }
}
