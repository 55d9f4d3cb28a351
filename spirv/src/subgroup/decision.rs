//! What is asked about a kernel and a device, and the answers.

/// What a device offers about subgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubgroupSupport {
    /// Invocations per subgroup when nothing is asked for.
    pub default_size: u32,
    /// Smallest size that can be required; equals `default_size` without size control.
    pub min_size: u32,
    /// Largest size that can be required; equals `default_size` without size control.
    pub max_size: u32,
    /// Whether `subgroupSizeControl` is there and enabled.
    pub size_control: bool,
    /// Whether `computeFullSubgroups` is there and enabled.
    pub require_full: bool,
    /// Whether a size may be required for compute stages (`requiredSubgroupSizeStages`).
    pub compute_stage: bool,
}

/// What the user allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Rewrite kernels where that is provably right.
    pub repair: bool,
    /// Run a kernel that may give wrong numbers, with a warning.
    pub allow_mismatch: bool,
}

/// What to do with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run the module as it is.
    Run {
        /// The subgroup size to require for the pipeline, if any.
        required_size: Option<u32>,
    },
    /// Run these words instead of the module's.
    Repaired {
        /// The rewritten module.
        words: Vec<u32>,
        /// What was done, for a log.
        note: String,
    },
    /// Do not run it.
    Refuse {
        /// Which kernel, why, and what to do.
        message: String,
    },
    /// Run it although its numbers may be wrong, as the policy allows.
    RunMismatched {
        /// The same reason as a refusal gives.
        warning: String,
    },
}
