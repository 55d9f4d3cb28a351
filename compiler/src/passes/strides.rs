//! Tensors that are seen in another order of their elements: what a chain of views and strided copies reads.

use halite_ops::copy::StridedCopy;
use halite_sizes::Size;

use crate::graph::TensorId;

/// A tensor's elements by places: `offset + i * strides[0] + j * strides[1] + …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strided {
    pub(super) tensor: TensorId,
    pub(super) offset: Size,
    pub(super) sizes: Vec<Size>,
    pub(super) strides: Vec<Size>,
}

impl Strided {
    /// Whether it is the tensor as it lies, but for dimensions that are repeated.
    pub(super) fn is_dense(&self) -> bool {
        let sizes: Vec<Size> = self
            .sizes
            .iter()
            .zip(&self.strides)
            .map(|(size, stride)| if *stride == 0 { 1.into() } else { *size })
            .collect();
        let mut places = dense(&sizes).into_iter().zip(&sizes).zip(&self.strides);
        self.offset == 0 && places.all(|((place, size), stride)| *size == 1 || place == *stride)
    }

    /// The same elements in the source of the copy that makes the tensor. `None` where no strides say it.
    pub(super) fn through(&self, copy: &StridedCopy, source: TensorId) -> Option<Strided> {
        if self.offset != 0 || !self.is_nested() {
            return None;
        }
        let each = self.sizes.iter().zip(&self.strides);
        let strides =
            each.map(
                |(size, stride)| {
                    if *size == 1 || *stride == 0 { Some(0.into()) } else { step(copy, *size, *stride) }
                },
            );
        let strides = strides.collect::<Option<Vec<Size>>>()?;
        Some(Strided { tensor: source, offset: copy.offset, sizes: self.sizes.clone(), strides })
    }

    /// Whether no two dimensions reach into the same places, so that each is a digit of its own.
    fn is_nested(&self) -> bool {
        let each = self.sizes.iter().zip(&self.strides);
        let mut dims: Vec<(Size, Size)> =
            each.filter(|(size, stride)| **size > 1 && **stride > 0).map(|(n, s)| (*s, *n)).collect();
        dims.sort_unstable();
        let mut reach = Size::constant(0);
        dims.iter().all(|(stride, size)| {
            let apart = *stride > reach;
            reach += *stride * (*size - 1);
            apart
        })
    }

    /// The copy that makes a dense tensor of it, whose source has so many elements.
    pub(super) fn copy(&self, source: Size, dtype: halite_ops::DType) -> StridedCopy {
        let mut shape = Vec::new();
        let mut strides: Vec<Size> = Vec::new();
        for (size, stride) in self.sizes.iter().zip(&self.strides).filter(|(size, _)| **size != 1) {
            shape.push(*size);
            strides.push(*stride);
        }
        if shape.is_empty() {
            (shape, strides) = (vec![1.into()], vec![1.into()]);
        }
        StridedCopy { source, shape, strides, offset: self.offset, dtype }
    }
}

fn dense(sizes: &[Size]) -> Vec<Size> {
    (0..sizes.len()).map(|i| sizes[i + 1..].iter().product()).collect()
}

/// How far a step of `stride` in a copy's result goes in its source, when `size` places in such steps are taken: they stay
/// within one dimension of the copy, or within several that follow each other in the source too.
fn step(copy: &StridedCopy, size: Size, stride: Size) -> Option<Size> {
    let places = dense(&copy.shape);
    let solid: Vec<usize> = (0..copy.shape.len()).filter(|i| copy.shape[*i] > 1).collect();
    let at = solid.iter().rposition(|i| stride < places[*i] * copy.shape[*i])?;
    let first = solid[at];
    if !stride.is_multiple_of(places[first]) {
        return None;
    }
    let own = Some(copy.strides[first]).filter(|stride| *stride >= 0)?;
    let mut dims = solid[..=at].iter().rev();
    let mut inner = *dims.next()?;
    while stride * size > places[inner] * copy.shape[inner] {
        let outer = *dims.next()?;
        if copy.strides[outer] != copy.strides[inner] * copy.shape[inner] {
            return None;
        }
        inner = outer;
    }
    Some(stride / places[first] * own)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Operation, Values};

    use super::*;

    fn of(sizes: &[u64]) -> Vec<Size> {
        sizes.iter().map(Size::from).collect()
    }

    /// The elements that a chain of copies gives, and the same through strides.
    fn same(copies: &[StridedCopy], seen: &Strided) -> Option<(Vec<f64>, Vec<f64>)> {
        let start: Vec<f64> = (0..copies[0].source.exact()).map(|i| i as f64).collect();
        let mut made = Values::Float(start.clone());
        for copy in copies {
            made = Operation::StridedCopy(copy.clone()).reference(&[made]).swap_remove(0);
        }
        let read = |from: &Values, strided: &Strided| {
            let copy = strided.copy(from.len().into(), DType::F32);
            Operation::StridedCopy(copy).reference(std::slice::from_ref(from))[0].floats()
        };
        let mut through = seen.clone();
        for copy in copies.iter().rev() {
            through = through.through(copy, TensorId(0))?;
        }
        Some((read(&made, seen), read(&Values::Float(start), &through)))
    }

    #[test]
    fn elements_are_found_behind_copies() {
        let f32 = DType::F32;
        // Heads to the front, keys turned, in one merged copy; seen as heads, keys, elements.
        let merged = StridedCopy {
            source: 4096.into(),
            shape: of(&[256, 16]),
            strides: of(&[1, 256]),
            offset: 0.into(),
            dtype: f32,
        };
        let seen = Strided {
            tensor: TensorId(1),
            offset: 0.into(),
            sizes: of(&[4, 16, 64]),
            strides: of(&[1024, 1, 16]),
        };
        let (direct, through) = same(&[merged], &seen).unwrap();
        assert_eq!(direct, through);
        // Heads repeated, then turned.
        let repeat = StridedCopy {
            source: 512.into(),
            shape: of(&[2, 4, 256]),
            strides: of(&[256, 0, 1]),
            offset: 0.into(),
            dtype: f32,
        };
        let turned = StridedCopy::transpose(&of(&[8, 8, 32]), &[0, 2, 1], f32);
        let seen = Strided {
            tensor: TensorId(1),
            offset: 0.into(),
            sizes: of(&[2, 4, 8, 32]),
            strides: of(&[1024, 256, 1, 8]),
        };
        let (direct, through) = same(&[repeat.clone(), turned.clone()], &seen).unwrap();
        assert_eq!(direct, through);
        let found = seen.through(&turned, TensorId(2)).and_then(|s| s.through(&repeat, TensorId(3))).unwrap();
        assert!(found.is_dense() && found.strides == [256, 0, 32, 1], "{found:?}");
        // The heads are one dimension here, of which the copy repeats a part.
        let whole = Strided { sizes: of(&[8, 8, 32]), strides: of(&[256, 1, 8]), ..seen };
        assert_eq!(whole.through(&turned, TensorId(2)).and_then(|s| s.through(&repeat, TensorId(3))), None);
    }

    #[test]
    fn parts_of_tensors_are_found() {
        let slice = StridedCopy::slice(&of(&[5, 12]), &of(&[0, 4]), &of(&[5, 4]), &[1, 1], DType::F32);
        let turned = StridedCopy::transpose(&of(&[5, 2, 2]), &[1, 0, 2], DType::F32);
        let sizes = of(&[2, 5, 2]);
        let seen = Strided { tensor: TensorId(1), offset: 0.into(), strides: dense(&sizes), sizes };
        let (direct, through) = same(&[slice, turned], &seen).unwrap();
        assert_eq!(direct, through);
        let twice =
            Strided { tensor: TensorId(1), offset: 0.into(), sizes: of(&[3, 2]), strides: of(&[1, 2]) };
        assert!(!twice.is_nested());
    }
}
