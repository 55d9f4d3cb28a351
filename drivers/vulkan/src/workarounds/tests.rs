use super::*;
use halite_facts::{api_version, vendor};

use crate::{
    options::VulkanOptions,
    plan::{DevicePlan, tests::recorded},
};

fn names(workarounds: &Workarounds) -> Vec<&'static str> {
    workarounds.applied().iter().map(|w| w.name).collect()
}

/// A recorded device that says it runs on another driver.
fn with_driver(recorded_name: &str, driver: u32, version: u32) -> DeviceFacts {
    DeviceFacts { driver_id: driver, driver_version: version, ..recorded(recorded_name) }
}

fn chosen(facts: &DeviceFacts, text: &str) -> Workarounds {
    Workarounds::chosen(facts, &WorkaroundOverrides::parse(text).unwrap())
}

#[test]
fn entries_fit_by_driver_version_and_facts() {
    assert_eq!(
        names(&Workarounds::for_device(&recorded("swiftshader"))),
        ["swiftshader-no-bda", "swiftshader-growing-cache", "swiftshader-forks"]
    );
    assert_eq!(Workarounds::for_device(&recorded("llvmpipe")), Workarounds::default());
    let mut without_halves = recorded("llvmpipe");
    without_halves.features.set(Feature::ShaderFloat16, false);
    assert_eq!(names(&Workarounds::for_device(&without_halves)), ["llvmpipe-halves"]);
    assert_eq!(names(&Workarounds::for_device(&recorded("nvidia_h200"))), ["nvidia-unaligned-fill"]);
    let pascal = DeviceFacts {
        driver_id: driver_id::NVIDIA_PROPRIETARY,
        extensions: vec!["VK_KHR_push_descriptor".to_owned()],
        ..recorded("nvidia_h200")
    };
    assert!(Workarounds::for_device(&pascal).find(Avoid::PushDescriptors).is_some());
    let anv = |major, minor| {
        let version = api_version(major, minor, 0);
        let facts = with_driver("intel_integrated", driver_id::INTEL_OPEN_SOURCE_MESA, version);
        Workarounds::for_device(&facts).find(Avoid::PushDescriptors).is_some()
    };
    assert_eq!([anv(22, 2), anv(22, 3), anv(23, 1), anv(23, 2)], [false, true, true, false]);
    let mut moltenvk = with_driver("intel_integrated", driver_id::MOLTENVK, 10_211);
    assert!(Workarounds::for_device(&moltenvk).find(Avoid::SubgroupSizeControl).is_none());
    moltenvk.vendor_id = vendor::AMD;
    assert!(Workarounds::for_device(&moltenvk).find(Avoid::SubgroupSizeControl).is_some());
}

#[test]
fn every_entry_explains_itself_once() {
    let mut seen = std::collections::BTreeSet::new();
    for entry in table() {
        assert!(seen.insert(entry.name) && entry.reason.len() > 20, "{}", entry.name);
        assert!(entry.applies.on_request || entry.link.starts_with("https://"), "{}", entry.name);
        assert!(!entry.condition().is_empty(), "'{}' would be in force everywhere", entry.name);
    }
    let text: String =
        listing().entries.iter().map(|(name, meaning)| format!("{name}\n{meaning}\n")).collect();
    for part in ["swiftshader-no-bda", "from 22.3.0, before 23.2.0", "wgpu/issues/4122", "avoid-float16"] {
        assert!(text.contains(part), "'{part}' is missing from:\n{text}");
    }
}

#[test]
fn the_option_adds_and_removes() {
    let swiftshader = recorded("swiftshader");
    assert_eq!(
        names(&chosen(&swiftshader, "-swiftshader-no-bda")),
        ["swiftshader-growing-cache", "swiftshader-forks"]
    );
    assert_eq!(names(&chosen(&swiftshader, "-all")), [""; 0]);
    assert_eq!(
        names(&chosen(&swiftshader, "+nvidia-unaligned-fill, avoid-float16")),
        [
            "swiftshader-no-bda",
            "swiftshader-growing-cache",
            "swiftshader-forks",
            "nvidia-unaligned-fill",
            "avoid-float16"
        ]
    );
    assert_eq!(names(&chosen(&swiftshader, "+swiftshader-no-bda")).len(), 3, "in force once");
    let error = WorkaroundOverrides::parse("+made-up").unwrap_err().to_string();
    assert!(error.contains("'made-up'") && error.contains("swiftshader-no-bda, "), "{error}");
}

#[test]
fn plans_obey() {
    let facts = recorded("llvmpipe");
    let plan =
        |text: &str| DevicePlan::new(&facts, &VulkanOptions::default(), &chosen(&facts, text)).unwrap();
    let usual = plan("");
    assert!(
        usual.features.has(Feature::ShaderFloat16) && !usual.split_unaligned_fills && usual.pipeline_cache
    );
    assert!(!plan("avoid-float16").features.has(Feature::ShaderFloat16));
    assert!(!plan("avoid-synchronization2").synchronization2);
    assert!(plan("avoid-unaligned-fill").split_unaligned_fills);
    assert!(!plan("avoid-pipeline-cache").pipeline_cache);
    assert_eq!(plan("avoid-push-descriptors").push_descriptors, 0);
    assert_eq!(plan("avoid-subgroup-size-control").subgroup.required_sizes, None);
    assert_eq!(plan("avoid-robust-access").robustness, crate::plan::Robustness::Off);
    let bda = plan("avoid-bda");
    assert!(!bda.abis.buffer_device_address && !bda.features.has(Feature::BufferDeviceAddress));
    assert!(usual.no_halves.is_none() && plan("avoid-halves").no_halves.is_some());
    assert!(!plan("avoid-storage16").features.has(Feature::StorageBuffer16BitAccess));
}
