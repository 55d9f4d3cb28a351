//! 64-bit ARM: built by Debian's cross compiler, run by qemu. Vulkan is Mesa's llvmpipe for that processor, whose packages are unpacked
//! into a folder and not installed.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    Cross, Options,
    checks::{self, Checked},
    emulator::Emulator,
};
use crate::{
    shell::{self, command, exists, output, repo, say},
    steps::Steps,
};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// qemu, by the name that it has.
const EMULATORS: [&str; 2] = ["qemu-aarch64", "qemu-aarch64-static"];
/// Where Debian's cross compiler has the C library for that processor.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// The driver, the loader, and what they are linked with.
const DRIVER: [&str; 2] = ["libvulkan1:arm64", "mesa-vulkan-drivers:arm64"];
const MANIFEST: &str = "usr/share/vulkan/icd.d/lvp_icd.aarch64.json";

/// Builds and runs.
pub fn run(options: &Options, steps: &mut Steps) {
    if !exists(COMPILER) {
        let why = format!(
            "there is no {COMPILER}; on Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        );
        steps.skip("arm64", &why);
        return;
    }
    let linker = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER.to_owned());
    let cross = Cross { triple: TRIPLE, linker, suffix: "" };
    if !options.without_build && steps.take("arm64: build", || cross.build(options)).is_none() {
        return;
    }
    let Some(qemu) = EMULATORS.into_iter().find(|name| exists(name)) else {
        steps.skip("arm64: run", "there is no qemu; on Debian: apt install qemu-user");
        return;
    };
    let program = cross.program(options, "halite");
    let foreign = repo("../shared/corpus/vmfb/models/mlp/llvm_cpu.vmfb");
    let foreign = foreign.exists().then_some(foreign.as_path());
    let plain = emulator(qemu, Path::new(LIBRARIES), Vec::new());
    let checked = Checked { emulator: &plain, program: &program, target: "cpu-aarch64-linux", foreign };
    checked.everywhere(steps, "arm64");
    if !options.short {
        let runner = cross.program(options, "conformance");
        for (suite, device) in [("hal", "local-sync"), ("hal", "local-task"), ("vm", "local-sync")] {
            steps.take(&format!("arm64: suite {suite} on {device}"), || {
                checks::suite(&plain, &runner, suite, device)
            });
        }
    }
    on_vulkan(options, steps, qemu, &program, &cross);
}

fn emulator(qemu: &str, root: &Path, environment: Vec<(&'static str, OsString)>) -> Emulator {
    Emulator { before: vec![qemu.into(), "-L".into(), root.into()], environment }
}

/// Models on llvmpipe for this processor.
fn on_vulkan(options: &Options, steps: &mut Steps, qemu: &str, program: &Path, cross: &Cross) {
    const NAME: &str = "arm64: models on llvmpipe";
    let root = match driver() {
        Ok(root) => root,
        Err(why) => return steps.skip(NAME, &format!("{why:#}")),
    };
    let environment: Vec<(&'static str, OsString)> =
        vec![("VK_DRIVER_FILES", root.join("lvp_icd.json").into()), ("LP_NUM_THREADS", "2".into())];
    let qemu = emulator(qemu, &root, environment);
    let checked = Checked { emulator: &qemu, program, target: "", foreign: None };
    checked.on_vulkan(steps, NAME);
    if !options.short {
        let runner = cross.program(options, "conformance");
        steps.take("arm64: suite hal on llvmpipe", || checks::suite(&qemu, &runner, "hal", "vulkan"));
    }
}

/// A root with the driver, the loader and all libraries that they need, out of Debian's packages.
fn driver() -> Result<PathBuf> {
    let root = repo("target/xtask/arm64/root");
    if root.join("lvp_icd.json").exists() {
        return Ok(root);
    }
    ensure!(exists("apt-get") && exists("dpkg-deb"), "Mesa for it comes in Debian's packages");
    let foreign = output(&mut command("dpkg", &["--print-foreign-architectures"]))?;
    ensure!(
        foreign.lines().any(|name| name == "arm64"),
        "this machine does not know packages of that processor; on Debian: dpkg --add-architecture arm64 && apt-get update"
    );
    say("Mesa for arm64");
    let packages = repo("target/xtask/arm64/packages");
    fs::create_dir_all(&packages)?;
    fs::create_dir_all(&root)?;
    let names = needed()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut fetch = command("apt-get", &["-q", "download"]);
    shell::run(fetch.args(names).current_dir(&packages))?;
    for entry in fs::read_dir(&packages)? {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "deb") {
            shell::run(command("dpkg-deb", &["-x"]).arg(&file).arg(&root))?;
        }
    }
    finish(&root)?;
    Ok(root)
}

/// The packages, by names with their processor, and all that they depend on.
fn needed() -> Result<Vec<String>> {
    let flags = [
        "depends",
        "--recurse",
        "--no-recommends",
        "--no-suggests",
        "--no-conflicts",
        "--no-breaks",
        "--no-replaces",
        "--no-enhances",
        "--no-pre-depends",
    ];
    let text = output(command("apt-cache", &flags).args(DRIVER))?;
    let names = text.lines().filter(|line| line.ends_with(":arm64") && !line.starts_with([' ', '|', '<']));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    ensure!(!names.is_empty(), "apt knows no {}", DRIVER.join(", "));
    Ok(names)
}

/// Has qemu find the loader of programs, and the Vulkan loader the driver, below the root.
fn finish(root: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(MANIFEST)).context("Mesa's package has no manifest for llvmpipe")?;
    let mut manifest: serde_json::Value = serde_json::from_str(&text)?;
    let library = manifest["ICD"]["library_path"].as_str().context("the manifest names no library")?;
    let library = Path::new(library).file_name().context("the manifest names no file")?;
    // By its name alone: the system's loader of libraries looks below qemu's root.
    manifest["ICD"]["library_path"] = library.to_string_lossy().into_owned().into();
    fs::write(root.join("lvp_icd.json"), manifest.to_string())?;
    Ok(())
}
