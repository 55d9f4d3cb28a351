//! The Vulkan executables inside a module: their facts, and writing their SPIR-V to files.

use std::{collections::BTreeSet, fs, path::Path};

use bytes::Bytes;
use halite_facts::required_features;
use halite_formats::vmfb::{self, DispatchAbi, ModuleDef, Pipeline, VulkanExecutable};
use halite_spirv::{
    ModuleFacts, analyze,
    subgroup::{Decision, Policy, SubgroupSupport, plan},
    words_from_bytes,
};
use serde::Serialize;

use crate::console::{Failure, Result};

/// Characters of a kernel's name that a file name keeps, at most.
const MAX_NAME: usize = 120;

/// An executable in a rodata segment.
#[derive(Debug, Serialize)]
pub(super) struct ExecutableFacts {
    /// Rodata segment.
    pub(super) rodata: usize,
    pub(super) bytes: usize,
    /// Why it cannot be read; then there are no kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) kernels: Vec<KernelFacts>,
    /// (path, bytes) of embedded sources.
    pub(super) sources: Vec<(String, usize)>,
}

/// An entry point.
#[derive(Debug, Serialize)]
pub(super) struct KernelFacts {
    pub(super) name: String,
    pub(super) entry_point: String,
    pub(super) abi: &'static str,
    /// Subgroup size that the module demands; 0 when it demands none.
    pub(super) subgroup_size: u32,
    /// (set, binding, Vulkan descriptor type number).
    pub(super) bindings: Vec<(usize, u32, u32)>,
    pub(super) push_constant_bytes: u32,
    pub(super) location: Option<(String, u32)>,
    pub(super) spirv_bytes: usize,
    /// What the SPIR-V says.
    pub(super) spirv: Option<ModuleFacts>,
    /// Vulkan features it needs, with what needs them.
    pub(super) features: Vec<(String, String)>,
    /// Whether its results depend on the device's subgroup width.
    pub(super) subgroups: String,
    /// Why the SPIR-V cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

fn is_executable(segment: &Bytes) -> bool {
    segment.starts_with(b"VKE1")
}

/// Facts about all Vulkan executables.
pub(super) fn collect(module: &ModuleDef, targets: &[String]) -> Vec<ExecutableFacts> {
    let assumed = assumed_sizes(targets);
    let segments = module.rodata.iter().enumerate().filter(|(_, s)| is_executable(s));
    segments
        .map(|(rodata, segment)| match vmfb::read_vulkan_executable(segment.clone()) {
            Ok(executable) => ExecutableFacts {
                rodata,
                bytes: segment.len(),
                error: None,
                kernels: executable.pipelines.iter().map(|p| kernel(&executable, p, &assumed)).collect(),
                sources: executable.source_files.iter().map(|(path, s)| (path.clone(), s.len())).collect(),
            },
            Err(error) => ExecutableFacts {
                rodata,
                bytes: segment.len(),
                error: Some(error.to_string()),
                kernels: Vec::new(),
                sources: Vec::new(),
            },
        })
        .collect()
}

/// Subgroup sizes that target descriptions name: `subgroup_size_choices = [32, 64]`.
fn assumed_sizes(targets: &[String]) -> Vec<u32> {
    let mut sizes = BTreeSet::new();
    for target in targets {
        for part in target.split("subgroup_size_choices = [").skip(1) {
            let list = part.split(']').next().unwrap_or_default();
            sizes.extend(list.split(',').filter_map(|n| n.trim().parse::<u32>().ok()));
        }
    }
    sizes.into_iter().collect()
}

fn kernel(executable: &VulkanExecutable, pipeline: &Pipeline, assumed: &[u32]) -> KernelFacts {
    let layout = executable.pipeline_layouts.get(pipeline.layout as usize);
    let sets = layout.map(|l| l.set_layouts.as_slice()).unwrap_or_default();
    let bindings = sets.iter().enumerate().flat_map(|(set, index)| {
        let of_set = executable.set_layouts.get(*index as usize).map(Vec::as_slice).unwrap_or_default();
        of_set.iter().map(move |b| (set, b.binding, b.descriptor_type))
    });
    let push = layout.map(|l| l.push_constants.as_slice()).unwrap_or_default();
    let code = executable.shader_modules.get(pipeline.shader_module as usize);
    let mut facts = KernelFacts {
        name: pipeline.name.clone(),
        entry_point: pipeline.entry_point.clone(),
        abi: match pipeline.abi {
            DispatchAbi::Descriptors => "descriptors",
            DispatchAbi::BufferDeviceAddress => "buffer device addresses",
        },
        subgroup_size: pipeline.subgroup_size,
        bindings: bindings.collect(),
        push_constant_bytes: push.iter().map(|p| p.offset.saturating_add(p.size)).max().unwrap_or(0),
        location: pipeline.location.clone(),
        spirv_bytes: code.map_or(0, Bytes::len),
        spirv: None,
        features: Vec::new(),
        subgroups: String::new(),
        error: None,
    };
    if let Some(code) = code
        && let Err(error) = read_spirv(code, pipeline, assumed, &mut facts)
    {
        facts.error = Some(error.to_string());
    }
    facts
}

fn read_spirv(
    code: &Bytes,
    pipeline: &Pipeline,
    assumed: &[u32],
    facts: &mut KernelFacts,
) -> std::result::Result<(), halite_spirv::SpirvError> {
    let words = words_from_bytes(code)?;
    let module = analyze(&words)?;
    let capabilities = module.capabilities.iter().map(String::as_str);
    facts.features = required_features(capabilities, &module.memory_model)
        .into_iter()
        .map(|r| (r.need.vulkan_name().to_owned(), r.needed_by))
        .collect();
    facts.spirv = Some(module);
    facts.subgroups = subgroup_use(&words, pipeline, assumed)?;
    Ok(())
}

/// Asks what would happen on a device whose subgroups have one invocation: nothing that relies on a width works there.
fn subgroup_use(
    words: &[u32],
    pipeline: &Pipeline,
    assumed: &[u32],
) -> std::result::Result<String, halite_spirv::SpirvError> {
    let device = SubgroupSupport {
        default_size: 1,
        min_size: 1,
        max_size: 1,
        size_control: false,
        require_full: false,
        compute_stage: false,
    };
    let policy = Policy { repair: true, allow_mismatch: false };
    let decision = plan(words, &pipeline.entry_point, assumed, pipeline.subgroup_size, &device, &policy)?;
    Ok(match decision {
        Decision::Run { .. } => "runs with any subgroup width".to_owned(),
        Decision::Repaired { note, .. } => format!("relies on the subgroup width, can be repaired: {note}"),
        Decision::Refuse { message } | Decision::RunMismatched { warning: message } => {
            format!("relies on the subgroup width: {message}")
        }
    })
}

/// Writes every kernel's SPIR-V to a file. Says on standard error what could not be read.
pub(super) fn extract(module: &ModuleDef, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Failure::file("cannot create folder", folder, &e))?;
    for (rodata, segment) in module.rodata.iter().enumerate().filter(|(_, s)| is_executable(s)) {
        let executable = match vmfb::read_vulkan_executable(segment.clone()) {
            Ok(executable) => executable,
            Err(error) => {
                log::warn!("rodata segment {rodata}: {error}");
                continue;
            }
        };
        let mut written = BTreeSet::new();
        for pipeline in &executable.pipelines {
            let index = pipeline.shader_module;
            let Some(code) = executable.shader_modules.get(index as usize).filter(|_| written.insert(index))
            else {
                continue;
            };
            let path = folder.join(format!("{rodata}_{}.spv", file_name(&pipeline.name, index)));
            fs::write(&path, code).map_err(|e| Failure::file("cannot write", &path, &e))?;
        }
    }
    Ok(())
}

/// A name from the module as part of a file name: it could hold anything.
fn file_name(name: &str, index: u32) -> String {
    let safe: String = name
        .chars()
        .take(MAX_NAME)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$') { c } else { '_' })
        .collect();
    if safe.is_empty() { format!("kernel{index}") } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(file_name("../../etc/passwd", 0), "______etc_passwd");
        assert_eq!(file_name("", 3), "kernel3");
        assert_eq!(file_name(&"a".repeat(1000), 0).len(), MAX_NAME);
    }

    #[test]
    fn sizes_of_targets() {
        let target = "x = 1, subgroup_size_choices = [32, 64], y subgroup_size_choices = [16]".to_owned();
        assert_eq!(assumed_sizes(&[target]), [16, 32, 64]);
        assert!(assumed_sizes(&["subgroup_size_choices = [".to_owned(), "no".to_owned()]).is_empty());
    }
}
