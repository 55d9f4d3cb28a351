//! Computing with 16-bit floats where a model says 32: a choice of the caller, since it changes results. Or with 32 where it says
//! 16: for devices that convert each 16-bit float in software, results are nearer to what the model means.
//!
//! Every operation whose kernels take the other type gets it; others keep theirs, with conversions in between. What the
//! caller hands in and gets keeps its type.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Operation, TensorDesc, Values,
    elementwise::Elementwise,
    expression::{Expression, Operand},
};

use super::Result;
use crate::{
    Control, Stage,
    choice::is_of_choice,
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Tensor, TensorId, each_region},
};

/// The largest 16-bit float.
const LARGEST: f64 = 65504.0;
/// Bytes of a constant between two looks at whether to go on; whole elements.
const CHUNK: usize = 1 << 20;
const FULL: ElementType = ElementType::Of(DType::F32);
const HALF: ElementType = ElementType::Of(DType::F16);
const BRAIN: ElementType = ElementType::Of(DType::BF16);

/// Which tensors are 16-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Those that the model has.
    #[default]
    Model,
    /// All that kernels take so; what the caller hands in and gets keeps its type.
    F16,
    /// All with 32 bits that the model has with 16; what the caller hands in and gets keeps its type.
    F32,
}

impl Precision {
    /// The type that a tensor of a type gets, if it gets another.
    fn other(self, element: ElementType) -> Option<ElementType> {
        match (self, element) {
            (Precision::F16, FULL) => Some(HALF),
            (Precision::F32, HALF | BRAIN) => Some(FULL),
            _ => None,
        }
    }
}

/// What became of a graph's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfPrecision {
    /// Operations on floats of the precision that was asked for, now.
    pub half: usize,
    /// Operations that keep their type, because no kernel takes the other or a constant does not fit.
    pub kept: usize,
}

impl HalfPrecision {
    /// Counts the operations of another graph too.
    pub fn add(&mut self, other: HalfPrecision) {
        self.half += other.half;
        self.kept += other.kept;
    }
}

/// The pass: computes with floats of another size wherever kernels take them, if that is asked for.
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
        precision,
        others: HashMap::new(),
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
    precision: Precision,
    /// Tensors that are there with the other type.
    others: HashMap<TensorId, TensorId>,
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
            NodeOp::Operation(_) if is_of_choice(&node.location) => self.unchanged(node),
            NodeOp::Operation(operation) => match self.changed(operation, &node)? {
                Some(changed) => self.in_other(node, changed)?,
                None => self.unchanged(node),
            },
            NodeOp::View if self.others.contains_key(&node.inputs[0]) && self.changes(node.outputs[0]) => {
                self.in_other(node, NodeOp::View)?;
            }
            NodeOp::View | NodeOp::Foreign(_) | NodeOp::Host(_) => self.unchanged(node),
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

    /// The node on tensors of the other type; those for which the operation keeps its own, such as scales of codes, stay as they are.
    fn in_other(&mut self, node: Node, op: NodeOp) -> Result {
        self.count.half += usize::from(matches!(op, NodeOp::Operation(_)));
        let (takes, gives) = match &op {
            NodeOp::Operation(operation) => (operation.inputs(), operation.outputs()),
            _ => (Vec::new(), Vec::new()),
        };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (place, id) in node.inputs.iter().enumerate() {
            if self.stays(*id, takes.get(place)) {
                self.whole(*id);
                inputs.push(*id);
            } else {
                inputs.push(self.other(*id)?);
            }
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for (place, id) in node.outputs.iter().enumerate() {
            let other = self.precision.other(self.graph.tensor(*id).element);
            match other.filter(|_| !self.stays(*id, gives.get(place))) {
                Some(element) => {
                    let other = self.add(*id, element);
                    self.others.insert(*id, other);
                    outputs.push(other);
                }
                None => {
                    self.defined.insert(*id);
                    outputs.push(*id);
                }
            }
        }
        self.nodes.push(Node { op, inputs, outputs, location: node.location });
        Ok(())
    }

    /// Whether an operation that was changed has a tensor as it was.
    fn stays(&self, id: TensorId, has: Option<&TensorDesc>) -> bool {
        !self.changes(id) || has.is_some_and(|has| has.dtype == self.graph.tensor(id).element.storage())
    }

    fn unchanged(&mut self, node: Node) {
        let reads_or_writes = node.inputs.iter().chain(&node.outputs).any(|id| self.changes(*id));
        self.count.kept += usize::from(reads_or_writes && matches!(node.op, NodeOp::Operation(_)));
        node.inputs.iter().for_each(|id| self.whole(*id));
        self.defined.extend(&node.outputs);
        self.nodes.push(node);
    }

    /// The operation on tensors of the other type, if kernels do it and its constants fit.
    fn changed(&self, operation: &Operation, node: &Node) -> Result<Option<NodeOp>> {
        if !node.inputs.iter().chain(&node.outputs).any(|id| self.changes(*id)) {
            return Ok(None);
        }
        if self.precision == Precision::F32
            && (self.reads_cache(operation, node) || self.picks(operation, node))
        {
            return Ok(None);
        }
        let Some(changed) = changed(operation, self.precision) else { return Ok(None) };
        let takes = changed.inputs();
        let places =
            node.inputs.iter().enumerate().filter(|(place, id)| !self.stays(**id, takes.get(*place)));
        for (_, id) in places {
            if self.precision == Precision::F16 && !fits(self.graph.tensor(*id), self.watch)? {
                return Ok(None);
            }
        }
        Ok(Some(NodeOp::Operation(changed)))
    }

    /// Whether an operation is attention to keys and values that are there with 16 bits only, as caches are: to convert them for
    /// each call, with all the room that they have, takes longer than to read what counts.
    fn reads_cache(&self, operation: &Operation, node: &Node) -> bool {
        let there = |id: &TensorId| self.defined.contains(id) && !self.others.contains_key(id);
        matches!(operation, Operation::Attention(_)) && node.inputs[1..3].iter().all(there)
    }

    /// Whether an operation takes a few rows of what is there with 16 bits only, as of a cache: these are converted, and not all.
    fn picks(&self, operation: &Operation, node: &Node) -> bool {
        if !matches!(operation, Operation::Gather(_)) {
            return false;
        }
        let (from, to) = (node.inputs[0], node.outputs[0]);
        let there = self.defined.contains(&from) && !self.others.contains_key(&from);
        let count = |id| Some(self.graph.tensor(id).count()).filter(|count| count.is_constant());
        there && count(to).zip(count(from)).is_some_and(|(to, from)| to.value() < from.value())
    }

    fn changes(&self, id: TensorId) -> bool {
        self.precision.other(self.graph.tensor(id).element).is_some()
    }

    /// The tensor with the other type; itself where that is the same.
    fn other(&mut self, id: TensorId) -> Result<TensorId> {
        if let Some(other) = self.others.get(&id) {
            return Ok(*other);
        }
        let from = self.graph.tensor(id).element;
        let Some(to) = self.precision.other(from) else { return Ok(id) };
        let other = self.add(id, to);
        self.others.insert(id, other);
        let constant = self.graph.tensor(id).constant.clone();
        if let Some(bytes) = constant {
            let (from, to) = (from.storage(), to.storage());
            let elements = bytes.len() / usize::try_from(from.size()).unwrap_or(1).max(1);
            let mut changed = Vec::with_capacity(elements * usize::try_from(to.size()).unwrap_or(1));
            for chunk in bytes.chunks(CHUNK) {
                self.watch.check()?;
                changed.extend(Values::from_bytes(from, chunk).to_bytes(to));
            }
            self.graph.tensors[other.index()].constant = Some(changed.into());
        } else {
            self.convert(id, other);
        }
        Ok(other)
    }

    /// Makes sure that a tensor is there as it was.
    fn whole(&mut self, id: TensorId) {
        if self.graph.tensor(id).constant.is_some() || !self.defined.insert(id) {
            return;
        }
        if let Some(other) = self.others.get(&id).copied() {
            self.convert(other, id);
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

/// The operation with floats of the other type, if a baseline kernel computes it.
fn changed(operation: &Operation, precision: Precision) -> Option<Operation> {
    match operation {
        Operation::QuantMatMul(_) | Operation::Conv2dInt8(_) | Operation::Embedding(_) => return None,
        // Weights stay as they are in their file.
        Operation::BlockMatMul(_) | Operation::BlockRows(_) | Operation::ExpertMatMul(_) => return None,
        // A cache is not converted for what is appended to it.
        Operation::KvAppend(_) if precision == Precision::F32 => return None,
        // 16 bits hold infinity, too; borders of it stay as they were, so that modules do.
        Operation::Pad(pad) if precision == Precision::F16 && !pad.value.0.is_finite() => return None,
        _ => {}
    }
    let other = |dtype| precision.other(ElementType::Of(dtype)).map_or(dtype, ElementType::storage);
    let changed = operation.with_types(other);
    if crate::backend::check(&changed).is_err() {
        return None;
    }
    crate::backend::runs_everywhere(&changed).then_some(changed)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Operation};

    use super::{Precision, run};
    use crate::{Control, build::Builder, passes::tests::kernels};

    #[test]
    fn a_few_rows_are_converted_and_not_all() {
        for (rows, is_plain) in [(3, true), (200, false)] {
            let mut b = Builder::new();
            let cache = b.input("cache", DType::F16.into(), &[100, 32]).unwrap();
            let places = b.input("places", DType::I64.into(), &[rows]).unwrap();
            let made = b.gather(cache, places, 0).unwrap();
            let made = b.as_f32(made).unwrap();
            b.output("rows", made);
            let mut graph = b.finish().unwrap();
            run(&mut graph, Precision::F32, &Control::new()).unwrap();
            graph.check().unwrap();
            let all: Vec<&Operation> = kernels(&graph)
                .into_iter()
                .filter(|operation| matches!(operation, Operation::Gather(_)))
                .collect();
            assert_eq!(all.len(), 1);
            assert_eq!(all[0].inputs()[0].dtype == DType::F16, is_plain, "{graph}");
        }
    }
}
