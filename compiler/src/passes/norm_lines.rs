//! Layer normalizations read lines where they lie, such as columns of pictures, and write them in the order in which they are
//! read: no copy makes rows of them first, or windows or pictures afterwards.

use halite_ops::{
    Operation,
    copy::StridedCopy,
    line_order::{LineOrder, MOST_LINE_DIMS},
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    strides::{Strided, inverse},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Most dimensions on the way.
const MOST_DIMS: usize = 8;

/// Takes copies into the normalizations before and behind them; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, |(norm, inputs), _, node| {
        vec![Node { op: NodeOp::Operation(Operation::Norm(norm)), inputs, ..node.clone() }]
    })
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<(Norm, Vec<TensorId>)> {
    let (norm, inputs) = match &node.op {
        NodeOp::Operation(Operation::Norm(norm)) => read(chain, norm, &node.inputs)?,
        NodeOp::Operation(Operation::StridedCopy(copy)) => written(chain, copy, node)?,
        _ => return None,
    };
    crate::backend::check(&Operation::Norm(norm.clone())).ok()?;
    Some((norm, inputs))
}

/// Lines in the order in which they are counted, and the elements of each as the last dimension.
struct Walk {
    /// Elements of the tensor that is read.
    source: Size,
    from: Strided,
    to: Strided,
}

impl Walk {
    fn of(norm: &Norm, id: TensorId) -> Option<Walk> {
        let is_plain = norm.activation.is_none() && !norm.channels_last && norm.kind != NormKind::Batch;
        if !is_plain || norm.groups != 1 || norm.spatial != 1 || norm.batch == 0 {
            return None;
        }
        let channels = Size::from(norm.channels);
        let order = match &norm.order {
            Some(order) => (**order).clone(),
            None => LineOrder {
                sizes: vec![norm.batch],
                source: norm.batch * channels,
                offset: 0.into(),
                from: vec![channels, 1.into()],
                to: vec![channels, 1.into()],
            },
        };
        let mut sizes = order.sizes;
        sizes.push(channels);
        let from = Strided { tensor: id, offset: order.offset, sizes: sizes.clone(), strides: order.from };
        let to = Strided { tensor: id, offset: 0.into(), sizes, strides: order.to };
        Some(Walk { source: order.source, from, to })
    }

    /// Takes a dimension of lines apart; those of elements stay together.
    fn part(&mut self, dim: usize, inner: Size) -> Option<()> {
        let lines = self.from.sizes.len() - 1;
        (dim < lines && lines < MOST_DIMS).then(|| {
            self.from.part(dim, inner);
            self.to.part(dim, inner);
        })
    }

    /// Reads what a copy reads.
    fn read_behind(&mut self, copy: &StridedCopy, source: TensorId) -> Option<()> {
        loop {
            if let Some(from) = self.from.through(copy, source) {
                (self.from, self.source) = (from, copy.source);
                return Some(());
            }
            let (dim, inner) = self.from.parting(copy)?;
            self.part(dim, inner)?;
        }
    }

    /// Writes to where a copy of the result has it, which this copy undoes.
    fn write_behind(&mut self, undone: &StridedCopy, result: TensorId) -> Option<()> {
        loop {
            if let Some(to) = self.to.through(undone, result) {
                self.to = to;
                return Some(());
            }
            let (dim, inner) = self.to.parting(undone)?;
            self.part(dim, inner)?;
        }
    }

    /// The normalization with this order, which has as few dimensions as it can.
    fn norm(self, norm: &Norm) -> Option<Norm> {
        let (channels, last) = (Size::from(norm.channels), self.from.sizes.len() - 1);
        let (mut sizes, mut from, mut to) = (Vec::<Size>::new(), Vec::<Size>::new(), Vec::<Size>::new());
        let lines = self.from.sizes[..last].iter().zip(&self.from.strides).zip(&self.to.strides);
        for ((size, read), write) in lines.filter(|((size, _), _)| **size != 1) {
            match (sizes.last_mut(), from.last_mut(), to.last_mut()) {
                (Some(count), Some(reads), Some(writes))
                    if reads.is(*read * *size) && writes.is(*write * *size) =>
                {
                    *count *= size;
                    (*reads, *writes) = (*read, *write);
                }
                _ => {
                    sizes.push(*size);
                    from.push(*read);
                    to.push(*write);
                }
            }
        }
        if sizes.is_empty() {
            (sizes, from, to) = (vec![1.into()], vec![channels], vec![channels]);
        }
        // One element has no neighbours.
        let step = |walk: &Strided| if channels == 1 { 1.into() } else { walk.strides[last] };
        from.push(step(&self.from));
        to.push(step(&self.to));
        let dense =
            |strides: &[Size]| matches!(strides, [line, step] if step.is(1.into()) && line.is(channels));
        let whole = self.source == norm.batch * channels && self.from.offset.is(0.into());
        if whole && dense(&from) && dense(&to) {
            return Some(Norm { order: None, ..norm.clone() });
        }
        let order = LineOrder { sizes, source: self.source, offset: self.from.offset, from, to };
        (order.sizes.len() <= MOST_LINE_DIMS).then(|| Norm { order: Some(Box::new(order)), ..norm.clone() })
    }
}

/// A normalization that reads what a copy for it alone reads.
fn read(chain: &Chain<'_>, norm: &Norm, ids: &[TensorId]) -> Option<(Norm, Vec<TensorId>)> {
    let (producer, Operation::StridedCopy(copy)) = chain.only_maker(ids[0])? else { return None };
    let mut walk = Walk::of(norm, ids[0]).filter(|_| copy.dtype == norm.dtype)?;
    walk.read_behind(copy, chain.behind_views(producer.inputs[0]))?;
    let mut inputs = ids.to_vec();
    inputs[0] = walk.from.tensor;
    Some((walk.norm(norm)?, inputs))
}

/// A normalization whose results lie as a copy of them alone has them.
fn written(chain: &Chain<'_>, copy: &StridedCopy, node: &Node) -> Option<(Norm, Vec<TensorId>)> {
    let (producer, Operation::Norm(norm)) = chain.only_maker(node.inputs[0])? else { return None };
    let mut walk = Walk::of(norm, producer.inputs[0]).filter(|_| copy.dtype == norm.dtype)?;
    walk.write_behind(&inverse(copy)?, node.outputs[0])?;
    Some((walk.norm(norm)?, producer.inputs.clone()))
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::Builder;

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    fn layer_norm(b: &mut Builder, x: TensorId) -> TensorId {
        let dims = b.dims(x).to_vec();
        let (channels, batch) = (*dims.last().unwrap(), dims[..dims.len() - 1].iter().product::<u64>());
        let [scale, bias] = [1, 2].map(|seed| constant(b, &[channels], seed));
        let plain = Norm::of_lines(NormKind::Group, batch.into(), channels, 1e-5.into(), DType::F32);
        let norm = Norm { scale: true, bias: true, ..plain };
        b.kernel1(Operation::Norm(norm), &[x, scale, bias], F32, &dims).unwrap()
    }

    fn orders(graph: &Graph) -> Vec<Option<LineOrder>> {
        let order = |operation: &Operation| match operation {
            Operation::Norm(norm) => norm.order.as_deref().cloned(),
            other => panic!("{other}"),
        };
        kernels(graph).into_iter().map(order).collect()
    }

    #[test]
    fn columns_are_read_and_written_where_they_lie() {
        for back in [false, true] {
            let mut b = Builder::new();
            let x = b.input("x", F32, &[2, 6, 4, 5]).unwrap();
            let rows = b.transpose(x, &[0, 2, 3, 1]).unwrap();
            let mut y = layer_norm(&mut b, rows);
            if back {
                y = b.transpose(y, &[0, 3, 1, 2]).unwrap();
            }
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let [Some(order)] = &orders(&graph)[..] else { panic!("{graph}") };
            let (from, to) = order.steps();
            assert_eq!(
                (from, to, order.sizes.len()),
                (20.into(), if back { 20 } else { 1 }.into(), 2),
                "{graph}"
            );
        }
    }

    #[test]
    fn windows_are_written_one_behind_the_other() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 4, 6, 8]).unwrap();
        let y = layer_norm(&mut b, x);
        let y = b.reshape(y, &[1, 2, 2, 2, 3, 8]).unwrap();
        let y = b.transpose(y, &[0, 1, 3, 2, 4, 5]).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [Some(order)] = &orders(&graph)[..] else { panic!("{graph}") };
        assert_eq!(order.steps(), (1.into(), 1.into()), "{graph}");
    }

    #[test]
    fn copies_that_others_read_stay() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 6, 20]).unwrap();
        let rows = b.transpose(x, &[0, 2, 1]).unwrap();
        let y = layer_norm(&mut b, rows);
        b.output("y", y);
        b.output("rows", rows);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(kernels(&graph).len(), 2, "{graph}");
    }
}
