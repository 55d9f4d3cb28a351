//! Reductions along axes.

use halite_ops::reduce::ReduceKind;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const OPS: &[(&str, Import)] = &[
    ("ReduceL1", |b, node| reduce(b, node, ReduceKind::L1)),
    ("ReduceL2", |b, node| reduce(b, node, ReduceKind::L2)),
    ("ReduceLogSum", |b, node| reduce(b, node, ReduceKind::LogSum)),
    ("ReduceLogSumExp", |b, node| reduce(b, node, ReduceKind::LogSumExp)),
    ("ReduceMax", |b, node| reduce(b, node, ReduceKind::Max)),
    ("ReduceMean", |b, node| reduce(b, node, ReduceKind::Mean)),
    ("ReduceMin", |b, node| reduce(b, node, ReduceKind::Min)),
    ("ReduceProd", |b, node| reduce(b, node, ReduceKind::Prod)),
    ("ReduceSum", |b, node| reduce(b, node, ReduceKind::Sum)),
    ("ReduceSumSquare", |b, node| reduce(b, node, ReduceKind::SumSquare)),
];

fn reduce(b: &mut Builder, node: &NodeView<'_>, kind: ReduceKind) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let rank = b.rank(x);
    let axes = node.ints_of(b, "axes", 1, "the axes of a reduction")?.unwrap_or_default();
    let axes = match node.axes(&axes, rank)? {
        none if none.is_empty() && !node.flag("noop_with_empty_axes", false)? => (0..rank).collect(),
        axes => axes,
    };
    Ok(vec![b.reduce(kind, x, &axes, node.flag("keepdims", true)?)?])
}
