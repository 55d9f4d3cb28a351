//! Reading and writing targets: triples, names of IREE, old triples, errors.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap fails")]

use halite_targets::{Os, Target, TargetError, families, vendors};
use proptest::prelude::*;

fn text(name: &str) -> String {
    Target::parse(name).unwrap_or_else(|e| panic!("{name}: {e}")).to_string()
}

#[test]
fn documented_triples_are_canonical() {
    for triple in [
        "valhall-g78-android30",
        "adreno-unknown-android30",
        "rdna1-5700xt-linux",
        "ampere-rtx3080-windows",
        "hopper-h200-linux",
        "cpu-swiftshader-unknown",
        "cpu-llvmpipe-linux",
        "cpu-x86_64-linux",
        "nvidia-unknown-linux",
        "vp-android_baseline_2022-unknown",
        "turing-t4-linux",
        "ampere-a100-linux",
        "valhall-unknown-android31",
    ] {
        assert_eq!(text(triple), triple);
    }
}

#[test]
fn old_triples_of_iree_are_understood() {
    let pairs = [
        ("rdna3-6900xtx-windows", "rdna2-6900xt-windows"),
        ("pascal-1080-windows", "pascal-gtx1080-windows"),
        ("m1-moltenvk-macos", "apple-m1-macos"),
        ("arc-770-windows", "xehpg-a770-windows"),
        ("adreno-a650-android30", "adreno-650-android30"),
        ("rdna3-unknown-linux", "rdna3-unknown-linux"),
        ("unknown-unknown-unknown", "vp-unknown-unknown"),
        ("rdna1-5700xt-windows", "rdna1-5700xt-windows"),
    ];
    for (old, now) in pairs {
        assert_eq!(text(old), now);
    }
}

/// Every name that `--iree-vulkan-target` of IREE 3.13 takes, and the family and member that it means here.
const IREE_NAMES: &[(&str, &str)] = &[
    ("vp_android_baseline_2022", "vp-android_baseline_2022"),
    ("videocore_vii", "videocore-vii"),
    ("valhall", "valhall-unknown"),
    ("valhall1 valhall2 valhall3 valhall4", "valhall-*"),
    ("mali-g77 mali-g57 mali-g78 mali-g710 mali-g510 mali-g310 mali-g715 mali-g615", "valhall-*"),
    ("arm5gen", "arm5gen-unknown"),
    ("mali-g720 mali-g725 mali-g1", "arm5gen-*"),
    ("adreno adreno-512 adreno-999 adreno-642l adreno-777", "adreno-unknown"),
    ("adreno-630 adreno-650 adreno-740 adreno-750 adreno-830", "adreno-*"),
    ("llvmpipe", "cpu-llvmpipe"),
    ("pascal", "pascal-unknown"),
    ("sm_60 sm_61 sm_62", "pascal-*"),
    ("volta", "volta-unknown"),
    ("sm_70 sm_72", "volta-*"),
    ("turing", "turing-unknown"),
    ("sm_75", "turing-tu10x"),
    ("ampere", "ampere-unknown"),
    ("sm_80 sm_86 sm_87 a100 rtx3070 rtx3070ti rtx3080 rtx3080ti rtx3090 rtx3090ti", "ampere-*"),
    ("ada", "ada-unknown"),
    ("sm_89 rtx4060 rtx4070 rtx4080 rtx4090", "ada-*"),
    ("sm_120 sm_121", "blackwell-*"),
    ("rdna1", "rdna1-unknown"),
    ("gfx1010 gfx1011 gfx1012 gfx1013", "rdna1-*"),
    ("rdna2", "rdna2-unknown"),
    ("gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036", "rdna2-*"),
    ("rdna3", "rdna3-unknown"),
    ("gfx1100 gfx1101 gfx1102 gfx1103 phoenix gfx1150 strix-point gfx1151 strix-halo", "rdna3-*"),
    ("rx7900xtx rx7900xt w7900 w7800 rx7800xt rx7700xt v710 w7700", "rdna3-*"),
    ("rdna4", "rdna4-unknown"),
    ("gfx1200 gfx1201 rx9070xt rx9070 r9700 rx9060xt", "rdna4-*"),
    ("gfx1250", "gfx1250-unknown"),
    ("cdna1", "cdna1-unknown"),
    ("gfx908 mi100", "cdna1-*"),
    ("cdna2", "cdna2-unknown"),
    ("gfx90a mi210 mi250 mi250x", "cdna2-*"),
    ("cdna3", "cdna3-unknown"),
    ("gfx942 mi300a mi300x mi308x mi325x", "cdna3-*"),
    ("cdna4", "cdna4-unknown"),
    ("gfx950 mi350x mi355x", "cdna4-*"),
];

#[test]
fn names_of_iree_resolve() {
    for (names, meaning) in IREE_NAMES {
        for name in names.split(' ') {
            let found = text(name);
            let (family, member) = meaning.split_once('-').unwrap();
            let target = Target::parse(&found).unwrap();
            assert_eq!(target.arch_name(), family, "{name}");
            if member == "*" {
                assert_ne!(target.product_name(), "unknown", "{name}");
            } else {
                assert_eq!(target.product_name(), member, "{name}");
            }
            assert_eq!(text(&name.to_uppercase()), found, "case matters for {name}");
        }
    }
}

#[test]
fn more_names() {
    assert_eq!(text("sm_90"), "hopper-sm_90-unknown");
    assert_eq!(text("Mali-G610"), "valhall-g610-unknown");
    assert_eq!(text("mali-g78-android33"), "valhall-g78-android33");
    assert_eq!(text("strix-halo-linux"), "rdna3-gfx1151-linux");
    assert_eq!(text("rtx4090-windows"), "ada-rtx4090-windows");
    assert_eq!(text("vp-android-baseline-2022"), "vp-android_baseline_2022-unknown");
    assert_eq!(text("amd-7900xtx-linux"), "rdna3-7900xtx-linux");
    assert_eq!(text("  ampere-unknown-unknown "), "ampere-unknown-unknown");
}

#[test]
fn errors_name_what_is_near() {
    let message = |text: &str| Target::parse(text).unwrap_err().to_string();
    assert!(
        message("amper-rtx3080-linux").contains("did you mean ampere"),
        "{}",
        message("amper-rtx3080-linux")
    );
    assert!(message("ampere-rtx3081-linux").contains("rtx3080"), "{}", message("ampere-rtx3081-linux"));
    assert!(
        message("ampere-rtx3080-linus").contains("did you mean linux"),
        "{}",
        message("ampere-rtx3080-linus")
    );
    assert!(message("rtx3081").contains("rtx3080"), "{}", message("rtx3081"));
    assert!(message("zzzzzzzzz").contains("<arch-or-vendor>-<product>-<os>"));
    assert!(message("ampere-rtx4090-linux").contains("'ampere-unknown-linux' stands for any"));
    assert_eq!(Target::parse("  "), Err(TargetError::Empty));
    for bad in [
        "-",
        "--",
        "---",
        "a-b-c",
        "ampere-",
        "ampere--linux",
        "-rtx3080-linux",
        "ampere-rtx3080-",
        "\u{1F600}",
    ] {
        assert!(Target::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_entry_round_trips() {
    for family in families() {
        let members =
            family.generations.iter().map(|g| &g.name).chain(family.products.iter().map(|p| &p.name));
        let slots = members.map(String::as_str).chain(["unknown"]);
        for slot in slots {
            for os in ["linux", "android31", "unknown"] {
                let triple = format!("{}-{slot}-{os}", family.name);
                assert_eq!(text(&triple), triple);
            }
        }
        for product in &family.products {
            for alias in product.aliases.iter().chain(&product.scoped_aliases) {
                let target = Target::parse(&format!("{}-{alias}-linux", family.name)).unwrap();
                assert_eq!(target.product().unwrap().name, product.name);
            }
        }
    }
    for vendor in vendors() {
        assert!(Target::parse(&format!("{}-unknown-linux", vendor.name)).is_ok(), "{}", vendor.name);
    }
}

#[test]
fn targets_are_json_strings() {
    let target = Target::parse("hopper-h200-linux").unwrap();
    let json = serde_json::to_string(&target).unwrap();
    assert_eq!(json, "\"hopper-h200-linux\"");
    assert_eq!(serde_json::from_str::<Target>(&json).unwrap(), target);
    assert!(serde_json::from_str::<Target>("\"nothing-like-this\"").is_err());
}

#[test]
fn the_host_is_a_processor() {
    let host = Target::host_cpu();
    assert_eq!((host.arch_name(), host.os()), ("cpu", Os::host()));
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,80}") {
        if let Ok(target) = Target::parse(&text) {
            prop_assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }

    #[test]
    fn any_triple_is_answered(arch in "[a-z0-9_]{1,9}", product in "[a-z0-9_-]{0,12}", os in "[a-z]{1,8}[0-9]{0,2}") {
        if let Ok(target) = Target::parse(&format!("{arch}-{product}-{os}")) {
            prop_assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }
}
