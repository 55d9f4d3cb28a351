//! Picking and updating by index of tensors whose sizes are open: by places in the tensor as one line.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::TensorId;

impl Builder {
    /// Whether a dimension of a tensor is no plain number.
    pub(super) fn is_open(&self, ids: &[TensorId]) -> bool {
        ids.iter().any(|id| !self.tensor(*id).shape.is_constant())
    }

    /// Indices along a dimension of `size` places as numbers from 0 on; those below 0 count from the end, and those out of range
    /// become one that is out of the range of all.
    fn wrapped(&mut self, indices: TensorId, size: Size) -> Result<TensorId> {
        let indices = self.cast(indices, DType::I64)?;
        let size = self.computed(DType::I64, &[], vec![size])?;
        self.map(&[indices, size], DType::I64, |program, x| {
            let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
            let behind = program.call(Function::Add, &[x[0], x[1]]);
            let below = program.call(Function::Lt, &[x[0], int(0)]);
            let at = program.call(Function::Select, &[below, behind, x[0]]);
            let negative = program.call(Function::Lt, &[at, int(0)]);
            let above = program.call(Function::Ge, &[at, x[1]]);
            let outside = program.call(Function::Or, &[negative, above]);
            program.call(Function::Select, &[outside, int(i64::from(i32::MAX)), at])
        })
    }

    /// `index * stride + places`, where an index that is out of range stays so.
    fn along(&mut self, index: TensorId, stride: Size, places: Option<TensorId>) -> Result<TensorId> {
        let stride = self.computed(DType::I64, &[], vec![stride])?;
        let outside = i64::from(i32::MAX);
        let mut all = vec![index, stride];
        all.extend(places);
        self.map(&all, DType::I64, |program, x| {
            let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
            let mut outer = program.call(Function::Eq, &[x[0], int(outside)]);
            let mut at = program.call(Function::Mul, &[x[0], x[1]]);
            if let Some(places) = x.get(2) {
                at = program.call(Function::Add, &[at, *places]);
                let inner = program.call(Function::Eq, &[*places, int(outside)]);
                outer = program.call(Function::Or, &[outer, inner]);
            }
            program.call(Function::Select, &[outer, int(outside), at])
        })
    }

    /// [`Builder::gather_elements`] for any sizes.
    pub(super) fn gather_elements_flat(
        &mut self,
        data: TensorId,
        indices: TensorId,
        axis: usize,
    ) -> Result<TensorId> {
        let at = self.places_of_elements(data, indices, axis)?;
        let count = self.tensor(data).count();
        let line = self.reshape_to(data, &[count])?;
        self.gather(line, at, 0)
    }

    /// For each index along an axis its place in the data as one line.
    pub(super) fn places_of_elements(
        &mut self,
        data: TensorId,
        indices: TensorId,
        axis: usize,
    ) -> Result<TensorId> {
        let (from, dims) = (self.sizes(data).to_vec(), self.sizes(indices).to_vec());
        if axis >= from.len() || dims.len() != from.len() {
            return Err(self.invalid(format!("no elements by index: {}", self.describe(&[data, indices]))));
        }
        let strides = halite_ops::moves::dense_strides(&from);
        let index = self.wrapped(indices, from[axis])?;
        let mut at = self.along(index, strides[axis], None)?;
        for (d, size) in dims.iter().enumerate().filter(|(d, size)| *d != axis && **size != 1) {
            let mut shape = vec![Size::constant(1); dims.len()];
            shape[d] = *size;
            let places = self.line_of_places(DType::I64, *size)?;
            let places = self.reshape_to(places, &shape)?;
            at = self.along(places, strides[d], Some(at))?;
        }
        Ok(at)
    }

    /// [`Builder::gather_nd`] for any sizes.
    pub(super) fn gather_nd_flat(
        &mut self,
        data: TensorId,
        indices: TensorId,
        batch: usize,
    ) -> Result<TensorId> {
        let (from, places) = (self.sizes(data).to_vec(), self.sizes(indices).to_vec());
        let depth = places.last().filter(|depth| depth.is_constant()).map(|depth| depth.value() as usize);
        let end = batch.saturating_add(depth.unwrap_or(usize::MAX));
        let agree = |(a, b): (&Size, &Size)| a.agrees(*b);
        if end > from.len() || batch >= places.len() || !from[..batch].iter().zip(&places).all(agree) {
            return Err(self.invalid(format!("no slices of {}", self.describe(&[data, indices]))));
        }
        let at = self.places_of_slices(indices, &from[batch..end])?;
        let dims = [&places[..places.len() - 1], &from[end..]].concat();
        let slices: Size = places[batch..places.len() - 1].iter().product();
        let (outer, inner): (Size, Size) = (from[..batch].iter().product(), from[end..].iter().product());
        let extent: Size = from[batch..end].iter().product();
        let mut at = self.reshape_to(at, &[outer, slices])?;
        if batch > 0 {
            let own = self.line_of_places(DType::I64, outer)?;
            let own = self.reshape_to(own, &[outer, Size::constant(1)])?;
            at = self.along(own, extent, Some(at))?;
        }
        let rows = self.reshape_to(data, &[outer * extent, inner])?;
        let at = self.reshape_to(at, &[outer * slices])?;
        let made = self.gather(rows, at, 0)?;
        self.reshape_to(made, &dims)
    }

    /// The indices in the last dimension, each along one of `extents`, as places in a line of those: one for each.
    pub(super) fn places_of_slices(&mut self, indices: TensorId, extents: &[Size]) -> Result<TensorId> {
        let mut dims = self.sizes(indices).to_vec();
        let last = dims.len() - 1;
        dims.truncate(last);
        let strides = halite_ops::moves::dense_strides(extents);
        let mut at = None;
        for (column, (extent, stride)) in extents.iter().zip(strides).enumerate() {
            let mut ranges: Vec<super::Range<Size>> =
                dims.iter().map(|size| super::Range::all(*size)).collect();
            ranges.push(super::Range { start: column.into(), step: 1, count: 1.into() });
            let one = self.slice(indices, &ranges)?;
            let one = self.reshape_to(one, &dims)?;
            let one = self.wrapped(one, *extent)?;
            at = Some(self.along(one, stride, at)?);
        }
        match at {
            Some(at) => Ok(at),
            None => {
                let zero = self.values(DType::I64, &[], &halite_ops::Values::Int(vec![0]))?;
                self.expand_to(zero, &dims)
            }
        }
    }
}
