//! Executables for tests: the same functions in every format.
//!
//! | index | function | bindings | constants | what it computes |
//! |---|---|---|---|---|
//! | 0 | `affine` | source, target | count, add | `target[i] = source[i] * 2 + add`, 64 words per workgroup |
//! | 1 | `ids` | target | | a word per workgroup of a grid of up to 4x4x4, see [`id_word`] |
//! | 2 | `mix` | a, b, c, target | ka, kb, kc, count | `target[i] = ka*a[i] + kb*b[i] + kc*c[i]`, 64 words per workgroup |
//! | 3 | `bias` | source, target | | `target[i] = source[i] + bias` for four words; where [`Kernels::specialize`] |
//!
//! All words are u32.

use std::sync::Arc;

use bytes::Bytes;
use halite_abi::{format, query};
use halite_formats::vmfb::{
    DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
    write_vulkan_executable,
};
use halite_hal::{Device, Executable, ExecutableDesc, Result, status};

/// Index of `affine`.
pub const AFFINE: u32 = 0;
/// Index of `ids`.
pub const IDS: u32 = 1;
/// Index of `mix`.
pub const MIX: u32 = 2;
/// Index of `bias`.
pub const BIAS: u32 = 3;

/// (name, bindings, constants) by index.
pub const FUNCTIONS: [(&str, u32, u32); 4] = [("affine", 2, 2), ("ids", 1, 0), ("mix", 4, 4), ("bias", 2, 0)];

const MODULES: [&[u8]; 4] = [
    include_bytes!("../../kernels/affine.spv"),
    include_bytes!("../../kernels/ids.spv"),
    include_bytes!("../../kernels/mix.spv"),
    include_bytes!("../../kernels/bias.spv"),
];

const X86_64: &[u8] = include_bytes!("../../kernels/kernels.x86_64.so");
const AARCH64: &[u8] = include_bytes!("../../kernels/kernels.aarch64.so");
const VMVX: &[u8] = include_bytes!("../../kernels/kernels.vmvx");

/// What `ids` writes for workgroup `id` of `count` workgroups, at word `x + 4 * (y + 4 * z)`.
pub fn id_word(id: [u32; 3], count: [u32; 3]) -> u32 {
    let ids = (id[0] + 1) | (id[1] + 1) << 4 | (id[2] + 1) << 8;
    ids | count[0] << 12 | count[1] << 16 | count[2] << 20
}

/// The suite's executables in one format.
#[derive(Clone, Debug)]
pub struct Kernels {
    format: &'static str,
    data: Bytes,
    compute: bool,
    specialize: bool,
}

impl Kernels {
    /// The suite's executables in every format that both sides know, the device's best format first.
    pub fn for_device(device: &dyn Device) -> Result<Vec<Self>> {
        let takes = |format: &str| device.query_i64(query::EXECUTABLE_FORMAT, format) == Some(1);
        let rank = |format: &str| device.info().executable_formats.iter().position(|f| f == format);
        let mut all = Self::all()?;
        all.retain(|kernels| takes(kernels.format));
        all.sort_by_key(|kernels| rank(kernels.format).unwrap_or(usize::MAX));
        Ok(all)
    }

    fn all() -> Result<Vec<Self>> {
        let spirv = write_vulkan_executable(&spirv())
            .map_err(|e| status!(Internal, "the suite's kernels as SPIR-V: {e}"))?;
        let native = |format, data| Kernels { format, data, compute: true, specialize: false };
        Ok(vec![
            Kernels { format: format::VULKAN_SPIRV, data: spirv.into(), compute: true, specialize: true },
            native(format::ELF_X86_64, Bytes::from_static(X86_64)),
            native(format::ELF_ARM_64, Bytes::from_static(AARCH64)),
            native(format::VMVX, Bytes::from_static(VMVX)),
            Kernels { format: "null-json", data: json().into(), compute: false, specialize: false },
        ])
    }

    /// The format's name.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Whether dispatches compute anything.
    pub fn compute(&self) -> bool {
        self.compute
    }

    /// Whether `bias` exists.
    pub fn specialize(&self) -> bool {
        self.specialize
    }

    /// Whether kernels may touch the last word of a binding that has only a part of it. Interpreters need not allow it.
    pub fn pads(&self) -> bool {
        self.format != format::VMVX
    }

    /// Number of functions.
    pub fn function_count(&self) -> usize {
        if self.specialize { 4 } else { 3 }
    }

    /// What the executable is made from; `bias` is the specialization constant.
    pub fn desc(&self, bias: u32) -> ExecutableDesc {
        ExecutableDesc {
            format: self.format.to_owned(),
            data: self.data.clone(),
            constants: if self.specialize { vec![bias] } else { Vec::new() },
            label: "conformance".to_owned(),
            subgroup_sizes: Vec::new(),
        }
    }

    /// Creates the executable.
    pub fn create(&self, device: &dyn Device) -> Result<Arc<dyn Executable>> {
        device.create_executable(self.desc(7))
    }
}

fn json() -> String {
    let functions = FUNCTIONS[..3].iter().map(|(name, bindings, constants)| {
        serde_json::json!({"name": name, "bindings": bindings, "constants": constants})
    });
    serde_json::Value::Array(functions.collect()).to_string()
}

fn spirv() -> VulkanExecutable {
    let storage = |binding| DescriptorBinding { binding, descriptor_type: 7, count: 1, stage_flags: 0x20 };
    let pipeline = |(index, (name, ..)): (usize, &(&str, u32, u32))| Pipeline {
        name: (*name).to_owned(),
        entry_point: "main".to_owned(),
        shader_module: index as u32,
        layout: index as u32,
        subgroup_size: 0,
        abi: DispatchAbi::Descriptors,
        bda: None,
        location: None,
    };
    let layout = |(index, (_, _, constants)): (usize, &(&str, u32, u32))| PipelineLayout {
        set_layouts: vec![index as u32],
        push_constants: (*constants > 0)
            .then(|| PushConstantRange { stage_flags: 0x20, offset: 0, size: constants * 4 })
            .into_iter()
            .collect(),
    };
    VulkanExecutable {
        pipelines: FUNCTIONS.iter().enumerate().map(pipeline).collect(),
        set_layouts: FUNCTIONS.iter().map(|(_, bindings, _)| (0..*bindings).map(storage).collect()).collect(),
        pipeline_layouts: FUNCTIONS.iter().enumerate().map(layout).collect(),
        shader_modules: MODULES.iter().map(|m| Bytes::from_static(m)).collect(),
        source_files: vec![],
    }
}
