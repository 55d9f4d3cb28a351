//! The chore that builds for Android: per kind of processor the tools' program and `libhalite.so`, which has the C interface and the
//! native half of the Java interface, and an AAR with both halves of the latter.
//!
//! With Google's kit (`ANDROID_NDK_HOME`) its compiler links. Without it, Rust's own linker does, against libraries that are made of the
//! lists of symbols beside this file (`stubs`), with the start of a program and the unwinder that Zig compiles (`start`). Either way what
//! was linked is checked against these lists (`check`): it must run on the oldest Android that the AAR names.

mod aar;
mod check;
mod linking;
mod start;
mod stubs;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::{
    ci, dist, java,
    shell::{self, cargo, repo, say},
    tools,
};
use linking::Linking;

/// The oldest Android: 8.0.
pub const API: u32 = 26;
/// What is loaded by apps.
const LIBRARY: &str = "libhalite.so";

/// What to build, and where to.
#[derive(Args)]
pub struct Options {
    /// Folder for halite-VERSION.aar and a folder per kind of processor
    #[arg(long, value_name = "DIR", default_value = "target/android")]
    to: PathBuf,
    /// Kinds of processors, by Android's names
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["arm64-v8a", "x86_64"])]
    abi: Vec<Abi>,
    /// Cargo's profile: `dist` is smallest, `dev` is built soonest
    #[arg(long, default_value = "release")]
    profile: String,
    /// No program: the library and the AAR alone
    #[arg(long)]
    without_tools: bool,
}

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Abi {
    /// 64-bit ARM: phones, tablets
    #[value(name = "arm64-v8a")]
    Arm64,
    /// x86-64: emulators, Chromebooks
    #[value(name = "x86_64")]
    X86,
}

impl Abi {
    /// Android's name.
    pub fn name(self) -> &'static str {
        match self {
            Abi::Arm64 => "arm64-v8a",
            Abi::X86 => "x86_64",
        }
    }

    /// The processor, as compilers call it.
    pub fn processor(self) -> &'static str {
        match self {
            Abi::Arm64 => "aarch64",
            Abi::X86 => "x86_64",
        }
    }

    /// The processor's number in ELF files (`EM_AARCH64`, `EM_X86_64`).
    fn machine(self) -> u16 {
        match self {
            Abi::Arm64 => 183,
            Abi::X86 => 62,
        }
    }

    /// Rust's name of the system.
    pub fn triple(self) -> String {
        format!("{}-linux-android", self.processor())
    }
}

/// Builds, checks, packs.
pub fn run(options: &Options) -> Result<()> {
    if let Some(why) = java::missing() {
        anyhow::bail!("{why}");
    }
    let aar = make(options, &[])?;
    println!("{} bytes  {}", fs::metadata(&aar)?.len(), aar.display());
    Ok(())
}

/// Builds the AAR that is shipped, with these flags for Rust's compiler, in a folder; returns its path.
pub fn for_packages(to: &Path, flags: &str) -> Result<PathBuf> {
    let (abi, profile) = (Abi::value_variants().to_vec(), "dist".to_owned());
    let options = Options { to: to.to_owned(), abi, profile, without_tools: true };
    make(&options, &[("RUSTFLAGS", flags)])
}

/// Holds a library of an AAR against what Android asks.
pub fn check_library(abi: Abi, library: &Path) -> Result<()> {
    let head = fs::read(library).with_context(|| format!("cannot read '{}'", library.display()))?;
    let machine = head.get(18..20).map(|two| u16::from_le_bytes([two[0], two[1]]));
    ensure!(machine == Some(abi.machine()), "'{}' is for another processor: {machine:?}", library.display());
    check::file(library, true)
}

fn make(options: &Options, environment: &[(&str, &str)]) -> Result<PathBuf> {
    let to = std::path::absolute(repo(&options.to.to_string_lossy()))?;
    let mut libraries = Vec::new();
    for abi in &options.abi {
        libraries.push((*abi, build(*abi, options, environment, &to.join(abi.name()))?));
    }
    say("AAR");
    aar::make(&to, &libraries, dist::date()?)
}

/// Builds for one kind of processor into a folder; returns the library.
fn build(abi: Abi, options: &Options, environment: &[(&str, &str)], to: &Path) -> Result<PathBuf> {
    say(&format!("Android {}", abi.name()));
    let triple = abi.triple();
    ci::add_targets(&[&triple])?;
    let linking = Linking::find(abi)?;
    println!("linked by {}", linking.about());
    let folder = if options.profile == "dev" { "debug" } else { &options.profile };
    let built = repo("target").join(&triple).join(folder);

    let mut library = java::native(&options.profile, &["--target", &triple, "--"]);
    library
        .args(linking.flags(true))
        .arg(format!("-Clink-arg={}", linking.to_linker(&format!("-soname={LIBRARY}"))));
    shell::run(library.envs(environment.iter().copied()))?;
    let library = to.join("lib").join(LIBRARY);
    copy(&built.join("libhalite_java.so"), &library)?;
    check::file(&library, true)?;

    if !options.without_tools {
        let mut program = cargo(&["rustc", "--package", tools::PACKAGE, "--bin", tools::PROGRAM]);
        program.args(["--profile", &options.profile, "--target", &triple, "--"]).args(linking.flags(false));
        shell::run(program.envs(environment.iter().copied()))?;
        let program = to.join("bin").join(tools::PROGRAM);
        copy(&built.join(tools::PROGRAM), &program)?;
        check::file(&program, false)?;
    }
    for header in ["halite.h", "halite.hpp"] {
        copy(&repo("capi/include/halite").join(header), &to.join("include/halite").join(header))?;
    }
    for entry in fs::read_dir(repo("capi/include/halite/cpp"))? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?;
        copy(&path, &to.join("include/halite/cpp").join(name))?;
    }
    Ok(library)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("cannot copy '{}' to '{}'", from.display(), to.display());
    fs::create_dir_all(to.parent().context("a file lies in a folder")?).with_context(context)?;
    fs::copy(from, to).with_context(context)?;
    Ok(())
}
