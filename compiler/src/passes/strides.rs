//! Tensors that are seen in another order of their elements: what a chain of views and strided copies reads.

use halite_ops::{concat::Concat, copy::StridedCopy};
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

    /// Whether it is all of a tensor of so many elements as it lies, each once.
    pub(super) fn is_all(&self, elements: Size) -> bool {
        let mut each = self.sizes.iter().zip(&self.strides);
        let once = each.all(|(size, stride)| *size == 1 || *stride != 0);
        once && self.is_dense() && self.sizes.iter().product::<Size>() == elements
    }

    /// The same elements in the source of the copy that makes the tensor. `None` where no strides say it.
    pub(super) fn through(&self, copy: &StridedCopy, source: TensorId) -> Option<Strided> {
        let digits = digits(copy);
        let (mut offset, mut rest) = (copy.offset, self.offset);
        // How far each digit goes.
        let mut reach = Vec::with_capacity(digits.len());
        for digit in &digits {
            let at = if rest.is(0.into()) { rest } else { rest / digit.place };
            rest -= at * digit.place;
            offset += at * digit.stride;
            reach.push(at);
        }
        let mut strides = Vec::with_capacity(self.sizes.len());
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            if *size == 1 || *stride == 0 {
                strides.push(0.into());
                continue;
            }
            let at = digits.iter().rposition(|digit| below(*stride, digit.place * digit.size))?;
            let digit = &digits[at];
            if stride.is_below(0) != Some(false) || !stride.is_multiple_of(digit.place) {
                return None;
            }
            let step = *stride / digit.place;
            reach[at] += step * (*size - 1);
            strides.push(step * digit.stride);
        }
        // No digit overflows, so that each walks by itself.
        let fits = reach.iter().zip(&digits).all(|(reach, digit)| below(*reach, digit.size));
        fits.then(|| Strided { tensor: source, offset, sizes: self.sizes.clone(), strides })
    }

    /// The same, with dimensions taken apart where that helps, up to so many.
    pub(super) fn through_parts(&self, copy: &StridedCopy, source: TensorId, most: usize) -> Option<Strided> {
        let mut seen = self.clone();
        loop {
            if let Some(next) = seen.through(copy, source) {
                return Some(next);
            }
            let (dim, inner) = seen.parting(copy).filter(|_| seen.sizes.len() < most)?;
            seen.part(dim, inner);
        }
    }

    /// A dimension that has to be taken apart to go [`through`](Self::through) a copy, and the size of its inner part.
    pub(super) fn parting(&self, copy: &StridedCopy) -> Option<(usize, Size)> {
        let digits = digits(copy);
        let each = self.sizes.iter().zip(&self.strides).enumerate();
        each.filter(|(_, (size, stride))| **size > 1 && **stride > 0).find_map(|(dim, (size, stride))| {
            let parts = |place: &Size| {
                below(*stride, *place)
                    && below(*place, *stride * *size)
                    && place.is_multiple_of(*stride)
                    && (*stride * *size).is_multiple_of(*place)
            };
            let place = digits.iter().map(|digit| digit.place).find(parts)?;
            Some((dim, place / *stride))
        })
    }

    /// Takes a dimension apart, whose inner part gets so many places.
    pub(super) fn part(&mut self, dim: usize, inner: Size) {
        let (size, stride) = (self.sizes[dim], self.strides[dim]);
        self.sizes.splice(dim..=dim, [size / inner, inner]);
        self.strides.splice(dim..=dim, [stride * inner, stride]);
    }

    /// The same elements in the one part of a concatenation that they all lie in, and which of its inputs that is. `None` where there is none,
    /// or open sizes say where.
    pub(super) fn through_joined(&self, concat: &Concat, inputs: &[TensorId]) -> Option<Strided> {
        let number = |size: Size| size.is_constant().then(|| size.signed_value());
        let (length, offset) = (number(concat.total() * concat.inner)?, number(self.offset)?);
        if length == 0 {
            return None;
        }
        let (row, at) = (offset.div_euclid(length), offset.rem_euclid(length));
        // The first and the last place in a row that is reached, and how far places of a row are apart.
        let (mut least, mut most) = (at, at);
        let mut strides = Vec::with_capacity(self.strides.len());
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            let stride = number(*stride)?;
            strides.push(stride);
            if stride % length != 0 {
                let reach = (number(*size)? - 1).checked_mul(stride)?;
                (least, most) = (least + reach.min(0), most + reach.max(0));
            }
        }
        let mut start = 0;
        for (size, input) in concat.sizes.iter().zip(inputs) {
            let own = number(*size * concat.inner)?;
            if (start..start + own).contains(&least) && most < start + own {
                let within = |stride: i64| if stride % length == 0 { stride / length * own } else { stride };
                return Some(Strided {
                    tensor: *input,
                    offset: (row * own + at - start).into(),
                    sizes: self.sizes.clone(),
                    strides: strides.into_iter().map(|stride| within(stride).into()).collect(),
                });
            }
            start += own;
        }
        None
    }

    /// The copy that makes a dense tensor of it, whose source has so many elements.
    pub(super) fn copy(&self, source: Size, dtype: halite_ops::DType) -> StridedCopy {
        let mut shape: Vec<Size> = Vec::new();
        let mut strides: Vec<Size> = Vec::new();
        for (size, stride) in self.sizes.iter().zip(&self.strides).filter(|(size, _)| **size != 1) {
            match (shape.last_mut(), strides.last_mut()) {
                (Some(outer), Some(step)) if step.is(*stride * *size) => {
                    *outer *= size;
                    *step = *stride;
                }
                _ => {
                    shape.push(*size);
                    strides.push(*stride);
                }
            }
        }
        if shape.is_empty() {
            (shape, strides) = (vec![1.into()], vec![1.into()]);
        }
        StridedCopy { source, shape, strides, offset: self.offset, dtype }
    }
}

/// The copy that undoes one that brings all elements into another order.
pub(super) fn inverse(copy: &StridedCopy) -> Option<StridedCopy> {
    let places = dense(&copy.shape);
    let each = copy.shape.iter().zip(&copy.strides).zip(places).filter(|((size, _), _)| **size != 1);
    let mut dims: Vec<(Size, Size, Size)> =
        each.map(|((size, stride), place)| (*stride, *size, place)).collect();
    dims.sort_by_key(|(stride, ..)| std::cmp::Reverse(stride.signed_value()));
    let mut dense = Size::constant(1);
    let follow = dims.iter().rev().all(|(stride, size, _)| {
        let follows = *stride == dense;
        dense *= size;
        follows
    });
    if !follow || dense != copy.source || copy.offset != 0 {
        return None;
    }
    let (shape, strides) = dims.into_iter().map(|(_, size, place)| (size, place)).unzip();
    Some(StridedCopy { source: copy.source, shape, strides, offset: 0.into(), dtype: copy.dtype })
}

fn dense(sizes: &[Size]) -> Vec<Size> {
    (0..sizes.len()).map(|i| sizes[i + 1..].iter().product()).collect()
}

/// A dimension of a copy, or several that follow each other in its source too.
struct Digit {
    size: Size,
    /// Elements of the result from one to the next,
    place: Size,
    /// and of the source.
    stride: Size,
}

/// The dimensions of a copy, the innermost last. A place in its result is a sum of places in each.
fn digits(copy: &StridedCopy) -> Vec<Digit> {
    let mut digits: Vec<Digit> = Vec::new();
    let each = copy.shape.iter().zip(&copy.strides).zip(dense(&copy.shape));
    for ((size, stride), place) in each.filter(|((size, _), _)| **size != 1) {
        match digits.last_mut() {
            Some(outer) if outer.stride.is(*stride * *size) => {
                *outer = Digit { size: outer.size * *size, place, stride: *stride };
            }
            _ => digits.push(Digit { size: *size, place, stride: *stride }),
        }
    }
    digits
}

/// Whether a size is below another whatever data decide: nothing is promised of what is only tried.
fn below(a: Size, b: Size) -> bool {
    a.is_below(b) == Some(true)
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
    fn elements_are_found_in_the_part_of_what_was_joined() {
        // Rows of 2 x 3, 1 x 3 and 4 x 3.
        let concat = Concat::new(5, &[2, 1, 4], 3, DType::F32);
        let all: Vec<Values> = [2, 1, 4]
            .iter()
            .scan(0.0, |start, rows| {
                *start += 1000.0;
                Some(Values::Float((0..5 * rows * 3).map(|i| *start + f64::from(i)).collect()))
            })
            .collect();
        let made = Operation::Concat(concat.clone()).reference(&all).swap_remove(0);
        let ids = [TensorId(0), TensorId(1), TensorId(2)];
        let numbers = |all: &[i64]| -> Vec<Size> { all.iter().map(|x| Size::from(*x)).collect() };
        for (offset, sizes, strides, part) in [
            (21 + 6, &[2, 3][..], &[42, 1][..], Some(1)),
            (9 + 2, &[5, 4, 2], &[21, 3, -1], Some(2)),
            (0, &[5, 6], &[21, 1], Some(0)),
            (4, &[3], &[21], Some(0)),
            (0, &[5, 7], &[21, 1], None),
            (8, &[2], &[1], None),
            (6, &[2], &[-1], None),
        ] {
            let sizes = numbers(sizes);
            let seen =
                Strided { tensor: TensorId(9), offset: offset.into(), sizes, strides: numbers(strides) };
            let found = seen.through_joined(&concat, &ids);
            assert_eq!(found.as_ref().map(|found| found.tensor.index()), part, "{offset} {strides:?}");
            let Some(found) = found else { continue };
            let read = |from: &Values, strided: &Strided| {
                let copy = strided.copy(from.len().into(), DType::F32);
                Operation::StridedCopy(copy).reference(std::slice::from_ref(from))[0].floats()
            };
            assert_eq!(read(&all[found.tensor.index()], &found), read(&made, &seen));
        }
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
        // The part behind the transposition: the second of three that lie side by side.
        let turned = StridedCopy::transpose(&of(&[5, 3, 4]), &[1, 0, 2], DType::F32);
        let sizes = of(&[5, 2, 2]);
        let seen = Strided { tensor: TensorId(1), offset: 20.into(), strides: of(&[4, 2, 1]), sizes };
        let (direct, through) = same(std::slice::from_ref(&turned), &seen).unwrap();
        assert_eq!(direct, through);
        assert_eq!(seen.through(&turned, TensorId(0)).unwrap().strides, [12, 2, 1]);
        // It would go on with the next part.
        let over = Strided { offset: 24.into(), ..seen };
        assert_eq!(over.through(&turned, TensorId(0)), None);
    }

    #[test]
    fn dimensions_are_taken_apart() {
        let turned = StridedCopy::transpose(&of(&[5, 3, 4]), &[1, 0, 2], DType::F32);
        let mut seen = Strided { tensor: TensorId(1), offset: 0.into(), sizes: of(&[60]), strides: of(&[1]) };
        assert_eq!(seen.through(&turned, TensorId(0)), None);
        while let Some((dim, inner)) = seen.parting(&turned) {
            seen.part(dim, inner);
        }
        assert_eq!(seen.sizes, [3, 5, 4]);
        let (direct, through) = same(&[turned], &seen).unwrap();
        assert_eq!(direct, through);
    }
}
