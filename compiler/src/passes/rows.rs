//! Attention reads queries, keys and values where they lie, such as in one tensor of all three, and writes its result in the
//! order in which it is read: no copy brings heads together or takes them apart.

use halite_ops::{Operation, attention::Attention, copy::StridedCopy, rows::Rows};
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

/// Puts attention over rows in the place of attention, and of copies of its results; what is not needed any more goes with the
/// next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, |(operation, inputs), _, node| {
        vec![Node { op: NodeOp::Operation(Operation::Attention(operation)), inputs, ..node.clone() }]
    })
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<(Attention, Vec<TensorId>)> {
    let (operation, inputs) = match &node.op {
        NodeOp::Operation(Operation::Attention(attention)) => read(chain, attention, &node.inputs)?,
        NodeOp::Operation(Operation::StridedCopy(copy)) => written(chain, copy, node)?,
        _ => return None,
    };
    crate::backend::check(&Operation::Attention(operation.clone())).ok()?;
    Some((operation, inputs))
}

/// Attention that reads what copies of its inputs read.
fn read(chain: &Chain<'_>, attention: &Attention, ids: &[TensorId]) -> Option<(Attention, Vec<TensorId>)> {
    let (mut operation, mut inputs) = (attention.clone(), ids.to_vec());
    let shapes = [attention.query_shape(), attention.key_shape(), attention.key_shape()];
    let mut changed = false;
    for (input, (rows, shape)) in attention.rows().into_iter().zip(shapes).enumerate() {
        let start = Strided {
            tensor: chain.behind_views(ids[input]),
            offset: rows.offset,
            sizes: shape.to_vec(),
            strides: vec![rows.batch, rows.head, rows.row, 1.into()],
        };
        let Some((seen, source)) = behind(chain, start, attention) else { continue };
        let own = [&mut operation.q_rows, &mut operation.k_rows, &mut operation.v_rows];
        let whole = seen.is_all(source);
        let [batch, head, row, _] = seen.strides[..] else { return None };
        let rows = Rows { source, offset: seen.offset, batch, head, row };
        *own[input] =
            if whole && !(input > 0 && attention.capacity.is_some()) { None } else { Some(Box::new(rows)) };
        (inputs[input], changed) = (seen.tensor, true);
    }
    changed.then_some((operation, inputs))
}

/// Where rows can be read that lie together, farthest back behind the copies that make what is read; and the elements of that
/// tensor.
fn behind(chain: &Chain<'_>, start: Strided, attention: &Attention) -> Option<(Strided, Size)> {
    let (mut seen, mut best) = (start, None);
    while let Some(Node { op: NodeOp::Operation(Operation::StridedCopy(copy)), inputs, .. }) =
        chain.producer(seen.tensor)
    {
        let next =
            seen.through(copy, chain.behind_views(inputs[0])).filter(|_| copy.dtype == attention.dtype);
        let Some(next) = next else { break };
        let [outer @ .., last] = &next.strides[..] else { break };
        let together = last.is(1.into()) || attention.head_dim == 1;
        if together && outer.iter().all(|stride| *stride >= 0) {
            best = Some((next.clone(), copy.source));
        }
        seen = next;
    }
    best
}

/// Attention that writes its results as a copy of them alone has them.
fn written(chain: &Chain<'_>, copy: &StridedCopy, node: &Node) -> Option<(Attention, Vec<TensorId>)> {
    let (producer, Operation::Attention(attention)) = chain.only_maker(node.inputs[0])? else { return None };
    if attention.out_rows.is_some() || copy.dtype != attention.dtype {
        return None;
    }
    let shape = attention.query_shape();
    let dense = Rows::dense(attention.batch, attention.heads, attention.q_len, attention.head_dim);
    let results = Strided {
        tensor: node.outputs[0],
        offset: 0.into(),
        sizes: shape.to_vec(),
        strides: vec![dense.batch, dense.head, dense.row, 1.into()],
    };
    let placed = results.through(&inverse(copy)?, node.outputs[0])?;
    let [batch, head, row, last] = placed.strides[..] else { return None };
    let rows = Rows { source: copy.source, offset: placed.offset, batch, head, row };
    let fits = (last.is(1.into()) || attention.head_dim == 1) && rows.is_order(shape);
    fits.then(|| (Attention { out_rows: Some(Box::new(rows)), ..attention.clone() }, producer.inputs.clone()))
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::{Builder, Range};

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    /// Attention of a packed tensor `[batch, tokens, 3, heads, dim]`, as exporters write it.
    fn attended(b: &mut Builder, x: TensorId, order: &[usize]) -> TensorId {
        let dims = b.dims(x).to_vec();
        let [batch, tokens, _, heads, dim] = dims[..] else { panic!() };
        let turned = b.transpose(x, &[2, 0, 3, 1, 4]).unwrap();
        let shape = [batch, heads, tokens, dim];
        let [q, k, v] = [0, 1, 2].map(|part| {
            let mut ranges: Vec<Range> = b.dims(turned).iter().map(|size| Range::all(*size)).collect();
            ranges[0] = Range { start: part, step: 1, count: 1 };
            let part = b.slice(turned, &ranges).unwrap();
            b.reshape(part, &shape).unwrap()
        });
        let operation =
            Attention { batch: batch.into(), ..Attention::new(heads, tokens, tokens, dim, DType::F32) };
        let out = b.kernel1(Operation::Attention(operation), &[q, k, v], F32, &shape).unwrap();
        b.transpose(out, order).unwrap()
    }

    #[test]
    fn packed_heads_are_read_and_written_in_place() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 5, 3, 4, 8]).unwrap();
        let y = attended(&mut b, x, &[0, 2, 1, 3]);
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [Operation::Attention(attention)] = kernels(&graph)[..] else { panic!("{graph}") };
        let rows = |offset: u64| {
            let [source, offset, batch, head, row] = [960, offset, 480, 8, 96].map(Size::from);
            Some(Rows { source, offset, batch, head, row })
        };
        assert_eq!(
            [&attention.q_rows, &attention.k_rows, &attention.v_rows].map(|rows| rows.as_deref().copied()),
            [rows(0), rows(32), rows(64)],
            "{graph}"
        );
        assert_eq!(
            attention.out_rows.as_ref().map(|rows| [rows.head, rows.row]),
            Some([8, 32].map(Size::from))
        );
    }

    #[test]
    fn rows_that_are_torn_are_copied() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 5, 3, 4, 8]).unwrap();
        // Elements of a row are apart in the result.
        let y = attended(&mut b, x, &[0, 3, 1, 2]);
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert_eq!(names, ["attention", "copy"], "{graph}");
    }
}
