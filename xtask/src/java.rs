//! The chore that builds Java's half and the native library beside it, and with `--check` runs the tests of the Java interface on a
//! desktop virtual machine, on each Vulkan driver at hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{
    archive::{self, Entry},
    dist,
    setup::{self, Icd},
    shell::{self, cargo, command, exists, output, repo, say},
};

/// The package of the native half, and what cargo calls its library.
pub const PACKAGE: &str = "halite-java";
const LIBRARY: &str = "halite_java";
/// Class files that Android 8 and every Java since 8 take.
const RELEASE: [&str; 2] = ["--release", "8"];
/// Warnings of the compiler, all but that this release is old.
const WARNINGS: &str = "-Xlint:all,-options,-try";
/// The demo, a decoder, for tests.
const DEMO: &str = "demo/digits";
const DECODER: &str = "halite/tests/data/open_decoder.onnx";

/// What to build.
#[derive(Args)]
pub struct Options {
    /// Folder for halite.jar and the native library
    #[arg(long, value_name = "DIR", default_value = "target/java")]
    to: PathBuf,
    /// Not optimized, quick to build
    #[arg(long)]
    debug: bool,
    /// Run the tests of the Java interface with what was built, on each Vulkan driver at hand
    #[arg(long)]
    check: bool,
}

impl Options {
    /// Only the check, as a step of other chores.
    pub fn check() -> Options {
        Options { to: "target/xtask/java/built".into(), debug: true, check: true }
    }
}

/// What this machine lacks.
pub fn missing() -> Option<String> {
    let missing: Vec<&str> = ["javac", "java"].into_iter().filter(|program| !exists(program)).collect();
    (!missing.is_empty())
        .then(|| format!("there is no {}: install a JDK of version 8 or newer", missing.join(", no ")))
}

/// Builds, and checks if that was asked for.
pub fn run(options: &Options) -> Result<()> {
    if let Some(why) = missing() {
        anyhow::bail!("{why}");
    }
    let to = repo(&options.to.to_string_lossy());
    fs::create_dir_all(&to).with_context(|| format!("cannot make '{}'", to.display()))?;
    say("Java's half");
    let jar = jar(&to.join("halite.jar"), dist::date()?)?;
    say("the native half");
    let profile = if options.debug { "dev" } else { "release" };
    let library = to.join(format!("{}halite{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    shell::run(&mut native(profile, &[]))?;
    let folder = if options.debug { "debug" } else { profile };
    let name = format!("{}{LIBRARY}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    fs::copy(repo("target").join(folder).join(&name), &library)
        .with_context(|| format!("cannot copy {name}"))?;
    println!("{}\n{}", jar.display(), library.display());
    if options.check { check(&jar, &library) } else { Ok(()) }
}

/// The command that builds the native half as a shared library.
pub fn native(profile: &str, more: &[&str]) -> std::process::Command {
    let mut build = cargo(&["rustc", "--package", PACKAGE, "--lib", "--profile", profile]);
    build.args(["--crate-type", "cdylib"]).args(more);
    build
}

/// Compiles Java's half and packs it; the same sources give the same bytes.
pub fn jar(to: &Path, date: u64) -> Result<PathBuf> {
    let work = fresh("target/xtask/java/classes")?;
    let (annotations, classes) = (work.join("annotations"), work.join("api"));
    compile(&sources("java/annotations")?, None, &annotations)?;
    compile(&sources("java/api")?, Some(&annotations), &classes)?;
    let mut entries = vec![Entry::text("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")];
    entries.extend(archive::below(&classes, "")?);
    archive::write(to, entries, date)?;
    Ok(to.to_owned())
}

fn fresh(path: &str) -> Result<PathBuf> {
    let folder = repo(path);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Java files below a folder, sorted.
fn sources(folder: &str) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![repo(folder)]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading '{}'", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "java") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Compiles; a warning is an error.
fn compile(sources: &[PathBuf], with: Option<&Path>, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut javac = command("javac", &RELEASE);
    javac.args([WARNINGS, "-Werror", "-encoding", "UTF-8", "-d"]).arg(to);
    if let Some(with) = with {
        javac.arg("-classpath").arg(with);
    }
    output(javac.args(sources)).map(drop)
}

/// Runs the tests on each Vulkan driver.
fn check(jar: &Path, library: &Path) -> Result<()> {
    let tests = fresh("target/xtask/java/tests")?;
    compile(&sources("java/tests")?, Some(jar), &tests)?;
    let icds = setup::everything()?;
    if icds.is_empty() {
        println!("\nSKIPPED: tests of the Java interface: there is no Vulkan driver");
    }
    for icd in &icds {
        say(&format!("the Java interface on {}", icd.name));
        on_driver(jar, library, &tests, icd)?;
    }
    Ok(())
}

fn on_driver(jar: &Path, library: &Path, tests: &Path, icd: &Icd) -> Result<()> {
    let cache = fresh("target/xtask/java/cache")?;
    let classes = std::env::join_paths([jar, tests])?;
    // The second flag lets tests ask for the number of an open file, which Android tells by itself.
    let mut java = command("java", &["-Xcheck:jni", "--add-opens", "java.base/java.io=ALL-UNNAMED"]);
    java.arg(format!("-Dhalite.library={}", std::path::absolute(library)?.display()));
    java.arg("-classpath").arg(classes).args(["org.halite.JavaTests", DEMO, DECODER]).arg(&cache);
    let text = output(java.env("VK_DRIVER_FILES", &icd.manifest).env("XDG_CACHE_HOME", &cache))?;
    print!("{text}");
    // What `-Xcheck:jni` says of wrong calls.
    ensure!(!text.contains("in native method"), "the virtual machine warns of the native half");
    Ok(())
}
