//! Reading Vulkan executables (`VKE1`).

use super::read::{Result, each, named, text};
use super::schema as s;
use super::{
    BdaLayout, DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VmfbError,
    VulkanExecutable,
};
use crate::flatbuffer::{Reader, Table};
use bytes::Bytes;
use halite_abi::descriptor::{COMPUTE_STAGE, STORAGE_BUFFER, UNIFORM_BUFFER};

/// Bytes of the wrapper in front of the FlatBuffer.
pub(super) const HEADER: usize = 64;
/// The only wrapper version.
pub(super) const VERSION: u32 = 0;
const BDA_VERSION: u32 = 1;
/// Bytes of the root struct of BDA pipelines.
const BDA_ROOT: u32 = 32;
/// Drivers size tables by the highest binding number, so an untrusted one is bounded.
const MAX_BINDING: u32 = 1023;
/// No device has more push constants than this.
const MAX_PUSH_CONSTANT_BYTES: u32 = 4096;
const MAX_SUBGROUP_SIZE: u32 = 128;

/// Decodes a Vulkan executable. Shaders and sources are slices of `data`; all ordinals are checked.
pub fn read_vulkan_executable(data: Bytes) -> Result<VulkanExecutable> {
    let length = content_length(&data)?;
    let content = &data[HEADER..HEADER + length];
    let reader = Reader::new(content, HEADER);
    let root = reader.root("ExecutableDef", s::VULKAN_IDENTIFIER)?;
    let slice = |range: std::ops::Range<usize>| data.slice(HEADER + range.start..HEADER + range.end);
    let shader_modules = each(&root, &s::executable::SHADER_MODULES, |t, at| {
        let code = t.range(&s::shader_module::SPIRV_CODE)?.filter(|r| !r.is_empty());
        code.map(slice).ok_or_else(|| VmfbError::invalid(at(), "spirv_code is empty"))
    })?;
    let source_files = each(&root, &s::executable::SOURCE_FILES, |t, _| {
        let content = t.range(&s::source_file::CONTENT)?.map(slice).unwrap_or_default();
        Ok((text(&t, &s::source_file::PATH)?, content))
    })?;
    let set_layouts = each(&root, &s::executable::SET_LAYOUTS, read_set_layout)?;
    let pipeline_layouts = each(&root, &s::executable::PIPELINE_LAYOUTS, |t, at| {
        read_pipeline_layout(&t, set_layouts.len(), at)
    })?;
    let (modules, layouts) = (shader_modules.len(), pipeline_layouts.len());
    let pipelines = each(&root, &s::executable::PIPELINES, |t, at| read_pipeline(&t, modules, layouts, at))?;
    Ok(VulkanExecutable { pipelines, set_layouts, pipeline_layouts, shader_modules, source_files })
}

/// Checks the wrapper and returns the length of the FlatBuffer behind it.
fn content_length(data: &[u8]) -> Result<usize> {
    let bad = |problem: String| VmfbError::ExecutableHeader { problem };
    let Some(header) = data.first_chunk::<HEADER>() else {
        return Err(bad(format!("{} bytes; its header alone has {HEADER}", data.len())));
    };
    let [m0, m1, m2, m3, v0, v1, v2, v3, length @ ..] = header;
    if [*m0, *m1, *m2, *m3] != *s::VULKAN_IDENTIFIER {
        let found = header[..4].escape_ascii();
        return Err(bad(format!("it starts with \"{found}\", a Vulkan executable with \"VKE1\"")));
    }
    let found = u32::from_le_bytes([*v0, *v1, *v2, *v3]);
    if found != VERSION {
        return Err(VmfbError::ExecutableVersion { what: "wrapper version", found, supported: VERSION });
    }
    let length = u64::from_le_bytes(*length.first_chunk().expect("the header is longer than 16 bytes"));
    let available = data.len() - HEADER;
    match usize::try_from(length) {
        Ok(length) if length != 0 && length <= available => Ok(length),
        _ => Err(bad(format!("its header says {length} bytes of content, {available} follow"))),
    }
}

fn ordinal(value: u32, count: usize, what: &str, at: &dyn Fn() -> String) -> Result<u32> {
    if (value as usize) < count {
        return Ok(value);
    }
    Err(VmfbError::invalid(at(), format!("{what} ordinal {value}, but there are {count}")))
}

fn read_set_layout(table: Table<'_>, at: &dyn Fn() -> String) -> Result<Vec<DescriptorBinding>> {
    let mut bindings: Vec<DescriptorBinding> = each(&table, &s::set_layout::BINDINGS, |t, _| {
        Ok(DescriptorBinding {
            binding: t.scalar(&s::set_binding::BINDING)?,
            descriptor_type: t.scalar(&s::set_binding::DESCRIPTOR_TYPE)?,
            count: t.scalar(&s::set_binding::COUNT)?,
            stage_flags: t.scalar(&s::set_binding::STAGE_FLAGS)?,
        })
    })?;
    let refuse = |b: &DescriptorBinding, why: String| {
        Err(VmfbError::invalid(at(), format!("binding {}: {why}", b.binding)))
    };
    for b in &bindings {
        if b.binding > MAX_BINDING {
            return refuse(b, format!("the highest supported number is {MAX_BINDING}"));
        }
        if !matches!(b.descriptor_type, UNIFORM_BUFFER | STORAGE_BUFFER) {
            let found = b.descriptor_type;
            return refuse(
                b,
                format!("descriptor type {found}; 6 (uniform) and 7 (storage buffer) are supported"),
            );
        }
        if b.count != 1 {
            return refuse(b, format!("array of {}; only single buffers are supported", b.count));
        }
        if b.stage_flags & COMPUTE_STAGE == 0 {
            return refuse(b, format!("stage flags {:#x} lack the compute stage (0x20)", b.stage_flags));
        }
    }
    bindings.sort_by_key(|b| b.binding);
    match bindings.windows(2).find(|w| w[0].binding == w[1].binding) {
        Some(twice) => refuse(&twice[0], "declared twice".to_owned()),
        None => Ok(bindings),
    }
}

fn read_pipeline_layout(
    table: &Table<'_>,
    set_count: usize,
    at: &dyn Fn() -> String,
) -> Result<PipelineLayout> {
    let sets = table.vector(&s::pipeline_layout::SET_LAYOUTS)?;
    let set_layouts = sets
        .iter()
        .map(|v| ordinal(v?, set_count, "descriptor set layout", at))
        .collect::<Result<Vec<_>>>()?;
    let ranges = table.vector(&s::pipeline_layout::PUSH_CONSTANTS)?;
    let push_constants = ranges.iter().map(|v| read_push_range(v?, at)).collect::<Result<Vec<_>>>()?;
    Ok(PipelineLayout { set_layouts, push_constants })
}

fn read_push_range(bytes: &[u8; 12], at: &dyn Fn() -> String) -> Result<PushConstantRange> {
    let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    let range = PushConstantRange { stage_flags: word(0), offset: word(4), size: word(8) };
    check_push(range.offset, u64::from(range.size), at)?;
    if range.stage_flags & COMPUTE_STAGE == 0 {
        let problem =
            format!("push constant stage flags {:#x} lack the compute stage (0x20)", range.stage_flags);
        return Err(VmfbError::invalid(at(), problem));
    }
    Ok(range)
}

fn check_push(offset: u32, size: u64, at: &dyn Fn() -> String) -> Result<()> {
    let aligned = offset.is_multiple_of(4) && size.is_multiple_of(4);
    if aligned && size != 0 && u64::from(offset) + size <= u64::from(MAX_PUSH_CONSTANT_BYTES) {
        return Ok(());
    }
    let problem = format!(
        "push constants at {offset} of {size} bytes; both must be multiples of 4, the size not 0, and the end at most \
         {MAX_PUSH_CONSTANT_BYTES}"
    );
    Err(VmfbError::invalid(at(), problem))
}

fn read_pipeline(
    table: &Table<'_>,
    modules: usize,
    layouts: usize,
    at: &dyn Fn() -> String,
) -> Result<Pipeline> {
    let entry_point = named(table, &s::pipeline::ENTRY_POINT, at)?;
    let (name, location) = read_export_info(table)?;
    let abi = match table.scalar(&s::pipeline::DISPATCH_ABI)? {
        0 => DispatchAbi::Descriptors,
        1 => DispatchAbi::BufferDeviceAddress,
        found => {
            let found = u32::from(found);
            return Err(VmfbError::ExecutableVersion { what: "dispatch ABI", found, supported: 1 });
        }
    };
    let bda = match abi {
        DispatchAbi::Descriptors => None,
        DispatchAbi::BufferDeviceAddress => Some(match table.child(&s::pipeline::BDA_LAYOUT)? {
            Some(layout) => read_bda(&layout, at)?,
            None => return Err(VmfbError::invalid(at(), "BDA pipeline without bda_dispatch_layout")),
        }),
    };
    let subgroup_size = table.scalar(&s::pipeline::SUBGROUP_SIZE)?;
    if subgroup_size != 0 && (!subgroup_size.is_power_of_two() || subgroup_size > MAX_SUBGROUP_SIZE) {
        let problem =
            format!("subgroup size {subgroup_size}; it is 0 or a power of two up to {MAX_SUBGROUP_SIZE}");
        return Err(VmfbError::invalid(at(), problem));
    }
    Ok(Pipeline {
        name: name.filter(|n| !n.is_empty()).unwrap_or_else(|| entry_point.clone()),
        entry_point,
        shader_module: ordinal(table.scalar(&s::pipeline::SHADER_MODULE)?, modules, "shader module", at)?,
        layout: ordinal(table.scalar(&s::pipeline::LAYOUT)?, layouts, "pipeline layout", at)?,
        subgroup_size,
        abi,
        bda,
        location,
    })
}

/// Source file and line.
type SourceLine = Option<(String, u32)>;

/// Export name and source location.
fn read_export_info(pipeline: &Table<'_>) -> Result<(Option<String>, SourceLine)> {
    let Some(info) = pipeline.child(&s::pipeline::DEBUG_INFO)? else { return Ok((None, None)) };
    let name = info.text(&s::export_info::NAME)?.map(str::to_owned);
    let Some(location) = info.child(&s::export_info::LOCATION)? else { return Ok((name, None)) };
    let line = u32::try_from(location.scalar(&s::file_line::LINE)?).unwrap_or(0);
    Ok((name, Some((text(&location, &s::file_line::FILENAME)?, line))))
}

fn read_bda(table: &Table<'_>, at: &dyn Fn() -> String) -> Result<BdaLayout> {
    let abi_version = table.scalar(&s::bda::ABI_VERSION)?;
    if abi_version != BDA_VERSION {
        let (what, found) = ("BDA ABI version", abi_version);
        return Err(VmfbError::ExecutableVersion { what, found, supported: BDA_VERSION });
    }
    let entry_type = table.scalar(&s::bda::ENTRY_TYPE)?;
    if entry_type != 0 {
        let problem =
            format!("BDA binding table entry type {entry_type}; only 0 (64-bit address) is supported");
        return Err(VmfbError::invalid(at(), problem));
    }
    let layout = BdaLayout {
        abi_version,
        root_offset: table.scalar(&s::bda::ROOT_OFFSET)?,
        root_length: table.scalar(&s::bda::ROOT_LENGTH)?,
        constant_offset: table.scalar(&s::bda::CONSTANT_OFFSET)?,
        constant_count: table.scalar(&s::bda::CONSTANT_COUNT)?,
        bindings: read_bda_bindings(table, at)?,
    };
    check_bda(&layout, at)?;
    Ok(layout)
}

/// Bindings as (minimum alignment, minimum length). The vector is left out when nothing is asked of them.
fn read_bda_bindings(table: &Table<'_>, at: &dyn Fn() -> String) -> Result<Vec<(u32, u64)>> {
    let bindings = each(table, &s::bda::BINDINGS, |t, _| {
        Ok((t.scalar(&s::bda_binding::MINIMUM_ALIGNMENT)?, t.scalar(&s::bda_binding::MINIMUM_LENGTH)?))
    })?;
    let count = table.scalar(&s::bda::BINDING_COUNT)?;
    if count > MAX_BINDING + 1 {
        let problem = format!("binding_count {count}; the limit is {}", MAX_BINDING + 1);
        return Err(VmfbError::invalid(at(), problem));
    }
    let count = count as usize;
    if bindings.is_empty() {
        table.charge(&s::bda::BINDINGS, count * size_of::<(u32, u64)>())?;
        return Ok(vec![
            (s::bda_binding::MINIMUM_ALIGNMENT.default, s::bda_binding::MINIMUM_LENGTH.default);
            count
        ]);
    }
    if bindings.len() != count {
        let problem = format!("binding_count {count}, but {} bindings", bindings.len());
        return Err(VmfbError::invalid(at(), problem));
    }
    Ok(bindings)
}

fn check_bda(layout: &BdaLayout, at: &dyn Fn() -> String) -> Result<()> {
    let refuse = |problem: String| Err(VmfbError::invalid(at(), problem));
    if layout.root_length != BDA_ROOT {
        return refuse(format!("BDA root struct of {} bytes; version 1 has {BDA_ROOT}", layout.root_length));
    }
    check_push(layout.root_offset, u64::from(layout.root_length), at)?;
    let constant_bytes = u64::from(layout.constant_count) * 4;
    if constant_bytes != 0 {
        check_push(layout.constant_offset, constant_bytes, at)?;
        let (root, constants) = (u64::from(layout.root_offset), u64::from(layout.constant_offset));
        if constants < root + u64::from(BDA_ROOT) && root < constants + constant_bytes {
            return refuse(format!("BDA constants at {constants} overlap the root struct at {root}"));
        }
    }
    match layout.bindings.iter().find(|(align, _)| !align.is_power_of_two()) {
        Some((align, _)) => refuse(format!("minimum_alignment {align} is not a power of two")),
        None => Ok(()),
    }
}
