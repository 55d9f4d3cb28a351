//! The decoded form of a bytecode module: what reader, writer, VM and dump tools share.

use bytes::Bytes;

/// Bytecode version 17.0: what iree-compile 3.13.0 writes and what we write.
pub const BYTECODE_VERSION: u32 = 17 << 16;

/// Requirement bits of modules and functions.
pub mod requirement {
    /// Uses the f32 opcode set.
    pub const EXT_F32: u32 = 1;
    /// Uses the f64 opcode set.
    pub const EXT_F64: u32 = 2;
    /// May yield.
    pub const YIELD: u32 = 4;
    /// Needs its refs released when unwinding.
    pub const UNWIND: u32 = 8;
    /// All bits that are known.
    pub const KNOWN: u32 = 15;
}

/// A key and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// Calling convention and reflection of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSignature {
    /// Such as `0rr_r`.
    pub calling_convention: String,
    /// Reflection, such as `iree.abi.declaration`.
    pub attrs: Vec<Attr>,
}

impl FunctionSignature {
    /// Value of a reflection attribute.
    pub fn attr(&self, key: &str) -> Option<&str> {
        self.attrs.iter().find(|a| a.key == key).map(|a| a.value.as_str())
    }
}

/// Another module that must be registered first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Module name.
    pub name: String,
    /// Lowest version that will do.
    pub minimum_version: u32,
    /// Whether the module works without it.
    pub optional: bool,
}

/// A function that another module provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// `module.function`; the function part may contain dots.
    pub full_name: String,
    /// Signature; an empty calling convention matches any.
    pub signature: FunctionSignature,
    /// Whether the module works without it.
    pub optional: bool,
}

/// A function that others may call by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name within the module.
    pub local_name: String,
    /// Index into [`ModuleDef::functions`].
    pub ordinal: u32,
}

/// A bytecode function: its signature and where its code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Signature.
    pub signature: FunctionSignature,
    /// First byte in [`ModuleDef::bytecode`].
    pub bytecode_offset: u32,
    /// Bytes of code.
    pub bytecode_length: u32,
    /// Requirement bits.
    pub requirements: u32,
    /// Number of block markers.
    pub block_count: u16,
    /// Cells of the i32 bank.
    pub i32_register_count: u16,
    /// Registers of the ref bank.
    pub ref_register_count: u16,
}

/// Where a source location is, for stack traces.
///
/// Indices are within the table, but a damaged file may make them go in circles: whoever follows them must count steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nothing is known; the compiler writes one as entry 0.
    Unknown,
    /// `callee` inlined at `caller` (indices into the table).
    CallSite {
        /// Inner location.
        callee: u32,
        /// Outer location.
        caller: u32,
    },
    /// A place in a file.
    FileLineCol {
        /// File name.
        filename: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
    /// Several locations as one.
    Fused {
        /// Metadata text.
        metadata: String,
        /// Indices into the table.
        locations: Vec<u32>,
    },
    /// A named location.
    Name {
        /// Name.
        name: String,
        /// Index of the child, if any.
        child: Option<u32>,
    },
}

/// Debug names and locations of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionDebug {
    /// Name.
    pub local_name: String,
    /// (bytecode offset, location index), ascending.
    pub locations: Vec<(u32, u32)>,
}

/// Debug database; may cover fewer functions than the module has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugDatabase {
    /// Location table.
    pub locations: Vec<Location>,
    /// Per function ordinal.
    pub functions: Vec<FunctionDebug>,
}

/// A bytecode module, decoded and range-checked. Bytecode itself is not verified here (the VM does).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleDef {
    /// Module name.
    pub name: String,
    /// Module version.
    pub version: u32,
    /// Requirement bits.
    pub requirements: u32,
    /// Module attributes.
    pub attrs: Vec<Attr>,
    /// Type table: `i32`, `!vm.list<...>`, `!hal.buffer`, …
    pub types: Vec<String>,
    /// Dependencies.
    pub dependencies: Vec<Dependency>,
    /// Imports.
    pub imports: Vec<Import>,
    /// Exports.
    pub exports: Vec<Export>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Read-only data. Slices of the input: nothing is copied.
    pub rodata: Vec<Bytes>,
    /// Bytes of global state per context.
    pub global_bytes_capacity: u32,
    /// Ref globals per context.
    pub global_ref_count: u32,
    /// Code of all functions.
    pub bytecode: Bytes,
    /// `major << 16 | minor`.
    pub bytecode_version: u32,
    /// Names and locations, if they were kept.
    pub debug: Option<DebugDatabase>,
}

impl ModuleDef {
    /// Code of one function.
    pub fn function_code(&self, ordinal: u32) -> Option<Bytes> {
        let f = self.functions.get(ordinal as usize)?;
        let start = f.bytecode_offset as usize;
        let end = start.checked_add(f.bytecode_length as usize)?;
        (end <= self.bytecode.len()).then(|| self.bytecode.slice(start..end))
    }

    /// The export with this name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|e| e.local_name == name)
    }

    /// Name of a function for messages: debug name, else export name, else `fn<ordinal>`.
    pub fn function_name(&self, ordinal: u32) -> String {
        let debug = self.debug.as_ref().and_then(|d| d.functions.get(ordinal as usize));
        debug
            .map(|d| d.local_name.as_str())
            .filter(|n| !n.is_empty())
            .or_else(|| self.exports.iter().find(|e| e.ordinal == ordinal).map(|e| e.local_name.as_str()))
            .map_or_else(|| format!("fn{ordinal}"), str::to_owned)
    }
}
