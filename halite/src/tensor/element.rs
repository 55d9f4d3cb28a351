//! Which Rust types are elements of tensors.

use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};

use crate::ElementType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors hold: `f32`, `f64`, [`f16`](struct@f16), [`bf16`], `i8` to `i64`, `u8` to `u64`, `bool`.
///
/// Sealed: a tensor's elements are numbers of the device, so there are no others.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Its element type.
    const TYPE: ElementType;

    /// Whether elements of this type may be read as this Rust type: of models and modules, whose integers may have no sign.
    fn reads(from: ElementType) -> bool;

    /// The bytes of elements, without a copy where that is possible.
    #[doc(hidden)]
    fn into_bytes(elements: Vec<Self>) -> Bytes;

    /// Elements out of bytes; their number is a multiple of the element's size.
    #[doc(hidden)]
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;

    /// The bytes as elements, where they lie as these have to.
    #[doc(hidden)]
    fn cast(bytes: &[u8]) -> Option<&[Self]>;

    /// The same, to be written.
    #[doc(hidden)]
    fn cast_mut(bytes: &mut [u8]) -> Option<&mut [Self]>;
}

/// Keeps a vector of elements alive as bytes.
struct Owner<T>(Arc<Vec<T>>);

impl<T: bytemuck::NoUninit> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

macro_rules! elements {
    ($($rust:ty => $element:ident $(| $other:ident)*;)*) => {$(
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const TYPE: ElementType = ElementType::$element;

            fn reads(from: ElementType) -> bool {
                [ElementType::$element, $(ElementType::$other),*].contains(&from)
            }

            fn into_bytes(elements: Vec<Self>) -> Bytes {
                Bytes::from_owner(Owner(Arc::new(elements)))
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                bytemuck::pod_collect_to_vec(bytes)
            }

            fn cast(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }

            fn cast_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
                bytemuck::try_cast_slice_mut(bytes).ok()
            }
        }
    )*};
}

elements! {
    f32 => F32;
    f64 => F64;
    f16 => F16;
    bf16 => BF16;
    i8 => I8 | SI8;
    i16 => I16 | SI16;
    i32 => I32 | SI32;
    i64 => I64 | SI64;
    u8 => UI8 | I8;
    u16 => UI16 | I16;
    u32 => UI32 | I32;
    u64 => UI64 | I64;
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const TYPE: ElementType = ElementType::I1;

    fn reads(from: ElementType) -> bool {
        from == ElementType::I1
    }

    fn into_bytes(elements: Vec<Self>) -> Bytes {
        elements.into_iter().map(u8::from).collect::<Vec<_>>().into()
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|byte| *byte != 0).collect()
    }

    fn cast(_: &[u8]) -> Option<&[Self]> {
        // A byte of a device may be any number.
        None
    }

    fn cast_mut(_: &mut [u8]) -> Option<&mut [Self]> {
        None
    }
}
