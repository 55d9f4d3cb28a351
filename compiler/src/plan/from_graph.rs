//! How a graph becomes a line of steps: views share the storage of what they view, control flow is a tree over parts of the
//! line.

use std::collections::{HashMap, HashSet};

use halite_ops::{Operation, copy::StridedCopy};
use halite_sizes::Size;

use super::{
    flow::{Flow, Item, Number, State, Step, Storage, StorageClass, StorageId},
    in_place::{Placement, in_place},
    order::by_level,
    parts::{Parts, slice},
    pool::{Known, Pool},
    seats::{Prefers, Seats, Takes},
};
use crate::{
    CompileError, SourceLocation,
    backend::Computation,
    control::Watch,
    graph::{Graph, HostWork, Node, NodeOp, Region, TensorId},
};

/// Most levels of branches and loops in each other.
const MOST_LEVELS: usize = 64;
/// A part of a storage: the storage, and the first byte.
pub(super) type Part = (StorageId, u64);

/// Bytes of the readback memory that a value takes.
const READ_BYTES: u64 = 8;

/// Puts a graph into a line.
///
/// # Errors
/// Branches and loops are nested too deeply, or the work was ended.
pub(crate) fn flow(
    graph: &Graph,
    pool: &mut Pool,
    takes: Takes<'_>,
    prefers: Prefers<'_>,
    watch: Watch<'_>,
) -> Result<Flow, CompileError> {
    let (flow, of) = (Flow::default(), HashMap::new());
    let read = read(graph);
    let states = Placement::of(graph);
    let own = |id| states.computed.contains_key(&id);
    let parts = Parts::of(graph, own);
    let seats = Seats::of(graph, &own, takes, &parts);
    let (joining, copied, carried) = (HashMap::new(), HashSet::new(), HashMap::new());
    let mut builder = FlowBuilder {
        graph,
        pool,
        prefers,
        watch,
        read,
        states,
        carried,
        parts,
        seats,
        joining,
        copied,
        flow,
        of,
        open: 0,
        level: 0,
    };
    builder.inputs();
    let mut items = Vec::new();
    builder.region(&graph.body, &mut items)?;
    builder.outputs()?;
    builder.close(&mut items);
    builder.flow.items = items;
    builder.finish();
    let mut flow = builder.flow;
    flow.symbols = graph.open.as_ref().map_or(0, crate::graph::OpenSizes::count);
    by_level(&mut flow, watch)?;
    Ok(flow)
}

/// Tensors that anything reads.
fn read(graph: &Graph) -> HashSet<TensorId> {
    let mut read = HashSet::new();
    graph.each_region(&mut |region| {
        read.extend(region.results.iter().copied());
        read.extend(region.nodes.iter().flat_map(|node| node.inputs.iter().copied()));
    });
    read
}

pub(super) struct FlowBuilder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) pool: &'a mut Pool,
    pub(super) prefers: Prefers<'a>,
    watch: Watch<'a>,
    /// Tensors that anything reads.
    pub(super) read: HashSet<TensorId>,
    states: Placement,
    /// Where results of loops' bodies are computed that change what is carried in place.
    pub(super) carried: HashMap<TensorId, StorageId>,
    parts: Parts,
    pub(super) seats: Seats,
    /// The storages of what comes together by parts.
    joining: HashMap<TensorId, StorageId>,
    /// What was copied to parts.
    pub(super) copied: HashSet<(StorageId, Part)>,
    pub(super) flow: Flow,
    pub(super) of: HashMap<TensorId, StorageId>,
    /// The first step that is in no segment yet.
    pub(super) open: usize,
    pub(super) level: usize,
}

impl FlowBuilder<'_> {
    pub(super) fn storage(&mut self, class: StorageClass, bytes: Size) -> StorageId {
        let id = StorageId(self.flow.storages.len() as u32);
        self.flow.storages.push(Storage { class, bytes });
        id
    }

    pub(super) fn local(&mut self, tensor: TensorId) -> StorageId {
        let id = self.storage(StorageClass::Transient, self.graph.tensor(tensor).byte_size());
        self.of.insert(tensor, id);
        id
    }

    pub(super) fn class(&self, id: StorageId) -> StorageClass {
        self.flow.storages[id.index()].class
    }

    /// Inputs that are read. Those that do not end with a whole word are copied to where they do; those without bytes have
    /// no memory that could be bound.
    fn inputs(&mut self) {
        for (index, port) in self.graph.inputs.iter().enumerate() {
            let bytes = self.graph.tensor(port.tensor).byte_size();
            if self.graph.state_of_input(index).is_some() {
                let state = self.storage(StorageClass::State(index as u32), bytes);
                self.of.insert(port.tensor, state);
                continue;
            }
            if !self.read.contains(&port.tensor) || bytes == 0 {
                self.local(port.tensor);
                continue;
            }
            let input = self.storage(StorageClass::Input(index as u32), bytes);
            self.of.insert(port.tensor, input);
            if !halite_sizes::is_worth(|| bytes.is_multiple_of(4)) {
                let whole = self.local(port.tensor);
                self.copy(input, whole);
            }
        }
    }

    pub(super) fn of(&mut self, tensor: TensorId) -> Result<StorageId, CompileError> {
        if let Some(id) = self.of.get(&tensor) {
            return Ok(*id);
        }
        let data = self.graph.tensor(tensor);
        let class = match &data.constant {
            Some(bytes) if !bytes.is_empty() => {
                StorageClass::Constant(self.pool.constant(data, bytes, self.watch)?)
            }
            // Nothing defines it, or it has no bytes: any memory will do.
            _ => StorageClass::Transient,
        };
        let id = self.storage(class, data.byte_size());
        self.of.insert(tensor, id);
        Ok(id)
    }

    pub(super) fn copy(&mut self, from: StorageId, to: StorageId) {
        let bytes = |id: StorageId| self.flow.storages[id.index()].bytes;
        if from != to && bytes(from) > 0 && bytes(to) > 0 {
            self.flow.steps.push(Step::Copy { from, to });
        }
    }

    fn region(&mut self, region: &Region, items: &mut Vec<Item>) -> Result<(), CompileError> {
        self.nodes(&region.nodes, items)
    }

    pub(super) fn nodes(&mut self, nodes: &[Node], items: &mut Vec<Item>) -> Result<(), CompileError> {
        for node in nodes {
            self.watch.check()?;
            match &node.op {
                NodeOp::View => {
                    let from = self.of(node.inputs[0])?;
                    self.of.insert(node.outputs[0], from);
                }
                NodeOp::Operation(operation) => self.operation(node, operation)?,
                NodeOp::Foreign(kernel) => self.compute(node, Computation::Foreign(kernel.clone()))?,
                NodeOp::If(branches) => self.branch(node, branches, items)?,
                NodeOp::Loop(body) => self.repeat(node, body, items)?,
                NodeOp::Host(HostWork::Read { first }) => self.read(node, *first, items)?,
                NodeOp::Host(HostWork::Set { first, values }) => self.set(*first, values, items),
            }
        }
        Ok(())
    }

    fn operation(&mut self, node: &Node, operation: &Operation) -> Result<(), CompileError> {
        if matches!(operation, Operation::KvAppend(append) if append.in_place) {
            let reason = "a cache is updated in place; a graph's operations give new tensors";
            return Err(CompileError::invalid(&node.location, reason));
        }
        let inputs: Vec<_> = node.inputs.iter().map(|id| self.of(*id)).collect::<Result<_, _>>()?;
        let known = inputs.iter().map(|id| match self.class(*id) {
            StorageClass::Constant(id) => Some(Known::Constant(id)),
            StorageClass::Packed(id) => Some(Known::Packed(id)),
            _ => None,
        });
        let open = node.outputs.iter().any(|id| !self.graph.tensor(*id).shape.is_constant());
        // A size may be open in the operation alone: where a copy begins.
        let is_same = |known: &Vec<Known>| !open && !known.is_empty() && !halite_sizes::is_open(operation);
        if let Some(known) = known.collect::<Option<Vec<_>>>().filter(is_same) {
            let sizes: Vec<_> = node.outputs.iter().map(|id| self.graph.tensor(*id).bytes()).collect();
            if sizes.contains(&0) {
                return self.compute(node, Computation::Operation(Box::new(operation.clone())));
            }
            let packed = self.pool.pack(operation, known, &sizes, &node.location);
            for ((tensor, packed), bytes) in node.outputs.iter().zip(packed).zip(sizes) {
                let id = self.storage(StorageClass::Packed(packed), bytes.into());
                self.of.insert(*tensor, id);
            }
            return Ok(());
        }
        if let Some((updating, inputs)) = in_place(operation)
            && self.is_updated(node)?
        {
            let inputs = inputs.into_iter().map(|index| node.inputs[index]).collect();
            let node = Node { inputs, ..node.clone() };
            return self.compute(&node, Computation::Operation(Box::new(updating)));
        }
        match operation {
            Operation::Concat(_) if self.parts.is_joined(node.outputs[0]) => self.join(node),
            Operation::Concat(concat) if self.seats.joined(node.outputs[0]).is_some() => {
                self.join_runs(node, concat)
            }
            Operation::StridedCopy(copy) if !open && self.show(node, copy)? => Ok(()),
            _ => self.compute(node, Computation::Operation(Box::new(operation.clone()))),
        }
    }

    /// Makes what a copy copies a part of what it is copied from. `false` where it is something else, or where the place it
    /// comes from is written later.
    fn show(&mut self, node: &Node, copy: &StridedCopy) -> Result<bool, CompileError> {
        let (result, from) = (node.outputs[0], self.of(node.inputs[0])?);
        let own = self.parts.part(result).is_some() || self.states.computed.contains_key(&result);
        // Of open sizes nobody knows where a part begins.
        if own || halite_sizes::is_open(copy) {
            return Ok(false);
        }
        if let Some(runs) = self.seats.shown(result) {
            return Ok(self.show_runs(result, from, runs));
        }
        let Some(begin) = slice(copy) else { return Ok(false) };
        let (root, first) = (self.flow.root(from), self.flow.range(from).start);
        if !matches!(self.class(root), StorageClass::Transient | StorageClass::Input(_)) {
            return Ok(false);
        }
        let bytes = self.graph.tensor(result).byte_size();
        let id = self.storage(StorageClass::Part(root, first + begin), bytes);
        self.of.insert(result, id);
        Ok(true)
    }

    /// Brings together what a node joins: what was not computed there is copied there.
    fn join(&mut self, node: &Node) -> Result<(), CompileError> {
        let whole = self.result(node.outputs[0]);
        let (root, mut at) = (self.flow.root(whole), self.flow.range(whole).start);
        for input in &node.inputs {
            let from = self.of(*input)?;
            let bytes = self.flow.storages[from.index()].bytes;
            let class = StorageClass::Part(root, at);
            if self.class(from) != class && self.copied.insert((from, (root, at))) {
                let to = self.storage(class, bytes);
                self.copy(from, to);
            }
            at += bytes.value();
        }
        Ok(())
    }

    /// Whether a node's result is the new value of a state, and a tensor that it reads is the old one.
    fn is_updated(&mut self, node: &Node) -> Result<bool, CompileError> {
        let Some(input) = node.outputs.first().and_then(|id| self.states.computed.get(id)) else {
            return Ok(false);
        };
        let state = self.of[&self.graph.inputs[*input].tensor];
        let read: Vec<_> = node.inputs.iter().map(|id| self.of(*id)).collect::<Result<_, _>>()?;
        Ok(read.contains(&state))
    }

    /// The place of what a node computes: that of a state, where it is the state's new value.
    pub(super) fn result(&mut self, tensor: TensorId) -> StorageId {
        if let Some((whole, at)) = self.parts.part(tensor) {
            let whole = self.joining(whole);
            let id = self.storage(StorageClass::Part(whole, at), self.graph.tensor(tensor).byte_size());
            self.of.insert(tensor, id);
            return id;
        }
        if let Some(seat) = self.seats.seat(tensor) {
            return self.seated(tensor, seat);
        }
        if self.parts.is_joined(tensor) || self.seats.joined(tensor).is_some() {
            let id = self.joining(tensor);
            self.of.insert(tensor, id);
            return id;
        }
        if let Some(id) = self.carried.get(&tensor).copied() {
            self.of.insert(tensor, id);
            return id;
        }
        let Some(input) = self.states.computed.get(&tensor) else { return self.local(tensor) };
        let id = self.of[&self.graph.inputs[*input].tensor];
        self.of.insert(tensor, id);
        id
    }

    /// The storage of what comes together by parts, which may be there before its node.
    pub(super) fn joining(&mut self, tensor: TensorId) -> StorageId {
        if let Some(id) = self.joining.get(&tensor) {
            return *id;
        }
        let id = self.storage(StorageClass::Transient, self.graph.tensor(tensor).byte_size());
        self.joining.insert(tensor, id);
        id
    }

    /// A step that calls run.
    pub(super) fn compute(&mut self, node: &Node, computation: Computation) -> Result<(), CompileError> {
        let (node, computation) = &self.with_runs(node, computation)?;
        let mut inputs: Vec<_> = node.inputs.iter().map(|id| self.of(*id)).collect::<Result<_, _>>()?;
        let outputs = node.outputs.iter().map(|id| self.result(*id)).collect();
        let location = node.location.clone();
        let computation = self.in_fragments(computation, &mut inputs, &location);
        self.flow.steps.push(Step::Compute { computation, inputs, outputs, location });
        Ok(())
    }

    pub(super) fn deeper(&mut self, location: &SourceLocation) -> Result<(), CompileError> {
        self.level += 1;
        if self.level > MOST_LEVELS {
            let reason = format!("branches and loops in more than {MOST_LEVELS} levels");
            return Err(CompileError::unsupported(location, reason));
        }
        Ok(())
    }

    /// A scalar as the host sees it.
    pub(super) fn number(&mut self, tensor: TensorId) -> Result<Number, CompileError> {
        let data = self.graph.tensor(tensor);
        if let Some(bytes) = &data.constant {
            let mut word = [0; 8];
            let count = bytes.len().min(8);
            word[..count].copy_from_slice(&bytes[..count]);
            return Ok(Number::Known(i64::from_le_bytes(word)));
        }
        let offset = self.flow.readback_bytes;
        self.flow.readback_bytes += READ_BYTES;
        let to = self.storage(StorageClass::Readback(offset), data.byte_size());
        let from = self.of(tensor)?;
        self.copy(from, to);
        Ok(Number::Read(offset))
    }

    /// Numbers that the host reads before it goes on.
    fn read(&mut self, node: &Node, first: u32, items: &mut Vec<Item>) -> Result<(), CompileError> {
        let bytes = self.graph.tensor(node.inputs[0]).bytes();
        let offset = self.flow.readback_bytes;
        self.flow.readback_bytes += bytes.next_multiple_of(READ_BYTES);
        let to = self.storage(StorageClass::Readback(offset), bytes.into());
        let from = self.of(node.inputs[0])?;
        self.copy(from, to);
        self.close(items);
        let count = (bytes / READ_BYTES) as u32;
        items.push(Item::Read { first, count, offset });
        self.flow.begin_era(first, count as usize);
        Ok(())
    }

    /// Symbols get values before what comes next.
    fn set(&mut self, first: u32, values: &[Size], items: &mut Vec<Item>) {
        self.close(items);
        items.push(Item::Set { first, values: values.to_vec() });
        self.flow.begin_era(first, values.len());
    }

    /// Ends the segment at the last step.
    pub(super) fn close(&mut self, items: &mut Vec<Item>) {
        let end = self.flow.steps.len();
        if self.open < end {
            items.push(Item::Segment(self.flow.segments.len()));
            self.flow.segments.push(self.open..end);
        }
        self.open = end;
    }

    fn branch(
        &mut self,
        node: &Node,
        branches: &[Region; 2],
        items: &mut Vec<Item>,
    ) -> Result<(), CompileError> {
        self.deeper(&node.location)?;
        let condition = self.number(node.inputs[0])?;
        if let Number::Known(value) = condition {
            let region = &branches[usize::from(value == 0)];
            self.region(region, items)?;
            for (result, output) in region.results.iter().zip(&node.outputs) {
                let id = self.of(*result)?;
                self.of.insert(*output, id);
            }
            self.level -= 1;
            return Ok(());
        }
        self.close(items);
        let outputs: Vec<_> = node.outputs.iter().map(|id| self.local(*id)).collect();
        let mut flows = [Vec::new(), Vec::new()];
        for (region, inner) in branches.iter().zip(&mut flows) {
            self.region(region, inner)?;
            for (result, output) in region.results.iter().zip(&outputs) {
                let from = self.of(*result)?;
                self.copy(from, *output);
            }
            self.close(inner);
        }
        items.push(Item::If { condition, branches: Box::new(flows) });
        self.level -= 1;
        Ok(())
    }

    /// What is returned gets memory of its own.
    fn outputs(&mut self) -> Result<(), CompileError> {
        for (index, port) in self.graph.outputs.iter().enumerate() {
            if self.graph.state_of_output(index).is_some() {
                self.flow.outputs.push(0.into());
                continue;
            }
            let id = self.of(port.tensor)?;
            let bytes = self.flow.storages[id.index()].bytes;
            self.flow.outputs.push(bytes);
            let class = StorageClass::Output(index as u32);
            if self.class(id) == StorageClass::Transient {
                self.flow.storages[id.index()].class = class;
            } else {
                let output = self.storage(class, bytes);
                self.copy(id, output);
            }
        }
        self.state_values()
    }

    /// The new values of states that were not computed in their memory are copied there. Values that lie in the memory of
    /// another state are saved before anything is overwritten.
    fn state_values(&mut self) -> Result<(), CompileError> {
        let mut copies = Vec::new();
        for state in &self.graph.states {
            let (old, new) = self.graph.state_tensors(state);
            let (to, mut from) = (self.of[&old], self.of(new)?);
            if from != to && matches!(self.class(from), StorageClass::State(_)) {
                let saved = self.storage(StorageClass::Transient, self.flow.storages[from.index()].bytes);
                self.copy(from, saved);
                from = saved;
            }
            copies.push((from, to));
            let copied =
                (from != to).then(|| self.states.copied.get(&state.input).cloned().unwrap_or_default());
            self.flow.states.push(State { input: state.input, output: state.output, copied });
        }
        copies.into_iter().for_each(|(from, to)| self.copy(from, to));
        Ok(())
    }

    /// Notes what is used: inputs, and what calls need of the pool.
    fn finish(&mut self) {
        let inputs = self.graph.inputs.len();
        let mut used: Vec<bool> = (0..inputs).map(|index| self.flow.is_state(index)).collect();
        for step in &self.flow.steps {
            for id in step.reads() {
                match self.flow.storages[self.flow.root(*id).index()].class {
                    StorageClass::Input(index) => used[index as usize] = true,
                    StorageClass::Constant(id) => self.pool.constants[id.index()].resident = true,
                    StorageClass::Packed(id) => self.pool.packed[id.index()].resident = true,
                    _ => {}
                }
            }
        }
        self.flow.inputs_used = used;
    }
}
