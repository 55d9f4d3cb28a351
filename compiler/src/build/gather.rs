//! Picking and updating of elements by index.

mod boxes;
mod repeats;

use halite_ops::{
    DType, Operation, gather::Gather, gather_elements::GatherElements, gather_nd::GatherNd,
    scatter_elements::ScatterElements, scatter_nd::ScatterNd, scatters::Reduction,
};

use halite_sizes::Size;

pub(super) use repeats::Repeats;

use super::{Builder, Result, order::Line};
use crate::graph::{ElementType, TensorId, elements};

/// Dimensions of data and of an index for each element, with neighbours as one where that means the same.
struct Joined {
    data: Vec<u64>,
    indices: Vec<u64>,
    axis: usize,
}

impl Joined {
    fn new(data: &[u64], indices: &[u64], axis: usize) -> Self {
        let mut joined = Joined { data: Vec::new(), indices: Vec::new(), axis };
        if data.len() != indices.len() || axis >= data.len() {
            return Joined { data: data.to_vec(), indices: indices.to_vec(), axis };
        }
        for (d, (size, count)) in data.iter().zip(indices).enumerate() {
            let behind_axis = d > 0 && d - 1 == axis;
            match (joined.data.last_mut(), joined.indices.last_mut()) {
                (Some(outer), Some(places)) if size == count && d != axis && !behind_axis => {
                    *outer = outer.saturating_mul(*size);
                    *places = places.saturating_mul(*count);
                }
                _ => {
                    joined.data.push(*size);
                    joined.indices.push(*count);
                }
            }
            if d == axis {
                joined.axis = joined.data.len() - 1;
            }
        }
        joined
    }
}

impl Builder {
    /// Indices as kernels take them: `i32` or `i64`.
    fn indices(&mut self, indices: TensorId) -> Result<(TensorId, DType)> {
        match self.element(indices).storage() {
            index @ (DType::I32 | DType::I64) => Ok((indices, index)),
            other if other.is_float() => Err(self.invalid(format!("indices of {other}"))),
            other => {
                let wide = if other.size() < 4 { DType::I32 } else { DType::I64 };
                Ok((self.cast(indices, wide)?, wide))
            }
        }
    }

    /// Places along an axis by index: the axis is replaced by the dimensions of the indices. Indices below 0 count from the
    /// end; what is out of range is zeros.
    ///
    /// # Errors
    /// The axis is none of the tensor's.
    pub fn gather(&mut self, data: TensorId, indices: TensorId, axis: usize) -> Result<TensorId> {
        let Line { outer, length, inner } = self.line(data, axis)?;
        let (element, from) = (self.element(data), self.sizes(data).to_vec());
        let dims = [&from[..axis], self.sizes(indices), &from[axis + 1..]].concat();
        let count = self.tensor(indices).count();
        let (indices, index) = self.indices(indices)?;
        let made = Gather::new(outer, length, inner, count, element.storage(), index);
        self.kernel1(Operation::Gather(made), &[data, indices], element, &dims)
    }

    /// Each element of the result by an index of its own along an axis (ONNX `GatherElements`).
    ///
    /// # Errors
    /// The dimensions do not go together.
    pub fn gather_elements(&mut self, data: TensorId, indices: TensorId, axis: usize) -> Result<TensorId> {
        if self.is_open(&[data, indices]) {
            return self.gather_elements_flat(data, indices, axis);
        }
        let (element, dims) = (self.element(data), self.dims(indices).to_vec());
        let (indices, index) = self.indices(indices)?;
        let joined = Joined::new(self.dims(data), &dims, axis);
        let Joined { data: from, indices: places, axis } = joined;
        let made = GatherElements { data: from, indices: places, axis, dtype: element.storage(), index };
        self.kernel1(Operation::GatherElements(made), &[data, indices], element, &dims)
    }

    /// Slices by several indices each, the last dimension of `indices` (ONNX `GatherND`). The first `batch` dimensions
    /// are those of both.
    ///
    /// # Errors
    /// The dimensions do not go together.
    pub fn gather_nd(&mut self, data: TensorId, indices: TensorId, batch: usize) -> Result<TensorId> {
        if self.is_open(&[data, indices]) {
            return self.gather_nd_flat(data, indices, batch);
        }
        let (element, from, places) =
            (self.element(data), self.dims(data).to_vec(), self.dims(indices).to_vec());
        let depth = places.last().map_or(usize::MAX, |depth| usize::try_from(*depth).unwrap_or(usize::MAX));
        let end = batch.saturating_add(depth);
        if end > from.len() || batch >= places.len() || from[..batch] != places[..batch] {
            return Err(self.invalid(format!("no slices of {}", self.describe(&[data, indices]))));
        }
        let dims = [&places[..places.len() - 1], &from[end..]].concat();
        if depth == 0 {
            let between = vec![1; places.len() - 1 - batch];
            let shaped = [&from[..batch], &between, &from[batch..]].concat();
            let data = self.reshape_to(data, &shaped)?;
            return self.expand_to(data, &dims);
        }
        let (indices, index) = self.indices(indices)?;
        let made = GatherNd {
            batch: elements(&from[..batch]),
            extents: from[batch..end].to_vec(),
            inner: elements(&from[end..]),
            slices: elements(&places[batch..places.len() - 1]),
            dtype: element.storage(),
            index,
        };
        self.kernel1(Operation::GatherNd(made), &[data, indices], element, &dims)
    }

    /// Data with elements updated by an index each along an axis (ONNX `ScatterElements`).
    ///
    /// # Errors
    /// The dimensions do not go together.
    pub fn scatter_elements(
        &mut self,
        [data, indices, updates]: [TensorId; 3],
        axis: usize,
        reduction: Reduction,
    ) -> Result<TensorId> {
        let same = |(a, b): (&Size, &Size)| a.agrees(*b);
        let (places, own) = (self.sizes(indices), self.sizes(updates));
        let fits = places.len() == own.len() && places.iter().zip(own).all(same);
        if !fits || self.element(updates) != self.element(data) {
            return Err(self.invalid(format!("no updates: {}", self.describe(&[data, indices, updates]))));
        }
        if let Some(sizes) = self.scattered_sizes([data, indices, updates], reduction) {
            return self.computed(self.element(data), &[sizes.len() as u64], sizes);
        }
        if axis == 0
            && let Some(rows) = self.rows_of_elements(data, indices)?
        {
            return self.scatter_nd([data, rows, updates], reduction);
        }
        if self.is_open(&[data, indices, updates]) {
            let at = self.places_of_elements(data, indices, axis)?;
            return self.scatter_line([data, at, updates], reduction);
        }
        let (element, dims) = (self.element(data), self.dims(data).to_vec());
        let places = self.dims(indices).to_vec();
        let (indices, index) = self.indices(indices)?;
        let (data, updates, dtype) = self.reducible(data, updates, reduction)?;
        let joined = Joined::new(&dims, &places, axis);
        let Joined { data: to, indices: places, axis } = joined;
        let made = ScatterElements { data: to, indices: places, axis, reduction, dtype, index };
        let made = self.kernel1(
            Operation::ScatterElements(made),
            &[data, indices, updates],
            self.element(data),
            &dims,
        )?;
        self.cast(made, element)
    }

    /// The elements of a shape, some of which others replace, where either are open: exporters write so the shape that indices of rows
    /// are repeated to.
    fn scattered_sizes(
        &self,
        [data, indices, updates]: [TensorId; 3],
        reduction: Reduction,
    ) -> Option<Vec<Size>> {
        let is_line = |id: TensorId| self.rank(id) == 1;
        if reduction != Reduction::None || ![data, indices, updates].into_iter().all(is_line) {
            return None;
        }
        let (mut sizes, new) = (self.size_values(data)?, self.size_values(updates)?);
        if sizes.iter().chain(&new).all(|size| size.is_constant()) {
            return None;
        }
        let count = i64::try_from(sizes.len()).ok()?;
        for (place, size) in self.ints(indices)?.into_iter().zip(new) {
            let place = if place < 0 { place + count } else { place };
            *sizes.get_mut(usize::try_from(place).ok()?)? = size;
        }
        Some(sizes)
    }

    /// The indices `[count, 1]` of whole rows of data, where indices of elements repeat them along all other dimensions.
    fn rows_of_elements(&mut self, data: TensorId, indices: TensorId) -> Result<Option<TensorId>> {
        let Some(rows) = self.repeated.get(indices) else { return Ok(None) };
        let (of, places, own) = (self.sizes(data), self.sizes(indices), self.sizes(rows));
        let whole = of.len() == places.len() && of.iter().zip(places).skip(1).all(|(a, b)| a.is(*b));
        let is_one = |size: &Size| size.is(1.into());
        if !whole || own.len() != places.len() || !own[0].is(places[0]) || !own[1..].iter().all(is_one) {
            return Ok(None);
        }
        let count = own[0];
        self.reshape_to(rows, &[count, 1.into()]).map(Some)
    }

    /// Data with elements updated, each at its place in the data as one line.
    fn scatter_line(
        &mut self,
        [data, places, updates]: [TensorId; 3],
        reduction: Reduction,
    ) -> Result<TensorId> {
        let dims = self.sizes(data).to_vec();
        let (count, slices) = (self.tensor(data).count(), self.tensor(places).count());
        let data = self.reshape_to(data, &[count])?;
        let places = self.reshape_to(places, &[slices, Size::constant(1)])?;
        let updates = self.reshape_to(updates, &[slices])?;
        let made = self.scatter_nd([data, places, updates], reduction)?;
        self.reshape_to(made, &dims)
    }

    /// Data with slices updated by several indices each (ONNX `ScatterND`).
    ///
    /// # Errors
    /// The dimensions do not go together.
    pub fn scatter_nd(
        &mut self,
        [data, indices, updates]: [TensorId; 3],
        reduction: Reduction,
    ) -> Result<TensorId> {
        let (element, dims, places) =
            (self.element(data), self.sizes(data).to_vec(), self.sizes(indices).to_vec());
        let depth = places.last().map_or(usize::MAX, |depth| depth.exact_usize());
        let wants = (depth <= dims.len()).then(|| [&places[..places.len() - 1], &dims[depth..]].concat());
        let same = |(a, b): (&Size, &Size)| a.agrees(*b);
        let own = self.sizes(updates);
        let fits = wants.is_some_and(|wants| wants.len() == own.len() && wants.iter().zip(own).all(same));
        if depth == 0 || !fits || self.element(updates) != element {
            return Err(self.invalid(format!("no updates: {}", self.describe(&[data, indices, updates]))));
        }
        if reduction == Reduction::None
            && let Some(of) = self.box_of(data, indices)
        {
            return self.with_box(data, updates, &of);
        }
        let (indices, index) = self.indices(indices)?;
        let (data, updates, dtype) = self.reducible(data, updates, reduction)?;
        let made = ScatterNd {
            extents: dims[..depth].to_vec(),
            inner: dims[depth..].iter().product(),
            slices: places[..places.len() - 1].iter().product(),
            reduction,
            dtype,
            index,
        };
        let made =
            self.kernel1(Operation::ScatterNd(made), &[data, indices, updates], self.element(data), &dims)?;
        self.cast(made, element)
    }

    /// Data and updates in a type in which kernels reduce them; `i64` is reduced as `i32`, `f64` as `f32`.
    fn reducible(
        &mut self,
        data: TensorId,
        updates: TensorId,
        reduction: Reduction,
    ) -> Result<(TensorId, TensorId, DType)> {
        const REDUCED: &[DType] =
            &[DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8];
        let element = self.element(data);
        if reduction == Reduction::None {
            return Ok((data, updates, element.storage()));
        }
        if element == ElementType::Bool {
            return Err(self.unsupported("reductions of booleans by index"));
        }
        let data = self.in_type_of(data, REDUCED, "updates by index")?;
        let updates = self.in_type_of(updates, REDUCED, "updates by index")?;
        Ok((data, updates, self.element(data).storage()))
    }
}
