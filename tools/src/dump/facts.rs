//! What is known about a module, as data: the text and the JSON form are made from it.

use bytes::Bytes;
use halite_abi::attribute;
use halite_formats::vmfb::{Container, FunctionSignature, ModuleDef, requirement};
use serde::Serialize;

use super::{
    executables::{self, ExecutableFacts},
    selected,
};

/// Bytes of a text segment that are shown, at most.
const PREVIEW: usize = 32;
/// Bytes of a target description that are shown, at most.
const MAX_TARGET: usize = 4096;

/// Everything about a module.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) container: ContainerFacts,
    pub(super) bytecode_version: String,
    pub(super) requirements: Vec<&'static str>,
    #[serde(skip)]
    pub(super) requirement_bits: u32,
    /// What wrote the module, if it says so.
    pub(super) producer: Option<String>,
    /// Name and format of the model that it was compiled from, if it says so.
    pub(super) model: Option<ModelFacts>,
    pub(super) attrs: Vec<(String, String)>,
    /// What the kernels were compiled for: what the module says, or target descriptions that the compiler left in messages.
    pub(super) targets: Vec<String>,
    pub(super) types: Vec<String>,
    pub(super) dependencies: Vec<DependencyFacts>,
    pub(super) imports: Vec<ImportFacts>,
    pub(super) exports: Vec<ExportFacts>,
    pub(super) globals: GlobalFacts,
    pub(super) rodata: Vec<RodataFacts>,
    pub(super) bytecode_bytes: usize,
    pub(super) functions: Vec<FunctionFacts>,
    pub(super) debug: Option<DebugFacts>,
    pub(super) executables: Vec<ExecutableFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disassembly: Option<Vec<CodeFacts>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ModelFacts {
    pub(super) name: String,
    pub(super) format: String,
}

#[derive(Debug, Serialize)]
pub(super) struct ContainerFacts {
    /// `zip` when the file is a zip archive at the same time, `bare` when not.
    pub(super) form: &'static str,
    pub(super) file_bytes: usize,
    pub(super) flatbuffer_offset: usize,
    pub(super) flatbuffer_bytes: usize,
    pub(super) rodata_base: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct DependencyFacts {
    pub(super) name: String,
    pub(super) minimum_version: u32,
    pub(super) optional: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ImportFacts {
    pub(super) name: String,
    pub(super) calling_convention: String,
    pub(super) optional: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ExportFacts {
    pub(super) name: String,
    pub(super) function: u32,
    pub(super) calling_convention: String,
    pub(super) declaration: Option<String>,
    /// The model's names of inputs and outputs, if the module has them.
    pub(super) inputs: Option<Vec<String>>,
    pub(super) outputs: Option<Vec<String>>,
    pub(super) attrs: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(super) struct GlobalFacts {
    pub(super) bytes: u32,
    pub(super) refs: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct RodataFacts {
    pub(super) bytes: usize,
    pub(super) kind: &'static str,
    pub(super) external: bool,
    /// From the start of the file.
    pub(super) file_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionFacts {
    pub(super) name: String,
    pub(super) calling_convention: String,
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) blocks: u16,
    pub(super) i32_registers: u16,
    pub(super) ref_registers: u16,
    #[serde(skip)]
    pub(super) requirement_bits: u32,
    pub(super) requirements: Vec<&'static str>,
    pub(super) exported_as: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct DebugFacts {
    pub(super) locations: usize,
    pub(super) functions: usize,
}

/// Code of one function.
#[derive(Debug, Serialize)]
pub(super) struct CodeFacts {
    pub(super) name: String,
    /// (offset, text), or why it cannot be decoded.
    pub(super) lines: Result<Vec<(u32, String)>, String>,
}

/// Collects everything but the disassembly.
pub(super) fn collect(file: &Bytes, container: &Container, module: &ModuleDef) -> Facts {
    let pairs = |attrs: &[halite_formats::vmfb::Attr]| {
        attrs.iter().map(|a| (a.key.clone(), a.value.clone())).collect::<Vec<_>>()
    };
    let mut targets = targets(&module.bytecode);
    targets.extend(module.targets());
    let model = module.model_format().map(|format| ModelFacts {
        name: module.model_name().unwrap_or_default().to_owned(),
        format: format.to_owned(),
    });
    Facts {
        name: module.name.clone(),
        version: module.version,
        container: ContainerFacts {
            form: if file.starts_with(b"PK\x03\x04") { "zip" } else { "bare" },
            file_bytes: file.len(),
            flatbuffer_offset: container.flatbuffer.start,
            flatbuffer_bytes: container.flatbuffer.len(),
            rodata_base: container.rodata_base,
        },
        bytecode_version: format!("{}.{}", module.bytecode_version >> 16, module.bytecode_version & 0xFFFF),
        requirements: requirement_names(module.requirements),
        requirement_bits: module.requirements,
        producer: module.producer().map(str::to_owned),
        model,
        attrs: pairs(&module.attrs),
        types: module.types.clone(),
        dependencies: dependencies(module),
        imports: imports(module),
        exports: exports(module, pairs),
        globals: GlobalFacts { bytes: module.global_bytes_capacity, refs: module.global_ref_count },
        rodata: module.rodata.iter().map(|segment| rodata(file, container, segment)).collect(),
        bytecode_bytes: module.bytecode.len(),
        functions: functions(module),
        debug: module
            .debug
            .as_ref()
            .map(|d| DebugFacts { locations: d.locations.len(), functions: d.functions.len() }),
        executables: executables::collect(module, &targets),
        targets,
        disassembly: None,
    }
}

fn dependencies(module: &ModuleDef) -> Vec<DependencyFacts> {
    let of = |d: &halite_formats::vmfb::Dependency| DependencyFacts {
        name: d.name.clone(),
        minimum_version: d.minimum_version,
        optional: d.optional,
    };
    module.dependencies.iter().map(of).collect()
}

fn imports(module: &ModuleDef) -> Vec<ImportFacts> {
    let of = |i: &halite_formats::vmfb::Import| ImportFacts {
        name: i.full_name.clone(),
        calling_convention: i.signature.calling_convention.clone(),
        optional: i.optional,
    };
    module.imports.iter().map(of).collect()
}

fn exports(
    module: &ModuleDef,
    pairs: impl Fn(&[halite_formats::vmfb::Attr]) -> Vec<(String, String)>,
) -> Vec<ExportFacts> {
    let of = |e: &halite_formats::vmfb::Export| {
        let signature = module.functions.get(e.ordinal as usize).map(|f| &f.signature);
        ExportFacts {
            name: e.local_name.clone(),
            function: e.ordinal,
            calling_convention: signature.map_or_else(String::new, |s| s.calling_convention.clone()),
            declaration: signature.and_then(|s| s.attr(attribute::DECLARATION)).map(str::to_owned),
            inputs: signature.and_then(FunctionSignature::input_names),
            outputs: signature.and_then(FunctionSignature::output_names),
            attrs: signature.map(|s| pairs(&s.attrs)).unwrap_or_default(),
        }
    };
    module.exports.iter().map(of).collect()
}

fn functions(module: &ModuleDef) -> Vec<FunctionFacts> {
    let of = |(ordinal, f): (u32, &halite_formats::vmfb::Function)| FunctionFacts {
        name: module.function_name(ordinal),
        calling_convention: f.signature.calling_convention.clone(),
        offset: f.bytecode_offset,
        length: f.bytecode_length,
        blocks: f.block_count,
        i32_registers: f.i32_register_count,
        ref_registers: f.ref_register_count,
        requirement_bits: f.requirements,
        requirements: requirement_names(f.requirements),
        exported_as: module
            .exports
            .iter()
            .filter(|e| e.ordinal == ordinal)
            .map(|e| e.local_name.clone())
            .collect(),
    };
    (0u32..).zip(&module.functions).map(of).collect()
}

fn requirement_names(bits: u32) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 4] = [
        (requirement::EXT_F32, "f32"),
        (requirement::EXT_F64, "f64"),
        (requirement::YIELD, "yield"),
        (requirement::UNWIND, "unwind"),
    ];
    NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}

fn rodata(file: &Bytes, container: &Container, segment: &Bytes) -> RodataFacts {
    // Segments are slices of the file, so the distance of the pointers is the offset.
    let file_offset = (segment.as_ptr() as usize)
        .checked_sub(file.as_ptr() as usize)
        .filter(|start| !segment.is_empty() && start.saturating_add(segment.len()) <= file.len());
    let printable = |bytes: &[u8]| bytes.iter().all(|b| matches!(b, b' '..=b'~'));
    let is_text = !segment.is_empty() && printable(&segment[..segment.len().min(4096)]);
    let text = is_text.then(|| {
        let shown = String::from_utf8_lossy(&segment[..segment.len().min(PREVIEW)]).into_owned();
        if segment.len() > PREVIEW { shown + "..." } else { shown }
    });
    RodataFacts {
        bytes: segment.len(),
        kind: kind(segment, is_text),
        external: file_offset.is_some_and(|start| start >= container.rodata_base),
        file_offset,
        text,
    }
}

fn kind(bytes: &[u8], is_text: bool) -> &'static str {
    match bytes {
        [] => "empty",
        [b'V', b'K', b'E', b'1', ..] => "vulkan executable",
        [0x7F, b'E', b'L', b'F', ..] => "elf",
        [b'P', b'K', 3, 4, ..] => "module",
        [_, _, _, _, _, _, _, _, b'I', b'R', b'E', b'E', ..] => "module",
        _ if is_text => "text",
        _ => "data",
    }
}

/// Target descriptions in the messages of failing initializers, each once.
fn targets(bytecode: &[u8]) -> Vec<String> {
    const MARK: &[u8] = b"#hal.device.target<";
    let mut found = Vec::new();
    let mut rest = bytecode;
    while let Some(at) = rest.windows(MARK.len()).position(|w| w == MARK) {
        let text = &rest[at..];
        let end = target_length(text);
        let text_here = String::from_utf8_lossy(&text[..end]).into_owned();
        if !found.contains(&text_here) {
            found.push(text_here);
        }
        rest = &text[MARK.len()..];
    }
    found
}

/// Bytes of the attribute that a text begins with: up to the bracket that closes it, or as far as it is text.
fn target_length(text: &[u8]) -> usize {
    let (mut depth, mut quoted) = (0, false);
    for (i, b) in text.iter().enumerate().take(MAX_TARGET) {
        match b {
            b'"' => quoted = !quoted,
            b'<' if !quoted => depth += 1,
            b'>' if !quoted && depth == 1 => return i + 1,
            b'>' if !quoted => depth -= 1,
            b' '..=b'~' => {}
            _ => return i,
        }
    }
    text.len().min(MAX_TARGET)
}

/// Code of the selected functions.
pub(super) fn disassembly(module: &ModuleDef, name: Option<&str>) -> halite::hal::Result<Vec<CodeFacts>> {
    let of = |ordinal| CodeFacts {
        name: module.function_name(ordinal),
        lines: halite_vm::disassemble(module, ordinal)
            .map(|lines| lines.into_iter().map(|l| (l.offset, l.text)).collect())
            .map_err(|e| e.to_string()),
    };
    Ok(selected(module, name)?.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_once_each() {
        let text = b"..\x01#hal.device.target<\"vulkan\", [x]>\0#hal.device.target<\"vulkan\", [x]>y#hal.device.target<\"b<\">";
        assert_eq!(targets(text), ["#hal.device.target<\"vulkan\", [x]>", "#hal.device.target<\"b<\">"]);
        assert!(targets(b"").is_empty());
    }

    #[test]
    fn kinds() {
        assert_eq!(kind(b"VKE1....", true), "vulkan executable");
        assert_eq!(kind(b"PK\x03\x04", false), "module");
        assert_eq!(kind(b"hal.device.id", true), "text");
        assert_eq!(kind(&[0; 8], false), "data");
        assert_eq!(kind(&[], false), "empty");
    }
}
