//! Gets SwiftShader's library out of Debian's package `chromium-common`, which is not installed for that. Where the Vulkan driver
//! looks for it: `drivers/vulkan/src/swiftshader`.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::shell::{apt, command, exists, output, run};

const PACKAGE: &str = "chromium-common";
const LIBRARY: &str = "libvk_swiftshader.so";
/// Beside the library: which package and version it is from.
const ORIGIN: &str = "libvk_swiftshader.origin";

/// Where to put it.
#[derive(Args, Default)]
pub struct Options {
    /// Folder for the library. Default: halite/swiftshader in your cache folder, where Halite's Vulkan driver looks
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Fetches the library unless it is there, and says where it is.
pub fn fetch_and_tell(options: &Options) -> Result<()> {
    let own = cache_folder();
    let folder = match (&options.to, &own) {
        (Some(folder), _) => std::path::absolute(folder)?,
        (None, Some(folder)) => folder.clone(),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set; say where to put it with --to DIR"),
    };
    let library = fetch(&folder)?;
    let origin = fs::read_to_string(folder.join(ORIGIN)).unwrap_or_else(|_| "unknown package\n".to_owned());
    println!("{}", library.display());
    println!("  from {}, {} bytes", origin.trim(), fs::metadata(&library)?.len());
    if own.as_ref() != Some(&folder) {
        println!("  to use it: HALITE_SWIFTSHADER={}", library.display());
    }
    Ok(())
}

/// Whether the driver would find it where this chore puts it.
pub fn is_cached() -> bool {
    cache_folder().is_some_and(|folder| folder.join(LIBRARY).is_file())
}

/// The library in this folder, which is fetched or copied from the user's cache if it is not there.
pub fn fetch(folder: &Path) -> Result<PathBuf> {
    let library = folder.join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    let work = folder.join("unfinished");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    create(&work).with_context(|| format!("cannot make the folder {}", work.display()))?;
    let cached = cache_folder().map(|cache| (cache.join(LIBRARY), cache.join(ORIGIN)));
    let (from, origin) = match cached.filter(|(library, _)| library.is_file()) {
        Some((library, origin)) => {
            fs::copy(library, work.join(LIBRARY))?;
            (work.join(LIBRARY), fs::read_to_string(origin).unwrap_or_default())
        }
        None => unpack(&work)?,
    };
    fs::write(folder.join(ORIGIN), origin)?;
    // Last, so that a library that is there is whole.
    fs::rename(from, &library)?;
    fs::remove_dir_all(&work)?;
    Ok(library)
}

/// Makes a folder and those above it. Others must not be able to write to them, or the driver leaves the library out.
fn create(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.create(folder)
}

/// The library and the name and version of its package, both from a download into this folder.
fn unpack(work: &Path) -> Result<(PathBuf, String)> {
    if !exists("apt-get") || !exists("dpkg") {
        bail!(
            "needs apt-get and dpkg to fetch the package {PACKAGE}. Elsewhere, install Chrome, Chromium or Edge: \
             Halite finds the SwiftShader that they carry; or name another with HALITE_SWIFTSHADER=<path of {LIBRARY}>"
        );
    }
    let download = || run(command("apt-get", &["-q", "download", PACKAGE]).current_dir(work));
    download().or_else(|_| apt(&["-q", "update"]).and_then(|()| download()))?;
    let package = fs::read_dir(work)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .context("apt-get download left no package")?;
    let shown = "--showformat=${Package} ${Version} ${Architecture}\n";
    let origin = output(command("dpkg-deb", &["--show", shown]).arg(&package))?;
    let unpacked = work.join("unpacked");
    run(command("dpkg", &["-x"]).arg(&package).arg(&unpacked))?;
    let library = find(&unpacked, LIBRARY).with_context(|| format!("no {LIBRARY} in {}", origin.trim()))?;
    Ok((library, origin))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    entries
        .iter()
        .find(|p| p.file_name().is_some_and(|n| n == name))
        .cloned()
        .or_else(|| entries.iter().filter(|p| p.is_dir() && !p.is_symlink()).find_map(|p| find(p, name)))
}

/// Where the driver looks: its rule for Unix (`cache/src/place.rs`), as packages come from apt.
fn cache_folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    base.or_else(|| variable("HOME").map(|home| home.join(".cache"))).map(|b| b.join("halite/swiftshader"))
}
