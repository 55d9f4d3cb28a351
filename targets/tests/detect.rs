//! Detection: recorded devices, and devices written after public reports (marked so).
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap fails")]

use halite_facts::{ComponentType, CooperativeMatrixProperties, DeviceFacts, Feature, MatrixShape};
use halite_targets::{Capabilities, How, Os, Target};
use proptest::prelude::*;

/// A file of the Vulkan driver's tests.
fn recorded(name: &str) -> DeviceFacts {
    let path = format!("{}/../drivers/vulkan/tests/caps/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    DeviceFacts::from_json(&text).unwrap()
}

/// A device of which only the identity is known.
fn device(vendor_id: u32, device_id: u32, name: &str) -> DeviceFacts {
    DeviceFacts { vendor_id, device_id, name: name.to_owned(), ..DeviceFacts::default() }
        .on(Os::parse("linux").unwrap())
}

fn check(facts: &DeviceFacts, triple: &str, how: How) {
    let found = Target::detect(facts);
    assert_eq!(
        (found.target.to_string().as_str(), found.how),
        (triple, how),
        "{}: {:?}",
        facts.name,
        found.reasons
    );
    assert!(!found.reasons.is_empty());
}

#[test]
fn recorded_devices() {
    check(&recorded("llvmpipe"), "cpu-llvmpipe-unknown", How::ExactDeviceId);
    check(&recorded("swiftshader"), "cpu-swiftshader-unknown", How::ExactDeviceId);
    let linux = Os::parse("linux").unwrap();
    check(&recorded("nvidia_h200").on(linux), "hopper-h200-linux", How::ExactDeviceId);
    // Written by hand after public facts.
    check(&recorded("mali_g78"), "valhall-g78-unknown", How::ExactDeviceId);
    check(&recorded("adreno_740"), "adreno-740-unknown", How::ExactDeviceId);
}

/// Names and ids as https://vulkan.gpuinfo.org shows them.
#[test]
fn listed_devices_by_id() {
    check(&device(0x10DE, 0x2206, "NVIDIA GeForce RTX 3080"), "ampere-rtx3080-linux", How::ExactDeviceId);
    check(&device(0x10DE, 0x2B85, "NVIDIA GeForce RTX 5090"), "blackwell-rtx5090-linux", How::ExactDeviceId);
    check(&device(0x10DE, 0x1EB8, "Tesla T4"), "turing-t4-linux", How::ExactDeviceId);
    check(
        &device(0x8086, 0x56A0, "Intel(R) Arc(tm) A770 Graphics (DG2)"),
        "xehpg-a770-linux",
        How::ExactDeviceId,
    );
    check(
        &device(0x8086, 0x9A49, "Intel(R) Iris(R) Xe Graphics (TGL GT2)"),
        "xe-irisxe-linux",
        How::ExactDeviceId,
    );
    check(&device(0x14E4, 0x5570_1C33, "V3D 7.1.7.0"), "videocore-vii-linux", How::ExactDeviceId);
    check(&device(0x5143, 0x0603_0001, "Adreno (TM) 630"), "adreno-630-linux", How::ExactDeviceId);
}

#[test]
fn names_tell_products_that_share_an_id() {
    let radv = "AMD Radeon RX 7900 XTX (RADV NAVI31)";
    check(&device(0x1002, 0x744C, radv), "rdna3-7900xtx-linux", How::ExactDeviceId);
    check(&device(0x1002, 0x744C, "AMD Radeon RX 7900 XT"), "rdna3-7900xt-linux", How::ExactDeviceId);
    check(&device(0x1002, 0x744C, "AMD Radeon Graphics"), "rdna3-gfx1100-linux", How::Architecture);
    check(
        &device(0x1002, 0x731F, "AMD Radeon RX 5700 XT (RADV NAVI10)"),
        "rdna1-5700xt-linux",
        How::ExactDeviceId,
    );
    check(&device(0x13B5, 0xB802_0010, "Mali-G615 MC6"), "valhall-g615-linux", How::ExactDeviceId);
    check(&device(0x13B5, 0xD800_0000, "Immortalis-G925 MC12"), "arm5gen-g925-linux", How::ExactDeviceId);
}

#[test]
fn names_without_a_listed_id() {
    check(&device(0x106B, 0x0E03_0007, "Apple M1 Pro"), "apple-m1pro-linux", How::NameMatch);
    check(&device(0x106B, 0, "Apple M3 Max"), "apple-m3max-linux", How::NameMatch);
    check(&device(0x10DE, 0xFFFF, "NVIDIA GeForce RTX 4090"), "ada-rtx4090-linux", How::NameMatch);
    check(
        &device(0x10DE, 0xFFFF, "NVIDIA GeForce RTX 3080 Laptop GPU"),
        "ampere-rtx3080laptop-linux",
        How::NameMatch,
    );
}

/// Names in the spelling of drivers, with ids that no entry lists.
#[test]
fn spellings_of_drivers() {
    let nvidia = [
        ("NVIDIA A100-PCIE-40GB", "ampere-a100"),
        ("NVIDIA A100 80GB PCIe", "ampere-a100"),
        ("NVIDIA A10G", "ampere-a10g"),
        ("NVIDIA H100 80GB HBM3", "hopper-h100"),
        ("NVIDIA GH200 480GB", "hopper-gh200"),
        ("NVIDIA L4", "ada-l4"),
        ("Tesla V100-SXM2-16GB", "volta-v100"),
        ("NVIDIA RTX 6000 Ada Generation", "ada-rtx6000ada"),
        ("NVIDIA RTX A6000", "ampere-rtxa6000"),
        ("Quadro RTX 6000", "turing-quadrortx6000"),
        ("NVIDIA TITAN X (Pascal)", "pascal-titanx"),
        ("NVIDIA TITAN V", "volta-titanv"),
        ("NVIDIA GeForce RTX 5090 D", "blackwell-rtx5090d"),
        ("GeForce GTX 1070 with Max-Q Design", "pascal-gtx1070laptop"),
        ("NVIDIA Tegra Orin (nvgpu)", "ampere-orin"),
    ];
    for (name, product) in nvidia {
        check(&device(0x10DE, 0xFFFF, name), &format!("{product}-linux"), How::NameMatch);
    }
    for (name, product) in [
        ("Mali-G715-Immortalis MC11", "valhall-g715"),
        ("Immortalis-G720 MC12", "arm5gen-g720"),
        ("Mali-G1-Ultra MC12", "arm5gen-g1ultra"),
        ("Mali-G78AE", "valhall-g78ae"),
    ] {
        check(&device(0x13B5, 0, name), &format!("{product}-linux"), How::NameMatch);
    }
    check(&device(0x5143, 0, "Adreno (TM) X1-85"), "adreno-x1_85-linux", How::NameMatch);
    check(&device(0x5143, 0, "Turnip Adreno (TM) 740v3"), "adreno-740-linux", How::NameMatch);
}

#[test]
fn the_range_of_the_id_is_believed_before_a_name_that_is_used_again() {
    let name = "Intel(R) Arc(TM) Graphics";
    check(&device(0x8086, 0x7D55, name), "xehpg-arcmtl-linux", How::ExactDeviceId);
    check(&device(0x8086, 0x7DD1, name), "xehpg-arl-linux", How::Architecture);
    check(&device(0x8086, 0x64B0, name), "xe2-lnl-linux", How::Architecture);
}

#[test]
fn unknown_products_get_a_relative_of_their_architecture() {
    check(&device(0x10DE, 0xFFFF, "NVIDIA GeForce RTX 3075"), "ampere-rtx3070-linux", How::NearestRelative);
    check(&device(0x10DE, 0x22FE, "NVIDIA GeForce RTX 3078"), "ampere-rtx3080-linux", How::NearestRelative);
    check(&device(0x5143, 0x4305_2000, "Adreno (TM) 760"), "adreno-750-linux", How::NearestRelative);
    check(&device(0x13B5, 0xF000_0000, "Mali-G730"), "arm5gen-g725-linux", How::NearestRelative);
    check(&device(0x106B, 0, "Apple M9"), "apple-m5-linux", How::NearestRelative);
    check(
        &device(0x10DE, 0xFFFF, "NVIDIA GeForce RTX 4060 SUPER"),
        "ada-rtx4060-linux",
        How::NearestRelative,
    );
    check(
        &device(0x1002, 0xFFFF, "AMD Radeon RX 7850 (RADV NAVI32)"),
        "rdna3-7800xt-linux",
        How::NearestRelative,
    );
}

#[test]
fn architectures() {
    check(&device(0x1002, 0x7448 + 0x10, "AMD Radeon Graphics"), "rdna3-gfx1100-linux", How::Architecture);
    check(&device(0x1002, 0xFFFF, "AMD Unknown (RADV GFX1201)"), "rdna4-gfx1201-linux", How::Architecture);
    check(&device(0x10DE, 0x23AA, "Graphics Device"), "hopper-sm_90-linux", How::Architecture);
    check(&device(0x14E4, 1, "V3D 9.9"), "videocore-unknown-linux", How::Architecture);
}

#[test]
fn strangers() {
    check(&device(0x10DE, 0xFFFF, "NVIDIA Something"), "nvidia-unknown-linux", How::VendorOnly);
    check(&device(0x8086, 0xFFFF, "Intel Thing"), "intel-unknown-linux", How::VendorOnly);
    check(&device(0x1234, 0, "Mystery"), "vp-android_baseline_2022-linux", How::Baseline);
    check(&DeviceFacts::default(), "vp-android_baseline_2022-unknown", How::Baseline);
    // An unknown vendor with the abilities of a desktop GPU.
    let mut facts = recorded("discrete_rebar");
    (facts.vendor_id, facts.name) = (0x1234, "Mystery".to_owned());
    let found = Target::detect(&facts);
    assert_eq!(found.how, How::Baseline);
    assert_ne!(found.target.product_name(), "android_baseline_2022", "{:?}", found.reasons);
}

#[test]
fn facts_win_over_the_table() {
    let mut facts = recorded("nvidia_h200");
    facts.features.set(Feature::ShaderFloat16, false);
    facts.limits.max_compute_shared_memory_size = 32768;
    let found = Target::detect(&facts);
    let here = found.capabilities();
    assert!(Capabilities::of(found.target).has(Feature::ShaderFloat16) && !here.has(Feature::ShaderFloat16));
    assert_eq!(here.shared_memory_bytes, 32768);
    // What the device does not report comes from the table.
    assert_eq!(here.hints.compute_units, Some(132));
    assert_eq!(here.unified_memory, Some(false));
}

#[test]
fn the_table_agrees_with_recorded_devices() {
    for name in ["nvidia_h200", "swiftshader", "llvmpipe"] {
        let found = Target::detect(&recorded(name));
        assert_eq!(found.capabilities().lacks(&Capabilities::of(found.target)), [""; 0], "{name}");
    }
}

#[test]
fn matrix_shapes_of_the_h200() {
    let shapes: Vec<_> = recorded("nvidia_h200")
        .cooperative_matrices
        .iter()
        .filter_map(CooperativeMatrixProperties::shape)
        .collect();
    let wanted: MatrixShape = "16x16x16 f16 f16 f32 f32".parse().unwrap();
    assert!(shapes.contains(&wanted));
    assert!(shapes.iter().any(|s| s.a == ComponentType::BF16));
}

#[test]
fn a_relative_keeps_only_what_the_architecture_shares() {
    let found = Target::detect(&device(0x10DE, 0xFFFF, "NVIDIA GeForce RTX 3095"));
    assert_eq!(found.how, How::NearestRelative);
    assert_eq!(found.capabilities().hints.compute_units, None);
    assert_eq!(found.capabilities().hints.max_registers_per_invocation, Some(255));
}

proptest! {
    #[test]
    fn anything_is_detected(vendor in prop::sample::select(vec![0_u32, 0x10DE, 0x1002, 0x8086, 0x13B5, 0x5143, 0x106B, 0x14E4, 7]),
                            id in any::<u32>(), name in ".{0,40}") {
        let found = Target::detect(&device(vendor, id, &name));
        prop_assert!(!found.reasons.is_empty());
        prop_assert_eq!(Target::parse(&found.target.to_string()).unwrap(), found.target);
    }
}

/// The table has fewer units, or none, for products that come in several sizes.
#[test]
fn the_number_of_units_is_what_the_device_reports() {
    for (name, id) in [("NVIDIA H100 80GB HBM3", 0x2330), ("Graphics Device", 0x23AA)] {
        let facts = DeviceFacts { compute_units: Some(99), ..device(0x10DE, id, name) };
        assert_eq!(Target::detect(&facts).capabilities().hints.compute_units, Some(99), "{name}");
    }
    let silent = Target::detect(&device(0x10DE, 0x2330, "NVIDIA H100 80GB HBM3"));
    assert_eq!(silent.capabilities().hints.compute_units, Some(132));
}
