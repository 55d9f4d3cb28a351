//! The device's target, and how well a module's targets fit it: `halite-targets` has the table of known GPUs and the rules.

use std::sync::OnceLock;

use halite_facts::{DeviceFacts, Feature, FeatureFacts};
use halite_targets::{Capabilities, Target, rank_of};

use crate::plan::DevicePlan;

/// What kernels may use on a device that was opened with this plan: a feature that is off cannot be used. Device addresses
/// that are off only because nobody asked for them count as there: targets choose among kernels that bind buffers, and one
/// that takes addresses is refused by name when it is loaded.
fn usable(facts: &DeviceFacts, plan: &DevicePlan) -> Capabilities {
    let addresses = plan.features.has(Feature::BufferDeviceAddress) || plan.refused.is_some();
    let enabled = plan.features.with(Feature::BufferDeviceAddress, addresses);
    let features = FeatureFacts::new(facts.features.known(), enabled);
    Target::detect(&DeviceFacts { features, ..facts.clone() }).capabilities()
}

/// Answers how well targets fit an open device. What that needs is worked out at the first question.
#[derive(Debug, Default)]
pub(crate) struct TargetRanks(OnceLock<Capabilities>);

impl TargetRanks {
    /// The rank of the target with this text, as `halite_targets::rank_of` defines it: 0 when code for it is not for
    /// this device, or when the text is no target; higher is better.
    pub(crate) fn rank(&self, facts: &DeviceFacts, plan: &DevicePlan, text: &str) -> i64 {
        let target = match Target::parse(text) {
            Ok(target) => target,
            Err(e) => {
                log::debug!("a module asks for a target that is not known: {e}");
                return 0;
            }
        };
        let here = self.0.get_or_init(|| usable(facts, plan));
        let ranked = rank_of(here, target);
        log::debug!("target {target} has rank {} on {}: {}", ranked.rank, here.target, ranked.reason);
        ranked.rank
    }
}

#[cfg(test)]
mod tests {
    use halite_targets::Os;

    use super::*;
    use crate::{
        options::VulkanOptions,
        plan::tests::{planned, recorded},
    };

    fn ranks(device: &str, texts: &[&str]) -> Vec<i64> {
        let (facts, plan) = (recorded(device), planned(device, &VulkanOptions::default()).unwrap());
        let ranks = TargetRanks::default();
        texts.iter().map(|text| ranks.rank(&facts, &plan, text)).collect()
    }

    #[test]
    fn recorded_devices_have_targets() {
        for (device, name) in
            [("nvidia_h200", "hopper-h200"), ("llvmpipe", "cpu-llvmpipe"), ("mali_g78", "valhall-g78")]
        {
            let target = Target::detect(&recorded(device).on(Os::host())).target;
            assert_eq!(target.to_string(), format!("{name}-{}", Os::host()));
        }
    }

    /// Everything that the table states of a device whose record is here is on when the driver opens it.
    #[test]
    fn a_device_runs_what_is_made_for_it() {
        for (device, own) in [
            ("nvidia_h200", "hopper-h200-unknown"),
            ("llvmpipe", "cpu-llvmpipe-unknown"),
            ("swiftshader", "cpu-swiftshader-unknown"),
            ("adreno_740", "adreno-740-unknown"),
        ] {
            let found = ranks(device, &[own, "vp-android_baseline_2022-unknown", "no target", ""]);
            assert!(found[0] > found[1] && found[1] > 0, "{device}: {found:?}");
            assert_eq!(found[2..], [0, 0]);
        }
    }

    #[test]
    fn features_that_are_off_do_not_count() {
        let mut plan = planned("nvidia_h200", &VulkanOptions::default()).unwrap();
        plan.features.set(Feature::ShaderFloat16, false);
        let rank = |text| TargetRanks::default().rank(&recorded("nvidia_h200"), &plan, text);
        assert_eq!(rank("hopper-h200-linux"), 0);
        assert!(rank("vp-roadmap_2022-unknown") > 0);
    }
}
