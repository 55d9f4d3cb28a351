//! Installs each package into a root of its own, where nothing else is but the C library and a Vulkan driver for the processor, and runs
//! the demo there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{Parts, tree::Tree};
use clap::ValueEnum;

use crate::{
    android, java, python,
    shell::{command, exists, output, repo, say},
    swiftshader, wheel,
};

/// What the demo may take in a fresh root.
const LIMIT: Duration = Duration::from_secs(60);
/// Where Halite looks for SwiftShader in a home.
const HOME: &str = "root";
const DRIVER: &str = "root/.cache/halite/swiftshader/libvk_swiftshader.so";

/// All packages, one after the other.
pub fn run(parts: &Parts, made: &[PathBuf]) -> Result<()> {
    ensure!(exists("unshare"), "there is no unshare, which makes a root of its own: install util-linux");
    let driver = swiftshader::fetch(&repo("target/xtask/swiftshader"))?;
    let name =
        |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for path in made {
        match name(path) {
            archive if archive.starts_with("halite-java-") => java_program(&driver, path, &archive)?,
            aar if aar.ends_with(".aar") => holds(path, &aar)?,
            archive if archive.starts_with("halite-") && archive.ends_with(".tar.xz") => {
                let root = fresh(parts, &driver)?;
                unpack(path, &root.root.join("opt/halite"))?;
                demo(&root, &archive, "/opt/halite/bin/halite", "/opt/halite/share/halite/demo")?;
            }
            package if package.starts_with("halite_") => {
                let root = fresh(parts, &driver)?;
                install(&root, &[path])?;
                demo(&root, &package, "/usr/bin/halite", "/usr/share/halite/demo")?;
            }
            archive if archive.starts_with("libhalite-") && archive.ends_with(".tar.xz") => {
                c_program(parts, &driver, path, &archive)?;
            }
            python if python.ends_with(".whl") => wheel::smoke(path)?,
            _ => {}
        }
    }
    let libraries: Vec<&PathBuf> = made
        .iter()
        .filter(|path| name(path).starts_with("libhalite") && name(path).ends_with(".deb"))
        .collect();
    let root = fresh(parts, &driver)?;
    install(&root, &libraries)?;
    println!("{} packages of the library install beside each other", libraries.len());
    Ok(())
}

/// A root with the C library, its loader, SwiftShader, and nothing that could compile.
fn fresh(parts: &Parts, driver: &Path) -> Result<Tree> {
    let root = Tree::new(repo("target/xtask/packages-root"))?;
    let mut needed = BTreeSet::new();
    for file in [&parts.program, driver] {
        needed.extend(libraries(file)?);
    }
    for library in needed {
        let real = fs::canonicalize(&library)?;
        root.copy(&real, library.trim_start_matches('/'))?;
    }
    root.copy(driver, DRIVER)?;
    fs::create_dir_all(root.root.join("tmp"))?;
    Ok(root)
}

/// The libraries that a file is linked with, and the loader, by their absolute paths.
fn libraries(file: &Path) -> Result<Vec<String>> {
    let text = output(command("ldd", &[]).arg(file))?;
    let path = |line: &str| {
        let from = line.find('/')?;
        line[from..].split_whitespace().next().map(str::to_owned)
    };
    Ok(text.lines().filter_map(path).collect())
}

fn unpack(archive: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    output(command("tar", &["--strip-components=1", "-xJf"]).arg(archive).arg("-C").arg(to)).map(drop)
}

/// Installs Debian packages with a database of their own, in which the system's packages are missing.
fn install(root: &Tree, packages: &[&PathBuf]) -> Result<()> {
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        fs::create_dir_all(root.root.join(folder))?;
    }
    root.write("var/lib/dpkg/status", "")?;
    let at = format!("--root={}", root.root.display());
    let mut dpkg = command(
        "unshare",
        &["--map-root-user", "dpkg", &at, "--force-depends", "--force-not-root", "--log=/dev/null", "-i"],
    );
    output(dpkg.args(packages)).map(drop)
}

/// Runs a command in the root, in a home of its own.
fn within(root: &Tree, args: &[&str]) -> Result<String> {
    let at = format!("--root={}", root.root.display());
    let mut run = command("unshare", &["--map-root-user", &at]);
    let home = format!("/{HOME}");
    run.args(args).env_clear().envs([("HOME", home.as_str()), ("PATH", "/usr/bin:/bin"), ("LC_ALL", "C")]);
    output(&mut run)
}

/// Reads the picture of a seven, and compares.
fn demo(root: &Tree, package: &str, program: &str, files: &str) -> Result<()> {
    say(&format!("{package} in a root of its own"));
    let begun = Instant::now();
    let (model, input) = (format!("{files}/digits.onnx"), format!("--input=@{files}/sample_7.npy"));
    let expected = format!("--expected_output=@{files}/expected_7.npy");
    let text = within(root, &[program, "run", &model, "--device=vulkan", &input, &expected])?;
    told(begun, &text, "[SUCCESS]")
}

fn told(begun: Instant, text: &str, wanted: &str) -> Result<()> {
    ensure!(text.contains(wanted), "the demo did not say {wanted}:\n{text}");
    let spent = begun.elapsed();
    ensure!(spent < LIMIT, "the demo took {spent:?}, more than {LIMIT:?}");
    println!("{wanted} in {:.1} s", spent.as_secs_f64());
    Ok(())
}

/// A program in C: compiled here against the unpacked archive, run in a root that has only the library.
fn c_program(parts: &Parts, driver: &Path, archive: &Path, name: &str) -> Result<()> {
    if !exists("cc") {
        println!("SKIPPED: {name}: there is no C compiler to make a program with");
        return Ok(());
    }
    let root = fresh(parts, driver)?;
    let prefix = root.root.join("opt/libhalite");
    unpack(archive, &prefix)?;
    let program = root.root.join("opt/digits");
    let mut build = command("cc", &["-Wl,-rpath,/opt/libhalite/lib", "-o"]);
    build
        .arg(&program)
        .arg(prefix.join("share/halite/examples/digits.c"))
        .args(["-lhalite", "-lm"])
        .arg(format!("-I{}/include", prefix.display()))
        .arg(format!("-L{}/lib", prefix.display()));
    output(&mut build).context("the example of the C interface")?;
    say(&format!("{name} in a root of its own"));
    let begun = Instant::now();
    let demo = "/opt/libhalite/share/halite/demo";
    let text = within(
        &root,
        &["/opt/digits", &format!("{demo}/digits.onnx"), &format!("{demo}/sample_7.npy"), "7"],
    )?;
    told(begun, &text, "This is a 7")
}

/// A program in Java: compiled against the unpacked archive, run by this machine's virtual machine with nothing else of Halite, in a home
/// of its own.
fn java_program(driver: &Path, archive: &Path, name: &str) -> Result<()> {
    say(&format!("{name} in a folder of its own"));
    let root = Tree::new(repo("target/xtask/packages-java-root"))?;
    let (package, classes) = (root.root.join("package"), root.root.join("classes"));
    unpack(archive, &package)?;
    root.copy(driver, DRIVER)?;
    let jar = package.join("lib").join(java::JAR);
    fs::create_dir_all(&classes)?;
    let mut compile = command("javac", &["-encoding", "UTF-8", "-d"]);
    compile.arg(&classes).arg("-classpath").arg(&jar).arg(package.join("share/halite/examples/Digits.java"));
    output(&mut compile).context("the example of the Java interface")?;
    let begun = Instant::now();
    let mut run = command("java", &[]);
    run.arg(format!("-Djava.library.path={}", package.join("lib").display()));
    run.arg("-classpath").arg(std::env::join_paths([&jar, &classes])?).arg("Digits");
    for file in ["digits.onnx", "sample_7.npy"] {
        run.arg(package.join("share/halite/demo").join(file));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    run.env_clear().env("HOME", root.root.join(HOME)).env("PATH", path);
    told(begun, &output(&mut run)?, "This is a 7")
}

/// Nothing here can install an AAR: it has what an app takes from it, and each library is for the processor of its folder.
fn holds(aar: &Path, name: &str) -> Result<()> {
    say(&format!("what is in {name}"));
    let root = Tree::new(repo("target/xtask/packages-aar"))?;
    let script = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    let mut unzip = command(&python::find()?, &["-c", script]);
    output(unzip.arg(aar).arg(&root.root))?;
    for file in ["AndroidManifest.xml", "classes.jar", "proguard.txt", "R.txt"] {
        ensure!(root.root.join(file).is_file(), "{name} has no {file}");
    }
    let mut libraries = 0;
    for abi in android::Abi::value_variants() {
        let library = root.root.join("jni").join(abi.name()).join("libhalite.so");
        if library.is_file() {
            android::check_library(*abi, &library)?;
            libraries += 1;
        }
    }
    ensure!(libraries > 0, "{name} has no library");
    println!("{libraries} libraries, whose symbols API {} has", android::API);
    Ok(())
}
