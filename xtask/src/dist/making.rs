//! What packages are made of: built, or taken from where the caller says; and making them twice.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    Options, Parts,
    glibc::{self, Linking},
    packages, smoke,
};
use crate::{
    android, capi, java,
    shell::{self, cargo, command, exists, output, repo, say},
    tools, wheel,
};

/// What packages are made with.
const PROGRAMS: [(&str, &str); 3] = [("tar", "tar"), ("xz", "xz-utils"), ("dpkg-deb", "dpkg")];

/// Builds, packages, and checks.
pub fn make(options: &Options) -> Result<()> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| !exists(program)).collect();
    if let Some((program, package)) = missing.first() {
        anyhow::bail!("there is no {program}, which packages are made with: install {package}");
    }
    let to = options.to.clone().unwrap_or_else(|| repo("target/dist/packages"));
    let to = std::path::absolute(to)?;
    let parts = gather(options)?;
    say("packages");
    let made = packages::make(&parts, &to, &repo("target/xtask/packages"))?;
    for path in &made {
        println!("{:>10}  {}", fs::metadata(path)?.len(), path.display());
    }
    if options.check {
        again(&parts, &to, &made)?;
        smoke::run(&parts, &made)?;
    }
    Ok(())
}

/// Builds what was not given.
fn gather(options: &Options) -> Result<Parts> {
    let flags = remapped();
    let linking =
        if options.native { Linking::native(flags.clone()) } else { Linking::oldest(flags.clone())? };
    let given = |path: &PathBuf| std::path::absolute(path);
    let program = match &options.program {
        Some(program) => given(program)?,
        None => program(&linking)?,
    };
    let c = match &options.c {
        Some(prefix) => given(prefix)?,
        None => capi::for_packages(&repo("target/xtask/packages-c"), &linking)?,
    };
    let wheel = match &options.wheel {
        None if options.without_wheel => None,
        None => Some(wheel::for_packages(&repo("target/xtask/packages-wheel"), &flags, options.native)?),
        wheel => wheel.as_ref().map(given).transpose()?,
    };
    let java = match &options.java {
        None if options.without_java => None,
        None => Some(java::for_packages(&repo("target/xtask/packages-java"), &linking)?),
        java => java.as_ref().map(given).transpose()?,
    };
    let aar = match &options.aar {
        None if options.without_aar => None,
        None => Some(android::for_packages(&repo("target/xtask/packages-android"), &flags)?),
        aar => aar.as_ref().map(given).transpose()?,
    };
    let library = packages::library(&c)?;
    let abi = library.rsplit_once(".so.").context("the library's name has no version")?.1.to_owned();
    let quick = options.quick;
    let parts = Parts { program, c, wheel, java, aar, version: version()?, abi, date: date()?, quick };
    if !options.native {
        hold(&parts, &library)?;
    }
    Ok(parts)
}

/// Builds the program.
fn program(linking: &Linking) -> Result<PathBuf> {
    say("the program");
    let mut build =
        cargo(&["build", "--profile", "dist", "--package", tools::PACKAGE, "--bin", tools::PROGRAM]);
    shell::run(build.args(linking.args()).envs(linking.environment()))?;
    Ok(linking.folder("dist").join(tools::PROGRAM))
}

/// Everything that is loaded runs with the oldest glibc, also what was built before.
fn hold(parts: &Parts, library: &str) -> Result<()> {
    glibc::hold(&parts.program)?;
    glibc::hold(&parts.c.join("lib").join(library))?;
    if let Some(java) = &parts.java {
        glibc::hold(&java.join(java::library()))?;
    }
    parts.wheel.as_ref().map_or(Ok(()), |wheel| glibc::hold(&glibc::in_wheel(wheel)?))
}

/// Flags that keep the names of this machine's folders out of what is built.
fn remapped() -> String {
    let home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let home = home.map(|home| format!(" --remap-path-prefix={home}=/cargo")).unwrap_or_default();
    format!("--remap-path-prefix={}=/halite{home}", repo("").display())
}

/// The program's version.
pub fn version() -> Result<String> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let own = packages.iter().find(|package| package["name"] == tools::PACKAGE);
    let version = own.and_then(|package| package["version"].as_str());
    Ok(version.with_context(|| format!("there is no package {}", tools::PACKAGE))?.to_owned())
}

/// When the sources were last changed, or what `SOURCE_DATE_EPOCH` says.
pub fn date() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(&mut command("git", &["log", "-1", "--format=%ct"])).context(
            "outside of a git checkout set SOURCE_DATE_EPOCH to the seconds that files are dated with",
        )?,
    };
    text.trim().parse().with_context(|| format!("'{}' is no number of seconds", text.trim()))
}

/// Makes everything once more, elsewhere, and compares.
fn again(parts: &Parts, first: &Path, made: &[PathBuf]) -> Result<()> {
    say("the same once more");
    let (to, work) = (repo("target/xtask/packages-again/out"), repo("target/xtask/packages-again/work"));
    packages::make(parts, &to, &work)?;
    for path in made {
        let name = path.strip_prefix(first)?;
        ensure!(fs::read(path)? == fs::read(to.join(name))?, "{} is not the same bytes", name.display());
    }
    println!("{} files, the same to the byte", made.len());
    Ok(())
}
