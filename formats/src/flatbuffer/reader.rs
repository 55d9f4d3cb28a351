//! Reading: every offset is checked before it is followed, and a budget bounds the total work.

use super::{Child, Field, FlatbufferError, Scalar, Struct, Text, Vector};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;

type Result<T> = std::result::Result<T, FlatbufferError>;

/// Decoded bytes allowed per byte of input. Files share strings and tables, but never this much.
const BUDGET_FACTOR: u64 = 64;
/// Decoded bytes that any input may take.
const BUDGET_FLOOR: u64 = 64 << 10;
/// Charged per table and per object on top of its bytes: about what its decoded form takes.
const OBJECT_COST: u64 = 64;
const MAX_DEPTH: u32 = 64;

/// A FlatBuffer and what is left of its decoding budget. Not `Sync`: one thread reads one buffer.
#[derive(Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    base: usize,
    budget: Cell<u64>,
}

/// Names what is being read, for messages.
#[derive(Clone, Copy, Debug)]
struct FieldName {
    table: &'static str,
    field: &'static str,
}

impl<K> From<&Field<K>> for FieldName {
    fn from(f: &Field<K>) -> Self {
        FieldName { table: f.table, field: f.name }
    }
}

/// A table whose vtable has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    reader: &'a Reader<'a>,
    pos: usize,
    vtable: &'a [u8],
    depth: u32,
}

/// A vector whose extent has been checked. Elements that are offsets are checked when they are read.
#[derive(Clone, Copy, Debug)]
pub struct VectorView<'a, E> {
    reader: &'a Reader<'a>,
    place: FieldName,
    start: usize,
    length: usize,
    depth: u32,
    element: PhantomData<E>,
}

impl<'a> Reader<'a> {
    /// Takes the buffer, and where in the file it starts (for messages).
    pub fn new(data: &'a [u8], base: usize) -> Self {
        let budget = (data.len() as u64).saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET_FLOOR);
        Reader { data, base, budget: Cell::new(budget) }
    }

    /// Checks the identifier and opens the root table.
    pub fn root(&'a self, name: &'static str, identifier: &[u8; 4]) -> Result<Table<'a>> {
        let place = FieldName { table: name, field: "root" };
        let header = self.slice(place, 0, 8)?;
        if header[4..8] != identifier[..] {
            return Err(FlatbufferError::Identifier {
                expected: String::from_utf8_lossy(identifier).into_owned(),
                found: header[4..8].escape_ascii().to_string(),
                offset: self.file_offset(4),
            });
        }
        self.root_table(place)
    }

    /// Opens the root table of a buffer that has no identifier.
    pub fn root_unnamed(&'a self, name: &'static str) -> Result<Table<'a>> {
        self.root_table(FieldName { table: name, field: "root" })
    }

    fn root_table(&'a self, place: FieldName) -> Result<Table<'a>> {
        let pos = self.follow(place, 0)?;
        self.table(place, pos, 0)
    }

    fn file_offset(&self, pos: usize) -> u64 {
        (self.base as u64).saturating_add(pos as u64)
    }

    fn charge(&self, place: FieldName, bytes: usize) -> Result<()> {
        let cost = (bytes as u64).saturating_add(OBJECT_COST);
        let Some(left) = self.budget.get().checked_sub(cost) else {
            let length = self.data.len() as u64;
            let limit = length.saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET_FLOOR);
            return Err(FlatbufferError::TooLarge { table: place.table, field: place.field, limit, length });
        };
        self.budget.set(left);
        Ok(())
    }

    fn slice(&self, place: FieldName, pos: usize, length: usize) -> Result<&'a [u8]> {
        pos.checked_add(length).and_then(|end| self.data.get(pos..end)).ok_or_else(|| {
            FlatbufferError::OutOfRange {
                table: place.table,
                field: place.field,
                offset: self.file_offset(pos),
                length: length as u64,
                limit: self.file_offset(self.data.len()),
            }
        })
    }

    fn scalar<T: Scalar>(&self, place: FieldName, pos: usize) -> Result<T> {
        Ok(T::decode(self.slice(place, pos, T::SIZE)?).expect("slice has SIZE bytes"))
    }

    /// Follows the offset stored at `pos` to an object, whose start must be aligned to four.
    fn follow(&self, place: FieldName, pos: usize) -> Result<usize> {
        let target = pos.saturating_add(self.scalar::<u32>(place, pos)? as usize);
        if !target.is_multiple_of(4) {
            let offset = self.file_offset(target);
            return Err(FlatbufferError::Misaligned {
                table: place.table,
                field: place.field,
                offset,
                align: 4,
            });
        }
        Ok(target)
    }

    fn table(&'a self, place: FieldName, pos: usize, depth: u32) -> Result<Table<'a>> {
        if depth > MAX_DEPTH {
            return Err(FlatbufferError::TooDeep {
                table: place.table,
                field: place.field,
                limit: MAX_DEPTH,
            });
        }
        self.charge(place, 0)?;
        let back = i64::from(self.scalar::<i32>(place, pos)?);
        // A start before the buffer becomes one past its end, and is reported as out of range.
        let start = usize::try_from(pos as i64 - back).unwrap_or(usize::MAX);
        let vtable_length = self.scalar::<u16>(place, start)?;
        let table_length = self.scalar::<u16>(place, start.saturating_add(2))?;
        if vtable_length < 4 || vtable_length % 2 != 0 || table_length < 4 {
            let offset = self.file_offset(pos);
            let (table, field) = (place.table, place.field);
            return Err(FlatbufferError::BadVtable { table, field, offset, vtable_length, table_length });
        }
        let vtable = self.slice(place, start, usize::from(vtable_length))?;
        Ok(Table { reader: self, pos, vtable, depth })
    }

    fn text(&self, place: FieldName, pos: usize) -> Result<&'a str> {
        let length = self.scalar::<u32>(place, pos)? as usize;
        let start = pos.saturating_add(4);
        let bytes = self.slice(place, start, length)?;
        self.charge(place, length)?;
        let (table, field, offset) = (place.table, place.field, self.file_offset(start));
        if self.data.get(start + length) != Some(&0) {
            return Err(FlatbufferError::NotTerminated { table, field, offset, length: length as u64 });
        }
        std::str::from_utf8(bytes).map_err(|e| FlatbufferError::NotUtf8 {
            table,
            field,
            offset,
            length: length as u64,
            valid_up_to: e.valid_up_to() as u64,
        })
    }

    /// Start and byte length of the vector at `pos` with elements of `size` bytes.
    fn vector(&self, place: FieldName, pos: usize, size: usize) -> Result<(usize, usize, usize)> {
        let count = self.scalar::<u32>(place, pos)? as usize;
        let start = pos.saturating_add(4);
        let bytes = count.saturating_mul(size);
        self.slice(place, start, bytes)?;
        Ok((start, count, bytes))
    }
}

impl<'a> Table<'a> {
    /// Position of a field's inline data of `size` bytes, if it is present.
    fn inline<K>(&self, f: &Field<K>, size: usize) -> Result<Option<usize>> {
        let slot = 4 + 2 * usize::from(f.id);
        let Some(at) = self.vtable.get(slot..).and_then(u16::decode).filter(|o| *o != 0) else {
            return Ok(None);
        };
        let at = usize::from(at);
        // Tables of one vtable may have other lengths than it says: the builder for Python shares vtables by their fields
        // alone. So a field has to end inside of the buffer, which is as far as Google's verifier looks, too.
        if at < 4 || self.reader.data.len().saturating_sub(self.pos) < at + size {
            return Err(FlatbufferError::OutOfRange {
                table: f.table,
                field: f.name,
                offset: self.reader.file_offset(self.pos + at),
                length: size as u64,
                limit: self.reader.file_offset(self.reader.data.len()),
            });
        }
        Ok(Some(self.pos + at))
    }

    fn object<K>(&self, f: &Field<K>) -> Result<Option<usize>> {
        self.inline(f, 4)?.map(|pos| self.reader.follow(f.into(), pos)).transpose()
    }

    /// A number, or its default.
    pub fn scalar<T: Scalar>(&self, f: &Field<T>) -> Result<T> {
        self.inline(f, T::SIZE)?.map_or(Ok(f.default), |pos| self.reader.scalar(f.into(), pos))
    }

    /// A string.
    pub fn text(&self, f: &Field<Text>) -> Result<Option<&'a str>> {
        self.object(f)?.map(|pos| self.reader.text(f.into(), pos)).transpose()
    }

    /// A table.
    pub fn child(&self, f: &Field<Child>) -> Result<Option<Table<'a>>> {
        self.object(f)?.map(|pos| self.reader.table(f.into(), pos, self.depth + 1)).transpose()
    }

    /// A vector; empty when absent.
    pub fn vector<E: Element>(&self, f: &Field<Vector<E>>) -> Result<VectorView<'a, E>> {
        let place = FieldName::from(f);
        let (start, length) = match self.object(f)? {
            None => (0, 0),
            Some(pos) => {
                let (start, length, bytes) = self.reader.vector(place, pos, E::STRIDE)?;
                self.reader.charge(place, bytes)?;
                (start, length)
            }
        };
        Ok(VectorView { reader: self.reader, place, start, length, depth: self.depth, element: PhantomData })
    }

    /// Reads every table of a vector; the closure gets the number of the element.
    ///
    /// # Errors
    /// Those of the buffer and of the closure.
    pub fn each<T, E: From<FlatbufferError>>(
        &self,
        f: &Field<Vector<Child>>,
        mut read: impl FnMut(Table<'a>, usize) -> std::result::Result<T, E>,
    ) -> std::result::Result<Vec<T>, E> {
        let vector = self.vector(f)?;
        let mut all = Vec::with_capacity(vector.len());
        for (i, element) in vector.iter().enumerate() {
            all.push(read(element?, i)?);
        }
        Ok(all)
    }

    /// Counts memory that decoding takes beyond what is read: values that stand for an absent vector, for instance.
    pub fn charge<K>(&self, f: &Field<K>, bytes: usize) -> Result<()> {
        self.reader.charge(f.into(), bytes)
    }

    /// Where the bytes of a scalar vector are in the buffer, for slicing without a copy.
    pub fn range<T: Scalar>(&self, f: &Field<Vector<T>>) -> Result<Option<Range<usize>>> {
        let Some(pos) = self.object(f)? else { return Ok(None) };
        let (start, _, bytes) = self.reader.vector(f.into(), pos, T::SIZE)?;
        Ok(Some(start..start + bytes))
    }
}

/// What a vector can hold.
pub trait Element: Copy + 'static {
    /// Bytes per element.
    const STRIDE: usize;
    /// The element as it is read.
    type Value<'a>;
    /// Reads element `index`, which is within the vector.
    fn read<'a>(view: &VectorView<'a, Self>, index: usize) -> Result<Self::Value<'a>>;
}

impl<T: Scalar> Element for T {
    const STRIDE: usize = T::SIZE;
    type Value<'a> = T;
    fn read<'a>(view: &VectorView<'a, T>, index: usize) -> Result<T> {
        view.reader.scalar(view.place, view.start + index * T::SIZE)
    }
}

impl<const N: usize> Element for Struct<N> {
    const STRIDE: usize = N;
    type Value<'a> = &'a [u8; N];
    fn read<'a>(view: &VectorView<'a, Self>, index: usize) -> Result<&'a [u8; N]> {
        let bytes = view.reader.slice(view.place, view.start + index * N, N)?;
        Ok(bytes.first_chunk().expect("slice has N bytes"))
    }
}

impl Element for Text {
    const STRIDE: usize = 4;
    type Value<'a> = &'a str;
    fn read<'a>(view: &VectorView<'a, Self>, index: usize) -> Result<&'a str> {
        let pos = view.reader.follow(view.place, view.start + index * 4)?;
        view.reader.text(view.place, pos)
    }
}

impl Element for Child {
    const STRIDE: usize = 4;
    type Value<'a> = Table<'a>;
    fn read<'a>(view: &VectorView<'a, Self>, index: usize) -> Result<Table<'a>> {
        let pos = view.reader.follow(view.place, view.start + index * 4)?;
        view.reader.table(view.place, pos, view.depth + 1)
    }
}

impl<'a, E: Element> VectorView<'a, E> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// One element.
    pub fn get(&self, index: usize) -> Result<E::Value<'a>> {
        if index >= self.length {
            return Err(FlatbufferError::NoElement {
                table: self.place.table,
                field: self.place.field,
                index: index as u64,
                length: self.length as u64,
            });
        }
        E::read(self, index)
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<E::Value<'a>>> {
        (0..self.length).map(move |i| E::read(self, i))
    }
}
