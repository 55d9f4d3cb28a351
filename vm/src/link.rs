//! The resolution of dependencies and imports against registered modules.

use std::sync::Arc;

use halite_abi::{Result, ResultExt, bail};
use halite_formats::vmfb::Import;

use crate::{
    Module, NativeModule,
    exec::{Linked, Target},
    signature::Signature,
};

/// Resolves the imports of all modules. A module sees native modules and the modules registered before it; later
/// ones first.
pub(crate) fn link(natives: &[Arc<dyn NativeModule>], modules: &[Arc<Module>]) -> Result<Vec<Linked>> {
    (0..modules.len())
        .map(|i| {
            let registry = Registry { natives, modules: &modules[..i] };
            registry.link(&modules[i]).context(|| format!("linking module '{}'", modules[i].name()))
        })
        .collect()
}

struct Registry<'a> {
    natives: &'a [Arc<dyn NativeModule>],
    modules: &'a [Arc<Module>],
}

impl Registry<'_> {
    fn link(&self, module: &Arc<Module>) -> Result<Linked> {
        let def = module.def();
        for dependency in &def.dependencies {
            self.dependency(&dependency.name, dependency.minimum_version, dependency.optional)?;
        }
        let imports =
            def.imports.iter().zip(&module.imports).map(|(import, signature)| self.import(import, signature));
        Ok(Linked { module: module.clone(), imports: imports.collect::<Result<_>>()? })
    }

    /// Name and version of every module, later ones first.
    fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        let modules = self.modules.iter().rev().map(|m| (m.name(), m.version()));
        modules.chain(self.natives.iter().rev().map(|m| (m.name(), m.version())))
    }

    fn list(&self) -> String {
        let all: Vec<_> = self.all().map(|(name, version)| format!("{name} (version {version})")).collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }

    fn dependency(&self, name: &str, minimum: u32, optional: bool) -> Result<()> {
        let found: Vec<u32> = self.all().filter(|m| m.0 == name).map(|m| m.1).collect();
        if optional || found.iter().any(|v| *v >= minimum) {
            return Ok(());
        }
        if found.is_empty() {
            bail!(
                NotFound,
                "the module needs module '{name}' version {minimum} or later, which is not registered; registered: {}",
                self.list()
            );
        }
        bail!(
            NotFound,
            "the module needs module '{name}' version {minimum} or later, but version {found:?} is registered"
        )
    }

    fn import(&self, import: &Import, wanted: &Signature) -> Result<Option<Target>> {
        let full = &import.full_name;
        let Some((module, function)) = full.split_once('.') else {
            bail!(InvalidArgument, "import '{full}' is not of the form 'module.function'");
        };
        if let Some((target, provided)) = self.find(module, function)? {
            let actual = Signature::parse(&provided).context(|| format!("signature of '{full}'"))?;
            if actual == *wanted {
                return Ok(Some(target));
            }
            bail!(
                InvalidArgument,
                "import '{full}' has signature '{}' but module '{module}' provides it with '{provided}'",
                import.signature.calling_convention
            );
        }
        if import.optional {
            return Ok(None);
        }
        let versions: Vec<u32> = self.all().filter(|m| m.0 == module).map(|m| m.1).collect();
        if versions.is_empty() {
            bail!(
                NotFound,
                "required import '{full}' was not found: no module '{module}' is registered; registered: {}",
                self.list()
            );
        }
        bail!(
            NotFound,
            "required import '{full}' was not found: module '{module}' (version {versions:?}) is registered but has no \
             function '{function}'"
        )
    }

    /// The function and its calling convention.
    fn find(&self, module: &str, function: &str) -> Result<Option<(Target, String)>> {
        for (i, candidate) in self.modules.iter().enumerate().rev().filter(|(_, m)| m.name() == module) {
            if let Some(ordinal) = candidate.export(function) {
                let target = Target::Bytecode { module: i as u32, function: ordinal };
                let signature = &candidate.def().functions[ordinal as usize].signature;
                return Ok(Some((target, signature.calling_convention.clone())));
            }
        }
        for (i, candidate) in self.natives.iter().enumerate().rev().filter(|(_, m)| m.name() == module) {
            if let Some(found) = candidate.lookup(function) {
                let target = Target::Native { module: i as u32, ordinal: found.ordinal };
                return Ok(Some((target, found.signature.to_owned())));
            }
        }
        Ok(None)
    }
}
