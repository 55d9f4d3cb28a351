//! Which operations over images change their order together, and whether that is worth the copies around them.

use std::collections::{HashMap, HashSet};

use halite_ops::{Operation, elementwise::Elementwise, gather::Gather};
use halite_sizes::Size;

use super::{
    change::{Change, Members},
    order::{Order, Read, four},
    padded,
    prune::{prune, times},
    slice::Slice,
};
use crate::{
    graph::{Graph, Node, NodeOp, Region, TensorId},
    passes::Uses,
};

/// Places of the nodes whose images change their order: groups of neighbours that gain more than the copies on the way in and out cost.
pub(super) fn worth<C: Change>(graph: &Graph, region: &Region, uses: &Uses) -> HashSet<usize> {
    let mut groups = Groups::new(C::ORDER);
    for (place, node) in region.nodes.iter().enumerate() {
        let mut members = C::members(graph, node).or_else(|| groups.of_any_order(graph, node));
        if let Some(members) = &mut members {
            // What is added to a product may be what it reads, too.
            members.read.sort_unstable();
            members.read.dedup();
        }
        let are_images = |members: &Members| {
            members.read.iter().chain(&members.written).all(|id| four(graph, *id).is_some())
        };
        if let Some(members) = members.filter(are_images) {
            groups.take(place, members, uses);
        }
    }
    let mut members: Vec<(usize, Members)> =
        groups.members.drain().map(|(place, member)| (place, member.images)).collect();
    members.sort_unstable_by_key(|(place, _)| *place);
    prune::<C>(graph, region, uses, &|id| moves(C::ORDER, graph, id), &mut members);
    // What is left may be several groups.
    let mut groups = Groups::new(C::ORDER);
    members.into_iter().for_each(|(place, images)| groups.take(place, images, uses));
    groups.worth::<C>(graph, region, uses)
}

/// Members of groups, of which each is known by one of its nodes.
struct Groups {
    order: Order,
    members: HashMap<usize, Member>,
    /// The member that makes a tensor.
    maker: HashMap<TensorId, usize>,
    /// Nodes that take any order of one image, by what they make of it for one reader: they join the group of that reader, so that
    /// others of the group read the same copy of the image.
    before: HashMap<TensorId, (usize, Members)>,
}

struct Member {
    /// Another member of its group, or itself.
    next: usize,
    images: Members,
}

impl Groups {
    fn new(order: Order) -> Groups {
        Groups { order, members: HashMap::new(), maker: HashMap::new(), before: HashMap::new() }
    }

    /// A node joins the groups that make images for it.
    fn take(&mut self, place: usize, images: Members, uses: &Uses) {
        let is_made = |groups: &Groups| images.read.iter().any(|id| groups.maker.contains_key(id));
        if images.gains == 0 && !is_made(self) {
            if let ([_], [made]) = (&images.read[..], &images.written[..])
                && uses.count(*made) == 1
            {
                self.before.insert(*made, (place, images));
            }
            return;
        }
        self.insert(place, images);
    }

    /// With those nodes before it that wait for a reader.
    fn insert(&mut self, place: usize, images: Members) {
        let (mut left, mut added) = (vec![(place, images)], Vec::new());
        while let Some((place, images)) = left.pop() {
            left.extend(images.read.iter().filter_map(|id| self.before.remove(id)));
            self.maker.extend(images.written.iter().map(|id| (*id, place)));
            added.push(place);
            self.members.insert(place, Member { next: place, images });
        }
        for place in added {
            let read = self.members.get(&place).map(|member| member.images.read.clone()).unwrap_or_default();
            for maker in read.iter().filter_map(|id| self.maker.get(id).copied()).collect::<Vec<_>>() {
                let (from, to) = (self.group(maker), self.group(place));
                if let Some(member) = self.members.get_mut(&from) {
                    member.next = to;
                }
            }
        }
    }

    fn group(&mut self, mut place: usize) -> usize {
        while let Some(member) = self.members.get(&place)
            && member.next != place
        {
            let next = member.next;
            // Shorter ways for those who ask later.
            let after = self.members.get(&next).map_or(next, |member| member.next);
            if let Some(member) = self.members.get_mut(&place) {
                member.next = after;
            }
            place = next;
        }
        place
    }

    fn worth<C: Change>(mut self, graph: &Graph, region: &Region, uses: &Uses) -> HashSet<usize> {
        let places: Vec<usize> = self.members.keys().copied().collect();
        let group: HashMap<usize, usize> = places.iter().map(|place| (*place, self.group(*place))).collect();
        let mut inside: HashMap<TensorId, usize> = HashMap::new();
        let mut copied: HashSet<(usize, TensorId)> = HashSet::new();
        let mut gains: HashMap<usize, u64> = HashMap::new();
        for (place, member) in &self.members {
            let own = gains.entry(group[place]).or_default();
            *own = own.saturating_add(member.images.gains);
            for id in &member.images.read {
                *inside.entry(*id).or_default() += times(region, *place, *id);
                let known = graph.tensor(*id).constant.is_some();
                if !self.maker.contains_key(id) && !known && moves(self.order, graph, *id) {
                    copied.insert((group[place], *id));
                }
            }
        }
        for (place, member) in &self.members {
            for id in &member.images.written {
                if uses.count(*id) > inside.get(id).copied().unwrap_or(0) && moves(self.order, graph, *id) {
                    copied.insert((group[place], *id));
                }
            }
        }
        let mut costs: HashMap<usize, u64> = HashMap::new();
        for (group, id) in &copied {
            let own = costs.entry(*group).or_default();
            *own = own.saturating_add(C::cost(graph, *id));
        }
        let of = |counts: &HashMap<usize, u64>, group: &usize| counts.get(group).copied().unwrap_or(0);
        places
            .into_iter()
            .filter(|place| C::is_worth(of(&gains, &group[place]), of(&costs, &group[place])))
            .collect()
    }

    /// The images of a node that can have them in any order.
    fn of_any_order(&self, graph: &Graph, node: &Node) -> Option<Members> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let read = match operation {
            Operation::Elementwise(op) => self.of_elementwise(op, node)?,
            Operation::Gather(op) if looks_up(op) => {
                let [_, places] = *node.inputs else { return None };
                let same = four(graph, places)? == four(graph, *node.outputs.first()?)?;
                same.then(|| vec![places])?
            }
            Operation::Concat(op) => {
                let sizes = four(graph, *node.outputs.first()?)?;
                let channel = self.order.channels;
                let of = |dims: &[Size]| dims.iter().fold(Size::constant(1), |all, size| all * *size);
                let (before, behind) = (of(&sizes[..channel]), of(&sizes[channel + 1..]));
                let side_by_side =
                    op.inner.is(behind) && op.total().is(sizes[channel]) && op.outer.is(before);
                (side_by_side && node.inputs.iter().all(|id| four(graph, *id).is_some()))
                    .then(|| node.inputs.clone())?
            }
            Operation::StridedCopy(op) => {
                Slice::of(self.order, graph, op, node)?;
                node.inputs.clone()
            }
            Operation::Pad(op) => {
                padded::of_image(graph, op, node)?;
                node.inputs.clone()
            }
            _ => return None,
        };
        Some(Members { read, written: node.outputs.clone(), gains: 0 })
    }

    fn of_elementwise(&self, op: &Elementwise, node: &Node) -> Option<Vec<TensorId>> {
        let dims = op.dims();
        if dims.len() != 4 || !op.strided.is_empty() {
            return None;
        }
        let mut images = Vec::new();
        for (id, (_, own)) in node.inputs.iter().zip(&op.inputs.0) {
            if matches!(Read::of(own, &dims, self.order.there)?, Read::Image) {
                images.push(*id);
            }
        }
        Some(images)
    }
}

/// Whether elements move when the order changes.
fn moves(order: Order, graph: &Graph, id: TensorId) -> bool {
    let sizes = graph.tensor(id).sizes();
    !order.there.into_iter().filter(|d| sizes[*d] != 1).is_sorted()
}

/// Whether each index becomes one element of a list, as TOSA's `TABLE` does.
fn looks_up(op: &Gather) -> bool {
    op.outer == 1 && op.inner == 1
}
