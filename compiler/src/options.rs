//! How a program is compiled, as the caller says it.

use halite_shaders::{Tuning, multiplies_images};
use halite_targets::{Capabilities, Target};

use crate::{ParameterStorage, graph::BOUND_BY_ALL, signature::Bindings};

/// The target whose kernels run on every Vulkan 1.1 device.
pub const BASELINE: &str = "vp-vulkan_1_1-unknown";

/// Weights are not bound in larger parts on any device: kernels count their bytes with 32 bits, and parts are buffers of their own.
const MOST_BOUND: u64 = 1 << 30;

/// How a program is compiled.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// What kernels are chosen for, each with what it can do: from the table ([`Capabilities::of`]) or from a device
    /// ([`Capabilities::of_device`]). A module runs the kernels of the target that fits the device best. May be empty where
    /// `baseline` is set.
    pub targets: Vec<Capabilities>,
    /// Whether kernels for every Vulkan 1.1 device are included too. They run where no target fits, and in runtimes that
    /// know no targets. Without them, such runtimes are given the first target's.
    pub baseline: bool,
    /// Whether the first target is the device at hand, with what it reports. The module does not ask its device whether the target
    /// fits it then: a device may have less than the table says of its target (fewer lanes, an older driver), and its module has
    /// what it has.
    pub at_hand: bool,
    /// What was measured, for the choice of kernels.
    pub tuning: Tuning,
    /// Name of the module.
    pub module_name: String,
    /// Where the constants go.
    pub parameters: ParameterStorage,
    /// Whether a module asks its runtime for what it computes of constants when it is loaded, and gives it what it computed, so that
    /// modules of one model share it. For constants outside of the module, and for Halite's runtime: others lack these functions.
    pub shares_results: bool,
}

impl Default for CompileOptions {
    /// The baseline alone, constants in the module, the tuning that ships, a module named `module`.
    fn default() -> Self {
        CompileOptions {
            targets: Vec::new(),
            baseline: true,
            at_hand: false,
            tuning: Tuning::shipped().clone(),
            module_name: "module".to_owned(),
            parameters: ParameterStorage::Embedded,
            shares_results: false,
        }
    }
}

impl CompileOptions {
    /// Most bytes of weights that all devices bind which these options are for; nothing where that is no more than every device binds.
    pub fn largest_binding(&self) -> Option<u64> {
        let least = self.targets.iter().map(|target| target.max_storage_buffer_bytes).min();
        let least = least.filter(|_| !self.baseline)?.min(MOST_BOUND);
        (least > BOUND_BY_ALL).then_some(least)
    }

    /// Whether convolutions over images with their channels last run on matrix units of all targets.
    fn matrix_units(&self) -> bool {
        !self.targets.is_empty() && self.targets.iter().all(multiplies_images)
    }

    /// The same sizes and values, with what passes ask of the devices that these options are for.
    pub fn bound_one(&self, bindings: &Bindings) -> Bindings {
        Bindings {
            largest_binding: self.largest_binding(),
            matrix_units: self.matrix_units(),
            ..bindings.clone()
        }
    }

    /// The same versions, likewise.
    pub(crate) fn bound(&self, versions: &[Bindings]) -> Vec<Bindings> {
        versions.iter().map(|one| self.bound_one(one)).collect()
    }

    /// The default, for these targets and the baseline.
    pub fn for_targets(targets: &[Target]) -> Self {
        CompileOptions { targets: targets.iter().map(|t| Capabilities::of(*t)).collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_bound_as_the_least_of_the_devices_binds_them() {
        let target = |bytes| {
            let mut one = Capabilities::of(Target::parse("hopper-h100-linux").unwrap());
            one.max_storage_buffer_bytes = bytes;
            one
        };
        let of = |targets: &[u64], baseline| {
            let targets = targets.iter().map(|bytes| target(*bytes)).collect();
            CompileOptions { targets, baseline, ..CompileOptions::default() }.largest_binding()
        };
        assert_eq!(of(&[1 << 28, 1 << 29], false), Some(1 << 28));
        assert_eq!(of(&[u32::MAX.into()], false), Some(1 << 30));
        assert_eq!([of(&[1 << 27], false), of(&[], true), of(&[1 << 30], true)], [None; 3]);
    }
}
