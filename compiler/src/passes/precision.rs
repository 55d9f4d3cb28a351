//! Computing with 16-bit floats where a model says 32: a choice of the caller, since it changes results.
//!
//! Every operation whose kernels take 16-bit tensors gets them; others keep theirs, with conversions in between. What the
//! caller hands in and gets keeps its type.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Operation, Values,
    elementwise::Elementwise,
    expression::{Expression, Operand},
};

use super::Result;
use crate::{
    Control, Stage,
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Tensor, TensorId, each_region},
};

/// The largest 16-bit float.
const LARGEST: f64 = 65504.0;
/// Bytes of a constant between two looks at whether to go on; whole elements.
const CHUNK: usize = 1 << 20;
const FULL: ElementType = ElementType::Of(DType::F32);
const HALF: ElementType = ElementType::Of(DType::F16);

/// Which tensors are 16-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Those that the model has.
    #[default]
    Model,
    /// All that kernels take so; what the caller hands in and gets keeps its type.
    F16,
}

/// What became of a graph's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfPrecision {
    /// Operations on 16-bit floats now.
    pub half: usize,
    /// Operations that keep 32 bits, because no kernel takes less or a constant does not fit.
    pub kept: usize,
}

impl HalfPrecision {
    /// Counts the operations of another graph too.
    pub fn add(&mut self, other: HalfPrecision) {
        self.half += other.half;
        self.kept += other.kept;
    }
}

/// The pass: computes with 16-bit floats wherever kernels take them, if that is asked for.
///
/// # Errors
/// `control` ended the work; the graph is not whole then, and good for nothing.
pub(super) fn run(graph: &mut Graph, precision: Precision, control: &Control) -> Result<HalfPrecision> {
    if precision == Precision::Model {
        return Ok(HalfPrecision::default());
    }
    let mut body = std::mem::take(&mut graph.body);
    let mut state = State {
        graph,
        halves: HashMap::new(),
        defined: HashSet::new(),
        nodes: Vec::new(),
        count: HalfPrecision::default(),
        watch: control.at(Stage::Optimizing),
    };
    state.defined.extend(&body.parameters);
    for node in std::mem::take(&mut body.nodes) {
        state.watch.check()?;
        state.node(node)?;
    }
    body.results.iter().for_each(|id| state.whole(*id));
    let count = state.count;
    body.nodes = state.nodes;
    graph.body = body;
    Ok(count)
}

struct State<'a> {
    graph: &'a mut Graph,
    /// Tensors of 32 bits that are there with 16.
    halves: HashMap<TensorId, TensorId>,
    /// Tensors that are there as they were.
    defined: HashSet<TensorId>,
    /// What has come about so far.
    nodes: Vec<Node>,
    count: HalfPrecision,
    watch: Watch<'a>,
}

impl State<'_> {
    fn node(&mut self, node: Node) -> Result {
        match &node.op {
            NodeOp::Operation(operation) => match self.smaller(operation, &node)? {
                Some(smaller) => self.in_half(node, smaller)?,
                None => self.unchanged(node),
            },
            NodeOp::View if self.halves.contains_key(&node.inputs[0]) && self.is_full(node.outputs[0]) => {
                self.in_half(node, NodeOp::View)?;
            }
            NodeOp::View | NodeOp::Foreign(_) | NodeOp::Read(_) | NodeOp::Set(..) => self.unchanged(node),
            NodeOp::If(branches) => {
                let read: Vec<TensorId> = branches.iter().flat_map(read_in).collect();
                read.into_iter().for_each(|id| self.whole(id));
                self.unchanged(node);
            }
            NodeOp::Loop(body) => {
                read_in(body).into_iter().for_each(|id| self.whole(id));
                self.unchanged(node);
            }
        }
        Ok(())
    }

    /// The node on 16-bit tensors.
    fn in_half(&mut self, node: Node, op: NodeOp) -> Result {
        self.count.half += usize::from(matches!(op, NodeOp::Operation(_)));
        let half = |id: &TensorId| if self.is_full(*id) { self.half(*id) } else { Ok(*id) };
        let inputs = node.inputs.iter().map(half).collect::<Result<_>>()?;
        let mut outputs = Vec::new();
        for id in &node.outputs {
            if self.is_full(*id) {
                let half = self.add(*id, HALF);
                self.halves.insert(*id, half);
                outputs.push(half);
            } else {
                self.defined.insert(*id);
                outputs.push(*id);
            }
        }
        self.nodes.push(Node { op, inputs, outputs, location: node.location });
        Ok(())
    }

    fn unchanged(&mut self, node: Node) {
        let reads_or_writes = node.inputs.iter().chain(&node.outputs).any(|id| self.is_full(*id));
        self.count.kept += usize::from(reads_or_writes && matches!(node.op, NodeOp::Operation(_)));
        node.inputs.iter().for_each(|id| self.whole(*id));
        self.defined.extend(&node.outputs);
        self.nodes.push(node);
    }

    /// The operation on 16-bit tensors, if kernels do it and its constants fit.
    fn smaller(&self, operation: &Operation, node: &Node) -> Result<Option<NodeOp>> {
        if !node.inputs.iter().chain(&node.outputs).any(|id| self.is_full(*id)) {
            return Ok(None);
        }
        let Some(smaller) = smaller(operation) else { return Ok(None) };
        for id in node.inputs.iter().filter(|id| self.is_full(**id)) {
            if !fits(self.graph.tensor(*id), self.watch)? {
                return Ok(None);
            }
        }
        Ok(Some(NodeOp::Operation(smaller)))
    }

    fn is_full(&self, id: TensorId) -> bool {
        self.graph.tensor(id).element == FULL
    }

    /// The tensor with 16 bits.
    fn half(&mut self, id: TensorId) -> Result<TensorId> {
        if let Some(half) = self.halves.get(&id) {
            return Ok(*half);
        }
        let half = self.add(id, HALF);
        self.halves.insert(id, half);
        let constant = self.graph.tensor(id).constant.clone();
        if let Some(bytes) = constant {
            let mut halves = Vec::with_capacity(bytes.len() / 2);
            for chunk in bytes.chunks(CHUNK) {
                self.watch.check()?;
                halves.extend(Values::from_bytes(DType::F32, chunk).to_bytes(DType::F16));
            }
            self.graph.tensors[half.index()].constant = Some(halves.into());
        } else {
            self.convert(id, half);
        }
        Ok(half)
    }

    /// Makes sure that a tensor is there as it was.
    fn whole(&mut self, id: TensorId) {
        if self.graph.tensor(id).constant.is_some() || !self.defined.insert(id) {
            return;
        }
        if let Some(half) = self.halves.get(&id).copied() {
            self.convert(half, id);
        }
    }

    fn add(&mut self, like: TensorId, element: ElementType) -> TensorId {
        let from = self.graph.tensor(like);
        let tensor = Tensor::new(from.name.clone(), element, from.shape.clone());
        self.graph.add_tensor(tensor)
    }

    fn convert(&mut self, from: TensorId, to: TensorId) {
        let mut program = Expression::default();
        program.store(Operand::Input(0), self.graph.tensor(to).element.storage());
        let input = self.graph.tensor(from);
        let operation = Elementwise::new(vec![(input.element.storage(), input.sizes().to_vec())], program);
        let op = NodeOp::Operation(Operation::Elementwise(operation));
        self.nodes.push(Node {
            op,
            inputs: vec![from],
            outputs: vec![to],
            location: crate::SourceLocation::new("precision"),
        });
    }
}

/// What a region reads that it does not define itself, among others.
fn read_in(region: &Region) -> Vec<TensorId> {
    let mut read = Vec::new();
    each_region(region, &mut |region| {
        region.nodes.iter().for_each(|node| read.extend(&node.inputs));
        read.extend(&region.results);
    });
    read
}

/// Whether a constant stays finite with 16 bits.
fn fits(tensor: &Tensor, watch: Watch<'_>) -> Result<bool> {
    for chunk in tensor.constant.iter().flat_map(|bytes| bytes.chunks(CHUNK)) {
        watch.check()?;
        let mut values = chunk.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b)));
        if !values.all(|v| !v.is_finite() || v.abs() <= LARGEST) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The operation with 16-bit floats for 32-bit ones, if a baseline kernel computes it.
fn smaller(operation: &Operation) -> Option<Operation> {
    match operation {
        Operation::QuantMatMul(_) | Operation::Conv2dInt8(_) | Operation::Embedding(_) => return None,
        // 16 bits hold infinity, too; borders of it stay as they were, so that modules do.
        Operation::Pad(pad) if !pad.value.0.is_finite() => return None,
        _ => {}
    }
    let smaller = operation.with_types(|dtype| if dtype == DType::F32 { DType::F16 } else { dtype });
    if crate::backend::check(&smaller).is_err() {
        return None;
    }
    crate::backend::runs_everywhere(&smaller).then_some(smaller)
}
