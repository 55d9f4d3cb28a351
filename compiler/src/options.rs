//! How a program is compiled, as the caller says it.

use halite_shaders::Tuning;
use halite_targets::{Capabilities, Target};

use crate::ParameterStorage;

/// The target whose kernels run on every Vulkan 1.1 device.
pub const BASELINE: &str = "vp-vulkan_1_1-unknown";

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
        }
    }
}

impl CompileOptions {
    /// The default, for these targets and the baseline.
    pub fn for_targets(targets: &[Target]) -> Self {
        CompileOptions { targets: targets.iter().map(|t| Capabilities::of(*t)).collect(), ..Self::default() }
    }
}
