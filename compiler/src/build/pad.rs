//! Borders around tensors.

use halite_ops::{
    Operation,
    pad::{Border, Pad},
};

use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::TensorId;

/// A dimension and what is put before and behind it; less than 0 cuts.
type Bordered = (Size, i64, i64);

impl Builder {
    /// A tensor with borders: `(before, behind)` for each dimension, where less than 0 cuts. `value` is what a constant
    /// border consists of.
    ///
    /// # Errors
    /// There is not a border for each dimension, or it is cut to less than nothing.
    pub fn pad(
        &mut self,
        tensor: TensorId,
        borders: &[(i64, i64)],
        border: Border,
        value: f64,
    ) -> Result<TensorId> {
        if borders.len() != self.rank(tensor) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("{} borders for {what}", borders.len())));
        }
        if borders.iter().all(|border| *border == (0, 0)) {
            return Ok(tensor);
        }
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let all: Vec<Bordered> = dims.iter().zip(borders).map(|(size, (a, z))| (*size, *a, *z)).collect();
        let size = |(size, before, behind): &Bordered| {
            let size = *size + Size::from(*before) + Size::from(*behind);
            Size::constant(0).stays_within(size).then_some(size)
        };
        let Some(result) = all.iter().map(size).collect::<Option<Vec<Size>>>() else {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("borders {borders:?} of {what} leave less than nothing")));
        };
        let all = join(&all);
        let made = Pad {
            input: all.iter().map(|d| d.0).collect(),
            before: all.iter().map(|d| d.1).collect(),
            after: all.iter().map(|d| d.2).collect(),
            border,
            value: value.into(),
            dtype: element.storage(),
        };
        self.kernel1(Operation::Pad(made), &[tensor], element, &result)
    }
}

impl Builder {
    /// The same with borders of one value, whose sizes may be open.
    ///
    /// # Errors
    /// As [`Builder::pad`].
    pub fn pad_open(&mut self, tensor: TensorId, borders: &[[Size; 2]], value: f64) -> Result<TensorId> {
        if borders.len() != self.rank(tensor) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("{} borders for {what}", borders.len())));
        }
        let is_known = |both: &[Size; 2]| both.iter().all(|size| size.is_constant());
        let known: Vec<(i64, i64)> = borders
            .iter()
            .map(
                |both| if is_known(both) { (both[0].signed_value(), both[1].signed_value()) } else { (0, 0) },
            )
            .collect();
        let mut made = self.pad(tensor, &known, Border::Constant, value)?;
        for (axis, both) in borders.iter().enumerate().filter(|(_, both)| !is_known(both)) {
            made = self.bordered(made, axis, *both, value)?;
        }
        Ok(made)
    }

    /// A tensor with a border before and behind one dimension: less than 0 cuts.
    fn bordered(&mut self, tensor: TensorId, axis: usize, both: [Size; 2], value: f64) -> Result<TensorId> {
        let mut dims = self.sizes(tensor).to_vec();
        let mut more = [Size::constant(0); 2];
        let mut cut = more;
        for (side, size) in both.into_iter().enumerate() {
            match size.is_data() {
                // What data decide is added; a call of which that is not true fails.
                true if Size::constant(0).stays_within(size) => more[side] = size,
                true => {
                    return Err(self.unsupported(format!("a border of {size}, which data decide, that cuts")));
                }
                false if size < 0 => cut[side] = -size,
                false => more[side] = size,
            }
        }
        let left = dims[axis] - cut[0] - cut[1];
        if !Size::constant(0).stays_within(left) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("borders {both:?} of {what} leave less than nothing")));
        }
        let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
        ranges[axis] = Range { start: cut[0], step: 1, count: left };
        let middle = if left.is(dims[axis]) { tensor } else { self.slice(tensor, &ranges)? };
        let filler = self.float(self.element(tensor), value)?;
        let mut side = |b: &mut Self, size: Size| {
            dims[axis] = size;
            b.expand_to(filler, &dims)
        };
        let parts = [side(self, more[0])?, middle, side(self, more[1])?];
        self.concat(&parts, axis)
    }
}

/// Neighbours without borders as one dimension.
fn join(all: &[Bordered]) -> Vec<Bordered> {
    let mut joined: Vec<Bordered> = Vec::new();
    for (size, before, behind) in all {
        match joined.last_mut() {
            Some((outer, 0, 0)) if *before == 0 && *behind == 0 => *outer *= *size,
            _ => joined.push((*size, *before, *behind)),
        }
    }
    joined
}
