//! The order of a module's targets on a device.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap fails")]

use halite_facts::{DeviceFacts, Feature};
use halite_targets::{Target, best, tier};
use proptest::prelude::*;

fn targets(list: &[&str]) -> Vec<Target> {
    list.iter().map(|t| Target::parse(t).unwrap()).collect()
}

fn recorded(name: &str) -> DeviceFacts {
    let path = format!("{}/../drivers/vulkan/tests/caps/{name}.json", env!("CARGO_MANIFEST_DIR"));
    DeviceFacts::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The triples in the order of their ranks, those that do not fit left out.
fn order(device: &str, candidates: &[&str]) -> Vec<String> {
    let ranked = Target::parse(device).unwrap().rank(&targets(candidates));
    ranked.iter().filter(|r| r.rank > 0).map(|r| r.target.to_string()).collect()
}

#[test]
fn the_nearest_comes_first() {
    let best_first = [
        "ampere-rtx3080-linux",
        "ampere-sm_86-unknown",
        "ampere-rtx3070-linux",
        "ampere-unknown-linux",
        "ampere-a100-linux",
        "nvidia-unknown-linux",
        "turing-rtx2080-linux",
        "vp-android_16-unknown",
        "vp-android_baseline_2022-unknown",
    ];
    let mut shuffled = best_first;
    shuffled.reverse();
    shuffled.swap(1, 4);
    assert_eq!(order("ampere-rtx3080-linux", &shuffled), best_first);
}

#[test]
fn the_system_decides_between_equals() {
    let list = ["ampere-rtx3080-windows", "ampere-rtx3080-unknown", "ampere-rtx3080-linux"];
    let wanted = ["ampere-rtx3080-linux", "ampere-rtx3080-unknown", "ampere-rtx3080-windows"];
    assert_eq!(order("ampere-rtx3080-linux", &list), wanted);
    let list = ["valhall-g78-android33", "valhall-g78-android30"];
    assert_eq!(order("valhall-g78-android31", &list), ["valhall-g78-android30"]);
}

#[test]
fn other_vendors_do_not_fit() {
    let ranked = Target::parse("rdna3-7900xtx-linux").unwrap().rank(&targets(&["ampere-rtx3080-linux"]));
    assert_eq!(ranked[0].rank, 0);
    assert!(ranked[0].reason.contains("another vendor"), "{}", ranked[0].reason);
    assert_eq!(best(&ranked), None);
}

#[test]
fn code_for_one_processor_runs_only_there() {
    let list = ["cpu-aarch64-linux", "cpu-x86_64-linux", "cpu-swiftshader-unknown", "vp-vulkan_1_1-unknown"];
    assert_eq!(order("cpu-x86_64-linux", &list), ["cpu-x86_64-linux"]);
    assert_eq!(order("cpu-llvmpipe-linux", &list), ["vp-vulkan_1_1-unknown"]);
}

#[test]
fn what_the_device_lacks_excludes() {
    let detected = Target::detect(&recorded("nvidia_h200"));
    let list = targets(&[
        "blackwell-rtx5090-linux",
        "hopper-h200-linux",
        "vp-roadmap_2024-unknown",
        "rdna3-unknown-linux",
    ]);
    let ranked = detected.rank(&list);
    assert_eq!(best(&ranked).unwrap().index, 1);
    assert_eq!(ranked[0].rank / 1000 * 1000, tier::PRODUCT);
    // The same GPU behind a driver without 16-bit floats: only the baseline that needs none is left.
    let mut facts = recorded("nvidia_h200");
    facts.features.set(Feature::ShaderFloat16, false);
    let list = targets(&[
        "hopper-h200-linux",
        "hopper-unknown-linux",
        "vp-roadmap_2024-unknown",
        "vp-roadmap_2022-unknown",
    ]);
    let ranked = Target::detect(&facts).rank(&list);
    assert_eq!(best(&ranked).unwrap().index, 3);
    let h200 = ranked.iter().find(|r| r.index == 0).unwrap();
    assert_eq!(h200.rank, 0);
    assert!(h200.reason.contains("16-bit floats"), "{}", h200.reason);
    assert_eq!(h200.missing.len(), 1, "{:?}", h200.missing);
}

/// The file stands for an old driver: Vulkan 1.1, without integer dot products.
#[test]
fn an_old_driver_falls_back_to_the_baseline() {
    let list = targets(&["valhall-g78-android30", "vp-android_baseline_2022-unknown"]);
    let ranked = Target::detect(&recorded("mali_g78")).rank(&list);
    assert_eq!(best(&ranked).unwrap().index, 1);
    assert!(ranked[1].reason.contains("integer dot products"), "{}", ranked[1].reason);
}

#[test]
fn swiftshader_runs_the_baseline() {
    let list =
        targets(&["adreno-unknown-android30", "vp-android_15-unknown", "vp-android_baseline_2022-unknown"]);
    let ranked = Target::detect(&recorded("swiftshader")).rank(&list);
    assert_eq!(best(&ranked).unwrap().index, 2);
}

/// Every hardware family runs the default of IREE, and itself first.
#[test]
fn every_family_runs_itself_and_the_baseline() {
    for family in halite_targets::families() {
        if family.name == "vp" || family.isolated_products {
            continue;
        }
        let own = format!("{}-unknown-linux", family.name);
        assert_eq!(order(&own, &["vp-vulkan_1_1-unknown", &own]), [own.as_str(), "vp-vulkan_1_1-unknown"]);
        for product in &family.products {
            let own = format!("{}-{}-linux", family.name, product.name);
            let list = ["vp-android_baseline_2022-unknown", &own];
            assert_eq!(order(&own, &list), [own.as_str(), "vp-android_baseline_2022-unknown"]);
        }
    }
}

fn any_target() -> impl Strategy<Value = Target> {
    let families = halite_targets::families();
    let name = (0..families.len(), any::<prop::sample::Index>()).prop_map(|(f, at)| {
        let family = &families[f];
        let names: Vec<&str> = family.products.iter().map(|p| p.name.as_str()).chain(["unknown"]).collect();
        format!("{}-{}-linux", family.name, names[at.index(names.len())])
    });
    name.prop_map(|name| Target::parse(&name).unwrap())
}

proptest! {
    #[test]
    fn ranks_are_ordered_and_complete(device in any_target(), list in prop::collection::vec(any_target(), 0..8)) {
        let ranked = device.rank(&list);
        prop_assert_eq!(ranked.len(), list.len());
        prop_assert!(ranked.windows(2).all(|w| w[0].rank >= w[1].rank));
        let mut seen: Vec<usize> = ranked.iter().map(|r| r.index).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..list.len()).collect::<Vec<_>>());
        for r in &ranked {
            prop_assert_eq!(r.target, list[r.index]);
            prop_assert!(!r.reason.is_empty());
            prop_assert!((0..9000).contains(&r.rank));
            prop_assert!(r.missing.is_empty() || r.rank == 0);
        }
    }
}
