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
    dist::{self, Linking},
    kotlin::Kotlin,
    linked,
    setup::{self, Icd},
    shell::{self, cargo, command, exists, output, repo, say},
};

/// The package of the native half, and what cargo calls its library.
pub const PACKAGE: &str = "halite-java";
const LIBRARY: &str = "halite_java";
/// Java's half.
pub const JAR: &str = "halite.jar";
/// Class files that Android 8 and every Java since 8 take.
const RELEASE: [&str; 2] = ["--release", "8"];
/// Warnings of the compiler, all but that this release is old.
const WARNINGS: &str = "-Xlint:all,-options,-try";
/// The demo, a decoder, for tests.
const DEMO: &str = "demo/digits";
const DECODER: &str = "halite/tests/data/open_decoder.onnx";
/// Small language models, with what another program makes of them.
const LANGUAGE: &str = "compiler/tests/data/gguf";

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
    let profile = if options.debug { "dev" } else { "release" };
    let (jar, library) =
        if options.check && options.debug { for_check(&to)? } else { build(&to, profile, &Linking::here())? };
    println!("{}\n{}", jar.display(), library.display());
    if options.check { check(&jar, &library) } else { Ok(()) }
}

/// Builds what is shipped into a folder, which it returns.
pub fn for_packages(to: &Path, linking: &Linking) -> Result<PathBuf> {
    if let Some(why) = missing() {
        anyhow::bail!("{why}; --without-java and --without-aar leave the packages out that need one");
    }
    build(to, "dist", linking)?;
    Ok(to.to_owned())
}

/// Both halves, into a folder.
fn build(to: &Path, profile: &str, linking: &Linking) -> Result<(PathBuf, PathBuf)> {
    fs::create_dir_all(to).with_context(|| format!("cannot make '{}'", to.display()))?;
    say("Java's half");
    let jar = jar(&to.join(JAR), dist::date()?)?;
    say("the native half");
    let library = to.join(library());
    shell::run(native(profile, &linking.args()).envs(linking.environment()))?;
    let name = format!("{}{LIBRARY}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    fs::copy(linking.folder(profile).join(&name), &library).with_context(|| format!("cannot copy {name}"))?;
    Ok((jar, library))
}

/// Both halves; the native one is linked from what tests are built from.
fn for_check(to: &Path) -> Result<(PathBuf, PathBuf)> {
    fs::create_dir_all(to).with_context(|| format!("cannot make '{}'", to.display()))?;
    say("Java's half");
    let jar = jar(&to.join(JAR), dist::date()?)?;
    say("the native half");
    let linked = linked::link(LIBRARY, "cdylib", &[])?;
    let name = format!("{}{}{}", std::env::consts::DLL_PREFIX, linked.name, std::env::consts::DLL_SUFFIX);
    let library = to.join(library());
    fs::copy(linked.folder.join(&name), &library).with_context(|| format!("cannot copy {name}"))?;
    Ok((jar, library))
}

/// The native half's file, as Java looks for it.
pub fn library() -> String {
    format!("{}halite{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
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
    let kotlin =
        Kotlin::find().map(|kotlin| kotlin.compile(jar, &fresh("target/xtask/java/kotlin")?)).transpose()?;
    let chain = signal_library()?;
    for (place, icd) in icds.iter().enumerate() {
        // With it and without it, where there are two drivers.
        let chain = chain.as_deref().filter(|_| place > 0);
        let with = if chain.is_some() { ", signals by the virtual machine's library" } else { "" };
        say(&format!("the Java interface on {}{with}", icd.name));
        on_driver(jar, library, &tests, icd, chain)?;
        if let Some(classes) = &kotlin {
            from_kotlin(classes, library, icd)?;
        }
    }
    Ok(())
}

/// Runs the program in Kotlin.
fn from_kotlin(classes: &[PathBuf], library: &Path, icd: &Icd) -> Result<()> {
    let mut java = command("java", &["-Xcheck:jni"]);
    java.arg(format!("-Dhalite.library={}", std::path::absolute(library)?.display()));
    java.arg("-classpath").arg(std::env::join_paths(classes)?).args(["KotlinTestsKt", DEMO, LANGUAGE]);
    let text = output(java.env("VK_DRIVER_FILES", &icd.manifest))?;
    let last = text.lines().last().unwrap_or_default();
    ensure!(last.ends_with("all passed"), "the program in Kotlin did not end as it should:\n{text}");
    println!("{last}");
    Ok(())
}

/// The virtual machine's `libjsig`, with which handlers of signals are chained without its warnings.
fn signal_library() -> Result<Option<PathBuf>> {
    let mut ask = command("java", &["-XshowSettings:properties", "-version"]);
    let told = ask.output().context("java does not start")?.stderr;
    let told = String::from_utf8_lossy(&told);
    let home = told.lines().find_map(|line| line.trim().strip_prefix("java.home = "));
    let places = ["lib/server/libjsig.so", "lib/libjsig.so", "lib/amd64/libjsig.so"];
    let found = home
        .and_then(|home| places.iter().map(|place| Path::new(home).join(place)).find(|path| path.exists()));
    if found.is_none() {
        println!("\nSKIPPED: handlers of signals by the virtual machine's library: there is no libjsig.so");
    }
    Ok(found)
}

fn on_driver(jar: &Path, library: &Path, tests: &Path, icd: &Icd, chain: Option<&Path>) -> Result<()> {
    let cache = fresh("target/xtask/java/cache")?;
    let classes = std::env::join_paths([jar, tests])?;
    // The second flag lets tests ask for the number of an open file, which Android tells by itself.
    let mut java = command("java", &["-Xcheck:jni", "--add-opens", "java.base/java.io=ALL-UNNAMED"]);
    java.arg(format!("-Dhalite.library={}", std::path::absolute(library)?.display()));
    java.arg("-classpath").arg(classes).args(["org.halite.JavaTests", DEMO, DECODER, LANGUAGE]).arg(&cache);
    if let Some(chain) = chain {
        java.env("LD_PRELOAD", chain);
    }
    let out = java.env("VK_DRIVER_FILES", &icd.manifest).env("XDG_CACHE_HOME", &cache).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    print!("{text}{}", String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "the tests of the Java interface ended with {}", out.status);
    let is_modified = text.contains("Handler was modified");
    ensure!(
        chain.is_none() || !is_modified,
        "the virtual machine warns of handlers, although its library chains them"
    );
    // What `-Xcheck:jni` says of wrong calls.
    ensure!(!text.contains("in native method"), "the virtual machine warns of the native half");
    Ok(())
}
