//! Owns building driver plug-ins and putting them where programs look: beside the executables, into a folder, or into the
//! tree that is installed. Does not own: where programs look (`halite_hal::plugin::discovery`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use halite_hal::plugin::manifest::{Manifest, SUFFIX};

use crate::shell::{self, cargo, output, repo, say};

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

/// Where to install.
#[derive(Args)]
pub struct DistOptions {
    /// Not optimized: for tests of the layout.
    #[arg(long)]
    debug: bool,
    /// Folder that becomes the root of the tree.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    to: PathBuf,
}

const TOOLS: [&str; 6] =
    ["run-module", "benchmark-module", "compile-module", "dump-module", "kernels", "list-devices"];

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
    let names = install(options.release, to)?;
    println!("{} in '{}'", names.join(", "), to.display());
    Ok(())
}

/// Builds tools without linked drivers, and all plug-ins, and lays them out as they are installed: `bin/`, and
/// `lib/halite/drivers/`, where the tools look.
pub fn dist(options: &DistOptions) -> Result<()> {
    let (bin, drivers) = (options.to.join("bin"), options.to.join("lib/halite/drivers"));
    fs::create_dir_all(&bin)?;
    let names = install(!options.debug, &drivers)?;
    say("tools without linked drivers");
    // A folder of its own: those in target/ have the drivers linked in, and keep them.
    let target = repo("target/xtask/dist");
    let mut build = cargo(&["build", "--package", "halite-tools", "--no-default-features", "--bins"]);
    build.env("CARGO_TARGET_DIR", &target);
    if !options.debug {
        build.arg("--release");
    }
    shell::run(&mut build)?;
    let built = target.join(if options.debug { "debug" } else { "release" });
    for tool in TOOLS {
        let file = format!("{tool}{}", std::env::consts::EXE_SUFFIX);
        copy(&built.join(&file), &bin.join(&file))?;
    }
    println!("tools in '{}', drivers {} in '{}'", bin.display(), names.join(", "), drivers.display());
    Ok(())
}

/// Builds all plug-ins and puts them into a folder; returns the drivers' names.
pub fn install(release: bool, to: &Path) -> Result<Vec<String>> {
    let plugins = plugins()?;
    say("driver plug-ins");
    let mut build = cargo(&["build", "--lib"]);
    for plugin in &plugins {
        build.args(["--package", &plugin.package]);
    }
    if release {
        build.arg("--release");
    }
    shell::run(&mut build)?;
    let built = repo(if release { "target/release" } else { "target/debug" });
    fs::create_dir_all(to).with_context(|| format!("cannot make '{}'", to.display()))?;
    plugins.iter().map(|plugin| place(plugin, &built, to)).collect()
}

fn place(plugin: &Plugin, built: &Path, to: &Path) -> Result<String> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    let file = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", plugin.library);
    if fs::canonicalize(built)? != fs::canonicalize(to)? {
        copy(&built.join(&file), &to.join(&file))?;
    }
    let template = fs::read_to_string(&plugin.manifest)?;
    let template =
        Manifest::parse(&template).with_context(|| format!("manifest '{}'", plugin.manifest.display()))?;
    let manifest = Manifest::for_this_machine(&template.name, &template.description, &file, &plugin.version);
    let path = to.join(format!("{}{SUFFIX}", manifest.name));
    fs::write(&path, serde_json::to_string_pretty(&manifest)? + "\n")
        .with_context(|| format!("cannot write '{}'", path.display()))?;
    Ok(manifest.name)
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
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
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
        let is_library =
            |t: &&serde_json::Value| t["kind"].as_array().is_some_and(|k| k.contains(&"cdylib".into()));
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
