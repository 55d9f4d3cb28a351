//! The compiled kernels and the data of variants, as `build.rs` found them in the crate's folder.

/// (name, SPIR-V) of every build, sorted by name.
static MODULES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// (operation, `variants.json`) of every operation, sorted by name.
pub(crate) static VARIANTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/variants.rs"));

/// A build by name.
pub(crate) fn module(name: &str) -> Option<crate::Module> {
    let index = MODULES.binary_search_by(|(n, _)| (*n).cmp(name)).ok()?;
    let (name, bytes) = MODULES[index];
    Some(crate::Module::Compiled { name, bytes })
}

/// Names of all builds.
#[cfg(test)]
pub(crate) fn module_names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|(name, _)| *name)
}
