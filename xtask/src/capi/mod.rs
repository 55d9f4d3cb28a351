//! The chore that builds `libhalite`, the C interface, and installs it into a prefix: libraries, headers, packages for pkg-config and
//! CMake. With `--check` it builds examples against what was installed, and runs them (`check`).

mod build;
mod check;
mod layout;
mod package;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    dist::Linking,
    shell::{repo, say},
};
use build::Built;
use layout::Layout;

/// What to build, and where to.
#[derive(Args)]
pub struct Options {
    /// Folder that becomes the prefix: include, lib, lib/pkgconfig, lib/cmake are made in it.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Not optimized, quick to build.
    #[arg(long)]
    debug: bool,
    /// Rust's name of another system to build for.
    #[arg(long, value_name = "TRIPLE", conflicts_with = "check")]
    target: Option<String>,
    /// Build the examples against what was installed, with CMake and pkg-config, and run them on each Vulkan driver at hand. Not
    /// optimized, and in a prefix of its own unless --to names one.
    #[arg(long)]
    check: bool,
    /// Run the examples under AddressSanitizer and valgrind, too.
    #[arg(long, requires = "check")]
    memory: bool,
}

impl Options {
    /// Only the check, as a step of other chores.
    pub fn check() -> Options {
        Options { to: None, debug: true, target: None, check: true, memory: false }
    }
}

/// What a check lacks on this machine.
pub fn missing() -> Option<String> {
    check::missing()
}

/// Builds and installs, and checks if that was asked for.
pub fn run(options: &Options) -> Result<()> {
    if let Some(why) = options.check.then(check::prepare).flatten() {
        println!("\nSKIPPED: examples in C and C++: {why}");
        return Ok(());
    }
    let place = if options.check { "target/xtask/capi/prefix" } else { "target/dist-c" };
    let prefix = options.to.clone().unwrap_or_else(|| repo(place));
    say("libhalite");
    let built = if options.check {
        build::for_check()?
    } else {
        build::build(if options.debug { "dev" } else { "dist" }, options.target.as_deref(), &[])?
    };
    let layout = Layout::of(&built.system, built.abi);
    install(&built, &layout, &prefix)?;
    println!("libhalite {} in '{}'", built.version, prefix.display());
    if options.check {
        check::run(&prefix, &layout, options.memory)?;
    }
    Ok(())
}

/// Builds what is shipped and installs it into a prefix, which it returns.
pub fn for_packages(prefix: &std::path::Path, linking: &Linking) -> Result<PathBuf> {
    say("libhalite");
    let built = build::build("dist", linking.target.as_deref(), &linking.environment())?;
    install(&built, &Layout::of(&built.system, built.abi), prefix)?;
    Ok(prefix.to_owned())
}

/// Builds for another system with one of cargo's profiles, and installs.
pub fn cross(
    target: &str,
    profile: &str,
    environment: &[(&str, &str)],
    prefix: &std::path::Path,
) -> Result<()> {
    let built = build::build(profile, Some(target), environment)?;
    install(&built, &Layout::of(&built.system, built.abi), prefix)
}

/// Puts all that programs need under the prefix.
fn install(built: &Built, layout: &Layout, prefix: &std::path::Path) -> Result<()> {
    let include = repo("capi/include/halite");
    copy_folder(&include, &prefix.join("include/halite"))?;
    for (file, to) in [(&built.shared, &layout.shared), (&built.archive, &layout.archive)] {
        place(file, &prefix.join(to))?;
    }
    if let (Some(file), Some(to)) = (&built.import, &layout.import) {
        place(file, &prefix.join(to))?;
    }
    if let Some((link, target)) = &layout.link {
        relink(&prefix.join(link), target)?;
    }
    let values = package::values(layout, built);
    for (template, to) in [
        ("halite.pc.in", "lib/pkgconfig/halite.pc"),
        ("halite-config.cmake.in", "lib/cmake/halite/halite-config.cmake"),
        ("halite-config-version.cmake.in", "lib/cmake/halite/halite-config-version.cmake"),
    ] {
        let path = repo("capi/package").join(template);
        let text = fs::read_to_string(&path).with_context(|| format!("reading '{}'", path.display()))?;
        let filled = package::fill(&text, &values).with_context(|| format!("in '{}'", path.display()))?;
        write(&prefix.join(to), &filled)?;
    }
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        place(&repo(licence), &prefix.join("share/doc/halite").join(licence))?;
    }
    Ok(())
}

/// Not in place: a program that runs may have the old file open.
fn place(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    let context = || format!("cannot copy '{}' to '{}'", from.display(), to.display());
    fs::create_dir_all(to.parent().context("a file lies in a folder")?).with_context(context)?;
    let mut new = to.as_os_str().to_owned();
    new.push(".new");
    fs::copy(from, &new).with_context(context)?;
    fs::rename(&new, to).with_context(context)
}

/// Without the files that an older version had.
fn copy_folder(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot replace '{}'", to.display()))?;
    }
    let mut open = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = open.pop() {
        for entry in fs::read_dir(&from).with_context(|| format!("reading '{}'", from.display()))? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push((entry.path(), target));
            } else {
                place(&entry.path(), &target)?;
            }
        }
    }
    Ok(())
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    let context = || format!("cannot write '{}'", path.display());
    fs::create_dir_all(path.parent().context("a file lies in a folder")?).with_context(context)?;
    fs::write(path, text).with_context(context)
}

/// A symbolic link to a file beside it; where there are none, nothing: the library has one name only then.
#[cfg_attr(not(unix), expect(clippy::unnecessary_wraps, reason = "links can fail on Unix"))]
fn relink(link: &std::path::Path, target: &str) -> Result<()> {
    #[cfg(unix)]
    {
        if link.symlink_metadata().is_ok() {
            fs::remove_file(link)?;
        }
        std::os::unix::fs::symlink(target, link)
            .with_context(|| format!("cannot link '{}'", link.display()))?;
    }
    #[cfg(not(unix))]
    let _ = (link, target);
    Ok(())
}
