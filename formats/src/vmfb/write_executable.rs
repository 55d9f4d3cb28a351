//! Writing Vulkan executables (`VKE1`).

use super::read_executable::{HEADER, VERSION};
use super::schema as s;
use super::{
    BdaLayout, DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, VmfbError, VulkanExecutable,
};
use crate::flatbuffer::{Builder, Child, Offset};

/// Alignment of shader words and sources within the file.
const DATA_ALIGNMENT: usize = 16;

/// Encodes a Vulkan executable: the 64-byte wrapper and the FlatBuffer. Deterministic.
///
/// The caller keeps the indices within range and the shaders whole words long; otherwise `Invalid` comes back.
pub fn write_vulkan_executable(executable: &VulkanExecutable) -> Result<Vec<u8>, VmfbError> {
    check(executable)?;
    let mut b = Builder::new();
    let shader_modules = collect(&mut b, &executable.shader_modules, |b, code| {
        let code = b.encoded_scalars(code, DATA_ALIGNMENT);
        b.table().link(&s::shader_module::SPIRV_CODE, code).finish()
    });
    let shader_modules = b.children(&shader_modules);
    let source_files = collect(&mut b, &executable.source_files, |b, (path, content)| {
        let (path, content) = (b.text(path), b.bytes(content, DATA_ALIGNMENT));
        b.table().link(&s::source_file::PATH, path).link(&s::source_file::CONTENT, content).finish()
    });
    let source_files = (!source_files.is_empty()).then(|| b.children(&source_files));
    let set_layouts = collect(&mut b, &executable.set_layouts, |b, set| write_set_layout(b, set));
    let set_layouts = b.children(&set_layouts);
    let pipeline_layouts = collect(&mut b, &executable.pipeline_layouts, write_pipeline_layout);
    let pipeline_layouts = b.children(&pipeline_layouts);
    let pipelines = collect(&mut b, &executable.pipelines, write_pipeline);
    let pipelines = b.children(&pipelines);
    let root = b
        .table()
        .link(&s::executable::PIPELINES, pipelines)
        .link(&s::executable::SET_LAYOUTS, set_layouts)
        .link(&s::executable::PIPELINE_LAYOUTS, pipeline_layouts)
        .link(&s::executable::SHADER_MODULES, shader_modules)
        .maybe(&s::executable::SOURCE_FILES, source_files)
        .finish();
    let content = b.finish(root, s::VULKAN_IDENTIFIER, false)?;
    let mut out = Vec::with_capacity(HEADER + content.len());
    out.extend_from_slice(s::VULKAN_IDENTIFIER);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(content.len() as u64).to_le_bytes());
    out.resize(HEADER, 0);
    out.extend_from_slice(&content);
    Ok(out)
}

/// Writes one table per item.
pub(super) fn collect<T>(
    b: &mut Builder,
    items: &[T],
    mut write: impl FnMut(&mut Builder, &T) -> Offset<Child>,
) -> Vec<Offset<Child>> {
    items.iter().map(|item| write(b, item)).collect()
}

fn check(executable: &VulkanExecutable) -> Result<(), VmfbError> {
    if let Some(i) = executable.shader_modules.iter().position(|m| m.is_empty() || m.len() % 4 != 0) {
        let problem = format!("{} bytes; SPIR-V is whole words", executable.shader_modules[i].len());
        return Err(VmfbError::invalid(format!("ExecutableDef.shader_modules[{i}]"), problem));
    }
    for (i, p) in executable.pipelines.iter().enumerate() {
        let bda_fits = p.bda.is_some() == (p.abi == DispatchAbi::BufferDeviceAddress);
        let module_fits = (p.shader_module as usize) < executable.shader_modules.len();
        if !bda_fits || !module_fits || p.layout as usize >= executable.pipeline_layouts.len() {
            let problem = "an ordinal is out of range, or the BDA layout does not go with the ABI";
            return Err(VmfbError::invalid(format!("ExecutableDef.pipelines[{i}]"), problem));
        }
    }
    Ok(())
}

fn write_set_layout(b: &mut Builder, bindings: &[DescriptorBinding]) -> Offset<Child> {
    let bindings = collect(b, bindings, |b, binding| {
        b.table()
            .scalar(&s::set_binding::BINDING, binding.binding)
            .scalar(&s::set_binding::DESCRIPTOR_TYPE, binding.descriptor_type)
            .scalar(&s::set_binding::COUNT, binding.count)
            .scalar(&s::set_binding::STAGE_FLAGS, binding.stage_flags)
            .finish()
    });
    let bindings = b.children(&bindings);
    b.table().link(&s::set_layout::BINDINGS, bindings).finish()
}

fn write_pipeline_layout(b: &mut Builder, layout: &PipelineLayout) -> Offset<Child> {
    let sets = b.scalars(layout.set_layouts.iter().copied());
    let ranges: Vec<[u8; 12]> = layout
        .push_constants
        .iter()
        .map(|r| {
            let mut out = [0; 12];
            out[..4].copy_from_slice(&r.stage_flags.to_le_bytes());
            out[4..8].copy_from_slice(&r.offset.to_le_bytes());
            out[8..].copy_from_slice(&r.size.to_le_bytes());
            out
        })
        .collect();
    let ranges = (!ranges.is_empty()).then(|| b.structs(&ranges));
    b.table()
        .link(&s::pipeline_layout::SET_LAYOUTS, sets)
        .maybe(&s::pipeline_layout::PUSH_CONSTANTS, ranges)
        .finish()
}

fn write_pipeline(b: &mut Builder, pipeline: &Pipeline) -> Offset<Child> {
    let entry_point = b.text(&pipeline.entry_point);
    let location = pipeline.location.as_ref().map(|(file, line)| {
        let file = b.text(file);
        let line = i32::try_from(*line).unwrap_or(0);
        b.table().link(&s::file_line::FILENAME, file).scalar(&s::file_line::LINE, line).finish()
    });
    let name = b.text(&pipeline.name);
    let info =
        b.table().link(&s::export_info::NAME, name).maybe(&s::export_info::LOCATION, location).finish();
    let bda = pipeline.bda.as_ref().map(|layout| write_bda(b, layout));
    let abi = match pipeline.abi {
        DispatchAbi::Descriptors => 0,
        DispatchAbi::BufferDeviceAddress => 1,
    };
    b.table()
        .scalar(&s::pipeline::SHADER_MODULE, pipeline.shader_module)
        .link(&s::pipeline::ENTRY_POINT, entry_point)
        .scalar(&s::pipeline::LAYOUT, pipeline.layout)
        .scalar(&s::pipeline::SUBGROUP_SIZE, pipeline.subgroup_size)
        .link(&s::pipeline::DEBUG_INFO, info)
        .scalar(&s::pipeline::DISPATCH_ABI, abi)
        .maybe(&s::pipeline::BDA_LAYOUT, bda)
        .finish()
}

fn write_bda(b: &mut Builder, layout: &BdaLayout) -> Offset<Child> {
    let bindings = collect(b, &layout.bindings, |b, (align, length)| {
        b.table()
            .scalar(&s::bda_binding::MINIMUM_ALIGNMENT, *align)
            .scalar(&s::bda_binding::MINIMUM_LENGTH, *length)
            .finish()
    });
    let count = bindings.len() as u32;
    let bindings = (count != 0).then(|| b.children(&bindings));
    b.table()
        .scalar(&s::bda::ABI_VERSION, layout.abi_version)
        .scalar(&s::bda::ROOT_OFFSET, layout.root_offset)
        .scalar(&s::bda::ROOT_LENGTH, layout.root_length)
        .scalar(&s::bda::CONSTANT_OFFSET, layout.constant_offset)
        .scalar(&s::bda::CONSTANT_COUNT, layout.constant_count)
        .scalar(&s::bda::BINDING_COUNT, count)
        .maybe(&s::bda::BINDINGS, bindings)
        .finish()
}
