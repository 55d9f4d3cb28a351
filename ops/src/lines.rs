//! Lines of tensors, which reductions, normalizations and sorts work along, and how workgroups share them. The other half
//! is `include/lines.glsl`.

use halite_sizes::Size;

use crate::DType;

/// A tensor of outer x length x inner elements as `outer * inner` lines of `length` elements, `inner` apart. Several
/// neighbouring axes of a tensor are one `length`; axes before them are `outer`, those behind `inner`.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Product of the axes before.
    pub outer: Size,
    /// Elements of a line.
    pub length: Size,
    /// Product of the axes behind.
    pub inner: Size,
}

impl Lines {
    /// Number of lines.
    pub fn count(&self) -> Size {
        self.outer * self.inner
    }

    /// Number of elements.
    pub fn elements(&self) -> Size {
        self.count() * self.length
    }

    /// Indices of the elements of every line.
    pub fn places(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let [outer, length, inner] = [self.outer, self.length, self.inner].map(Size::exact_usize);
        let line = move |o: usize, i: usize| (0..length).map(|j| (o * length + j) * inner + i).collect();
        (0..outer).flat_map(move |o| (0..inner).map(move |i| line(o, i)))
    }
}

/// Default of dimensions, for serde.
pub fn one() -> Size {
    Size::constant(1)
}

/// Default of types, for serde.
pub fn f32() -> DType {
    DType::F32
}

/// Shapes that exercise every way of sharing lines.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn shapes() -> impl Iterator<Item = Lines> {
    let shapes = [
        (1, 1, 1),
        (3, 17, 1),
        (2, 64, 1),
        (5, 1000, 1),
        (130, 3, 1),
        (2, 20_000, 1),
        (3, 33, 7),
        (2, 40, 33),
        (1, 3001, 9),
        (0, 8, 1),
    ];
    shapes.into_iter().map(|(outer, length, inner)| Lines {
        outer: outer.into(),
        length: length.into(),
        inner: inner.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_lines() {
        let lines = Lines { outer: 2.into(), length: 2.into(), inner: 3.into() };
        let places: Vec<_> = lines.places().collect();
        assert_eq!(places, [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]);
    }
}
