//! Where the elements of an input lie that is a part of a larger tensor, or its elements in another order.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::moves::{dense_strides, signed};

/// An input whose element `[i, j, …]` is element `offset + i * strides[0] + j * strides[1] + …` of a tensor of `source` elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strides {
    /// The number of the input.
    pub input: usize,
    /// Elements of the tensor.
    pub source: Size,
    /// The first element.
    #[serde(default)]
    pub offset: Size,
    /// Elements from a place to the next in each dimension of the input; 0 repeats, a negative one walks backwards.
    #[serde(deserialize_with = "signed")]
    pub strides: Vec<Size>,
}

impl Strides {
    /// Whether they go with an input of these dimensions; the reason when they do not.
    ///
    /// # Errors
    /// There are others than dimensions, or they lead out of the tensor.
    pub fn check(&self, dims: &[Size]) -> Result<(), String> {
        if dims.len() != self.strides.len() {
            return Err(format!("{} strides for {} dimensions", self.strides.len(), dims.len()));
        }
        inside(self.source, self.offset, dims, &self.strides)
    }

    /// The strides over dimensions that the input's, `own`, are broadcast to.
    pub fn over(&self, own: &[Size], dims: &[Size]) -> Vec<Size> {
        aligned(own, &self.strides, dims)
    }
}

/// Whether a walk stays within a tensor of `source` elements.
///
/// # Errors
/// It does not.
pub(crate) fn inside(source: Size, offset: Size, dims: &[Size], strides: &[Size]) -> Result<(), String> {
    // Whoever cuts by what data decide keeps within the source.
    let of_data = dims.iter().chain(strides).chain([&source, &offset]).any(|size| size.is_data());
    if of_data || dims.iter().any(|size| *size == 0) {
        return Ok(());
    }
    let (mut least, mut most) = (offset, offset);
    for (size, stride) in dims.iter().zip(strides) {
        let reach = (*size - 1) * *stride;
        if reach < 0 {
            least += reach;
        } else {
            most += reach;
        }
    }
    if least < 0 || most >= source {
        return Err(format!("it reads elements {least} to {most} of {source}"));
    }
    Ok(())
}

/// Elements from a place of `dims` to the next in each dimension, in a dense tensor of dimensions `own` that is broadcast to them.
pub fn broadcast_strides(own: &[Size], dims: &[Size]) -> Vec<Size> {
    aligned(own, &dense_strides(own), dims)
}

/// Strides of dimensions `own` as those of the dimensions that they are broadcast to.
fn aligned(own: &[Size], strides: &[Size], dims: &[Size]) -> Vec<Size> {
    let missing = dims.len().saturating_sub(own.len());
    let each = own.iter().zip(strides).map(|(size, stride)| if *size == 1 { 0.into() } else { *stride });
    std::iter::repeat_n(Size::constant(0), missing).chain(each).collect()
}
