//! Caches that hold a window alone (`sliding_window_cache` of `GroupQueryAttention`): which rows of a sequence they hold follows from how many
//! tokens it has had, so calls of many tokens leave what calls of one would.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{NodeView, Result};
use crate::{build::Builder, graph::TensorId};

/// A cache of `capacity` rows for the last keys of each sequence.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) capacity: Size,
    /// The first row of the old rows with this call's behind them that stays, `i64[batch]`.
    first: TensorId,
    /// How many old rows count in each sequence, `i64[batch]`.
    pub(super) held: TensorId,
}

impl Window {
    /// How many keys a query sees, if the node's caches hold no more.
    pub(super) fn size(node: &NodeView<'_>) -> Result<Option<u64>> {
        if !node.flag("sliding_window_cache", false)? {
            return Ok(None);
        }
        match u64::try_from(node.int("local_window_size", -1)?) {
            Ok(size) if size > 0 => Ok(Some(size)),
            _ => Err(node.invalid("sliding_window_cache=1 needs a local_window_size")),
        }
    }

    /// A window of `size` keys, a query's own among them, over a cache of `held` rows, of sequences that had `before` keys and have `after`
    /// (`i64[batch]`). A cache with fewer rows, or none yet, gets as many.
    pub(super) fn of(
        b: &mut Builder,
        size: u64,
        held: Size,
        [before, after]: [TensorId; 2],
    ) -> Result<Window> {
        let capacity = held.max(size);
        let old = evicted(b, size, capacity, before)?;
        let now = evicted(b, size, capacity, after)?;
        let (held, first) = (b.binary(Function::Sub, before, old)?, b.binary(Function::Sub, now, old)?);
        Ok(Window { capacity, first, held })
    }

    /// What stays of rows `[batch, heads, rows, dim]`, those of the cache with this call's behind them: as many as the cache has places. Rows
    /// behind the last key are any.
    pub(super) fn kept(self, b: &mut Builder, rows: TensorId) -> Result<TensorId> {
        let &[batch, heads, count, dim] = b.sizes(rows) else {
            return Err(b.invalid("keys have four dimensions"));
        };
        let lines = batch * heads;
        let places = b.count_from(0, self.capacity)?;
        let places = b.reshape_to(places, &[1.into(), 1.into(), self.capacity])?;
        let first = b.reshape_to(self.first, &[batch, 1.into(), 1.into()])?;
        let last = b.computed(DType::I64, &[], vec![count - 1])?;
        let starts = b.count_from(0, lines)?;
        let starts = b.reshape_to(starts, &[batch, heads, 1.into()])?;
        let each = b.computed(DType::I64, &[], vec![count])?;
        let from = b.map(&[places, first, last, starts, each], DType::I64, |p, x| {
            let row = p.call(Function::Add, &[x[0], x[1]]);
            let row = p.call(Function::Min, &[row, x[2]]);
            let start = p.call(Function::Mul, &[x[3], x[4]]);
            p.call(Function::Add, &[start, row])
        })?;
        let from = b.reshape_to(from, &[lines * self.capacity])?;
        let flat = b.reshape_to(rows, &[lines * count, dim])?;
        let kept = b.gather(flat, from, 0)?;
        b.reshape_to(kept, &[batch, heads, self.capacity, dim])
    }
}

/// How many rows of sequences with so many keys are gone from a cache: as many at once as it has more than the window, and one.
fn evicted(b: &mut Builder, size: u64, capacity: Size, keys: TensorId) -> Result<TensorId> {
    let at_once = b.computed(DType::I64, &[], vec![capacity - size + 1])?;
    let size = b.computed(DType::I64, &[], vec![size.into()])?;
    b.map(&[keys, at_once, size], DType::I64, |p, x| {
        let beyond = p.call(Function::Sub, &[x[0], x[2]]);
        let beyond = p.call(Function::Max, &[beyond, Operand::Constant(Scalar::Int(0, DType::I64))]);
        let times = p.call(Function::Div, &[beyond, x[1]]);
        p.call(Function::Mul, &[times, x[1]])
    })
}
