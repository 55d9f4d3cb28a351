//! The demo: one command from a clean clone to a network's answer on whatever Vulkan device is there.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    clock::Clock,
    setup,
    shell::{self, cargo, command, output, repo, say},
    tools::{DEVICES, PACKAGE, PROGRAM, RUN},
};

/// Sets up, builds, runs the digits network on a picture, and says which device ran it.
pub fn run() -> Result<()> {
    let clock = Clock::start();
    setup::any_vulkan_driver()?;
    say("building");
    shell::run(&mut cargo(&["build", "--release", "--package", PACKAGE, "--bin", PROGRAM]))?;
    println!("built in {}", clock.spent());
    say("devices");
    shell::run(&mut program(DEVICES, &[]))?;
    say("a 16x16 picture of a digit");
    print_picture(&std::fs::read(repo("demo/digits/sample_7.npy"))?);
    let args = [
        "--device=vulkan",
        "--module=demo/digits/digits.vmfb",
        "--function=classify",
        "--input=@demo/digits/sample_7.npy",
    ];
    say(&format!("{PROGRAM} {RUN} {}", args.join(" ")));
    let text = output(&mut program(RUN, &args))?;
    print!("{text}");
    let scores: Vec<f32> = text
        .rsplit_once("1x10xf32=[")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(list, _)| list.split_whitespace().filter_map(|x| x.parse().ok()).collect())
        .unwrap_or_default();
    if let Some((digit, score)) = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) {
        println!("\nThe network says: {digit} ({:.1} %)", score * 100.0);
    }
    anyhow::ensure!(scores.len() == 10, "{PROGRAM} {RUN} printed no 1x10 result");
    let report = output(program(RUN, &args).arg("--json"))?;
    println!("It ran on {}.", device_of(&report, &output(&mut program(DEVICES, &["--json"]))?)?);
    println!("\nAll of this took {}.", clock.spent());
    Ok(())
}

/// A command of the tools' program that was built.
fn program(name: &str, args: &[&str]) -> Command {
    let path = repo("target/release").join(PROGRAM).to_string_lossy().into_owned();
    command(&path, &[&[name], args].concat())
}

/// URI and name of the device that a run reports as JSON, the name out of the list of devices.
fn device_of(report: &str, devices: &str) -> Result<String> {
    let report: serde_json::Value = serde_json::from_str(report).context("the run's --json")?;
    let devices: serde_json::Value = serde_json::from_str(devices).context("the devices' --json")?;
    let uri = report["devices"][0].as_str().context("the run's --json names no device")?;
    let all = devices["devices"].as_array().context("the devices' --json has no list")?;
    let name = all.iter().find(|d| d["uri"] == uri).and_then(|d| d["name"].as_str()).unwrap_or("unknown");
    Ok(format!("{name} ({uri})"))
}

fn print_picture(npy: &[u8]) {
    let pixels = &npy[npy.len().saturating_sub(16 * 16 * 4)..];
    for row in pixels.chunks_exact(64) {
        let line: String = row
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .map(|v| [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'][((v * 9.99) as usize).min(9)])
            .flat_map(|c| [c, c])
            .collect();
        println!("  {}", line.trim_end());
    }
}
