//! The table against reports of real devices, `tests/facts`: each is found, and offers what the table says.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap fails")]

use halite_facts::DeviceFacts;
use halite_targets::{Capabilities, How, Target};

const REPORTS: [(&str, &str); 27] = [
    ("apple_m1_kosmickrisp", "apple-m1-macos"),
    ("apple_m1_moltenvk", "apple-m1-macos"),
    ("apple_m3max_moltenvk", "apple-m3max-macos"),
    ("apple_m5_moltenvk", "apple-m5-macos"),
    ("arc140t_windows", "xehpg-arc140t-windows"),
    ("arc_a380_windows", "xehpg-a380-windows"),
    ("arc_a770_linux", "xehpg-a770-linux"),
    ("arc_b580_windows", "xe2-b580-windows"),
    ("gtx1060_linux", "pascal-gtx1060-linux"),
    ("gtx1650_linux", "turing-gtx1650-linux"),
    ("hd620_linux", "gen9-hd620-linux"),
    ("iris_xe_linux", "xe-irisxe-linux"),
    ("llvmpipe_windows", "cpu-llvmpipe-windows"),
    ("rtx2060_windows", "turing-rtx2060-windows"),
    ("rtx2070_linux", "turing-rtx2070-linux"),
    ("rtx4070_windows", "ada-rtx4070-windows"),
    ("rtx5080_windows", "blackwell-rtx5080-windows"),
    ("rtx5090_freebsd", "blackwell-rtx5090-freebsd"),
    ("rx5700xt_linux", "rdna1-5700xt-linux"),
    ("rx5700xt_windows", "rdna1-5700xt-windows"),
    ("rx6600_linux", "rdna2-6600-linux"),
    ("rx6800xt_windows", "rdna2-6800xt-windows"),
    ("rx7800xt_linux", "rdna3-7800xt-linux"),
    ("rx7800xt_windows", "rdna3-7800xt-windows"),
    ("rx9070xt_linux", "rdna4-9070xt-linux"),
    ("rx9070xt_windows", "rdna4-9070xt-windows"),
    ("uhd750_windows", "xe-uhd750-windows"),
];

fn report(name: &str) -> DeviceFacts {
    let path = format!("{}/tests/facts/{name}.json", env!("CARGO_MANIFEST_DIR"));
    DeviceFacts::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn reported_devices_are_found() {
    for (file, triple) in REPORTS {
        let found = Target::detect(&report(file));
        assert_eq!(found.target.to_string(), triple, "{file}: {:?}", found.reasons);
        assert!(matches!(found.how, How::NameMatch | How::ExactDeviceId), "{file}: {}", found.how);
    }
}

#[test]
fn devices_offer_what_the_table_says() {
    for (file, triple) in REPORTS {
        let found = Target::detect(&report(file));
        let promised = Capabilities::of(Target::parse(triple).unwrap());
        assert_eq!(found.capabilities().lacks(&promised), [""; 0], "{file}");
    }
}

#[test]
fn every_report_is_used() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut json: Vec<String> = files.filter_map(|f| f.strip_suffix(".json").map(str::to_owned)).collect();
    json.sort();
    assert_eq!(json, REPORTS.map(|(file, _)| file));
}

/// A driver that is older or for another system does not get the code of a newer one.
#[test]
fn modules_with_many_targets_pick_the_right_one() {
    let triples: Vec<Target> = REPORTS.iter().map(|(_, triple)| Target::parse(triple).unwrap()).collect();
    for (file, triple) in REPORTS {
        let ranked = Target::detect(&report(file)).rank(&triples);
        assert_eq!(ranked[0].target.to_string(), triple, "{file}");
    }
}
