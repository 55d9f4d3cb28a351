//! Makes wheels of the Python package `halite`, and tries them as users do.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{
    dist::Linking,
    python,
    shell::{self, command, repo, say},
};

/// The builder of wheels, a linker that links for older systems than this one, and what makes it take the flags of Rust's compiler.
const TOOLS: [&str; 3] = ["maturin>=1.9,<2", "cargo-zigbuild>=0.20,<1", "ziglang>=0.13"];
/// Runs the demo's network on a picture of a seven, with the package alone.
const SMOKE: &str = r#"
import sys
import halite, numpy as np
session = halite.Session(sys.argv[1], cache=False)
out = session.run({"picture": np.load(sys.argv[2])})
digit = int(out["probabilities"].argmax())
print(f"halite {halite.__version__}: a {digit} on {session.device.name}")
sys.exit(digit != 7)
"#;

/// What to build, and how.
#[derive(Args)]
pub struct Options {
    /// The system to build for, by Rust's name, such as aarch64-unknown-linux-gnu. Default: this one
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Linux: the oldest glibc that the wheel has to run with. Linked by Zig, which is fetched
    #[arg(long, value_name = "VERSION", default_value = "2.28", conflicts_with = "native")]
    glibc: String,
    /// Link with this machine's own linker, and let its glibc decide how old a system may be
    #[arg(long)]
    native: bool,
    /// Cargo's profile
    #[arg(long, default_value = "release")]
    profile: String,
    /// The folder that the wheel goes to
    #[arg(long, value_name = "DIR", default_value = "target/wheels")]
    out: PathBuf,
    /// Install the wheel into an environment of its own and run the demo with it
    #[arg(long)]
    smoke: bool,
}

/// Builds, and tries what was built.
pub fn run(options: &Options) -> Result<()> {
    let wheel = build(options, &[])?;
    println!("{}", wheel.display());
    if options.smoke { smoke(&wheel) } else { Ok(()) }
}

/// Builds the wheel that is shipped, with these flags for Rust's compiler, into a folder; `native` is that of the options.
pub fn for_packages(out: &Path, flags: &str, native: bool) -> Result<PathBuf> {
    say("the wheel");
    let glibc = "2.28".to_owned();
    let (profile, out) = ("dist".to_owned(), out.to_owned());
    build(&Options { target: None, glibc, native, profile, out, smoke: false }, &[("RUSTFLAGS", flags)])
}

/// A Python that has Zig, as the module `ziglang`.
pub fn zig() -> Result<PathBuf> {
    python::environment("wheel", &TOOLS)
}

fn build(options: &Options, environment: &[(&str, &str)]) -> Result<PathBuf> {
    let interpreter = python::environment("wheel", &TOOLS)?;
    let out = repo(&options.out.to_string_lossy());
    let begun = SystemTime::now();
    let args = ["-m", "maturin", "build", "--manifest-path", "python/Cargo.toml", "--profile"];
    let mut maturin = command(&interpreter.to_string_lossy(), &args);
    maturin.args([&options.profile, "--interpreter"]).arg(&interpreter).arg("--out").arg(&out);
    let is_linux = options.target.as_ref().map_or(cfg!(target_os = "linux"), |name| name.contains("linux"));
    if is_linux && !options.native {
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let (major, minor) = version(&options.glibc)?;
        let linking = Linking::by_zig(options.target.as_ref().unwrap_or(&here), (major, minor))?;
        maturin.args(linking.args()).envs(linking.environment());
        maturin.args(["--compatibility", &format!("manylinux_{major}_{minor}")]);
    } else if let Some(target) = &options.target {
        maturin.args(["--target", target]);
    }
    shell::run(maturin.envs(environment.iter().copied()))?;
    newest(&out, begun)
}

/// The numbers of a version of glibc.
fn version(glibc: &str) -> Result<(u32, u32)> {
    let parts: Option<Vec<u32>> = glibc.split('.').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some(&[major, minor]) => Ok((major, minor)),
        _ => anyhow::bail!("a version of glibc looks like 2.28, not like '{glibc}'"),
    }
}

/// The wheel that was written last, and not before this run.
fn newest(folder: &Path, begun: SystemTime) -> Result<PathBuf> {
    let written = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let wheels = paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let last = wheels.max_by_key(written).context("maturin wrote no wheel")?;
    // Clocks of file systems are coarse.
    let fresh = written(&last).is_some_and(|at| at + std::time::Duration::from_secs(5) >= begun);
    ensure!(fresh, "maturin wrote no wheel; {} is an old one", last.display());
    Ok(last)
}

/// Installs the wheel into an environment of its own, as `pip install` does, and runs the demo with it.
pub fn smoke(wheel: &Path) -> Result<()> {
    say("the wheel in an environment of its own");
    let folder = repo("target/xtask/smoke");
    shell::run(&mut command(&python::find()?, &["-m", "venv", "--clear", &folder.to_string_lossy()]))?;
    let interpreter = python::program(&folder, "python");
    python::install(&interpreter, &[&wheel.to_string_lossy()])?;
    let mut demo = command(&interpreter.to_string_lossy(), &["-c", SMOKE, "digits.onnx", "sample_7.npy"]);
    // Elsewhere than in the repository, whose sources must not be what is imported.
    shell::run(demo.current_dir(repo("demo/digits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_two_numbers() {
        assert_eq!(version("2.28").unwrap(), (2, 28));
        assert!(["", "2", "2.28.1", "two"].iter().all(|wrong| version(wrong).is_err()));
    }

    #[test]
    fn old_wheels_are_not_taken_for_new_ones() {
        let folder = std::env::temp_dir().join(format!("halite-wheels-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(newest(&folder, SystemTime::now()).is_err());
        std::fs::write(folder.join("a.whl"), "").unwrap();
        assert!(newest(&folder, SystemTime::now()).is_ok());
        assert!(newest(&folder, SystemTime::now() + std::time::Duration::from_secs(60)).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
