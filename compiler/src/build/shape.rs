//! Operations that move elements without computing: reshaping, transposing, slicing, joining.

use halite_ops::{Operation, concat::Concat, copy::StridedCopy};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{Shape, TensorId};

/// Most dimensions of a strided copy.
const MOST_DIMS: usize = 6;

/// A part of one dimension: `count` elements from `start`, `step` apart; a negative step walks backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<N = u64> {
    /// The first.
    pub start: N,
    /// From one to the next; not 0.
    pub step: i64,
    /// How many.
    pub count: N,
}

impl<N: Default> Range<N> {
    /// A whole dimension.
    pub fn all(size: N) -> Self {
        Range { start: N::default(), step: 1, count: size }
    }
}

impl<N: Into<Size> + Copy> Range<N> {
    fn sizes(&self) -> Range<Size> {
        Range { start: self.start.into(), step: self.step, count: self.count.into() }
    }
}

/// How a tensor is read: what [`StridedCopy`] takes.
#[derive(Clone, Debug)]
struct Walk {
    /// (size, stride), the innermost last.
    dims: Vec<(Size, Size)>,
    offset: Size,
}

impl Walk {
    /// Drops dimensions of one element and joins those that are walked as one.
    fn collapse(&mut self) {
        self.dims.retain(|(size, _)| *size != 1);
        let mut joined: Vec<(Size, Size)> = Vec::new();
        for (size, stride) in self.dims.drain(..) {
            match joined.last_mut() {
                Some((outer, last)) if *last == stride * size => {
                    *outer *= size;
                    *last = stride;
                }
                _ => joined.push((size, stride)),
            }
        }
        self.dims = joined;
    }

    /// Whether it reads `elements` elements from the first on.
    fn is_whole(&self, elements: Size) -> bool {
        self.offset == 0 && (elements <= 1 || self.dims == [(elements, 1.into())])
    }
}

/// Elements from one place to the next in each dimension.
fn strides(dims: &[Size]) -> Vec<Size> {
    let mut strides = vec![Size::constant(1); dims.len()];
    for i in (1..dims.len()).rev() {
        // Of nothing, the strides are never used.
        strides[i - 1] = strides[i] * if dims[i].is_data() { dims[i] } else { dims[i].max(1) };
    }
    strides
}

impl Builder {
    /// The same elements under other dimensions.
    pub fn reshape(&mut self, tensor: TensorId, dims: &[u64]) -> Result<TensorId> {
        self.reshape_to(tensor, dims)
    }

    /// The same, where dimensions may be open.
    pub fn reshape_to(&mut self, tensor: TensorId, dims: &[impl Into<Size> + Copy]) -> Result<TensorId> {
        let shape = Shape::new(dims.iter().copied());
        if !shape.count().agrees(self.tensor(tensor).count()) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("{what} is not reshaped to {:?}", shape.sizes())));
        }
        let element = self.element(tensor);
        let made = self.view(tensor, element, dims)?;
        self.remember_unsqueezed(made, tensor);
        Ok(made)
    }

    /// Dimensions in another order: dimension `i` of the result is dimension `order[i]`.
    pub fn transpose(&mut self, tensor: TensorId, order: &[usize]) -> Result<TensorId> {
        let dims = self.sizes(tensor).to_vec();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..dims.len()) {
            return Err(self.invalid(format!(
                "{order:?} is no order of the dimensions of {}",
                self.describe(&[tensor])
            )));
        }
        let strides = strides(&dims);
        let walk = Walk { dims: order.iter().map(|i| (dims[*i], strides[*i])).collect(), offset: 0.into() };
        let result: Vec<Size> = order.iter().map(|i| dims[*i]).collect();
        self.walk(tensor, walk, &result)
    }

    /// A part of each dimension.
    pub fn slice(&mut self, tensor: TensorId, ranges: &[Range<impl Into<Size> + Copy>]) -> Result<TensorId> {
        let ranges: Vec<Range<Size>> = ranges.iter().map(Range::sizes).collect();
        let dims = self.sizes(tensor).to_vec();
        let fits = |(range, size): (&Range<Size>, &Size)| {
            if [range.start, range.count, *size].iter().any(|size| size.is_data()) {
                // Steps that are larger were held to the dimension by who asks.
                return range.start.least() >= 0
                    && (range.step != 1 || (range.start + range.count).stays_within(*size));
            }
            let last = range.start + (range.count - 1) * Size::from(range.step);
            range.count == 0
                || range.count > 0 && range.start >= 0 && range.start < *size && last >= 0 && last < *size
        };
        if ranges.len() != dims.len() || !ranges.iter().zip(&dims).all(fits) {
            return Err(self.invalid(format!("{ranges:?} is no part of {}", self.describe(&[tensor]))));
        }
        let result: Vec<Size> = ranges.iter().map(|range| range.count).collect();
        let (mut walk, mut offset) = (Vec::new(), Size::constant(0));
        for (range, stride) in ranges.iter().zip(strides(&dims)) {
            offset += range.start * stride;
            walk.push((range.count, stride * Size::from(range.step)));
        }
        let offset = if result.iter().any(|count| *count == 0) { 0.into() } else { offset };
        self.walk(tensor, Walk { dims: walk, offset }, &result)
    }

    /// Windows of `size` elements along a dimension, `step` apart: the dimension counts them, and a new last one their elements
    /// (PyTorch's `unfold`).
    pub fn windows(&mut self, tensor: TensorId, axis: usize, size: u64, step: u64) -> Result<TensorId> {
        let mut dims = self.sizes(tensor).to_vec();
        if axis >= dims.len() || dims[axis] < size || step == 0 {
            let what = self.describe(&[tensor]);
            return Err(self
                .invalid(format!("{what} has no windows of {size}, {step} apart, along dimension {axis}")));
        }
        let mut strides = strides(&dims);
        strides.push(strides[axis]);
        strides[axis] *= step;
        dims[axis] = (dims[axis] - size) / step + 1;
        dims.push(size.into());
        let walk = Walk { dims: dims.iter().copied().zip(strides).collect(), offset: 0.into() };
        self.walk(tensor, walk, &dims)
    }

    /// Repeats dimensions of one element, and the whole tensor, until it has the dimensions (NumPy's `broadcast_to`).
    pub fn expand(&mut self, tensor: TensorId, to: &[u64]) -> Result<TensorId> {
        self.expand_to(tensor, to)
    }

    /// The same, where dimensions may be open.
    pub fn expand_to(&mut self, tensor: TensorId, to: &[impl Into<Size> + Copy]) -> Result<TensorId> {
        let to: Vec<Size> = to.iter().map(|size| (*size).into()).collect();
        let dims = self.sizes(tensor).to_vec();
        let lead = to.len().checked_sub(dims.len());
        // Of a size that data decide it is promised that it is this one, or 1.
        let by_data = |own: Size, to: Size| !own.is(to) && (own.is_data() || to.is_data() && own != 1);
        let fits = |(own, to): (&Size, &Size)| match by_data(*own, *to) {
            true => ((*own - 1) * (*own - *to)).agrees(0),
            false => *own == 1 || own.agrees(*to),
        };
        let Some(lead) = lead.filter(|lead| dims.iter().zip(&to[*lead..]).all(fits)) else {
            return Err(self.invalid(format!("{} is not broadcast to {to:?}", self.describe(&[tensor]))));
        };
        let mut walk: Vec<(Size, Size)> = to[..lead].iter().map(|size| (*size, 0.into())).collect();
        for ((own, to), stride) in dims.iter().zip(&to[lead..]).zip(strides(&dims)) {
            let stride = match by_data(*own, *to) {
                true => stride * (*own - 1).min(1).max(0),
                false if *own == 1 && *to != 1 => 0.into(),
                false => stride,
            };
            walk.push((*to, stride));
        }
        let made = self.walk(tensor, Walk { dims: walk, offset: 0.into() }, &to)?;
        if made != tensor {
            self.remember_repeated(made, tensor);
        }
        Ok(made)
    }

    /// Tensors of one type joined along a dimension, in which alone they may differ.
    pub fn concat(&mut self, tensors: &[TensorId], axis: usize) -> Result<TensorId> {
        let Some(first) = tensors.first() else { return Err(self.invalid("nothing to join")) };
        let (element, mut dims) = (self.element(*first), self.sizes(*first).to_vec());
        let same = |id: &TensorId| {
            let own = self.sizes(*id);
            let others = |(i, size): (usize, &Size)| i == axis || size.agrees(dims[i]);
            self.element(*id) == element && own.len() == dims.len() && own.iter().enumerate().all(others)
        };
        if axis >= dims.len() || !tensors.iter().all(same) {
            let what = self.describe(tensors);
            return Err(self.invalid(format!("{what} are not joined along dimension {axis}")));
        }
        let there = |id: &&TensorId| !(self.sizes(**id)[axis].is_constant() && self.sizes(**id)[axis] == 0);
        let some: Vec<TensorId> = tensors.iter().filter(there).copied().collect();
        let tensors = if some.is_empty() { &tensors[..1] } else { &some };
        let sizes: Vec<Size> = tensors.iter().map(|id| self.sizes(*id)[axis]).collect();
        if let [only] = tensors {
            return Ok(*only);
        }
        let tensors = &self.of_one_size(tensors, axis, &mut dims)?;
        dims[axis] = sizes.iter().sum();
        let (outer, inner): (Size, Size) = (dims[..axis].iter().product(), dims[axis + 1..].iter().product());
        let dtype = element.storage();
        let joined = Operation::Concat(Concat { sizes, ..Concat::new(outer, &[], inner, dtype) });
        let made = self.kernel1(joined, tensors, element, &dims)?;
        if axis + 1 == dims.len() {
            self.remember_joined(made, tensors);
        }
        Ok(made)
    }

    /// A tensor with another expression for a size that data decide, which is promised to be that.
    ///
    /// # Errors
    /// It cannot be that.
    pub fn with_size(&mut self, id: TensorId, axis: usize, size: impl Into<Size>) -> Result<TensorId> {
        let (mut sizes, size) = (self.sizes(id).to_vec(), size.into());
        if !sizes.get(axis).is_some_and(|own| own.is_data()) {
            return Ok(id);
        }
        if !sizes[axis].agrees(size) {
            return Err(
                self.invalid(format!("dimension {axis} of {} has to be {size}", self.describe(&[id])))
            );
        }
        sizes[axis] = size;
        self.view(id, self.element(id), &sizes)
    }

    /// Tensors whose sizes agree but for those along an axis, with the same sizes: numbers, where any has them, in place of what data
    /// decide and is promised to be them.
    fn of_one_size(&mut self, tensors: &[TensorId], axis: usize, dims: &mut [Size]) -> Result<Vec<TensorId>> {
        for (i, size) in dims.iter_mut().enumerate().filter(|(i, _)| *i != axis) {
            let known = tensors.iter().map(|id| self.sizes(*id)[i]).find(|own| own.is_constant());
            *size = known.unwrap_or(*size);
        }
        let mut made = Vec::new();
        for id in tensors {
            let mut own = dims.to_vec();
            own[axis] = self.sizes(*id)[axis];
            let same = own.iter().zip(self.sizes(*id)).all(|(a, b)| a.is(*b));
            made.push(if same { *id } else { self.view(*id, self.element(*id), &own)? });
        }
        Ok(made)
    }

    /// A walk of many dimensions, outer ones first: what the inner [`MOST_DIMS`] - 1 dimensions read is copied for each place
    /// of the outer ones, and then joined.
    fn walk_in_steps(&mut self, tensor: TensorId, walk: &Walk, dims: &[Size]) -> Result<TensorId> {
        /// More copies than this are not worth what they compute.
        const MOST_COPIES: u64 = 1024;
        let (outer, inner) = walk.dims.split_at(walk.dims.len() - MOST_DIMS);
        let copies = outer.iter().fold(1u64, |n, (size, _)| n.saturating_mul(size.exact()));
        if copies > MOST_COPIES {
            let what = self.describe(&[tensor]);
            return Err(self.unsupported(format!("{what} is walked in more than {MOST_DIMS} dimensions")));
        }
        let sizes: Vec<Size> = inner.iter().map(|(size, _)| *size).collect();
        let row: Vec<Size> = std::iter::once(1.into()).chain(sizes.iter().copied()).collect();
        let mut parts = Vec::new();
        for copy in 0..copies {
            let (mut rest, mut offset) = (copy, walk.offset);
            for (size, stride) in outer.iter().rev() {
                offset += *stride * (rest % size.exact());
                rest /= size.exact();
            }
            let part = Walk { dims: inner.to_vec(), offset };
            let part = self.walk(tensor, part, &sizes)?;
            parts.push(self.reshape_to(part, &row)?);
        }
        let joined = self.concat(&parts, 0)?;
        self.reshape_to(joined, dims)
    }

    /// The diagonal of two axes of one size, in the place of the first.
    pub fn diagonal(&mut self, tensor: TensorId, first: usize, second: usize) -> Result<TensorId> {
        let mut dims = self.sizes(tensor).to_vec();
        if first >= second || second >= dims.len() || dims[first] != dims[second] {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("{what} has no diagonal of axes {first} and {second}")));
        }
        let mut strides = strides(&dims);
        let second_stride = strides[second];
        strides[first] += second_stride;
        strides.remove(second);
        dims.remove(second);
        let walk = Walk { dims: dims.iter().copied().zip(strides).collect(), offset: 0.into() };
        self.walk(tensor, walk, &dims)
    }

    fn walk(&mut self, tensor: TensorId, mut walk: Walk, dims: &[Size]) -> Result<TensorId> {
        let (source, element) = (self.tensor(tensor).count(), self.element(tensor));
        let shape = Shape::new(dims.iter().copied());
        let count = shape.count();
        if count == 0 {
            return self.empty(element, dims);
        }
        walk.collapse();
        if walk.is_whole(source) && count == source {
            return self.view(tensor, element, dims);
        }
        if walk.dims.len() > MOST_DIMS {
            return self.walk_in_steps(tensor, &walk, dims);
        }
        let (shape, strides): (Vec<Size>, Vec<Size>) = walk.dims.into_iter().unzip();
        let shape = if shape.is_empty() { vec![1.into()] } else { shape };
        let strides = if strides.is_empty() { vec![1.into()] } else { strides };
        let copy = StridedCopy { source, shape, strides, offset: walk.offset, dtype: element.storage() };
        self.kernel1(Operation::StridedCopy(copy), &[tensor], element, dims)
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values};

    use super::*;
    use crate::graph::elements;

    fn iota(builder: &mut Builder, dims: &[u64]) -> TensorId {
        let values = (0..elements(dims) as i64).collect();
        builder.values(DType::I64, dims, &Values::Int(values)).unwrap()
    }

    #[test]
    fn constants_are_moved_at_once() {
        let mut b = Builder::new();
        let x = iota(&mut b, &[2, 3]);
        let turned = b.transpose(x, &[1, 0]).unwrap();
        assert_eq!((b.dims(turned), b.ints(turned).unwrap()), (&[3, 2][..], vec![0, 3, 1, 4, 2, 5]));
        let back = b.slice(x, &[Range::all(2), Range { start: 2, step: -2, count: 2 }]).unwrap();
        assert_eq!(b.ints(back).unwrap(), [2, 0, 5, 3]);
        let wide = b.expand(x, &[2, 2, 3]).unwrap();
        assert_eq!(b.ints(wide).unwrap(), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        let joined = b.concat(&[x, x], 1).unwrap();
        assert_eq!(b.ints(joined).unwrap(), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    }

    #[test]
    fn many_dimensions_are_moved_in_steps() {
        let mut b = Builder::new();
        let dims = [2, 3, 2, 1, 2, 2, 3, 2, 2];
        let order = [8, 6, 4, 2, 0, 7, 5, 3, 1];
        let x = iota(&mut b, &dims);
        let turned = b.transpose(x, &order).unwrap();
        let got = b.ints(turned).unwrap();
        let to = b.dims(turned).to_vec();
        for (index, value) in got.iter().enumerate() {
            let (mut rest, mut place) = (index as u64, [0; 9]);
            for axis in (0..9).rev() {
                place[order[axis]] = rest % to[axis];
                rest /= to[axis];
            }
            let wants = place.iter().zip(dims).fold(0, |at, (place, size)| at * size + place);
            assert_eq!(*value as u64, wants, "{index}");
        }
        let matrix = iota(&mut b, &[2, 3, 3]);
        let diagonal = b.diagonal(matrix, 1, 2).unwrap();
        assert_eq!(b.ints(diagonal).unwrap(), [0, 4, 8, 9, 13, 17]);
    }

    #[test]
    fn moves_that_keep_the_order_are_views() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 4, 1, 5]).unwrap();
        let turned = b.transpose(x, &[1, 0, 3, 2]).unwrap();
        b.output("y", turned);
        let graph = b.finish().unwrap();
        assert!(matches!(graph.body.nodes[..], [crate::graph::Node { op: crate::graph::NodeOp::View, .. }]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut b = Builder::new();
        let x = iota(&mut b, &[2, 3]);
        assert!(b.transpose(x, &[0, 0]).is_err());
        assert!(b.slice(x, &[Range::all(2), Range { start: 1, step: 2, count: 2 }]).is_err());
        assert!(b.expand(x, &[4, 3]).is_err());
        assert!(b.reshape(x, &[5]).is_err());
        assert!(b.concat(&[x, x], 2).is_err());
    }
}
