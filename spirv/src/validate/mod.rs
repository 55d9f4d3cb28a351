//! Owns the rules that a module must keep before a driver sees it. Drivers crash on modules that break them.
//! Does not own: the cut into instructions (`module`), block structure (`cfg`), type declarations (`types`).

pub(crate) mod decorations;
pub(crate) mod entries;
pub(crate) mod extended;
pub(crate) mod ids;
pub(crate) mod layout;
pub(crate) mod modes;
mod operands;
pub(crate) mod rare;
pub(crate) mod structure;
pub(crate) mod types;
