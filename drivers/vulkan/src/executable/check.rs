//! The checks between a kernel and the device: format, features, limits, interface, subgroups. What passes is safe to hand to
//! the Vulkan driver.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use halite_abi::descriptor::{COMPUTE_STAGE, STORAGE_BUFFER};
use halite_facts::{Feature, Need, SubgroupOp, SubgroupOps, required_features};
use halite_formats::vmfb::{BdaLayout, DescriptorBinding, DispatchAbi};
use halite_hal::{Result, status};
use halite_spirv::{
    EntryFacts, ModuleFacts,
    subgroup::{self, Decision, Policy, SubgroupSupport},
};

use crate::{context::DeviceContext, lower::ROOT_WORDS};

/// Whether an executable format can run on the device.
pub(crate) fn supports_format(ctx: &DeviceContext, format: &str) -> bool {
    ctx.plan.abis.formats().contains(&format)
}

pub(super) fn format(ctx: &DeviceContext, format: &str) -> Result<()> {
    if supports_format(ctx, format) {
        return Ok(());
    }
    if let Some(refused) = ctx.plan.refused.as_ref().filter(|code| code.formats.iter().any(|f| f == format)) {
        return Err(status!(
            Incompatible,
            "executable format '{format}' does not run on device '{}' unless it is opened with {}={}: {}",
            ctx.info.name,
            refused.option,
            refused.allow,
            refused.reason
        ));
    }
    Err(status!(
        Incompatible,
        "executable format '{format}' does not run on device '{}'; it runs: {}; recompile with \
         --iree-hal-target-device=vulkan",
        ctx.info.name,
        ctx.plan.abis.formats().join(", ")
    ))
}

/// Constants that a dispatch of an address kernel gives; refuses layouts that the driver does not fill.
pub(super) fn bda_constants(kernel: &str, bda: &BdaLayout, push_bytes: u32) -> Result<u32> {
    let root = ROOT_WORDS as u32 * 4;
    let end = bda.constant_count.checked_mul(4).and_then(|c| c.checked_add(root));
    let known = bda.abi_version == 1 && bda.root_offset == 0 && bda.root_length == root;
    if !known || (bda.constant_count > 0 && bda.constant_offset != root) || end.is_none_or(|e| e > push_bytes)
    {
        return Err(status!(
            Incompatible,
            "kernel '{kernel}' has an address layout that is not known (version {}, root {}+{}, constants {}+{}, \
             push constants {push_bytes}); recompile with --iree-vulkan-dispatch-abi=descriptors",
            bda.abi_version,
            bda.root_offset,
            bda.root_length,
            bda.constant_offset,
            bda.constant_count
        ));
    }
    Ok(bda.constant_count)
}

/// A kernel to be checked.
pub(super) struct Subject<'a> {
    pub ctx: &'a DeviceContext,
    pub kernel: &'a str,
    pub facts: &'a ModuleFacts,
    pub entry: &'a EntryFacts,
}

impl Subject<'_> {
    /// The driver gets the numbers right that the code computes with.
    pub fn numbers(&self) -> Result<()> {
        let Some(reason) = self.ctx.plan.no_halves.filter(|_| self.facts.has_halves) else { return Ok(()) };
        Err(status!(
            Unavailable,
            "kernel '{}' has 16-bit floats, which do not work on device '{}': {reason}; use a newer driver, or a model \
             without them",
            self.kernel,
            self.ctx.info.name
        ))
    }

    /// Every feature that the code declares is enabled on the device.
    pub fn features(&self) -> Result<()> {
        let capabilities = self.facts.capabilities.iter().map(String::as_str);
        for requirement in required_features(capabilities, &self.facts.memory_model) {
            if !self.has(requirement.need) {
                let name = match requirement.need {
                    Need::Unknown => requirement.needed_by.clone(),
                    need => format!("{} ({})", need.vulkan_name(), requirement.needed_by),
                };
                if let (Need::Feature(Feature::BufferDeviceAddress), Some(refused)) =
                    (requirement.need, &self.ctx.plan.refused)
                {
                    return Err(status!(
                        Unavailable,
                        "kernel '{}' needs {name}, which device '{}' gives only with {}={}: {}",
                        self.kernel,
                        self.ctx.info.name,
                        refused.option,
                        refused.allow,
                        refused.reason
                    )
                    .with_detail("feature", requirement.need.vulkan_name()));
                }
                return Err(status!(
                    Unavailable,
                    "kernel '{}' needs {name}, which device '{}' lacks; recompile with \
                     --iree-vulkan-target=vp_android_baseline_2022 or a target that fits the device",
                    self.kernel,
                    self.ctx.info.name
                )
                .with_detail("feature", requirement.need.vulkan_name()));
            }
        }
        Ok(())
    }

    fn has(&self, need: Need) -> bool {
        let enabled = self.ctx.plan.features;
        let subgroup = &self.ctx.facts.subgroup;
        match need {
            Need::Feature(Feature::BufferDeviceAddress) => self.ctx.plan.abis.buffer_device_address,
            Need::Feature(feature) => enabled.has(feature),
            Need::Subgroup(SubgroupOp::Rotate) => enabled.has(Feature::ShaderSubgroupRotate),
            Need::Subgroup(operation) => {
                subgroup.stages & COMPUTE_STAGE != 0
                    && SubgroupOps::from_vulkan(subgroup.operations).has(operation)
            }
            Need::Unknown => false,
        }
    }

    /// Workgroup, memory and argument sizes are within the device's limits.
    pub fn limits(&self, sets: &[&[DescriptorBinding]], push_bytes: u32) -> Result<()> {
        let limits = &self.ctx.facts.limits;
        let size = self.entry.local_size;
        let invocations = size.iter().map(|s| u64::from(*s)).product::<u64>();
        for (axis, (have, most)) in size.iter().zip(limits.max_compute_workgroup_size).enumerate() {
            let name = ["x", "y", "z"][axis];
            self.at_most(&format!("workgroup size in {name}"), u64::from(*have), u64::from(most))?;
        }
        let storage =
            sets.iter().flat_map(|s| s.iter()).filter(|b| b.descriptor_type == STORAGE_BUFFER).count() as u64;
        let stage =
            limits.max_per_stage_descriptor_storage_buffers.min(limits.max_descriptor_set_storage_buffers);
        let checks = [
            ("invocations per workgroup", invocations, limits.max_compute_workgroup_invocations),
            ("workgroup memory", self.entry.workgroup_memory_bytes, limits.max_compute_shared_memory_size),
            ("bytes of push constants", u64::from(push_bytes), limits.max_push_constants_size),
            ("descriptor sets", sets.len() as u64, limits.max_bound_descriptor_sets),
            ("storage buffers", storage, stage),
        ];
        checks.into_iter().try_for_each(|(what, have, most)| self.at_most(what, have, u64::from(most)))
    }

    fn at_most(&self, what: &str, have: u64, most: u64) -> Result<()> {
        if have <= most {
            return Ok(());
        }
        Err(status!(
            Unavailable,
            "kernel '{}' has {what}: {have}, device '{}' allows {most}; recompile with an --iree-vulkan-target that \
             fits the device",
            self.kernel,
            self.ctx.info.name
        ))
    }

    /// What the code uses is what the layout provides.
    pub fn interface(&self, sets: &[&[DescriptorBinding]], push_bytes: u32, abi: DispatchAbi) -> Result<()> {
        for used in &self.entry.bindings {
            let declared = sets
                .get(used.set as usize)
                .and_then(|set| set.iter().find(|b| b.binding == used.binding))
                .map(|b| if b.descriptor_type == STORAGE_BUFFER { "StorageBuffer" } else { "Uniform" });
            if abi == DispatchAbi::BufferDeviceAddress || declared != Some(used.class.as_str()) {
                return Err(status!(
                    InvalidArgument,
                    "kernel '{}' uses set {} binding {} as {}, its layout says {}",
                    self.kernel,
                    used.set,
                    used.binding,
                    used.class,
                    declared.unwrap_or("nothing")
                ));
            }
        }
        if self.entry.push_constant_bytes > u64::from(push_bytes) {
            return Err(status!(
                InvalidArgument,
                "kernel '{}' reads {} bytes of push constants, its layout has {push_bytes}",
                self.kernel,
                self.entry.push_constant_bytes
            ));
        }
        Ok(())
    }

    /// The code to run, repaired if need be, and the subgroup size that it must run with.
    pub fn subgroups(
        &self,
        words: &Arc<[u32]>,
        assumed: &[u32],
        declared: u32,
    ) -> Result<(Arc<[u32]>, Option<u32>)> {
        let plan = &self.ctx.plan.subgroup;
        let (min_size, max_size) = plan.required_sizes.unwrap_or((plan.default_size, plan.default_size));
        let support = SubgroupSupport {
            default_size: plan.default_size,
            min_size,
            max_size,
            size_control: plan.required_sizes.is_some(),
            require_full: plan.full_subgroups,
            compute_stage: plan.required_sizes.is_some(),
        };
        let options = &self.ctx.options;
        let policy = Policy { repair: options.repair, allow_mismatch: options.allow_subgroup_mismatch };
        let decision = subgroup::plan(words, &self.entry.name, assumed, declared, &support, &policy)
            .map_err(|e| status!(InvalidArgument, "kernel '{}': {e}", self.kernel))?;
        match decision {
            Decision::Run { required_size } => Ok((words.clone(), required_size)),
            Decision::Repaired { words, note } => {
                static TOLD: AtomicBool = AtomicBool::new(false);
                if TOLD.swap(true, Ordering::Relaxed) {
                    log::debug!("kernel '{}': {note}", self.kernel);
                } else {
                    log::warn!(
                        "kernel '{}': {note} (further repairs are logged at debug level)",
                        self.kernel
                    );
                }
                Ok((words.into(), None))
            }
            Decision::RunMismatched { warning } => {
                log::warn!("kernel '{}': {warning}", self.kernel);
                Ok((words.clone(), None))
            }
            Decision::Refuse { message } => Err(status!(Unavailable, "{message}")),
        }
    }
}
