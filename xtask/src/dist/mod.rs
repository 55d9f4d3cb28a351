//! The chore that makes packages of what is shipped: archives, Debian packages, a wheel, packages for Java and
//! Android, a list of what is in them, checksums. The same
//! sources give the same bytes. With `--check` each package is installed into a root of its own and runs the demo there.

mod bill;
mod glibc;
mod making;
mod packages;
mod smoke;
mod tree;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::{plugins, shell::repo};
pub use glibc::Linking;
pub use making::{date, version};

/// What to package, and where to.
#[derive(Args)]
pub struct Options {
    /// Folder for the packages, where those of an earlier run are removed; with --plugins the root of the tree. Default: packages or
    /// plugins in target/dist
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Take this program instead of building it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Take what `cargo xtask c --to` installed there instead of building libhalite
    #[arg(long, value_name = "PREFIX")]
    c: Option<PathBuf>,
    /// Take this wheel instead of building one
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
    /// No wheel
    #[arg(long, conflicts_with = "wheel")]
    without_wheel: bool,
    /// Take what `cargo xtask java --to` made there instead of building the package for Java on desktops
    #[arg(long, value_name = "DIR")]
    java: Option<PathBuf>,
    /// No package for Java on desktops
    #[arg(long, conflicts_with = "java")]
    without_java: bool,
    /// Take this AAR instead of building one
    #[arg(long, value_name = "FILE")]
    aar: Option<PathBuf>,
    /// No AAR
    #[arg(long, conflicts_with = "aar")]
    without_aar: bool,
    /// Link with this machine's own linker, and let its glibc decide how old a system may be
    #[arg(long)]
    native: bool,
    /// Pack archives and Debian packages quickly, which makes them larger: for tests
    #[arg(long)]
    quick: bool,
    /// Make everything twice and compare; install each package into a root of its own, without compilers, and run the demo there
    #[arg(long)]
    check: bool,
    /// No packages: tools without linked drivers, and the plug-ins, laid out as they are installed
    #[arg(long, conflicts_with_all = ["program", "c", "wheel", "without_wheel", "java", "without_java", "aar", "without_aar", "native", "quick", "check"])]
    plugins: bool,
    /// With --plugins: not optimized, for tests of the layout
    #[arg(long, requires = "plugins")]
    debug: bool,
}

/// What was built, and what all packages share.
pub struct Parts {
    /// The program `halite`, with its drivers linked in.
    pub program: PathBuf,
    /// An installed libhalite.
    pub c: PathBuf,
    /// The Python package.
    pub wheel: Option<PathBuf>,
    /// A folder with `halite.jar` and the native library for desktops.
    pub java: Option<PathBuf>,
    /// The package for Android.
    pub aar: Option<PathBuf>,
    pub version: String,
    /// The version of libhalite's interface, as in its file name: `0.1`.
    pub abi: String,
    /// Seconds since 1970 that files in packages are dated with.
    pub date: u64,
    /// Whether to pack quickly.
    pub quick: bool,
}

impl Parts {
    /// How hard archives are packed: `xz`'s levels.
    pub fn level(&self) -> &'static str {
        if self.quick { "0" } else { "6" }
    }
}

/// Builds, packages, and checks if that was asked for.
pub fn run(options: &Options) -> Result<()> {
    if options.plugins {
        let to = options.to.clone().unwrap_or_else(|| repo("target/dist/plugins"));
        return plugins::dist(&to, options.debug);
    }
    ensure!(
        cfg!(target_os = "linux"),
        "packages are made on Linux; elsewhere `cargo xtask dist --plugins` lays out a tree"
    );
    making::make(options)
}
