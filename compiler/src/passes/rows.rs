//! Attention reads queries, keys and values where they lie, such as in one tensor of all three, and writes its result in the
//! order in which it is read: no copy brings heads together or takes them apart.

use halite_ops::{
    Operation,
    attention::{Attention, Mask},
    copy::StridedCopy,
    rows::Rows,
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

/// Puts attention over rows in the place of attention, and of copies of its results; what is not needed any more goes with the
/// next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, |(operation, inputs), _, node| {
        vec![Node { op: NodeOp::Operation(Operation::Attention(operation)), inputs, ..node.clone() }]
    })
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<(Attention, Vec<TensorId>)> {
    let (operation, inputs) = match &node.op {
        NodeOp::Operation(Operation::Attention(attention)) => {
            let images = of_images(chain, attention, &node.inputs);
            images
                .and_then(|images| read(chain, &images, &node.inputs))
                .or_else(|| read(chain, attention, &node.inputs))?
        }
        NodeOp::Operation(Operation::StridedCopy(copy)) => written(chain, copy, node)?,
        _ => return None,
    };
    crate::backend::check(&Operation::Attention(operation.clone())).ok()?;
    Some((operation, inputs))
}

/// The same attention with as many heads to an image as copies of its inputs tell apart, where exporters made one dimension of
/// images and heads.
fn of_images(chain: &Chain<'_>, attention: &Attention, ids: &[TensorId]) -> Option<Attention> {
    let heads = starts(chain, attention, ids).into_iter().find_map(|start| {
        let Some(Node { op: NodeOp::Operation(Operation::StridedCopy(copy)), inputs, .. }) =
            chain.producer(start.tensor)
        else {
            return None;
        };
        let whole = start.through(copy, chain.behind_views(inputs[0]));
        start.parting(copy).filter(|(dim, _)| whole.is_none() && *dim == HEADS).map(|(_, heads)| heads)
    })?;
    grouped(attention, heads)
}

/// The place of heads in what attention reads and writes.
const HEADS: usize = 1;

/// Attention of one image as that of several, with so many heads each.
fn grouped(attention: &Attention, heads: Size) -> Option<Attention> {
    let heads = heads.is_constant().then(|| heads.exact()).filter(|heads| *heads > 0)?;
    let plain = attention.batch.is(1.into()) && attention.kv_heads.is_none() && attention.capacity.is_none();
    let mask = match attention.mask {
        Mask::None | Mask::Shared => true,
        Mask::Full => attention.mask_batches.is_none(),
        Mask::Batch => false,
    };
    if !plain || !mask || attention.lengths || !attention.heads.is_multiple_of(heads) {
        return None;
    }
    let rows = |own: &Option<Box<Rows>>| {
        own.as_ref().map(|own| Box::new(Rows { batch: own.head * Size::from(heads), ..**own }))
    };
    Some(Attention {
        batch: (attention.heads / heads).into(),
        heads,
        q_rows: rows(&attention.q_rows),
        k_rows: rows(&attention.k_rows),
        v_rows: rows(&attention.v_rows),
        out_rows: rows(&attention.out_rows),
        ..attention.clone()
    })
}

/// What attention reads: queries, keys, values.
pub(super) fn starts(chain: &Chain<'_>, attention: &Attention, ids: &[TensorId]) -> [Strided; 3] {
    let shapes = [attention.query_shape(), attention.key_shape(), attention.key_shape()];
    let rows = attention.rows();
    [0, 1, 2].map(|input| Strided {
        tensor: chain.behind_views(ids[input]),
        offset: rows[input].offset,
        sizes: shapes[input].to_vec(),
        strides: vec![rows[input].batch, rows[input].head, rows[input].row, 1.into()],
    })
}

/// Attention that reads what copies of its inputs read.
fn read(chain: &Chain<'_>, attention: &Attention, ids: &[TensorId]) -> Option<(Attention, Vec<TensorId>)> {
    let (mut operation, mut inputs) = (attention.clone(), ids.to_vec());
    let mut changed = false;
    for (input, start) in starts(chain, attention, ids).into_iter().enumerate() {
        let Some((seen, source)) = behind(chain, start, attention) else { continue };
        let own = [&mut operation.q_rows, &mut operation.k_rows, &mut operation.v_rows];
        let whole = halite_sizes::is_worth(|| seen.is_all(source));
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
    let (attention, rows) = reordered(attention, copy, node.outputs[0])?;
    Some((Attention { out_rows: Some(Box::new(rows)), ..attention }, producer.inputs.clone()))
}

/// The same attention, with images told from heads where that is needed, and where its results lie in a tensor that a copy makes of
/// all of them.
pub(super) fn reordered(
    attention: &Attention,
    copy: &StridedCopy,
    tensor: TensorId,
) -> Option<(Attention, Rows)> {
    let back = inverse(copy)?;
    let own = placed(attention, &back, tensor).map(|rows| (attention.clone(), rows));
    own.or_else(|| {
        let (_, heads) = results(attention, tensor).parting(&back).filter(|(dim, _)| *dim == HEADS)?;
        let images = grouped(attention, heads)?;
        let rows = placed(&images, &back, tensor)?;
        Some((images, rows))
    })
}

/// The results of attention as they lie.
fn results(attention: &Attention, tensor: TensorId) -> Strided {
    let dense = Rows::dense(attention.batch, attention.heads, attention.q_len, attention.head_dim);
    let strides = vec![dense.batch, dense.head, dense.row, 1.into()];
    Strided { tensor, offset: 0.into(), sizes: attention.query_shape().to_vec(), strides }
}

/// Where they go by a copy, of which this is the way back.
fn placed(attention: &Attention, back: &StridedCopy, tensor: TensorId) -> Option<Rows> {
    let placed = results(attention, tensor).through(back, tensor)?;
    let [batch, head, row, last] = placed.strides[..] else { return None };
    let source = attention.query_shape().iter().product();
    let rows = Rows { source, offset: placed.offset, batch, head, row };
    let fits = (last.is(1.into()) || attention.head_dim == 1) && rows.is_order(attention.query_shape());
    fits.then_some(rows)
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
    fn heads_of_all_images_are_read_and_written_in_place() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 5, 3, 4, 8]).unwrap();
        let turned = b.transpose(x, &[2, 0, 3, 1, 4]).unwrap();
        // Images and heads are one dimension here.
        let [q, k, v] = [0, 1, 2].map(|part| {
            let mut ranges: Vec<Range> = b.dims(turned).iter().map(|size| Range::all(*size)).collect();
            ranges[0] = Range { start: part, step: 1, count: 1 };
            let part = b.slice(turned, &ranges).unwrap();
            b.reshape(part, &[8, 5, 8]).unwrap()
        });
        let operation = Attention::new(8, 5, 5, 8, DType::F32);
        let out = b.kernel1(Operation::Attention(operation), &[q, k, v], F32, &[8, 5, 8]).unwrap();
        let out = b.reshape(out, &[2, 4, 5, 8]).unwrap();
        let out = b.transpose(out, &[0, 2, 1, 3]).unwrap();
        b.output("y", out);
        let graph = optimized(b.finish().unwrap());
        let [Operation::Attention(attention)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert!(attention.batch == 2 && attention.heads == 4, "{graph}");
        assert_eq!(
            attention.v_rows.as_ref().map(|rows| [rows.batch, rows.head]),
            Some([480, 8].map(Size::from))
        );
        assert_eq!(
            attention.out_rows.as_ref().map(|rows| [rows.head, rows.row]),
            Some([8, 32].map(Size::from))
        );
    }

    #[test]
    fn results_alone_tell_images_from_heads() {
        let mut b = Builder::new();
        let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[8, 5, 8]).unwrap());
        let operation = Attention::new(8, 5, 5, 8, DType::F32);
        let out = b.kernel1(Operation::Attention(operation), &[q, k, v], F32, &[8, 5, 8]).unwrap();
        let out = b.reshape(out, &[2, 4, 5, 8]).unwrap();
        let out = b.transpose(out, &[0, 2, 1, 3]).unwrap();
        b.output("y", out);
        let graph = optimized(b.finish().unwrap());
        let [Operation::Attention(attention)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert!(attention.batch == 2 && attention.heads == 4, "{graph}");
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
