//! Loaded modules: module-level verification, and what contexts share.

use std::{collections::HashMap, sync::Arc};

use halite_abi::{Result, ResultExt, bail, export};
use halite_formats::vmfb::{BYTECODE_VERSION, DebugDatabase, Location, ModuleDef, requirement};

use crate::{Buffer, Ref, code::Function, signature::Signature, types::Type, verify};

/// A verified bytecode module. Immutable and shared by contexts; keeps the module's data alive.
#[derive(Debug)]
pub struct Module {
    def: ModuleDef,
    exports: HashMap<String, u32>,
    pub(crate) types: Vec<Type>,
    pub(crate) functions: Vec<Function>,
    pub(crate) imports: Vec<Arc<Signature>>,
    pub(crate) rodata: Vec<Ref>,
}

impl Module {
    /// Verifies a module and prepares it to run. INVALID_ARGUMENT names module, function, bytecode offset and
    /// instruction of what is wrong.
    pub fn load(def: ModuleDef) -> Result<Arc<Module>> {
        check_header(&def)?;
        let in_module = || format!("loading module '{}'", def.name);
        let types =
            def.types.iter().map(|t| Type::parse(t)).collect::<Result<Vec<_>>>().context(in_module)?;
        let imports = import_signatures(&def).context(in_module)?;
        let signatures = function_signatures(&def).context(in_module)?;
        let exports = exports(&def, &signatures).context(in_module)?;
        let scope = verify::Scope { def: &def, functions: &signatures, imports: &imports };
        let functions = (0..def.functions.len() as u32)
            .map(|ordinal| verify::function(&scope, ordinal))
            .collect::<Result<Vec<_>>>()?;
        let rodata = def.rodata.iter().map(|b| Ref::new(Buffer::from_bytes(b.clone()))).collect();
        Ok(Arc::new(Module { def, exports, types, functions, imports, rodata }))
    }

    /// Name that imports of other modules begin with.
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// Version that dependencies are checked against.
    pub fn version(&self) -> u32 {
        self.def.version
    }

    /// The definition it was loaded from.
    pub fn def(&self) -> &ModuleDef {
        &self.def
    }

    /// Ordinal of an exported function.
    pub fn export(&self, name: &str) -> Option<u32> {
        self.exports.get(name).copied()
    }

    /// Signature of a function.
    pub fn signature(&self, ordinal: u32) -> Option<&Arc<Signature>> {
        self.functions.get(ordinal as usize).map(|f| &f.signature)
    }

    /// `module.function+0xoffset`, with the source location when the module has one.
    pub(crate) fn describe(&self, ordinal: u32, offset: u32) -> String {
        let name = self.def.function_name(ordinal);
        let mut text = format!("at {}.{name}+{offset:#x}", self.def.name);
        if let Some(location) = self.def.debug.as_ref().and_then(|d| source_location(d, ordinal, offset)) {
            text.push_str(&format!(" ({location})"));
        }
        text
    }
}

fn check_header(def: &ModuleDef) -> Result<()> {
    let name = &def.name;
    if name.is_empty() {
        bail!(InvalidArgument, "the module has no name");
    }
    let version = def.bytecode_version;
    if version >> 16 != BYTECODE_VERSION >> 16 || version & 0xFFFF > BYTECODE_VERSION & 0xFFFF {
        bail!(
            InvalidArgument,
            "module '{name}' has bytecode version {}.{}, but this runtime reads {}.{}; compile it with a matching \
             compiler",
            version >> 16,
            version & 0xFFFF,
            BYTECODE_VERSION >> 16,
            BYTECODE_VERSION & 0xFFFF
        );
    }
    let unknown = def.requirements & !requirement::KNOWN;
    if unknown != 0 {
        bail!(
            InvalidArgument,
            "module '{name}' requires features {unknown:#x}, which this runtime does not have"
        );
    }
    // Functions that share bytecode would let a small file grow without bound when it is translated.
    let total: u64 = def.functions.iter().map(|f| u64::from(f.bytecode_length)).sum();
    if total > def.bytecode.len() as u64 {
        bail!(
            InvalidArgument,
            "module '{name}' has functions of {total} bytes in {} bytes of bytecode",
            def.bytecode.len()
        );
    }
    Ok(())
}

fn import_signatures(def: &ModuleDef) -> Result<Vec<Arc<Signature>>> {
    def.imports
        .iter()
        .map(|import| {
            let name = &import.full_name;
            if !name.split_once('.').is_some_and(|(m, f)| !m.is_empty() && !f.is_empty()) {
                bail!(InvalidArgument, "import '{name}' is not of the form 'module.function'");
            }
            let signature = Signature::parse(&import.signature.calling_convention);
            signature.map(Arc::new).context(|| format!("import '{name}'"))
        })
        .collect()
}

fn function_signatures(def: &ModuleDef) -> Result<Vec<Arc<Signature>>> {
    (0u32..)
        .zip(&def.functions)
        .map(|(ordinal, function)| {
            let signature = Signature::parse(&function.signature.calling_convention);
            signature.map(Arc::new).context(|| format!("function '{}'", def.function_name(ordinal)))
        })
        .collect()
}

fn exports(def: &ModuleDef, signatures: &[Arc<Signature>]) -> Result<HashMap<String, u32>> {
    let mut exports = HashMap::new();
    for export in &def.exports {
        let name = &export.local_name;
        let Some(signature) = signatures.get(export.ordinal as usize) else {
            let count = signatures.len();
            bail!(
                InvalidArgument,
                "export '{name}' names function {}; the module has {count}",
                export.ordinal
            );
        };
        // Exports that the context calls by itself take and return nothing.
        if (name == export::INIT || name == export::DEINIT) && **signature != Signature::default() {
            bail!(InvalidArgument, "export '{name}' must neither take nor return values");
        }
        exports.entry(name.clone()).or_insert(export.ordinal);
    }
    Ok(exports)
}

/// Steps through nested locations before giving up; the table may be cyclic.
const LOCATION_STEPS: usize = 16;

fn source_location(debug: &DebugDatabase, ordinal: u32, offset: u32) -> Option<String> {
    let map = debug.functions.get(ordinal as usize)?;
    let mut index = map.locations.iter().take_while(|l| l.0 <= offset).last()?.1;
    for _ in 0..LOCATION_STEPS {
        match debug.locations.get(index as usize)? {
            Location::Unknown => return None,
            Location::FileLineCol { filename, line, column } => {
                return Some(format!("{filename}:{line}:{column}"));
            }
            Location::CallSite { callee, .. } => index = *callee,
            Location::Fused { locations, .. } => index = *locations.first()?,
            Location::Name { name, child } => match child {
                Some(child) => index = *child,
                None => return Some(name.clone()),
            },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_formats::vmfb::FunctionDebug;

    #[test]
    fn locations_are_followed_but_not_forever() {
        let file = Location::FileLineCol { filename: "conv2d.mlir".into(), line: 10, column: 4 };
        let name = |child| Location::Name { name: "op".into(), child };
        let fused = Location::Fused { metadata: String::new(), locations: vec![0] };
        let debug = DebugDatabase {
            locations: vec![
                file,
                Location::CallSite { callee: 2, caller: 0 },
                fused,
                name(None),
                name(Some(4)),
            ],
            functions: vec![FunctionDebug {
                local_name: "main".into(),
                locations: vec![(4, 0), (8, 1), (12, 3), (16, 4), (20, 99)],
            }],
        };
        let at = |offset| source_location(&debug, 0, offset);
        assert_eq!(at(0), None);
        assert_eq!(at(4).as_deref(), Some("conv2d.mlir:10:4"));
        assert_eq!(at(11).as_deref(), Some("conv2d.mlir:10:4"));
        assert_eq!(at(12).as_deref(), Some("op"));
        assert_eq!((at(16), at(20), source_location(&debug, 1, 0)), (None, None, None));
    }
}
