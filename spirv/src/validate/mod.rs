//! The rules that a module must keep before a driver sees it: drivers crash on modules that break them.

mod decorations;
mod entries;
mod extended;
mod ids;
mod modes;
mod operands;
mod rare;
mod structure;
mod types;

use crate::{error::SpirvError, program::ParsedModule};

/// Takes a module apart and checks every rule.
pub(crate) fn validated(words: &[u32]) -> Result<ParsedModule<'_>, SpirvError> {
    let program = ParsedModule::read(words)?;
    ids::check(&program)?;
    structure::check(&program)?;
    types::check(&program)?;
    rare::check(&program)?;
    entries::check(&program)?;
    modes::check(&program)?;
    extended::check(&program)?;
    decorations::check(&program)?;
    Ok(program)
}
