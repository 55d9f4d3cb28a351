//! The packages: which files each has, and what Debian is told of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{Parts, bill, glibc, tree::Tree};
use crate::{
    java,
    shell::{self, command, output, repo},
    tools,
};

/// The demo's network and a picture for it, which come along.
const DEMO: [&str; 3] = ["digits.onnx", "sample_7.npy", "expected_7.npy"];
/// The programs in C and C++ that come along with the library, and how they are built.
const EXAMPLES: [&str; 4] =
    ["examples/digits.c", "examples/digits.cpp", "examples/picture.h", "package/examples/CMakeLists.txt"];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/halite"),
    ("zsh", "share/zsh/site-functions/_halite"),
    ("fish", "share/fish/vendor_completions.d/halite.fish"),
];

/// Makes all packages; returns their paths, the checksums last.
pub fn make(parts: &Parts, to: &Path, work: &Path) -> Result<Vec<PathBuf>> {
    let _emptied = Tree::new(to.to_owned())?;
    let system = format!("linux-{}", std::env::consts::ARCH);
    let version = &parts.version;
    let mut made = Vec::new();

    let tree = Tree::new(work.join(format!("halite-{version}-{system}")))?;
    program(parts, &tree, "")?;
    made.push(archive(parts, &tree, to)?);
    let tree = Tree::new(work.join(format!("libhalite-{version}-{system}")))?;
    tree.copy(&parts.c, ".")?;
    examples(&tree, "")?;
    demo(&tree, "")?;
    made.push(archive(parts, &tree, to)?);

    made.extend(debian(parts, to, work)?);
    if let Some(java) = &parts.java {
        let tree = Tree::new(work.join(format!("halite-java-{version}-{system}")))?;
        for_java(java, &tree)?;
        made.push(archive(parts, &tree, to)?);
    }
    for whole in [&parts.wheel, &parts.aar].into_iter().flatten() {
        let name = whole.file_name().context("a package has a name")?;
        fs::copy(whole, to.join(name)).with_context(|| format!("cannot copy '{}'", whole.display()))?;
        made.push(to.join(name));
    }
    let list = to.join(format!("halite-{version}.cdx.json"));
    fs::write(&list, bill::of_materials(parts)?)?;
    made.push(list);
    made.push(checksums(to, &made)?);
    Ok(made)
}

/// Both halves of the Java interface for desktops, and a program.
fn for_java(from: &Path, tree: &Tree) -> Result<()> {
    for name in [java::JAR.to_owned(), java::library()] {
        tree.copy(&from.join(&name), &format!("lib/{name}"))?;
    }
    tree.copy(&repo("java/examples/Digits.java"), "share/halite/examples/Digits.java")?;
    documents(tree, "share/doc/halite-java")?;
    demo(tree, "")
}

/// The program with what belongs to it, below `prefix`.
fn program(parts: &Parts, tree: &Tree, prefix: &str) -> Result<()> {
    tree.copy(&parts.program, &format!("{prefix}bin/{}", tools::PROGRAM))?;
    let program = parts.program.to_string_lossy();
    for (shell, path) in SHELLS {
        tree.write(&format!("{prefix}{path}"), output(&mut command(&program, &["completions", shell]))?)?;
    }
    let pages = tree.place(&format!("{prefix}share/man/man1/halite.1"))?;
    let pages = pages.parent().context("pages lie in a folder")?.to_string_lossy().into_owned();
    shell::run(&mut command(&program, &["man", &pages]))?;
    documents(tree, &format!("{prefix}share/doc/halite"))?;
    demo(tree, prefix)
}

fn documents(tree: &Tree, folder: &str) -> Result<()> {
    DOCUMENTS.iter().try_for_each(|name| tree.copy(&repo(name), &format!("{folder}/{name}")))
}

/// The examples of the C interface.
fn examples(tree: &Tree, prefix: &str) -> Result<()> {
    let copy = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        tree.copy(&repo("capi").join(path), &format!("{prefix}share/halite/examples/{name}"))
    };
    EXAMPLES.iter().try_for_each(copy)
}

fn demo(tree: &Tree, prefix: &str) -> Result<()> {
    let copy = |name: &&str| {
        tree.copy(&repo("demo/digits").join(name), &format!("{prefix}share/halite/demo/{name}"))
    };
    DEMO.iter().try_for_each(copy)
}

fn archive(parts: &Parts, tree: &Tree, to: &Path) -> Result<PathBuf> {
    tree.settle(parts.date)?;
    let name = tree.root.file_name().context("a tree has a name")?.to_string_lossy().into_owned();
    let path = to.join(format!("{name}.tar.xz"));
    tree.archive(&path, parts.date, parts.level())?;
    Ok(path)
}

/// The shared library's file in an installed prefix: `libhalite.so.0.1`.
pub fn library(prefix: &Path) -> Result<String> {
    let entries =
        fs::read_dir(prefix.join("lib")).with_context(|| format!("no library in '{}'", prefix.display()))?;
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| name.starts_with("libhalite.so.")).context("no libhalite.so.* in the prefix")
}

/// One Debian package.
struct Debian {
    name: String,
    depends: String,
    recommends: &'static str,
    section: &'static str,
    title: &'static str,
    text: &'static str,
}

fn debian(parts: &Parts, to: &Path, work: &Path) -> Result<Vec<PathBuf>> {
    let shared = library(&parts.c)?;
    let c = |path: &str| parts.c.join(path);
    // Not in the folder of an architecture: the files for CMake and pkg-config find headers by where they lie themselves.
    let lib = "usr/lib";
    let runtime = format!("libhalite{}", parts.abi);
    let drivers = "libvulkan1, mesa-vulkan-drivers";

    let tool = Debian {
        name: "halite".to_owned(),
        depends: glibc::depends(&parts.program)?,
        recommends: drivers,
        section: "science",
        title: "machine-learning models on any Vulkan device",
        text: "Runs, compiles, checks and measures ONNX models, ExecuTorch programs and language models in\n GGUF files on GPUs \
               with Vulkan, and on processors.",
    };
    let tree = Tree::new(work.join("deb/halite"))?;
    program(parts, &tree, "usr/")?;
    let mut made = vec![tool.build(parts, &tree, to)?];

    let library = Debian {
        name: runtime.clone(),
        depends: glibc::depends(&c(&format!("lib/{shared}")))?,
        recommends: drivers,
        section: "libs",
        title: "machine-learning models on any Vulkan device: library",
        text: "The library for programs in C and C++.",
    };
    let tree = Tree::new(work.join("deb/library"))?;
    tree.copy(&c(&format!("lib/{shared}")), &format!("{lib}/{shared}"))?;
    documents(&tree, &format!("usr/share/doc/{runtime}"))?;
    made.push(library.build(parts, &tree, to)?);

    let headers = Debian {
        name: "libhalite-dev".to_owned(),
        depends: format!("{runtime} (= {})", parts.version),
        recommends: "",
        section: "libdevel",
        title: "machine-learning models on any Vulkan device: headers",
        text: "Headers for C and C++, the static library, files for CMake and pkg-config, an example.",
    };
    let tree = Tree::new(work.join("deb/headers"))?;
    for_development(parts, &tree, lib, &shared)?;
    made.push(headers.build(parts, &tree, to)?);
    Ok(made)
}

/// Headers and all of the library's folder but what programs load.
fn for_development(parts: &Parts, tree: &Tree, lib: &str, shared: &str) -> Result<()> {
    tree.copy(&parts.c.join("include"), "usr/include")?;
    for entry in fs::read_dir(parts.c.join("lib"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != shared {
            tree.copy(&parts.c.join("lib").join(&name), &format!("{lib}/{name}"))?;
        }
    }
    examples(tree, "usr/")?;
    documents(tree, "usr/share/doc/libhalite-dev")
}

impl Debian {
    fn build(&self, parts: &Parts, tree: &Tree, to: &Path) -> Result<PathBuf> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let recommends = if self.recommends.is_empty() {
            String::new()
        } else {
            format!("Recommends: {}\n", self.recommends)
        };
        let control = format!(
            "Package: {}\nVersion: {}\nArchitecture: {architecture}\nMaintainer: Halite contributors <halite@localhost>\n\
             Installed-Size: {}\nDepends: {}\n{recommends}Section: {}\nPriority: optional\nDescription: {}\n {}\n",
            self.name,
            parts.version,
            tree.size()?.div_ceil(1024),
            self.depends,
            self.section,
            self.title,
            self.text
        );
        tree.write("DEBIAN/control", control)?;
        tree.settle(parts.date)?;
        let path = to.join(format!("{}_{}_{architecture}.deb", self.name, parts.version));
        let mut build = command("dpkg-deb", &["--root-owner-group", "-Zxz", "--threads-max=1"]);
        build.arg(format!("-z{}", parts.level())).arg("--build");
        build.arg(&tree.root).arg(&path).env("SOURCE_DATE_EPOCH", parts.date.to_string());
        output(&mut build)?;
        Ok(path)
    }
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn checksums(to: &Path, made: &[PathBuf]) -> Result<PathBuf> {
    let mut names: Vec<String> =
        made.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = output(command("sha256sum", &names).current_dir(to))?;
    let path = to.join("SHA256SUMS");
    fs::write(&path, text)?;
    Ok(path)
}
