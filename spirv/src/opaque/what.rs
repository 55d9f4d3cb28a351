//! What is behind descriptors that are no buffers, as plain data.

/// What is behind a descriptor that is no buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// An image of two dimensions.
    Image(Image),
    /// A tensor with these sizes.
    Tensor(Vec<u32>),
}

/// An image of two dimensions and one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width, height.
    pub size: [u32; 2],
    /// Components of a texel: 1, 2 or 4.
    pub components: u32,
    /// Bits of a component: 8, 16 or 32.
    pub bits: u32,
    /// What the bits are.
    pub numbers: Numbers,
    /// How it is sampled.
    pub sampler: Option<Sampler>,
}

/// What the bits of a component are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
    /// Floats of 16 or 32 bits.
    Float,
}

/// How an image is sampled, with coordinates of 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Whether texels are interpolated where the image is made larger, and where smaller.
    pub linear: [bool; 2],
    /// What is outside, in x and y.
    pub outside: [Outside; 2],
    /// Colour and alpha of the border: 0 or 1.
    pub border: [u32; 2],
}

/// What a sampler reads outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The image again.
    Repeat,
    /// The image again, mirrored each time.
    Mirror,
    /// The texels at the edge.
    Edge,
    /// The border's colour.
    Border,
    /// The image mirrored once, then the texels at the edge.
    MirrorOnce,
}
