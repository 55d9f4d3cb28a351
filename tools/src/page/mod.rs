//! Pages for people: one HTML file each, which needs nothing but itself, light or dark as the reader's system is.

mod bench;
mod explain;
mod parts;

use std::{io::Write, path::Path};

pub(crate) use bench::bench;
pub(crate) use explain::explain;

use crate::{console::Result, whole};

/// Writes a page to where `--html` says.
pub(crate) fn write(path: &Path, page: &str) -> Result<()> {
    whole::write(path, |out| out.write_all(page.as_bytes()))
}
