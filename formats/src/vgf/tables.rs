//! What reading tables of every kind takes: vectors of tables, and indices that others have.

use super::{Result, VgfError};
use crate::flatbuffer::{Child, Field, Table, Vector};

/// Reads every table of a vector; the closure gets the number of the element.
pub(super) fn each<'a, T>(
    table: &Table<'a>,
    f: &Field<Vector<Child>>,
    read: impl FnMut(Table<'a>, usize) -> Result<T>,
) -> Result<Vec<T>> {
    table.each(f, read)
}

/// An index that must be below a count.
pub(super) fn index(number: u32, count: usize, what: &str, place: impl Fn() -> String) -> Result<usize> {
    let found = usize::try_from(number).ok().filter(|index| *index < count);
    found.ok_or_else(|| VgfError::invalid(place(), format!("asks for {what} {number}; there are {count}")))
}
