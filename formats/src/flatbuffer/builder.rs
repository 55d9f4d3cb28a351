//! Building: children first, back to front, vtables and strings shared. Deterministic: same calls, same bytes.

use super::{Child, Field, FlatbufferError, Kind, Scalar, Struct, Text, Vector};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Offsets are signed 32-bit numbers where tables point at vtables.
const MAX_LENGTH: usize = i32::MAX as usize;
/// Longer strings are stored each time. Otherwise the decoded form could dwarf the file, which readers refuse.
const MAX_SHARED_TEXT: usize = 128;

/// Where a finished object is, counted from the end of the buffer. Belongs to the builder that made it.
#[derive(Debug)]
pub struct Offset<K>(usize, PhantomData<K>);

impl<K> Clone for Offset<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Offset<K> {}

/// Builds one FlatBuffer. The bytes are kept in reverse, since objects are placed from the end of the file.
#[derive(Debug, Default)]
pub struct Builder {
    reversed: Vec<u8>,
    max_align: usize,
    vtables: HashMap<Vec<u8>, usize>,
    texts: HashMap<String, Offset<Text>>,
}

/// A table being filled. Fields that equal their default are left out.
#[derive(Debug)]
pub struct TableBuilder<'b> {
    builder: &'b mut Builder,
    fields: Vec<(u16, Inline)>,
}

#[derive(Clone, Copy, Debug)]
enum Inline {
    Scalar { size: usize, bytes: [u8; 8] },
    Link(usize),
}

impl Inline {
    fn size(self) -> usize {
        match self {
            Inline::Scalar { size, .. } => size,
            Inline::Link(_) => 4,
        }
    }
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Self {
        Builder { max_align: 4, ..Builder::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    /// Pads so that the start of the next `length` bytes is aligned.
    fn align(&mut self, length: usize, align: usize) {
        self.max_align = self.max_align.max(align);
        let end = (self.reversed.len() + length).next_multiple_of(align);
        self.reversed.resize(end - length, 0);
    }

    fn vector_of(&mut self, bytes: &[u8], count: usize, align: usize) -> usize {
        self.align(bytes.len(), align.max(4));
        self.push(bytes);
        self.push(&(count as u32).to_le_bytes());
        self.reversed.len()
    }

    /// Adds a string; equal short strings are stored once.
    pub fn text(&mut self, text: &str) -> Offset<Text> {
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        // The terminator is not part of the length.
        self.align(text.len() + 1, 4);
        self.push(&[0]);
        self.push(text.as_bytes());
        self.push(&(text.len() as u32).to_le_bytes());
        let offset = Offset(self.reversed.len(), PhantomData);
        if text.len() <= MAX_SHARED_TEXT {
            self.texts.insert(text.to_owned(), offset);
        }
        offset
    }

    /// Adds bytes whose start is aligned to `align`, a power of two.
    pub fn bytes(&mut self, bytes: &[u8], align: usize) -> Offset<Vector<u8>> {
        Offset(self.vector_of(bytes, bytes.len(), align), PhantomData)
    }

    /// Adds numbers.
    pub fn scalars<T: Scalar>(&mut self, values: impl IntoIterator<Item = T>) -> Offset<Vector<T>> {
        let bytes: Vec<u8> = values.into_iter().flat_map(|v| v.encode().into_iter().take(T::SIZE)).collect();
        Offset(self.vector_of(&bytes, bytes.len() / T::SIZE, T::SIZE), PhantomData)
    }

    /// Adds numbers that are encoded already. `bytes` holds whole numbers.
    pub fn encoded_scalars<T: Scalar>(&mut self, bytes: &[u8], align: usize) -> Offset<Vector<T>> {
        let whole = &bytes[..bytes.len() - bytes.len() % T::SIZE];
        Offset(self.vector_of(whole, whole.len() / T::SIZE, align.max(T::SIZE)), PhantomData)
    }

    /// Adds structs with fields of at most four bytes.
    pub fn structs<const N: usize>(&mut self, values: &[[u8; N]]) -> Offset<Vector<Struct<N>>> {
        Offset(self.vector_of(values.as_flattened(), values.len(), 4), PhantomData)
    }

    /// Adds a vector of tables.
    pub fn children(&mut self, values: &[Offset<Child>]) -> Offset<Vector<Child>> {
        self.links(values.iter().map(|v| Some(*v)))
    }

    /// Adds a vector of tables some of which are absent, as in vectors of unions.
    pub fn nullable_children(&mut self, values: &[Option<Offset<Child>>]) -> Offset<Vector<Child>> {
        self.links(values.iter().copied())
    }

    /// Adds a vector of strings.
    pub fn texts(&mut self, values: &[Offset<Text>]) -> Offset<Vector<Text>> {
        self.links(values.iter().map(|v| Some(*v)))
    }

    fn links<K: Kind>(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<Offset<K>>>,
    ) -> Offset<Vector<K>> {
        let count = values.len();
        self.align(count * 4, 4);
        let start = self.reversed.len() + count * 4;
        let link = |(i, v): (usize, Option<Offset<K>>)| v.map_or(0, |v| (start - 4 * i - v.0) as u32);
        let links: Vec<u8> = values.enumerate().map(link).flat_map(u32::to_le_bytes).collect();
        Offset(self.vector_of(&links, count, 4), PhantomData)
    }

    /// Begins a table. Its strings, vectors and tables must be finished before.
    pub fn table(&mut self) -> TableBuilder<'_> {
        TableBuilder { builder: self, fields: Vec::new() }
    }

    /// Writes the header and returns the file. With `size_prefix`, its first four bytes are the length of the rest,
    /// and alignments count from there.
    pub fn finish(
        mut self,
        root: Offset<Child>,
        identifier: &[u8; 4],
        size_prefix: bool,
    ) -> Result<Vec<u8>, FlatbufferError> {
        let header = if size_prefix { 12 } else { 8 };
        self.align(header, self.max_align);
        self.push(identifier);
        let root_link = self.reversed.len() + 4 - root.0;
        self.push(&(root_link as u32).to_le_bytes());
        let length = self.reversed.len();
        if length > MAX_LENGTH {
            let (length, limit) = (length as u64, MAX_LENGTH as u64);
            return Err(FlatbufferError::BuildTooLarge { length, limit });
        }
        if size_prefix {
            self.push(&(length as u32).to_le_bytes());
        }
        self.reversed.reverse();
        Ok(self.reversed)
    }
}

impl TableBuilder<'_> {
    /// Sets a number.
    #[must_use]
    pub fn scalar<T: Scalar>(mut self, f: &Field<T>, value: T) -> Self {
        if value != f.default {
            self.fields.push((f.id, Inline::Scalar { size: T::SIZE, bytes: value.encode() }));
        }
        self
    }

    /// Sets a string, vector or table.
    #[must_use]
    pub fn link<K: Kind>(mut self, f: &Field<K>, target: Offset<K>) -> Self {
        self.fields.push((f.id, Inline::Link(target.0)));
        self
    }

    /// Sets a string, vector or table if there is one.
    #[must_use]
    pub fn maybe<K: Kind>(self, f: &Field<K>, target: Option<Offset<K>>) -> Self {
        match target {
            Some(target) => self.link(f, target),
            None => self,
        }
    }

    /// Places the table.
    pub fn finish(mut self) -> Offset<Child> {
        // Large fields first keeps padding small; the id makes the order total.
        self.fields.sort_by_key(|(id, f)| (std::cmp::Reverse(f.size()), *id));
        let align = self.fields.first().map_or(4, |(_, f)| f.size().max(4));
        let slots = self.fields.iter().map(|(id, _)| usize::from(*id) + 1).max().unwrap_or(0);
        let mut offsets = vec![0u16; slots];
        let mut length = 4usize;
        for (id, field) in &self.fields {
            length = length.next_multiple_of(field.size());
            offsets[usize::from(*id)] = length as u16;
            length += field.size();
        }
        let vtable_length = (4 + 2 * slots) as u16;
        let vtable: Vec<u8> =
            [vtable_length, length as u16].iter().chain(&offsets).flat_map(|v| v.to_le_bytes()).collect();
        let builder = self.builder;
        builder.align(length, align);
        let pos = builder.reversed.len() + length;
        let known = builder.vtables.get(&vtable).copied();
        let vtable_pos = known.unwrap_or(pos + vtable.len());
        let mut body = vec![0u8; length];
        body[..4].copy_from_slice(&((vtable_pos as i64 - pos as i64) as i32).to_le_bytes());
        for (id, field) in &self.fields {
            let at = usize::from(offsets[usize::from(*id)]);
            match field {
                Inline::Scalar { size, bytes } => body[at..at + size].copy_from_slice(&bytes[..*size]),
                Inline::Link(target) => {
                    body[at..at + 4].copy_from_slice(&((pos - at - target) as u32).to_le_bytes());
                }
            }
        }
        builder.push(&body);
        if known.is_none() {
            builder.push(&vtable);
            builder.vtables.insert(vtable, vtable_pos);
        }
        Offset(pos, PhantomData)
    }
}
