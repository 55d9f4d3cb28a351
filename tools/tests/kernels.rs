//! The `kernels` tool: what it prints for targets of the table, and the tuning file. Needs no device.

use crate::common::{Ran, command, finish};
use serde_json::Value;

/// Runs the tool without the tuning file of whoever runs the tests.
fn kernels(args: &[&str]) -> Ran {
    finish(command("kernels").env("HALITE_TUNING", "").args(args).output().expect("the tool starts"))
}

#[test]
fn variants_come_with_place_reason_and_plan() {
    let on = |target: &str, why: &str| {
        let ran = kernels(&[&format!("--target={target}"), "matmul:m=64,n=64,k=64,lhs=f16,rhs=f16"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains(&format!("on {target} (by the table)")), "{}", ran.stdout);
        let first = ran.stdout.lines().find(|line| line.starts_with("*  1  matmul.f16_f32."));
        assert!(first.expect("one is chosen").contains(why), "{}", ran.stdout);
        ran
    };
    on("cpu-swiftshader-unknown", "place 1 of what was measured on cpu-swiftshader-unknown");
    let ran = on("valhall-g78-android30", "not measured on such a target; ");
    assert!(ran.stdout.contains("bytes of SPIR-V") && ran.stdout.contains("lhs rhs out"), "{}", ran.stdout);
    assert!(ran.stdout.contains("cooperative matrices 16x16x16"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("matmul.f32."), "variants for other types are left out: {}", ran.stdout);
}

#[test]
fn targets_stand_side_by_side() {
    let ran = kernels(&["--targets", "matmul:m=4096,n=4096,k=4096,lhs=f16,rhs=f16"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let variant = |triple: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(triple)).expect("each target has a line");
        line.split_whitespace().nth(1).expect("a variant").to_owned()
    };
    assert_ne!(variant("hopper-h200-linux"), variant("cpu-swiftshader-unknown"));
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("  matmul.")).count(), 6, "{}", ran.stdout);
}

#[test]
fn json_says_the_same() {
    let args = ["--json", "--target=sm_90", "--target=rdna1-5700xt-linux", "matmul:m=64,n=64,k=64"];
    let ran = kernels(&args);
    let json: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let targets = json["operations"][0]["targets"].as_array().expect("a list");
    assert_eq!(targets.len(), 2);
    for target in targets {
        let first = &target["variants"][0];
        assert_eq!((&first["variant"], &first["place"]), (&target["chosen"], &Value::from(1)));
        assert!(first["steps"][0]["spirv_bytes"].as_u64() > Some(100), "{first}");
    }
}

#[test]
fn the_list_has_examples_that_can_be_used() {
    let ran = kernels(&["--list"]);
    let examples: Vec<&str> = ran.stdout.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(examples.len() > 5, "{}", ran.stdout);
    for example in examples {
        let ran = kernels(&["--target=llvmpipe", example]);
        assert_eq!(ran.code, 0, "{example}: {}{}", ran.stdout, ran.stderr);
    }
    let ran = kernels(&["--list", "matmul"]);
    assert!(ran.stdout.contains("needs nothing beyond Vulkan 1.1"), "{}", ran.stdout);
}

#[test]
fn tuning_files_change_the_choice_and_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.json");
    let row = r#"{"rows": [{"target": "rdna3-unknown-linux", "operation": "matmul", "signature": "f32xf32_f32",
        "order": ["matmul.f32.tile32x32x16", "matmul.f32.gone"], "source": "a test"}]}"#;
    std::fs::write(&file, row).unwrap();
    let args = [&format!("--tuning={}", file.display()), "--target=rdna3", "matmul:m=64,n=64,k=64"];
    let ran = kernels(&args);
    assert!(
        ran.stdout.contains("*  1  matmul.f32.tile32x32x16: place 1 of what was measured"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("'matmul.f32.gone', which is no variant"), "{}", ran.stderr);
    std::fs::write(&file, "[]").unwrap();
    let ran = kernels(&args);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("tuning.json") && ran.stderr.contains("cargo xtask tune"), "{}", ran.stderr);
    let ran = kernels(&["--tuning=no/such.json", "--target=rdna3", "matmul:m=64,n=64,k=64"]);
    assert!(ran.code == 1 && ran.stderr.contains("no/such.json"), "{}", ran.stderr);
}
