//! The module that is being written: imports, read-only data and functions, each once.

use std::collections::HashMap;

use bytes::Bytes;
use halite_abi::{
    Import,
    import::{hal, io_parameters},
};
use halite_formats::{
    Rope,
    vmfb::{Attr, DebugDatabase, FunctionDebug, LargeData, ModuleDef},
};
use halite_vm::{
    asm::{ModuleBuilder, Reg},
    isa::Op,
};

use super::code::{Code, Part};
use crate::CompileError;

/// Data of fewer bytes stay with the code; a piece of their own would be mostly padding.
const SMALL: u64 = 256;

/// A module in the making.
#[derive(Debug)]
pub struct Writer {
    /// Name of the module.
    pub name: String,
    builder: ModuleBuilder,
    /// What the module says of itself.
    attrs: Vec<Attr>,
    imports: HashMap<&'static str, u32>,
    data: HashMap<Bytes, u32>,
    /// Read-only data whose place in the module is empty.
    large: LargeData,
    /// Name, requirements and reflection of each function.
    functions: Vec<(String, u32, Vec<Attr>)>,
}

impl Writer {
    /// A module without anything.
    pub fn new(name: &str, attrs: Vec<Attr>, needs_parameters: bool) -> Self {
        let mut builder = ModuleBuilder::new(name);
        builder.dependency(hal::NAME, hal::VERSION, false);
        if needs_parameters {
            builder.dependency(io_parameters::NAME, io_parameters::VERSION, false);
        }
        let (imports, data, large) = (HashMap::new(), HashMap::new(), LargeData::new());
        Writer { name: name.to_owned(), builder, attrs, imports, data, large, functions: Vec::new() }
    }

    /// The function operand of an import.
    pub fn import(&mut self, import: Import) -> u32 {
        let (builder, name) = (&mut self.builder, import.full_name);
        *self.imports.entry(name).or_insert_with(|| builder.import(name, import.signature, false))
    }

    /// The ordinal of read-only data, which is stored once.
    pub fn data(&mut self, bytes: impl Into<Bytes>) -> u32 {
        let bytes = bytes.into();
        if let Some(ordinal) = self.data.get(&bytes) {
            return *ordinal;
        }
        let ordinal = self.builder.rodata(bytes.clone());
        self.data.insert(bytes, ordinal);
        ordinal
    }

    /// The ordinal of read-only data that is like no other: it is not looked for, and not copied.
    pub fn large_data(&mut self, bytes: Rope) -> u32 {
        if bytes.len() < SMALL {
            return self.builder.rodata(bytes.to_vec());
        }
        let ordinal = self.builder.rodata(Bytes::new());
        self.large.insert(ordinal as usize, bytes);
        ordinal
    }

    /// Index of the type of an object, such as `hal.buffer`.
    pub fn ty(&mut self, object: &str) -> u32 {
        self.builder.ty(&format!("!{object}"))
    }

    /// Calls an import that is not variadic.
    pub fn call(&mut self, code: &mut Code, import: Import, args: &[Reg], results: &[Reg]) {
        let function = self.import(import);
        code.call(function, args, results);
    }

    /// Calls a variadic import.
    pub fn call_variadic(&mut self, code: &mut Code, import: Import, parts: &[Part<'_>], results: &[Reg]) {
        let function = self.import(import);
        code.call_variadic(function, parts, results);
    }

    /// Puts a text into a reference.
    pub fn text(&mut self, code: &mut Code, text: &str, to: Reg) {
        let ordinal = self.data(Bytes::copy_from_slice(text.as_bytes()));
        code.op(Op::ConstRefRodata, &[ordinal.into(), to.into()]);
    }

    /// Loads a global reference.
    pub fn load(&mut self, code: &mut Code, global: u32, ty: &str, to: Reg) {
        let ty = self.ty(ty);
        code.op(Op::GlobalLoadRef, &[global.into(), ty.into(), to.into()]);
    }

    /// Stores a global reference.
    pub fn store(&mut self, code: &mut Code, global: u32, ty: &str, from: Reg) {
        let ty = self.ty(ty);
        code.op(Op::GlobalStoreRef, &[global.into(), ty.into(), from.into()]);
    }

    /// Makes a new fence.
    pub fn new_fence(&mut self, code: &mut Code, device: Reg, to: Reg) {
        let flags = code.i64(0);
        self.call(code, hal::FENCE_CREATE, &[device, flags], &[to]);
    }

    /// Waits until a fence is reached; ends the call with its failure.
    pub fn wait(&mut self, code: &mut Code, fence: Reg, status: Reg) {
        let (forever, flags) = (code.i32(-1), code.i64(0));
        let function = self.import(hal::FENCE_AWAIT);
        let parts = [Part::One(forever), Part::One(flags), Part::Span(1, &[fence])];
        code.call_yieldable(function, &parts, &[status]);
        let (failed, reached) = (code.label(), code.label());
        code.branch(status, failed, reached);
        code.block(failed);
        code.op(Op::Fail, &[status.into(), "the device did not get there".into()]);
        code.block(reached);
    }

    /// Adds a function; gives its ordinal. With an export's name it can be called from outside.
    pub fn function(&mut self, name: &str, exported: bool, code: Code) -> Result<u32, CompileError> {
        self.reflected_function(name, exported, code, Vec::new())
    }

    /// Adds a function with reflection.
    pub fn reflected_function(
        &mut self,
        name: &str,
        exported: bool,
        code: Code,
        attrs: Vec<Attr>,
    ) -> Result<u32, CompileError> {
        let (builder, requirements) = code.finish()?;
        let ordinal = self.builder.function(exported.then_some(name), builder);
        let ordinal = ordinal.map_err(|e| CompileError::Write(format!("function {name}: {e}")))?;
        self.functions.push((name.to_owned(), requirements, attrs));
        Ok(ordinal)
    }

    /// The module with so much global state, and its large data.
    pub fn finish(mut self, global_bytes: u32, global_refs: u32) -> (ModuleDef, LargeData) {
        self.builder.globals(global_bytes, global_refs);
        let mut module = self.builder.finish();
        module.attrs = self.attrs;
        let mut names = Vec::new();
        for (function, (name, requirements, attrs)) in module.functions.iter_mut().zip(self.functions) {
            function.requirements |= requirements;
            function.signature.attrs = attrs;
            module.requirements |= requirements;
            names.push(FunctionDebug { local_name: name, locations: Vec::new() });
        }
        module.debug = Some(DebugDatabase { locations: Vec::new(), functions: names });
        (module, self.large)
    }
}
