//! Reading bytecode modules.

use super::container::Container;
use super::read::{Result, each, named, text};
use super::read_debug::read_debug;
use super::schema as s;
use super::{
    Attr, BYTECODE_VERSION, Dependency, Export, Function, FunctionSignature, Import, ModuleDef, VmfbError,
    requirement,
};
use crate::flatbuffer::{Child, Field, Reader, Table, Vector};
use bytes::Bytes;

/// Highest register counts that operands can address.
const MAX_I32_REGISTERS: u16 = 0x7FFF;
const MAX_REF_REGISTERS: u16 = 0x3FFF;
/// Global state that any module may ask for; beyond it, the file's own size is the measure, since every global takes
/// at least one instruction to be of use.
const GLOBAL_FLOOR: u64 = 64 << 10;
const GLOBAL_BYTES_PER_FILE_BYTE: u64 = 8;

/// Decodes a module file, bare or wrapped in a zip. Rodata, bytecode and executables are slices of `file`.
///
/// All names, ordinals and ranges are checked; bytecode is not. Time and memory are linear in the file's size.
pub fn read_module(file: Bytes) -> Result<ModuleDef> {
    let container = Container::parse(&file)?;
    let reader = Reader::new(&file[container.flatbuffer.clone()], container.flatbuffer.start);
    let root = reader.root("BytecodeModuleDef", s::MODULE_IDENTIFIER)?;
    let bytecode_version = check_version(root.scalar(&s::module::BYTECODE_VERSION)?)?;
    let requirements = check_requirements("the module", root.scalar(&s::module::REQUIREMENTS)?)?;
    let bytecode = match root.range(&s::module::BYTECODE)? {
        Some(r) => file.slice(container.flatbuffer.start + r.start..container.flatbuffer.start + r.end),
        None => Bytes::new(),
    };
    let functions = read_functions(&root, bytecode.len())?;
    let (global_bytes_capacity, global_ref_count) = read_state(&root, file.len())?;
    let debug = root.child(&s::module::DEBUG)?.map(|d| read_debug(&d)).transpose()?;
    Ok(ModuleDef {
        name: named(&root, &s::module::NAME, || "BytecodeModuleDef".into())?,
        version: root.scalar(&s::module::VERSION)?,
        requirements,
        attrs: read_attrs(&root, &s::module::ATTRS)?,
        types: each(&root, &s::module::TYPES, |t, at| named(&t, &s::type_def::FULL_NAME, at))?,
        dependencies: each(&root, &s::module::DEPENDENCIES, read_dependency)?,
        imports: each(&root, &s::module::IMPORTS, read_import)?,
        exports: read_exports(&root, functions.len())?,
        functions,
        rodata: each(&root, &s::module::RODATA, |t, at| read_rodata(&t, at, &container, &file))?,
        global_bytes_capacity,
        global_ref_count,
        bytecode,
        bytecode_version,
        debug,
    })
}

fn check_version(version: u32) -> Result<u32> {
    let split = |v: u32| ((v >> 16) as u16, v as u16);
    let ((found_major, found_minor), (major, minor)) = (split(version), split(BYTECODE_VERSION));
    if found_major != major || found_minor > minor {
        return Err(VmfbError::BytecodeVersion { found_major, found_minor, major, minor });
    }
    Ok(version)
}

fn check_requirements(what: &str, bits: u32) -> Result<u32> {
    let unknown = bits & !requirement::KNOWN;
    if unknown != 0 {
        let known = requirement::KNOWN;
        return Err(VmfbError::Requirements { what: what.to_owned(), bits, unknown, known });
    }
    Ok(bits)
}

fn read_attrs(table: &Table<'_>, f: &Field<Vector<Child>>) -> Result<Vec<Attr>> {
    each(table, f, |t, _| Ok(Attr { key: text(&t, &s::attr::KEY)?, value: text(&t, &s::attr::VALUE)? }))
}

fn read_signature(table: &Table<'_>) -> Result<FunctionSignature> {
    Ok(FunctionSignature {
        calling_convention: text(table, &s::signature::CALLING_CONVENTION)?,
        attrs: read_attrs(table, &s::signature::ATTRS)?,
    })
}

fn read_dependency(table: Table<'_>, at: &dyn Fn() -> String) -> Result<Dependency> {
    Ok(Dependency {
        name: named(&table, &s::dependency::NAME, at)?,
        minimum_version: table.scalar(&s::dependency::MINIMUM_VERSION)?,
        optional: table.scalar(&s::dependency::FLAGS)? & s::FLAG_OPTIONAL != 0,
    })
}

fn read_import(table: Table<'_>, at: &dyn Fn() -> String) -> Result<Import> {
    let signature = table.child(&s::import::SIGNATURE)?;
    Ok(Import {
        full_name: named(&table, &s::import::FULL_NAME, at)?,
        signature: signature.map(|t| read_signature(&t)).transpose()?.unwrap_or_default(),
        optional: table.scalar(&s::import::FLAGS)? & s::FLAG_OPTIONAL != 0,
    })
}

fn read_exports(root: &Table<'_>, function_count: usize) -> Result<Vec<Export>> {
    each(root, &s::module::EXPORTS, |t, at| {
        let local_name = named(&t, &s::export::LOCAL_NAME, at)?;
        let ordinal = t.scalar(&s::export::ORDINAL)?;
        let known = u32::try_from(ordinal).ok().filter(|o| (*o as usize) < function_count);
        let ordinal = known.ok_or_else(|| {
            let problem =
                format!("internal_ordinal {ordinal}, but the module has {function_count} functions");
            VmfbError::invalid(at(), problem)
        })?;
        Ok(Export { local_name, ordinal })
    })
}

fn read_functions(root: &Table<'_>, bytecode_length: usize) -> Result<Vec<Function>> {
    let descriptors = root.vector(&s::module::FUNCTIONS)?;
    let signatures = each(root, &s::module::SIGNATURES, |t, _| read_signature(&t))?;
    if signatures.len() != descriptors.len() {
        let (n, m) = (signatures.len(), descriptors.len());
        let problem = format!("{n} signatures for {m} function_descriptors; there must be one each");
        return Err(VmfbError::invalid("BytecodeModuleDef.function_signatures", problem));
    }
    let pairs = descriptors.iter().zip(signatures).enumerate();
    pairs.map(|(i, (d, signature))| read_function(i, d?, signature, bytecode_length)).collect()
}

fn read_function(
    index: usize,
    descriptor: &[u8; s::FUNCTION_DESCRIPTOR],
    signature: FunctionSignature,
    bytecode_length: usize,
) -> Result<Function> {
    let half = |at: usize| u16::from_le_bytes([descriptor[at], descriptor[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let what = format!("BytecodeModuleDef.function_descriptors[{index}]");
    let (bytecode_offset, bytecode_length_here) = (word(0), word(4));
    let end = u64::from(bytecode_offset) + u64::from(bytecode_length_here);
    if bytecode_length_here == 0 || end > bytecode_length as u64 {
        let problem = format!(
            "bytecode at {bytecode_offset} of {bytecode_length_here} bytes; it must not be empty and must end \
             within bytecode_data of {bytecode_length} bytes"
        );
        return Err(VmfbError::invalid(what, problem));
    }
    let (block_count, i32_register_count, ref_register_count) = (half(14), half(16), half(18));
    if block_count == 0 {
        return Err(VmfbError::invalid(what, "block_count 0; a function has at least one block"));
    }
    if i32_register_count > MAX_I32_REGISTERS || ref_register_count > MAX_REF_REGISTERS {
        let problem = format!(
            "{i32_register_count} i32 and {ref_register_count} ref registers; the limits are {MAX_I32_REGISTERS} and \
             {MAX_REF_REGISTERS}"
        );
        return Err(VmfbError::invalid(what, problem));
    }
    let requirements = check_requirements(&what, word(8))?;
    Ok(Function {
        signature,
        bytecode_offset,
        bytecode_length: bytecode_length_here,
        requirements,
        block_count,
        i32_register_count,
        ref_register_count,
    })
}

fn read_rodata(
    table: &Table<'_>,
    at: &dyn Fn() -> String,
    container: &Container,
    file: &Bytes,
) -> Result<Bytes> {
    let compression = table.scalar(&s::rodata::COMPRESSION_TYPE)?;
    if compression > 1 {
        let problem = format!("compression type {compression}; only uncompressed data (0, 1) is supported");
        return Err(VmfbError::invalid(at(), problem));
    }
    if let Some(range) = table.range(&s::rodata::EMBEDDED)? {
        let start = container.flatbuffer.start;
        return Ok(file.slice(start + range.start..start + range.end));
    }
    let offset = table.scalar(&s::rodata::EXTERNAL_OFFSET)?;
    let length = table.scalar(&s::rodata::EXTERNAL_LENGTH)?;
    container.external(file, offset, length).ok_or_else(|| {
        let (base, limit) = (container.rodata_base, file.len());
        let problem = format!(
            "external data at {offset} of {length} bytes, counted from {base}, ends past the file of {limit} bytes"
        );
        VmfbError::invalid(at(), problem)
    })
}

fn read_state(root: &Table<'_>, file_length: usize) -> Result<(u32, u32)> {
    let Some(state) = root.child(&s::module::STATE)? else { return Ok((0, 0)) };
    let read = |f: &Field<i32>, per_byte: u64| {
        let found = state.scalar(f)?;
        let limit = GLOBAL_FLOOR + per_byte * file_length as u64;
        let count = u32::try_from(found).ok().filter(|n| u64::from(*n) <= limit);
        count.ok_or_else(|| {
            let problem = format!("{found}; a file of {file_length} bytes may ask for 0 to {limit}");
            VmfbError::invalid(format!("{}.{}", f.table, f.name), problem)
        })
    };
    Ok((read(&s::state::GLOBAL_BYTES, GLOBAL_BYTES_PER_FILE_BYTE)?, read(&s::state::GLOBAL_REFS, 1)?))
}
