//! What readers of all tables share: lists, texts and names.

use super::VmfbError;
use crate::flatbuffer::{Child, Field, Table, Text, Vector};

pub(super) type Result<T> = std::result::Result<T, VmfbError>;

/// Reads every table of a vector; the closure gets a function that names the element.
pub(super) fn each<'a, T>(
    table: &Table<'a>,
    f: &Field<Vector<Child>>,
    mut read: impl FnMut(Table<'a>, &dyn Fn() -> String) -> Result<T>,
) -> Result<Vec<T>> {
    table.each(f, |element, i| read(element, &|| format!("{}.{}[{i}]", f.table, f.name)))
}

/// A string; empty when absent.
pub(super) fn text(table: &Table<'_>, f: &Field<Text>) -> Result<String> {
    Ok(table.text(f)?.unwrap_or_default().to_owned())
}

/// A string that must not be empty.
pub(super) fn named(table: &Table<'_>, f: &Field<Text>, at: impl Fn() -> String) -> Result<String> {
    match table.text(f)? {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(VmfbError::invalid(at(), format!("{}.{} is empty; it must be a name", f.table, f.name))),
    }
}
