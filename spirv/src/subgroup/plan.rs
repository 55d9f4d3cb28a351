//! The decision for one kernel on one device.

use super::{
    decision::{Decision, Policy, SubgroupSupport},
    emulate::emulate,
    hazard::Analysis,
    repair::repair,
    usage::{SubgroupUse, usage},
};
use crate::{
    decorations::Decorations, entry::Entry, error::SpirvError, program::ParsedModule, validate::validated,
};

/// Decides what to do with one entry point of a module on a device.
///
/// `assumed_sizes` are the subgroup sizes that the compiler worked with, if the caller knows them;
/// `declared_required` is the size that the executable demands, 0 for none.
///
/// In this order:
/// 1. A declared size is required, or the kernel refused.
/// 2. A kernel that depends on no width runs.
/// 3. An unsynchronised exchange is repaired: invocations that only repeat the work of others are left out, which
///    makes the workgroup smaller, and barriers separate what is left. This comes before any required size, because lockstep is
///    nothing that Vulkan promises: even at the assumed width only barriers make the exchange right, and drivers
///    drop them where a workgroup is one subgroup. Without `Policy::repair`, or where barriers cannot help, a
///    workgroup that fits into one full subgroup runs: invocations then do advance together on all known devices. So
///    does any workgroup at exactly the width that the compiler was told.
/// 4. Subgroup instructions run where the device has, or can be required to have, the assumed size, or where the
///    whole workgroup fits both the assumed and the device's subgroup. Sizes that are not given are taken from the
///    code where it gives one away. If none is known the kernel runs: portable kernels ask for the size themselves.
///    At another width the instructions are replaced by exchanges through workgroup memory, where that is legal.
/// 5. What is left is refused, or run with a warning if `Policy::allow_mismatch`.
///
/// # Errors
/// If the module is not valid, or has no such entry point.
pub fn plan(
    words: &[u32],
    entry: &str,
    assumed_sizes: &[u32],
    declared_required: u32,
    device: &SubgroupSupport,
    policy: &Policy,
) -> Result<Decision, SpirvError> {
    let program = validated(words)?;
    let entry = program.entry(entry)?;
    let decorations = Decorations::read(&program.module);
    let analysis = Analysis::of(&program, entry, &decorations);
    let kernel = EntryContext {
        program: &program,
        entry,
        decorations: &decorations,
        assumed_sizes,
        device,
        policy,
        floating: floating_size(words, device),
    };
    if declared_required != 0 {
        return Ok(match require(device, declared_required) {
            Some(required_size) => Decision::Run { required_size },
            None => kernel.refuse("requires", &[declared_required], "it uses cooperative matrices"),
        });
    }
    Ok(match usage(&program, entry, &analysis) {
        SubgroupUse::None => Decision::Run { required_size: None },
        SubgroupUse::SubgroupOps { ops, implied_sizes } => kernel.for_ops(&ops, &implied_sizes),
        SubgroupUse::LockstepWorkgroup { exchanges, ops, implied_sizes } => {
            // Barriers do not help if the subgroup instructions are wrong at this width.
            let ops_decision = if ops.is_empty() {
                Decision::Run { required_size: None }
            } else {
                kernel.for_ops(&ops, &implied_sizes)
            };
            match ops_decision {
                Decision::Run { required_size } => {
                    // The size that the device uses anyway needs no request, and a repaired module cannot carry one.
                    let usual = |size: &u32| *size == device.default_size && !kernel.floating;
                    kernel.for_lockstep(&analysis, &exchanges, required_size.filter(|s| !usual(s)))
                }
                other => other,
            }
        }
    })
}

/// Whether a pipeline without a required size may run at any size in the device's range.
///
/// From SPIR-V 1.6 on, a module allows that by itself.
fn floating_size(words: &[u32], device: &SubgroupSupport) -> bool {
    words.get(1).is_some_and(|v| *v >= 0x0001_0600)
        && device.size_control
        && device.min_size != device.max_size
}

/// How to get this size: `Some(None)` if the device has no other, `Some(size)` if it must be required.
fn require(device: &SubgroupSupport, size: u32) -> Option<Option<u32>> {
    let in_range = (device.min_size..=device.max_size).contains(&size);
    if device.size_control && device.compute_stage && in_range && size.is_power_of_two() {
        return Some(Some(size));
    }
    let only = !device.size_control || device.min_size == device.max_size;
    (only && device.default_size == size).then_some(None)
}

struct EntryContext<'a, 'w> {
    program: &'a ParsedModule<'w>,
    entry: &'a Entry,
    decorations: &'a Decorations<'w>,
    assumed_sizes: &'a [u32],
    device: &'a SubgroupSupport,
    policy: &'a Policy,
    floating: bool,
}

impl EntryContext<'_, '_> {
    fn invocations(&self) -> u32 {
        self.entry.local_size.iter().product()
    }

    /// The smallest size at which one full subgroup holds the whole workgroup.
    fn size_that_holds_all(&self) -> Option<Option<u32>> {
        let all = self.invocations().next_power_of_two();
        let required = require(self.device, all.max(self.device.min_size));
        let fixed = (!self.floating && self.device.default_size >= self.invocations()).then_some(None);
        required.or(fixed)
    }

    /// How the device runs the width that the compiler was told, if it can: then the exchange is as its author,
    /// or the compiler, meant it.
    fn as_told(&self, required_size: Option<u32>) -> Option<Option<u32>> {
        let told = *self.assumed_sizes.first()?;
        match required_size {
            Some(size) => (size == told).then_some(required_size),
            None if self.device.default_size == told && !self.floating => Some(None),
            None => require(self.device, told),
        }
    }

    fn for_ops(&self, ops: &[String], implied: &[u32]) -> Decision {
        let assumed = if implied.len() == 1
            && (self.assumed_sizes.is_empty() || self.assumed_sizes.contains(&implied[0]))
        {
            implied
        } else {
            self.assumed_sizes
        };
        if assumed.is_empty() {
            return Decision::Run { required_size: None };
        }
        // The compiler uses the first of its choices unless the code says otherwise.
        if let Some(required_size) = require(self.device, assumed[0]) {
            return Decision::Run { required_size };
        }
        if self.device.default_size == assumed[0] && !self.floating {
            return Decision::Run { required_size: None };
        }
        if self.invocations() <= assumed[0]
            && let Some(required_size) = self.size_that_holds_all()
        {
            return Decision::Run { required_size };
        }
        let emulated = match self.policy.repair {
            true => emulate(self.program, self.entry, assumed[0]),
            false => Err("repair is switched off".to_owned()),
        };
        match emulated {
            Ok(words) => {
                let (name, size) = (&self.entry.name, assumed[0]);
                let ops = ops.join(", ");
                let note = format!(
                    "kernel `{name}` was compiled for subgroups of {size} invocations, which this device does not \
                     have; {ops} now goes through workgroup memory"
                );
                Decision::Repaired { words, note }
            }
            Err(why) => {
                let reason = format!("it uses {}, and {why}", ops.join(", "));
                self.refuse("was compiled for", &assumed[..1], &reason)
            }
        }
    }

    fn for_lockstep(
        &self,
        analysis: &Result<Option<Analysis<'_, '_>>, String>,
        exchanges: &[String],
        required_size: Option<u32>,
    ) -> Decision {
        let repaired = match analysis {
            _ if self.policy.repair && required_size.is_none() => {
                repair(self.program, self.entry, self.decorations, analysis)
            }
            Ok(_) => Err("repair is switched off, or the pipeline needs a required subgroup size".to_owned()),
            Err(why) => Err(why.clone()),
        };
        let why = match repaired {
            Ok(done) => {
                let (name, first) = (&self.entry.name, exchanges.first().map_or("", String::as_str));
                let what = done.what(self.entry.local_size);
                let note = format!(
                    "kernel `{name}` exchanges memory between invocations without a barrier ({first}); {what}"
                );
                return Decision::Repaired { words: done.words, note };
            }
            Err(why) => why,
        };
        let holds_all = match required_size {
            Some(size) => (size >= self.invocations()).then_some(required_size),
            None => self.size_that_holds_all(),
        };
        if let Some(required_size) = holds_all {
            return Decision::Run { required_size };
        }
        if let Some(required_size) = self.as_told(required_size) {
            log::debug!(
                "kernel `{}` counts on lockstep ({why}); it runs as it is, at the width that it was compiled for",
                self.entry.name
            );
            return Decision::Run { required_size };
        }
        let assumed = self.assumed_sizes.first().copied().unwrap_or_else(|| self.invocations().min(64));
        let first = exchanges.first().map_or("memory", String::as_str);
        let reason = format!("its invocations exchange memory without a barrier ({first}), and {why}");
        self.refuse("assumes lockstep over", &[assumed], &reason)
    }

    fn refuse(&self, verb: &str, assumed: &[u32], reason: &str) -> Decision {
        let assumed: Vec<String> = assumed.iter().map(u32::to_string).collect();
        let range = if self.device.size_control && self.device.min_size != self.device.max_size {
            format!("{} to {}", self.device.min_size, self.device.max_size)
        } else {
            self.device.default_size.to_string()
        };
        let message = format!(
            "kernel `{}` {verb} subgroups of {} invocations, but this device's subgroups have {range}: {reason}. \
             Its numbers would be wrong. Compile the module again with `--iree-vulkan-target={}`, \
             or run it anyway with --allow-subgroup-mismatch",
            self.entry.name,
            assumed.join(" or "),
            fitting_target(self.device),
        );
        match self.policy.allow_mismatch {
            true => Decision::RunMismatched { warning: message },
            false => Decision::Refuse { message },
        }
    }
}

/// A target name of iree-compile 3.13 whose kernels fit the device's subgroups.
///
/// The baseline fits everywhere once its kernels are repaired: it uses no subgroup instructions.
fn fitting_target(device: &SubgroupSupport) -> &'static str {
    match device.default_size {
        8 => "llvmpipe",
        16 => "valhall",
        32 => "ampere",
        64 => "adreno",
        _ => "vp_android_baseline_2022",
    }
}
