//! Building the shared and the static library.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};

use super::layout::{System, soname};
use crate::{
    linked,
    shell::{cargo, command, output, repo},
};

/// The package, and what cargo calls its library.
const PACKAGE: &str = "halite-c";
const LIBRARY: &str = "halite_c";
/// What is made of it.
const KINDS: &str = "cdylib,staticlib";

/// Libraries that were built.
pub struct Built {
    pub shared: PathBuf,
    pub archive: PathBuf,
    /// What Windows programs are linked with.
    pub import: Option<PathBuf>,
    /// The version of the library.
    pub version: String,
    /// The version of the interface.
    pub abi: (u32, u32),
    /// What programs need of the system when they link the static library: `-lpthread -lm`.
    pub system_libraries: String,
    /// Bytes of a pointer, where they are told.
    pub pointer_bytes: Option<u32>,
    pub system: System,
}

/// Builds for this system or another one, with this environment for cargo.
pub fn build(profile: &str, target: Option<&str>, environment: &[(&str, &str)]) -> Result<Built> {
    let triple = match target {
        Some(triple) => triple.to_owned(),
        None => host()?,
    };
    let folder = if profile == "dev" { "debug" } else { profile };
    let mut build = cargo(&["rustc", "--package", PACKAGE, "--lib", "--profile", profile]);
    build.args(["--crate-type", KINDS]).envs(environment.iter().copied());
    let mut place = repo("target");
    if let Some(triple) = target {
        build.args(["--target", triple]);
        place.push(triple);
    }
    place.push(folder);
    build.arg("--").args(flags(System::of(&triple), abi()?));
    let out = build.stderr(Stdio::piped()).output().with_context(|| format!("cannot start {build:?}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("{build:?} failed: {}\n{said}", out.status);
    }
    built(&triple, &place, LIBRARY, &said)
}

/// The libraries for this system, linked from what tests are built from.
pub fn for_check() -> Result<Built> {
    let triple = host()?;
    let linked = linked::link(LIBRARY, KINDS, &flags(System::of(&triple), abi()?))?;
    built(&triple, &linked.folder, &linked.name, &linked.said)
}

/// Flags for Rust's compiler.
fn flags(system: System, abi: (u32, u32)) -> Vec<String> {
    let mut flags = vec!["--print", "native-static-libs", "-C", "strip=debuginfo"];
    let name = match system {
        System::Elf => {
            // Its threads would go on in memory that is gone.
            flags.push("-Clink-arg=-Wl,-z,nodelete");
            Some(format!("-Clink-arg=-Wl,-soname,{}", soname(system, abi)))
        }
        System::Apple => Some(format!("-Clink-arg=-Wl,-install_name,@rpath/{}", soname(system, abi))),
        System::Windows => None,
    };
    flags.into_iter().map(str::to_owned).chain(name).collect()
}

/// The libraries of a name in a folder, and what the compiler said of them.
fn built(triple: &str, place: &Path, name: &str, said: &str) -> Result<Built> {
    let system = System::of(triple);
    let file = |name: String| place.join(name);
    let archive = file(format!("lib{name}.a"));
    let shared = match system {
        System::Elf => file(format!("lib{name}.so")),
        System::Apple => file(format!("lib{name}.dylib")),
        System::Windows => file(format!("{name}.dll")),
    };
    let import = (system == System::Windows).then(|| file(format!("lib{name}.dll.a")));
    let (system_libraries, pointer_bytes) = (told_libraries(said)?, pointer_bytes(triple)?);
    Ok(Built {
        shared,
        archive,
        import,
        version: version()?,
        abi: abi()?,
        system_libraries,
        pointer_bytes,
        system,
    })
}

/// The libraries of the system that the compiler tells.
fn told_libraries(said: &str) -> Result<String> {
    let told = said.lines().find_map(|line| line.split_once("native-static-libs: ").map(|(_, list)| list));
    let told =
        told.with_context(|| format!("the compiler did not tell the static library's needs:\n{said}"))?;
    let mut once: Vec<&str> = Vec::new();
    for word in told.split_whitespace() {
        if !once.contains(&word) {
            once.push(word);
        }
    }
    Ok(once.join(" "))
}

/// The numbers of the interface, as the header has them.
fn abi() -> Result<(u32, u32)> {
    let header = fs::read_to_string(repo("capi/include/halite/halite.h"))?;
    let number = |name: &str| {
        let line =
            header.lines().find_map(|line| line.strip_prefix(&format!("#define HALITE_C_ABI_{name} ")));
        line.and_then(|number| number.trim().parse().ok())
            .with_context(|| format!("halite.h has no HALITE_C_ABI_{name}"))
    };
    Ok((number("MAJOR")?, number("MINOR")?))
}

fn version() -> Result<String> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let own = packages.iter().find(|package| package["name"] == PACKAGE);
    let version = own.and_then(|package| package["version"].as_str());
    Ok(version.with_context(|| format!("there is no package {PACKAGE}"))?.to_owned())
}

/// This system, as Rust names it.
fn host() -> Result<String> {
    let text = output(&mut command("rustc", &["-vV"]))?;
    Ok(text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc tells no host")?.to_owned())
}

fn pointer_bytes(triple: &str) -> Result<Option<u32>> {
    let text = output(&mut command("rustc", &["--print", "cfg", "--target", triple]))?;
    let width = text.lines().find_map(|line| line.strip_prefix("target_pointer_width=\""));
    Ok(width.and_then(|width| width.trim_end_matches('"').parse::<u32>().ok()).map(|bits| bits / 8))
}
