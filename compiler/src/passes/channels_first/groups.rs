//! Which operations over images with the channels last change their order together, and whether that is worth the copies around
//! them.

use std::collections::{HashMap, HashSet};

use halite_ops::{Operation, elementwise::Elementwise, gather::Gather, window::Layout};
use halite_sizes::Size;

use crate::{
    graph::{Graph, Node, NodeOp, Region, TensorId},
    passes::Uses,
};

/// Which dimension of images with the channels last becomes which one of images with the channels first.
pub(super) const FIRST: [usize; 4] = [0, 3, 1, 2];
/// A single operation would cost two copies, and gain less.
const LEAST: usize = 2;

/// Places of the nodes that get their channels first: groups of neighbours in which there are no more copies on the way in and
/// out than convolutions and pools.
pub(super) fn worth(graph: &Graph, region: &Region, uses: &Uses) -> HashSet<usize> {
    let mut groups = Groups::default();
    for (place, node) in region.nodes.iter().enumerate() {
        groups.take(graph, place, node);
    }
    groups.worth(graph, region, uses)
}

/// Whether it is a convolution or pool of images that have their channels last.
pub(super) fn has_channels_last(op: &NodeOp) -> bool {
    let NodeOp::Operation(operation) = op else { return false };
    let layout = match operation {
        Operation::Conv2d(op) => op.layout,
        Operation::Conv2dInt8(op) => op.layout,
        Operation::Pool2d(op) => op.layout,
        _ => return false,
    };
    layout == Layout::Nhwc
}

/// Members of groups, of which each is known by one of its nodes.
#[derive(Default)]
struct Groups {
    members: HashMap<usize, Member>,
    /// The member that makes a tensor.
    maker: HashMap<TensorId, usize>,
}

struct Member {
    /// Another member of its group, or itself.
    next: usize,
    images: Vec<TensorId>,
    is_window: bool,
}

impl Groups {
    /// A node joins the groups that make images for it, if it computes with them in any order of dimensions.
    fn take(&mut self, graph: &Graph, place: usize, node: &Node) {
        let is_window = has_channels_last(&node.op);
        let Some(images) = images(graph, node) else { return };
        let makers: Vec<usize> = images.iter().filter_map(|id| self.maker.get(id).copied()).collect();
        if !is_window && makers.is_empty() {
            return;
        }
        self.members.insert(place, Member { next: place, images, is_window });
        for maker in makers {
            let (from, to) = (self.group(maker), self.group(place));
            if let Some(member) = self.members.get_mut(&from) {
                member.next = to;
            }
        }
        self.maker.extend(node.outputs.iter().map(|id| (*id, place)));
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

    fn worth(mut self, graph: &Graph, region: &Region, uses: &Uses) -> HashSet<usize> {
        let places: Vec<usize> = self.members.keys().copied().collect();
        let group: HashMap<usize, usize> = places.iter().map(|place| (*place, self.group(*place))).collect();
        let mut inside: HashMap<TensorId, usize> = HashMap::new();
        let mut copied: HashSet<(usize, TensorId)> = HashSet::new();
        let mut windows: HashMap<usize, usize> = HashMap::new();
        for (place, member) in &self.members {
            *windows.entry(group[place]).or_default() += usize::from(member.is_window);
            for id in &member.images {
                *inside.entry(*id).or_default() += 1;
                let known = graph.tensor(*id).constant.is_some();
                if !self.maker.contains_key(id) && !known && moves(graph, *id) {
                    copied.insert((group[place], *id));
                }
            }
        }
        for place in &places {
            for id in &region.nodes[*place].outputs {
                if uses.count(*id) > inside.get(id).copied().unwrap_or(0) && moves(graph, *id) {
                    copied.insert((group[place], *id));
                }
            }
        }
        let mut copies: HashMap<usize, usize> = HashMap::new();
        copied.iter().for_each(|(group, _)| *copies.entry(*group).or_default() += 1);
        let gains = |group: &usize| {
            let windows = windows.get(group).copied().unwrap_or(0);
            windows >= LEAST && windows >= copies.get(group).copied().unwrap_or(0)
        };
        places.into_iter().filter(|place| gains(&group[place])).collect()
    }
}

/// Whether elements move when the channels of images come first.
fn moves(graph: &Graph, id: TensorId) -> bool {
    let sizes = graph.tensor(id).sizes();
    !FIRST.into_iter().filter(|d| sizes[*d] != 1).is_sorted()
}

/// The images that a node reads, if it can have them with their channels first as well.
fn images(graph: &Graph, node: &Node) -> Option<Vec<TensorId>> {
    let NodeOp::Operation(operation) = &node.op else { return None };
    let four = |id: &TensorId| <[Size; 4]>::try_from(graph.tensor(*id).sizes()).ok();
    match operation {
        Operation::Conv2d(op) if has_channels_last(&node.op) => {
            let residual = node.inputs.last().filter(|_| op.residual);
            Some(node.inputs.first().into_iter().chain(residual).copied().collect())
        }
        Operation::Conv2dInt8(_) | Operation::Pool2d(_) if has_channels_last(&node.op) => {
            Some(vec![*node.inputs.first()?])
        }
        Operation::Elementwise(op) => of_elementwise(op, node),
        Operation::Gather(op) if looks_up(op) => {
            let [_, places] = *node.inputs else { return None };
            let same = four(&places)? == four(node.outputs.first()?)?;
            same.then(|| vec![places])
        }
        Operation::Concat(op) => {
            let [images, rows, columns, channels] = four(node.outputs.first()?)?;
            let side_by_side =
                op.inner == 1 && op.total().is(channels) && op.outer.is(images * rows * columns);
            (side_by_side && node.inputs.iter().all(|id| four(id).is_some())).then(|| node.inputs.clone())
        }
        Operation::Pad(op) => {
            let sizes = four(node.inputs.first()?)?;
            (op.input == sizes).then(|| node.inputs.clone())
        }
        _ => None,
    }
}

/// Whether each index becomes one element of a list, as TOSA's `TABLE` does.
fn looks_up(op: &Gather) -> bool {
    op.outer == 1 && op.inner == 1
}

fn of_elementwise(op: &Elementwise, node: &Node) -> Option<Vec<TensorId>> {
    let dims = op.dims();
    if dims.len() != 4 || !op.strided.is_empty() {
        return None;
    }
    let mut images = Vec::new();
    for (id, (_, own)) in node.inputs.iter().zip(&op.inputs.0) {
        if matches!(Read::of(own, &dims)?, Read::Image) {
            images.push(*id);
        }
    }
    Some(images)
}

/// How an expression over images reads one of its inputs, when the channels come first.
pub(super) enum Read {
    /// An image.
    Image,
    /// One element.
    One,
    /// With these dimensions, and all elements where they are.
    Lying(Vec<Size>),
}

impl Read {
    /// For an input of these dimensions, of an expression over images; `None` where its elements would have to move.
    pub fn of(own: &[Size], dims: &[Size]) -> Option<Read> {
        if own == dims {
            return Some(Read::Image);
        }
        if own.iter().all(|size| *size == 1) {
            return Some(Read::One);
        }
        let missing = std::iter::repeat_n(Size::constant(1), 4usize.checked_sub(own.len())?);
        let all: Vec<Size> = missing.chain(own.iter().copied()).collect();
        let lies = FIRST.into_iter().filter(|d| all[*d] != 1).is_sorted();
        lies.then(|| Read::Lying(FIRST.map(|d| all[d]).to_vec()))
    }
}
