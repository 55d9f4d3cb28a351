//! Fields of tables as owned values: strings, and tables of vectors.

use super::Result;
use crate::flatbuffer::{Child, Field, Table, Text, Vector};

/// A string; empty when absent.
pub(super) fn text(table: &Table<'_>, f: &Field<Text>) -> Result<String> {
    Ok(table.text(f)?.unwrap_or_default().to_owned())
}

/// Strings.
pub(super) fn texts(table: &Table<'_>, f: &Field<Vector<Text>>) -> Result<Vec<String>> {
    table.vector(f)?.iter().map(|text| Ok(text?.to_owned())).collect()
}

/// Runs a closure on every table of a vector.
pub(super) fn each<'a>(
    table: &Table<'a>,
    f: &Field<Vector<Child>>,
    mut read: impl FnMut(Table<'a>) -> Result<()>,
) -> Result<()> {
    table.vector(f)?.iter().try_for_each(|element| read(element?))
}
