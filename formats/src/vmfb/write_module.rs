//! Writing bytecode modules: the FlatBuffer, where external segments go, and the zip dress.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::container::SEGMENT_ALIGNMENT;
use super::schema as s;
use super::write_executable::collect;
use super::zip::{ZipEntries, local_header_length};
use super::{
    Attr, DebugDatabase, Dependency, Export, Function, FunctionDebug, FunctionSignature, Import, Location,
    ModuleDef, VmfbError,
};
use crate::{
    Rope,
    flatbuffer::{Builder, Child, Field, Offset, Vector},
};

/// Rodata of at least this many bytes goes behind the FlatBuffer, where it is aligned and can be mapped.
const EXTERNAL_THRESHOLD: usize = 256;
/// Alignment of rodata that stays inside, and of bytecode.
const EMBEDDED_ALIGNMENT: usize = 16;
/// The zip entry that holds the FlatBuffer.
const MODULE_ENTRY: &str = "module.fb";

/// How a module file is dressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Make the file a zip too, so that unzip can take it apart. Costs a header of 64 bytes or more per segment.
    pub polyglot_zip: bool,
}

impl Default for WriteOptions {
    /// What `iree-compile` does: a zip.
    fn default() -> Self {
        WriteOptions { polyglot_zip: true }
    }
}

/// An external segment that has been given its place.
struct Segment {
    ordinal: usize,
    /// From the rodata base, which follows the FlatBuffer.
    offset: u64,
    data: Rope,
}

impl Segment {
    fn entry_name(&self) -> String {
        format!("rodata_{}.bin", self.ordinal)
    }
}

/// Read-only data of a module by ordinal, in pieces that stay where they are: in the place of what [`ModuleDef::rodata`]
/// has there.
pub type LargeData = BTreeMap<usize, Rope>;

/// Encodes a module file. Deterministic: equal modules give equal bytes.
///
/// Fails with `Invalid` when a count does not fit its field, and with `Flatbuffer` beyond 2 GiB of code and names.
pub fn write_module(module: &ModuleDef, options: &WriteOptions) -> Result<Vec<u8>, VmfbError> {
    Ok(write_module_in_pieces(module, &LargeData::new(), options)?.to_vec())
}

/// As [`write_module`], with large data in pieces: the file's pieces are those, and what is between them.
///
/// # Errors
/// As [`write_module`].
pub fn write_module_in_pieces(
    module: &ModuleDef,
    large: &LargeData,
    options: &WriteOptions,
) -> Result<Rope, VmfbError> {
    write_module_while(module, large, options, &|| true)
}

/// As [`write_module_in_pieces`], as long as `goes_on` says so: it is asked after each megabyte of data.
///
/// # Errors
/// As [`write_module`], and [`VmfbError::Stopped`] when `goes_on` said no.
pub fn write_module_while(
    module: &ModuleDef,
    large: &LargeData,
    options: &WriteOptions,
    goes_on: &dyn Fn() -> bool,
) -> Result<Rope, VmfbError> {
    let segments = place_segments(module, large, options.polyglot_zip);
    let flatbuffer = Bytes::from(build(module, &segments)?);
    let mut out = Rope::new();
    let mut zip = options.polyglot_zip.then(ZipEntries::default);
    if let Some(zip) = &mut zip {
        out.push(zip.begin(0, MODULE_ENTRY.to_owned(), std::slice::from_ref(&flatbuffer), goes_on)?);
    }
    out.push(flatbuffer);
    for segment in &segments {
        out.pad_to(out.len().next_multiple_of(SEGMENT_ALIGNMENT as u64));
        if let Some(zip) = &mut zip {
            out.push(zip.begin(out.len(), segment.entry_name(), segment.data.pieces(), goes_on)?);
        }
        out.append(segment.data.clone());
    }
    if let Some(zip) = zip {
        out.push(zip.finish(out.len()));
    }
    Ok(out)
}

/// Decides which segments are external, and where.
fn place_segments(module: &ModuleDef, large: &LargeData, zip: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut end = 0u64;
    for (ordinal, data) in module.rodata.iter().enumerate() {
        let in_pieces = large.get(&ordinal);
        if in_pieces.is_none() && data.len() < EXTERNAL_THRESHOLD && !data.starts_with(s::VULKAN_IDENTIFIER) {
            continue;
        }
        let data = in_pieces.cloned().unwrap_or_else(|| data.clone().into());
        let offset = end.next_multiple_of(SEGMENT_ALIGNMENT as u64);
        let mut segment = Segment { ordinal, offset, data };
        if zip {
            segment.offset += local_header_length(&segment.entry_name()) as u64;
        }
        end = segment.offset + segment.data.len();
        segments.push(segment);
    }
    segments
}

/// A count as the signed field it is stored in.
fn signed<K>(value: u64, f: &Field<K>) -> Result<i32, VmfbError> {
    i32::try_from(value).map_err(|_| {
        VmfbError::invalid(
            format!("{}.{}", f.table, f.name),
            format!("{value} does not fit; the limit is {}", i32::MAX),
        )
    })
}

fn build(module: &ModuleDef, segments: &[Segment]) -> Result<Vec<u8>, VmfbError> {
    let mut b = Builder::new();
    let debug = module.debug.as_ref().map(|d| write_debug(&mut b, d)).transpose()?;
    let bytecode = b.bytes(&module.bytecode, EMBEDDED_ALIGNMENT);
    let descriptors: Vec<_> = module.functions.iter().map(descriptor).collect();
    let descriptors = b.structs(&descriptors);
    let state = write_state(&mut b, module)?;
    let rodata = write_rodata(&mut b, module, segments);
    let signatures = collect(&mut b, &module.functions, |b, f| write_signature(b, &f.signature));
    let signatures = b.children(&signatures);
    let exports = write_exports(&mut b, &module.exports, module.functions.len())?;
    let imports = collect(&mut b, &module.imports, write_import);
    let imports = (!imports.is_empty()).then(|| b.children(&imports));
    let dependencies = collect(&mut b, &module.dependencies, write_dependency);
    let dependencies = (!dependencies.is_empty()).then(|| b.children(&dependencies));
    let types = collect(&mut b, &module.types, |b, name| {
        let name = b.text(name);
        b.table().link(&s::type_def::FULL_NAME, name).finish()
    });
    let types = b.children(&types);
    let attrs = write_attrs(&mut b, &module.attrs);
    let name = b.text(&module.name);
    let root = b
        .table()
        .link(&s::module::NAME, name)
        .scalar(&s::module::VERSION, module.version)
        .scalar(&s::module::REQUIREMENTS, module.requirements)
        .maybe(&s::module::ATTRS, attrs)
        .link(&s::module::TYPES, types)
        .maybe(&s::module::DEPENDENCIES, dependencies)
        .maybe(&s::module::IMPORTS, imports)
        .link(&s::module::EXPORTS, exports)
        .link(&s::module::SIGNATURES, signatures)
        .link(&s::module::RODATA, rodata)
        .maybe(&s::module::STATE, state)
        .link(&s::module::FUNCTIONS, descriptors)
        .scalar(&s::module::BYTECODE_VERSION, module.bytecode_version)
        .link(&s::module::BYTECODE, bytecode)
        .maybe(&s::module::DEBUG, debug)
        .finish();
    Ok(b.finish(root, s::MODULE_IDENTIFIER, true)?)
}

fn flags(optional: bool) -> u32 {
    if optional { s::FLAG_OPTIONAL } else { s::FLAG_REQUIRED }
}

fn descriptor(f: &Function) -> [u8; s::FUNCTION_DESCRIPTOR] {
    let mut out = [0; s::FUNCTION_DESCRIPTOR];
    out[..4].copy_from_slice(&f.bytecode_offset.to_le_bytes());
    out[4..8].copy_from_slice(&f.bytecode_length.to_le_bytes());
    out[8..12].copy_from_slice(&f.requirements.to_le_bytes());
    out[14..16].copy_from_slice(&f.block_count.to_le_bytes());
    out[16..18].copy_from_slice(&f.i32_register_count.to_le_bytes());
    out[18..20].copy_from_slice(&f.ref_register_count.to_le_bytes());
    out
}

fn write_attrs(b: &mut Builder, attrs: &[Attr]) -> Option<Offset<Vector<Child>>> {
    if attrs.is_empty() {
        return None;
    }
    let attrs = collect(b, attrs, |b, a| {
        let (key, value) = (b.text(&a.key), b.text(&a.value));
        b.table().link(&s::attr::KEY, key).link(&s::attr::VALUE, value).finish()
    });
    Some(b.children(&attrs))
}

fn write_signature(b: &mut Builder, signature: &FunctionSignature) -> Offset<Child> {
    let convention =
        (!signature.calling_convention.is_empty()).then(|| b.text(&signature.calling_convention));
    let attrs = write_attrs(b, &signature.attrs);
    b.table().maybe(&s::signature::CALLING_CONVENTION, convention).maybe(&s::signature::ATTRS, attrs).finish()
}

/// Absent when there is no state, as the compiler has it.
fn write_state(b: &mut Builder, module: &ModuleDef) -> Result<Option<Offset<Child>>, VmfbError> {
    let bytes = signed(module.global_bytes_capacity.into(), &s::state::GLOBAL_BYTES)?;
    let refs = signed(module.global_ref_count.into(), &s::state::GLOBAL_REFS)?;
    if (bytes, refs) == (0, 0) {
        return Ok(None);
    }
    let table = b.table().scalar(&s::state::GLOBAL_BYTES, bytes).scalar(&s::state::GLOBAL_REFS, refs);
    Ok(Some(table.finish()))
}

fn write_dependency(b: &mut Builder, dependency: &Dependency) -> Offset<Child> {
    let name = b.text(&dependency.name);
    b.table()
        .link(&s::dependency::NAME, name)
        .scalar(&s::dependency::MINIMUM_VERSION, dependency.minimum_version)
        .scalar(&s::dependency::FLAGS, flags(dependency.optional))
        .finish()
}

fn write_import(b: &mut Builder, import: &Import) -> Offset<Child> {
    let name = b.text(&import.full_name);
    let signature = write_signature(b, &import.signature);
    b.table()
        .link(&s::import::FULL_NAME, name)
        .link(&s::import::SIGNATURE, signature)
        .scalar(&s::import::FLAGS, flags(import.optional))
        .finish()
}

fn write_exports(
    b: &mut Builder,
    exports: &[Export],
    functions: usize,
) -> Result<Offset<Vector<Child>>, VmfbError> {
    if let Some(e) = exports.iter().find(|e| e.ordinal as usize >= functions) {
        let problem = format!("function {} does not exist; there are {functions}", e.ordinal);
        return Err(VmfbError::invalid(format!("export {}", e.local_name), problem));
    }
    let exports = collect(b, exports, |b, e| {
        let name = b.text(&e.local_name);
        // Fits: below the number of functions, each of which took 20 bytes.
        b.table().link(&s::export::LOCAL_NAME, name).scalar(&s::export::ORDINAL, e.ordinal as i32).finish()
    });
    Ok(b.children(&exports))
}

fn write_rodata(b: &mut Builder, module: &ModuleDef, segments: &[Segment]) -> Offset<Vector<Child>> {
    let mut external = segments.iter().peekable();
    let tables: Vec<_> = module
        .rodata
        .iter()
        .enumerate()
        .map(|(ordinal, data)| match external.next_if(|seg| seg.ordinal == ordinal) {
            Some(segment) => b
                .table()
                .scalar(&s::rodata::EXTERNAL_OFFSET, segment.offset)
                .scalar(&s::rodata::EXTERNAL_LENGTH, segment.data.len())
                .finish(),
            None => {
                let data = b.bytes(data, EMBEDDED_ALIGNMENT);
                b.table().link(&s::rodata::EMBEDDED, data).finish()
            }
        })
        .collect();
    b.children(&tables)
}

fn write_debug(b: &mut Builder, debug: &DebugDatabase) -> Result<Offset<Child>, VmfbError> {
    let functions = collect(b, &debug.functions, write_source_map);
    let functions = b.children(&functions);
    let mut tags = Vec::with_capacity(debug.locations.len());
    let mut tables = Vec::with_capacity(debug.locations.len());
    for location in &debug.locations {
        let (tag, table) = write_location(b, location)?;
        tags.push(tag);
        tables.push(table);
    }
    let tables = b.nullable_children(&tables);
    let tags = b.bytes(&tags, 1);
    Ok(b.table()
        .link(&s::debug::LOCATION_TAGS, tags)
        .link(&s::debug::LOCATIONS, tables)
        .link(&s::debug::FUNCTIONS, functions)
        .finish())
}

fn write_source_map(b: &mut Builder, function: &FunctionDebug) -> Offset<Child> {
    let pair = |&(offset, location): &(u32, u32)| {
        let mut out = [0; 8];
        out[..4].copy_from_slice(&offset.to_le_bytes());
        out[4..].copy_from_slice(&location.to_le_bytes());
        out
    };
    let locations: Vec<[u8; 8]> = function.locations.iter().map(pair).collect();
    let locations = b.structs(&locations);
    let name = b.text(&function.local_name);
    b.table().link(&s::source_map::LOCAL_NAME, name).link(&s::source_map::LOCATIONS, locations).finish()
}

fn write_location(b: &mut Builder, location: &Location) -> Result<(u8, Option<Offset<Child>>), VmfbError> {
    use s::{call_site, file_line_col, fused, location_tag, name_loc};
    Ok(match location {
        Location::Unknown => (location_tag::NONE, None),
        Location::CallSite { callee, caller } => {
            let callee = signed((*callee).into(), &call_site::CALLEE)?;
            let caller = signed((*caller).into(), &call_site::CALLER)?;
            let table =
                b.table().scalar(&call_site::CALLEE, callee).scalar(&call_site::CALLER, caller).finish();
            (location_tag::CALL_SITE, Some(table))
        }
        Location::FileLineCol { filename, line, column } => {
            let line = signed((*line).into(), &file_line_col::LINE)?;
            let column = signed((*column).into(), &file_line_col::COLUMN)?;
            let filename = b.text(filename);
            let table = b.table().link(&file_line_col::FILENAME, filename);
            let table = table.scalar(&file_line_col::LINE, line).scalar(&file_line_col::COLUMN, column);
            (location_tag::FILE_LINE_COL, Some(table.finish()))
        }
        Location::Fused { metadata, locations } => {
            let metadata = (!metadata.is_empty()).then(|| b.text(metadata));
            let indices = locations
                .iter()
                .map(|v| signed((*v).into(), &fused::LOCATIONS))
                .collect::<Result<Vec<_>, _>>()?;
            let indices = b.scalars(indices);
            let table = b.table().maybe(&fused::METADATA, metadata).link(&fused::LOCATIONS, indices);
            (location_tag::FUSED, Some(table.finish()))
        }
        Location::Name { name, child } => {
            let child = child.map_or(Ok(-1), |c| signed(c.into(), &name_loc::CHILD))?;
            let name = b.text(name);
            let table = b.table().link(&name_loc::NAME, name).scalar(&name_loc::CHILD, child);
            (location_tag::NAME, Some(table.finish()))
        }
    })
}
