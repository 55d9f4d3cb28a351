//! Installs what a fresh Debian or Ubuntu machine needs for demo and tests: Vulkan loader, drivers, validation layer, C compiler.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use crate::{
    shell::{apt, command, exists, output, repo, say},
    swiftshader,
};

/// A Vulkan driver that tests can be pointed at through `VK_DRIVER_FILES`.
pub struct Icd {
    /// Name for people.
    pub name: &'static str,
    /// Its manifest.
    pub manifest: PathBuf,
    /// Its library, when tests are to load it directly too.
    pub library: Option<PathBuf>,
}

const MANIFEST_FOLDERS: [&str; 3] =
    ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];

/// Installs or finds everything that tests need; returns the software drivers that are there afterwards.
pub fn everything() -> Result<Vec<Icd>> {
    let mut icds = Vec::new();
    if !exists("cc") {
        // Drivers in C and broken driver libraries are built by tests.
        install(&["gcc", "g++", "libc6-dev"])?;
    }
    if !loader_present() || mesa().is_none() || !layer_present() {
        install(&["libvulkan1", "mesa-vulkan-drivers", "vulkan-validationlayers"])?;
    }
    match mesa() {
        Some(manifest) => icds.push(Icd { name: "llvmpipe", manifest, library: None }),
        None => println!("llvmpipe: not found (package mesa-vulkan-drivers)"),
    }
    match swiftshader() {
        Ok(icd) => icds.push(icd),
        Err(error) => println!("SwiftShader: not available, tests on it are skipped: {error:#}"),
    }
    for icd in &icds {
        println!("{}: {}", icd.name, icd.manifest.display());
    }
    Ok(icds)
}

/// Makes sure that some Vulkan driver is there: the least that the demo needs.
pub fn any_vulkan_driver() -> Result<()> {
    let driver = MANIFEST_FOLDERS.iter().any(|f| fs::read_dir(f).is_ok_and(|mut d| d.next().is_some()))
        || std::env::var_os("VK_DRIVER_FILES").is_some()
        || std::env::var_os("VK_ICD_FILENAMES").is_some();
    if (loader_present() && driver) || swiftshader::is_cached() {
        return Ok(());
    }
    say("no Vulkan driver found: installing Mesa's (it runs on any CPU)");
    install(&["libvulkan1", "mesa-vulkan-drivers"]).or_else(|why| {
        println!("{why:#}");
        say("fetching SwiftShader instead, which needs no installation");
        swiftshader::fetch_and_tell(&swiftshader::Options::default())
    })
}

fn loader_present() -> bool {
    output(&mut command("ldconfig", &["-p"]))
        .or_else(|_| output(&mut command("/sbin/ldconfig", &["-p"])))
        .is_ok_and(|list| list.contains("libvulkan.so.1"))
}

fn layer_present() -> bool {
    Path::new("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists()
}

fn mesa() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = MANIFEST_FOLDERS
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")))
        .collect();
    found.sort();
    found.into_iter().next()
}

/// SwiftShader below `target/`, with a manifest for the loader.
fn swiftshader() -> Result<Icd> {
    let folder = repo("target/xtask/swiftshader");
    let library = swiftshader::fetch(&folder)?;
    let manifest = folder.join("vk_swiftshader_icd.json");
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": library, "api_version": "1.3.0" },
    });
    fs::write(&manifest, text.to_string())?;
    Ok(Icd { name: "swiftshader", manifest, library: Some(library) })
}

/// Installs packages of Debian or Ubuntu.
pub fn install(packages: &[&str]) -> Result<()> {
    if !exists("apt-get") {
        bail!(
            "cannot install {} here: no apt-get. Install a Vulkan loader and driver with your system's package \
             manager, then run this again",
            packages.join(", ")
        );
    }
    let mut args = vec!["install", "-y", "-q", "--no-install-recommends"];
    args.extend(packages);
    apt(&["-q", "update"])?;
    apt(&args)
}
