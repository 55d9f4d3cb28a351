//! Loops as parts of a line of steps: where what they carry lies, and how it gets from run to run.

use std::collections::BTreeSet;

use super::{
    flow::{COUNTER_BYTES, Item, Step, StorageClass, StorageId},
    from_graph::FlowBuilder,
    in_place::carried_in_place,
};
use crate::{
    CompileError,
    graph::{HostWork, Node, NodeOp, Region, TensorId},
};

/// The places of what is carried; and of what changes its sizes, with its parameter.
type Begun = (Vec<StorageId>, Vec<(StorageId, TensorId)>);

impl FlowBuilder<'_> {
    /// A loop: what it carries lies where each run begins with it.
    pub(super) fn repeat(
        &mut self,
        node: &Node,
        body: &Region,
        items: &mut Vec<Item>,
    ) -> Result<(), CompileError> {
        self.deeper(&node.location)?;
        let (most, first) = (self.number(node.inputs[0])?, self.number(node.inputs[1])?);
        // The condition is carried too, for those bodies that look at it.
        let skip = if self.read.contains(&body.parameters[1]) { 1 } else { 2 };
        let (places, changing) = self.begun(node, body, skip)?;
        let counter = self.read.contains(&body.parameters[0]).then(|| self.counter(body.parameters[0]));
        self.close(items);
        if let Some((id, _)) = counter {
            self.flow.steps.push(Step::HostWrites(id));
            self.open = self.flow.steps.len();
        }
        let start = self.flow.steps.len();
        let mut inner = Vec::new();
        // The symbols of sizes that change get their values first: then there is memory for what the run is given.
        let sets = self.sets(body, &changing);
        self.nodes(&body.nodes[..sets], &mut inner)?;
        for (from, parameter) in changing {
            let to = self.local(parameter);
            self.copy(from, to);
        }
        self.nodes(&body.nodes[sets..], &mut inner)?;
        let next = self.number(body.results[0])?;
        self.carry(&body.results[skip - 1..], &places)?;
        self.close(&mut inner);
        self.flow.loops.push(start..self.flow.steps.len());
        for (output, place) in node.outputs.iter().zip(&places[2 - skip..]) {
            self.of.insert(*output, *place);
        }
        items.push(Item::Loop { most, first, next, counter: counter.map(|(_, at)| at), body: inner });
        self.level -= 1;
        Ok(())
    }

    /// Copies what a loop begins with to where it is carried: the places, from parameter `skip` on; and those of what changes its
    /// sizes from run to run, with the parameter that each run is given. These hold what it is behind a run.
    fn begun(&mut self, node: &Node, body: &Region, skip: usize) -> Result<Begun, CompileError> {
        let (mut places, mut changing) = (Vec::new(), Vec::new());
        for (index, initial) in node.inputs.iter().enumerate().skip(skip) {
            let from = self.of(*initial)?;
            let parameter = body.parameters[index];
            let behind = index.checked_sub(2).map(|output| node.outputs[output]);
            let to = match behind.filter(|output| self.differ(parameter, *output)) {
                Some(output) => {
                    let to = self.local(output);
                    changing.push((to, parameter));
                    to
                }
                None => self.local(parameter),
            };
            self.copy(from, to);
            places.push(to);
        }
        for (result, index) in carried_in_place(body) {
            // What changes its sizes has another place behind each run.
            let place = index.checked_sub(skip).and_then(|at| places.get(at)).copied();
            let fixed = self.of.get(&body.parameters[index]).copied();
            if let Some(place) = place.filter(|place| fixed == Some(*place)) {
                self.carried.insert(result, place);
            }
        }
        Ok((places, changing))
    }

    /// How many nodes of a body come first: up to those that give the sizes of `changing` their values. What passes put before
    /// them depends on nothing that a run is given.
    fn sets(&self, body: &Region, changing: &[(StorageId, TensorId)]) -> usize {
        let sizes = changing.iter().flat_map(|(_, parameter)| self.graph.tensor(*parameter).sizes());
        let symbols: BTreeSet<u32> = sizes.flat_map(|size| size.symbols()).collect();
        let sets = |node: &Node| match &node.op {
            NodeOp::Host(HostWork::Set { first, values }) => {
                symbols.range(*first..*first + values.len() as u32).next().is_some()
            }
            _ => false,
        };
        body.nodes.iter().rposition(sets).map_or(0, |last| last + 1)
    }

    /// Whether tensors of a loop have sizes of different symbols.
    fn differ(&self, some: TensorId, other: TensorId) -> bool {
        let sizes = |id| self.graph.tensor(id).sizes().iter();
        sizes(some).zip(sizes(other)).any(|(a, b)| !a.is(*b))
    }

    fn counter(&mut self, parameter: TensorId) -> (StorageId, u64) {
        let at = self.flow.reserved_bytes;
        self.flow.reserved_bytes += COUNTER_BYTES;
        let id = self.storage(StorageClass::Counter(at), self.graph.tensor(parameter).byte_size());
        self.of.insert(parameter, id);
        (id, at)
    }

    /// The results of a run become what the next one begins with. Results that lie where others go are saved first.
    fn carry(&mut self, results: &[TensorId], places: &[StorageId]) -> Result<(), CompileError> {
        let mut from = Vec::new();
        for (result, place) in results.iter().zip(places) {
            let id = self.of(*result)?;
            if id == *place || !places.contains(&self.flow.root(id)) {
                from.push(id);
                continue;
            }
            let saved = self.storage(StorageClass::Transient, self.flow.storages[id.index()].bytes);
            self.copy(id, saved);
            from.push(saved);
        }
        for (id, place) in from.into_iter().zip(places) {
            self.copy(id, *place);
        }
        Ok(())
    }
}
