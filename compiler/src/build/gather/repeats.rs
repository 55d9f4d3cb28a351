//! What tensors repeat that were expanded, and which of them count along a dimension: exporters write `x[:, 1:] = y` as an update by
//! indices that are made so, and that are too many to be constants.

use std::collections::HashMap;

use halite_sizes::Size;

use super::super::{Builder, Range};
use crate::graph::TensorId;

/// Elements of a tensor that are looked at.
const FEW: u64 = 1 << 16;

/// Integers that are `start`, or as much more as the coordinate in a dimension is.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    start: i64,
    axis: Option<usize>,
}

/// What is known of tensors that were expanded.
#[derive(Debug, Default)]
pub(in crate::build) struct Repeats {
    of: HashMap<TensorId, TensorId>,
    ramps: HashMap<TensorId, Ramp>,
    /// Of indices `[…, depth]` one ramp for each of the last dimension.
    joined: HashMap<TensorId, Vec<Ramp>>,
}

impl Repeats {
    /// What a tensor repeats.
    pub(in crate::build) fn get(&self, id: TensorId) -> Option<TensorId> {
        self.of.get(&id).copied()
    }

    /// Forgets everything.
    pub(in crate::build) fn clear(&mut self) {
        *self = Repeats::default();
    }
}

impl Builder {
    /// Notes that a tensor repeats another.
    pub(in crate::build) fn remember_repeated(&mut self, made: TensorId, of: TensorId) {
        self.repeated.of.insert(made, of);
        let lead = self.rank(made) - self.rank(of);
        if let Some(Ramp { start, axis }) = self.ramp(of) {
            self.repeated.ramps.insert(made, Ramp { start, axis: axis.map(|axis| axis + lead) });
        }
    }

    /// Notes that a tensor is another with a dimension of one more, the last.
    pub(in crate::build) fn remember_unsqueezed(&mut self, made: TensorId, of: TensorId) {
        let Some(ramp) = self.repeated.ramps.get(&of).copied() else { return };
        let (own, other) = (self.sizes(made), self.sizes(of));
        let is_one = |size: &Size| size.is(1.into());
        let one_more = own.len() == other.len() + 1 && own.last().is_some_and(is_one);
        if one_more && own.iter().zip(other).all(|(a, b)| a.is(*b)) {
            self.repeated.ramps.insert(made, ramp);
        }
    }

    /// Notes what a tensor joins along its last dimension.
    pub(in crate::build) fn remember_joined(&mut self, made: TensorId, parts: &[TensorId]) {
        let ramps: Option<Vec<Ramp>> = parts
            .iter()
            .map(|id| self.ramp(*id).filter(|_| self.sizes(*id).last().is_some_and(|size| size.is(1.into()))))
            .collect();
        if let Some(ramps) = ramps {
            self.repeated.joined.insert(made, ramps);
        }
    }

    fn ramp(&self, id: TensorId) -> Option<Ramp> {
        if let Some(ramp) = self.repeated.ramps.get(&id) {
            return Some(*ramp);
        }
        if !self.is_fixed(id) || self.is_open(&[id]) || self.tensor(id).elements() > FEW {
            return None;
        }
        let long: Vec<usize> = (0..self.rank(id)).filter(|axis| self.dims(id)[*axis] != 1).collect();
        let values = self.ints(id)?;
        let start = *values.first()?;
        let counts = (0..).zip(&values).all(|(n, value)| start.checked_add(n) == Some(*value));
        match long[..] {
            [] => Some(Ramp { start, axis: None }),
            [axis] if counts => Some(Ramp { start, axis: Some(axis) }),
            _ => None,
        }
    }

    /// The box of data `dims` through which indices count that were joined of ramps, one for each of their dimensions.
    pub(super) fn joined_box(&self, indices: TensorId, dims: &[u64]) -> Option<Vec<Range>> {
        let ramps = self.repeated.joined.get(&indices)?;
        let counts = &self.dims(indices)[..self.rank(indices) - 1];
        if ramps.len() != dims.len() || counts.len() != dims.len() {
            return None;
        }
        let range = |(axis, ramp): (usize, &Ramp)| {
            let (size, count) = (dims[axis], counts[axis]);
            if ramp.axis != Some(axis) && (ramp.axis.is_some() || count != 1) {
                return None;
            }
            let from_end = if ramp.start < 0 { i64::try_from(size).ok()? } else { 0 };
            let start = u64::try_from(ramp.start.checked_add(from_end)?).ok()?;
            (start.checked_add(count)? <= size).then_some(Range { start, step: 1, count })
        };
        ramps.iter().enumerate().map(range).collect()
    }
}
