//! Building driver plug-ins and putting them where programs look: beside the executables, into a folder, or into the tree that is
//! installed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    shell::{self, cargo, output, repo, say},
    tools,
};

/// How names of manifests end (`halite_plugin::manifest`).
const SUFFIX: &str = ".halite-driver.json";

/// Which plug-ins, and where to.
#[derive(Args, Default)]
pub struct Options {
    /// Optimized.
    #[arg(long)]
    release: bool,
    /// Folder for libraries and manifests; by default that of the executables, target/debug or target/release.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// A driver as a library of its own: a crate in `drivers/*/plugin*`.
struct Plugin {
    package: String,
    version: String,
    /// Name of the library without prefix and suffix.
    library: String,
    /// The manifest beside the crate: name and description of the driver.
    manifest: PathBuf,
}

/// Builds all plug-ins and puts them into a folder.
pub fn run(options: &Options) -> Result<()> {
    let profile = repo(if options.release { "target/release" } else { "target/debug" });
    let to = options.to.as_deref().unwrap_or(&profile);
    let plugins = plugins()?;
    build(&plugins, options.release)?;
    let names = place_all(&plugins, &profile, to)?;
    println!("{} in '{}'", names.join(", "), to.display());
    Ok(())
}

/// Puts the plug-ins that were built into this folder of cargo's into another one; returns the drivers' names.
pub fn install(built: &Path, to: &Path) -> Result<Vec<String>> {
    place_all(&plugins()?, built, to)
}

/// Builds tools without linked drivers, and all plug-ins, and lays them out as they are installed: `bin/`, and
/// `lib/halite/drivers/`, where the tools look. With `debug` not optimized.
pub fn dist(to: &Path, debug: bool) -> Result<()> {
    let (bin, drivers) = (to.join("bin"), to.join("lib/halite/drivers"));
    fs::create_dir_all(&bin)?;
    let (profile, folder) = if debug { ("dev", "debug") } else { ("dist", "dist") };
    // A folder of its own: those in target/ have the drivers linked in, and keep them.
    let target = repo("target/xtask/dist");
    let run = |args: &[&str]| {
        let mut build = cargo(&["build", "--profile", profile]);
        shell::run(build.args(args).env("CARGO_TARGET_DIR", &target))
    };
    say("driver plug-ins");
    let plugins = plugins()?;
    let packages = plugins.iter().flat_map(|plugin| ["--package", plugin.package.as_str()]);
    run(&["--lib"].into_iter().chain(packages).collect::<Vec<_>>())?;
    let names = place_all(&plugins, &target.join(folder), &drivers)?;
    say("tools without linked drivers");
    run(&["--package", tools::PACKAGE, "--no-default-features", "--bins"])?;
    let file = format!("{}{}", tools::PROGRAM, std::env::consts::EXE_SUFFIX);
    copy(&target.join(folder).join(&file), &bin.join(&file))?;
    tools::link(&bin)?;
    println!("tools in '{}', drivers {} in '{}'", bin.display(), names.join(", "), drivers.display());
    Ok(())
}

fn build(plugins: &[Plugin], release: bool) -> Result<()> {
    say("driver plug-ins");
    let mut build = cargo(&["build", "--lib"]);
    for plugin in plugins {
        build.args(["--package", &plugin.package]);
    }
    if release {
        build.arg("--release");
    }
    shell::run(&mut build)
}

fn place_all(plugins: &[Plugin], built: &Path, to: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(to).with_context(|| format!("cannot make '{}'", to.display()))?;
    plugins.iter().map(|plugin| place(plugin, built, to)).collect()
}

fn place(plugin: &Plugin, built: &Path, to: &Path) -> Result<String> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    let file = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", plugin.library);
    if fs::canonicalize(built)? != fs::canonicalize(to)? {
        copy(&built.join(&file), &to.join(&file))?;
    }
    let template = fs::read_to_string(&plugin.manifest)?;
    let (name, manifest) = manifest(&template, &file, &plugin.version)
        .with_context(|| format!("manifest '{}'", plugin.manifest.display()))?;
    let path = to.join(format!("{name}{SUFFIX}"));
    fs::write(&path, serde_json::to_string_pretty(&manifest)? + "\n")
        .with_context(|| format!("cannot write '{}'", path.display()))?;
    Ok(name)
}

/// The driver's name, and the manifest of its library on this machine: that beside its crate, with what is different here.
fn manifest(template: &str, library: &str, version: &str) -> Result<(String, Value)> {
    let mut manifest: Value = serde_json::from_str(template)?;
    let name = manifest["name"].as_str().context("it has no name")?.to_owned();
    let fields = manifest.as_object_mut().context("it is no object")?;
    for (field, value) in [
        ("library", library),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
        ("version", version),
    ] {
        fields.insert(field.to_owned(), json!(value));
    }
    Ok((name, manifest))
}

/// Not in place: a program that runs may have the old file open.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("cannot copy '{}' to '{}'", from.display(), to.display());
    let temporary = to.with_extension("new");
    fs::copy(from, &temporary).with_context(context)?;
    fs::rename(&temporary, to).with_context(context)
}

/// The crates in `drivers/*/plugin*`, as cargo knows them.
fn plugins() -> Result<Vec<Plugin>> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut plugins = Vec::new();
    for package in packages {
        let text = |field: &str| package[field].as_str().map(str::to_owned).context("cargo metadata");
        let path = PathBuf::from(text("manifest_path")?);
        let folder = path.parent().context("a manifest has a folder")?;
        let is_plugin = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("plugin"));
        if !is_plugin || !folder.starts_with(repo("drivers")) {
            continue;
        }
        let targets = package["targets"].as_array().context("cargo metadata has no targets")?;
        let is_library = |t: &&Value| t["kind"].as_array().is_some_and(|k| k.contains(&"cdylib".into()));
        let library = targets.iter().find(is_library);
        let library = library.and_then(|t| t["name"].as_str()).context("a plug-in is a cdylib")?;
        plugins.push(Plugin {
            package: text("name")?,
            version: text("version")?,
            library: library.to_owned(),
            manifest: manifest_in(folder)?,
        });
    }
    if plugins.is_empty() {
        bail!("no crate in drivers/*/plugin*");
    }
    Ok(plugins)
}

fn manifest_in(folder: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        count => bail!("'{}' has {count} files *{SUFFIX}, one is needed", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_keep_what_is_the_same_on_every_machine() {
        let template =
            r#"{"format": 1, "name": "x", "abi": {"major": 7, "minor": 1}, "os": "plan9", "library": "a"}"#;
        let (name, manifest) = manifest(template, "libx.so", "1.2").unwrap();
        assert_eq!(
            (name.as_str(), &manifest["abi"]["major"], &manifest["format"]),
            ("x", &json!(7), &json!(1))
        );
        let here = [std::env::consts::OS, std::env::consts::ARCH, "libx.so", "1.2"];
        assert_eq!(["os", "arch", "library", "version"].map(|field| manifest[field].as_str().unwrap()), here);
        assert!(super::manifest("{}", "", "").is_err() && super::manifest("[", "", "").is_err());
    }
}
