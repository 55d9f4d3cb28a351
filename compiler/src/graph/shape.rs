//! Dimensions of tensors in graphs: numbers, or sizes that are computed of symbols.

use halite_sizes::Size;

/// Dimensions, the innermost last.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    sizes: Vec<Size>,
    /// The same for the example, for those that want plain numbers.
    numbers: Vec<u64>,
}

impl Shape {
    /// Of sizes.
    pub fn new(sizes: impl IntoIterator<Item = impl Into<Size>>) -> Shape {
        let sizes: Vec<Size> = sizes.into_iter().map(Into::into).collect();
        let numbers = sizes.iter().map(|size| size.value()).collect();
        Shape { sizes, numbers }
    }

    /// The sizes.
    pub fn sizes(&self) -> &[Size] {
        &self.sizes
    }

    /// The sizes as numbers, to which the graph is fixed from here on.
    pub fn exact(&self) -> &[u64] {
        for size in &self.sizes {
            size.exact();
        }
        &self.numbers
    }

    /// The sizes of the example, for texts and estimates.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Number of elements.
    pub fn count(&self) -> Size {
        self.sizes.iter().product()
    }

    /// Whether all sizes are the same whatever symbols are.
    pub fn is_constant(&self) -> bool {
        self.sizes.iter().all(|size| size.is_constant())
    }
}
