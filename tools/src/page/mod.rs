//! Pages for people: one HTML file each, which needs nothing but itself, light or dark as the reader's system is.

mod bench;
mod explain;
mod parts;

use std::path::Path;

pub(crate) use bench::bench;
pub(crate) use explain::explain;

use crate::console::{Failure, Result};

/// Writes a page to where `--html` says.
pub(crate) fn write(path: &Path, page: &str) -> Result<()> {
    std::fs::write(path, page).map_err(|e| Failure::file("cannot write the page", path, &e))
}
