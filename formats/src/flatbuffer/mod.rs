//! FlatBuffers as such: a bounds-checked reader and a builder, both driven by [`Field`] descriptions so that one schema serves
//! reading and writing.
//!
//! The wire layout is the public FlatBuffers one: little-endian, tables with vtables, offsets of four bytes.

mod builder;
mod error;
mod reader;
mod tables;

pub use builder::{Builder, Offset, TableBuilder};
pub use error::FlatbufferError;
pub use reader::{Element, Reader, Table, VectorView};
pub(crate) use tables::{default_of, tables};

use std::marker::PhantomData;

/// A field of a table: what reader and builder need to find it and to name it in messages.
#[derive(Clone, Copy, Debug)]
pub struct Field<K> {
    /// Table that has the field, for messages.
    pub table: &'static str,
    /// Field name, for messages.
    pub name: &'static str,
    /// Field id: its slot in the vtable.
    pub id: u16,
    /// Value when the field is absent; a marker for kinds other than scalars.
    pub default: K,
}

/// What a field can hold.
pub trait Kind: Copy + 'static {
    /// The default unless the schema names another.
    const ZERO: Self;
}

/// Kind of a string field.
#[derive(Clone, Copy, Debug)]
pub struct Text;

/// Kind of a field that holds another table.
#[derive(Clone, Copy, Debug)]
pub struct Child;

/// Kind of a struct of `N` bytes (as an element of a vector).
#[derive(Clone, Copy, Debug)]
pub struct Struct<const N: usize>;

/// Kind of a field that holds a vector of `E`.
#[derive(Clone, Copy, Debug)]
pub struct Vector<E>(PhantomData<E>);

impl Kind for Text {
    const ZERO: Self = Text;
}
impl Kind for Child {
    const ZERO: Self = Child;
}
impl<E: Copy + 'static> Kind for Vector<E> {
    const ZERO: Self = Vector(PhantomData);
}

/// A number of fixed size, stored little-endian.
pub trait Scalar: Kind + PartialEq {
    /// Bytes, which is also the alignment: 1, 2, 4 or 8.
    const SIZE: usize;
    /// Decodes the first `SIZE` bytes; `None` when there are fewer.
    fn decode(bytes: &[u8]) -> Option<Self>;
    /// The low `SIZE` bytes are the encoded value, the rest is zero.
    fn encode(self) -> [u8; 8];
}

macro_rules! scalars {
    ($($t:ty = $zero:literal),*) => { $(
        impl Kind for $t {
            const ZERO: Self = $zero;
        }
        impl Scalar for $t {
            const SIZE: usize = size_of::<$t>();
            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|b| <$t>::from_le_bytes(*b))
            }
            fn encode(self) -> [u8; 8] {
                let mut out = [0; 8];
                out[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
                out
            }
        }
    )* };
}
scalars!(u8 = 0, u16 = 0, u32 = 0, i32 = 0, u64 = 0, i64 = 0, f32 = 0.0, f64 = 0.0);

#[cfg(test)]
mod tests;
