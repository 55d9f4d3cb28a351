//! Borders around tensors.

use halite_ops::{
    Operation,
    pad::{Border, Pad},
};

use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::TensorId;

/// A dimension and what is put before and behind it; less than 0 cuts.
type Bordered = (Size, Size, Size);

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
        let borders: Vec<[Size; 2]> = borders.iter().map(|(a, z)| [(*a).into(), (*z).into()]).collect();
        self.pad_open(tensor, &borders, border, value)
    }

    /// The same with borders whose sizes may be open.
    ///
    /// # Errors
    /// As [`Builder::pad`].
    pub fn pad_open(
        &mut self,
        tensor: TensorId,
        borders: &[[Size; 2]],
        border: Border,
        value: f64,
    ) -> Result<TensorId> {
        if borders.len() != self.rank(tensor) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("{} borders for {what}", borders.len())));
        }
        if borders.iter().flatten().all(|size| size.is(0.into())) {
            return Ok(tensor);
        }
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let all: Vec<Bordered> = dims.iter().zip(borders).map(|(size, [a, z])| (*size, *a, *z)).collect();
        let size = |(size, before, behind): &Bordered| {
            let size = *size + *before + *behind;
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

/// Neighbours without borders as one dimension.
fn join(all: &[Bordered]) -> Vec<Bordered> {
    let mut joined: Vec<Bordered> = Vec::new();
    let none = |before: &Size, behind: &Size| before.is(0.into()) && behind.is(0.into());
    for (size, before, behind) in all {
        match joined.last_mut() {
            Some((outer, a, z)) if none(a, z) && none(before, behind) => *outer *= *size,
            _ => joined.push((*size, *before, *behind)),
        }
    }
    joined
}
