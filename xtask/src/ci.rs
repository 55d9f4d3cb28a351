//! What has to pass before a change lands. The cheap steps come first, then what only compiles, then the tests.

use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    attack, capi, java, prebuilt,
    shell::{self, cargo, command, exists, output, say},
    steps::{Apart, Steps},
    test::{self, WITHOUT_DRIVERS},
};

/// Features of the library beside those that it has by itself: modules alone on a driver, and arrays of another crate.
const FEATURES: [&[&str]; 2] =
    [&["--no-default-features", "--features", "vulkan"], &["--features", "ndarray"]];

/// Systems beside this one that everything has to compile for: Rust's names of the targets.
const SYSTEMS: [&str; 3] = ["aarch64-linux-android", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// The server is a feature that nothing else builds. Everywhere, as it brings other features of other crates.
const SERVER: &str = "--features=halite-tools/serve";

/// Which steps.
#[derive(Args)]
pub struct Options {
    /// Only what comes before the tests: format, spelling, lints, other systems, generated files, documentation.
    #[arg(long)]
    without_tests: bool,
}

/// Takes the steps.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::begin();
    steps.take("format", || shell::run(&mut cargo(&["fmt", "--all", "--check"])));
    spelling(&mut steps);
    lints(&mut steps);
    steps.take("fuzz targets compile", || {
        let check = ["check", "--keep-going", "--locked", "--manifest-path", "fuzz/Cargo.toml"];
        let mut check = cargo(&check);
        // In the folder of everything else, with the same profile and without flags of its own: crates of others that both use are checked
        // once. The manifest says that warnings are errors.
        check.env("CARGO_TARGET_DIR", shell::repo("target"));
        // A file that is there in the place of the fuzzer's own library, which takes longer to compile than all targets, and which nothing
        // that is checked is linked with.
        shell::run(check.env("CUSTOM_LIBFUZZER_PATH", shell::repo("fuzz/Cargo.toml")))
    });
    other_systems(&mut steps);
    lowest_rust(&mut steps);
    licences(&mut steps);
    steps.take("documentation", documentation);
    let one = |name: &str, part: &str| Apart::new(name.to_owned(), part, Vec::new());
    let generated = vec![
        one("kernels are those of their templates", "kernels"),
        one("C headers of drivers and of libhalite", "headers"),
    ];
    // They build in folders of their own; where the build of everything waits for one compiler or linker, they work.
    steps.beside(generated, 1, |steps| {
        if options.without_tests {
            return;
        }
        let missing = [
            (capi::missing(), one("programs in C and C++", "c")),
            (java::missing(), one("the Java interface", "java")),
        ];
        let mut languages = Vec::new();
        for (missing, step) in missing {
            match missing {
                Some(why) => steps.skip(step.name(), &why),
                None => languages.push(step),
            }
        }
        test::all(&test::Options::thorough(), steps, languages);
        steps.take("hostile files, the short form", attack::short);
    });
    steps.finish()
}

/// Warnings of what cargo compiles are errors.
fn strict(command: &mut Command) -> &mut Command {
    command.env("RUSTFLAGS", "-D warnings")
}

fn spelling(steps: &mut Steps) {
    const NAME: &str = "spelling";
    match prebuilt::typos() {
        Ok(typos) => drop(steps.take(NAME, || shell::run(&mut command(&typos.to_string_lossy(), &[])))),
        Err(why) => steps.skip(NAME, &format!("{why:#}")),
    }
}

fn lints(steps: &mut Steps) {
    let strict = ["--all-targets", "--", "-D", "warnings"];
    let all = ["clippy", "--workspace", "--keep-going", SERVER];
    steps.take("lints", || shell::run(cargo(&all).args(strict)));
    steps.take("lints without linked drivers", || {
        shell::run(cargo(&["clippy", "--keep-going", SERVER]).args(WITHOUT_DRIVERS).args(strict))
    });
    // What programs choose and the workspace does not: one crate, whose dependencies were checked above.
    steps.take("lints of the library's features", || {
        FEATURES.iter().try_for_each(|features| {
            let library = ["clippy", "--package", "halite", "--lib"];
            shell::run(cargo(&library).args(*features).args(["--", "-D", "warnings"]))
        })
    });
}

/// Documentation. What it needs of each crate was checked for the lints, and serves here if the same compiler is asked for it in the same
/// words; otherwise cargo checks once more.
fn documentation() -> Result<()> {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--keep-going", SERVER]);
    let root = output(&mut command("rustc", &["--print", "sysroot"]))?;
    let driver = format!("{}/bin/clippy-driver{}", root.trim(), std::env::consts::EXE_SUFFIX);
    if exists(&driver) {
        // What `cargo clippy -- -D warnings` tells it.
        doc.env("RUSTC_WORKSPACE_WRAPPER", driver);
        doc.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks for systems that this machine need not be: nothing is linked, so no compiler for them is needed.
fn other_systems(steps: &mut Steps) {
    const NAME: &str = "other systems";
    if let Err(why) = add_targets(&SYSTEMS) {
        steps.skip(NAME, &format!("{why:#}"));
        return;
    }
    steps.take(NAME, || {
        let mut check = cargo(&["check", "--workspace", "--keep-going"]);
        for system in SYSTEMS {
            check.args(["--target", system]);
        }
        shell::run(strict(&mut check))
    });
}

/// What is published compiles with the oldest Rust that its manifests name.
fn lowest_rust(steps: &mut Steps) {
    const NAME: &str = "the lowest Rust";
    let lowest = env!("CARGO_PKG_RUST_VERSION");
    let of = |name: &str, args: &[&str]| output(&mut command(name, args)).unwrap_or_default();
    // `rustc 1.95.0 (…)`: all else was compiled with it.
    if of("rustc", &["--version"]).starts_with(&format!("rustc {lowest}.")) {
        steps.take(NAME, || {
            say(&format!("it is {lowest}, which all steps use"));
            Ok(())
        });
        return;
    }
    let there = of("rustup", &["toolchain", "list"]);
    let is_it = |name: &&str| ["-", "."].iter().any(|end| name.starts_with(&format!("{lowest}{end}")));
    let Some(toolchain) = there.split_whitespace().find(is_it) else {
        steps.skip(NAME, &format!("this is another; to check with it: rustup toolchain install {lowest}"));
        return;
    };
    steps.take(NAME, || {
        let mut check = command("rustup", &["run", toolchain, "cargo", "check", "--package", "halite"]);
        check.args(["--package", "halite-tools", "--package", "halite-c"]);
        // In a folder of its own: the other Rust would compile all of it once more.
        shell::run(check.env("CARGO_TARGET_DIR", shell::repo("target/lowest")))
    });
}

/// Has rustup install the standard libraries that are missing.
pub fn add_targets(wanted: &[&str]) -> Result<()> {
    if !exists("rustup") {
        bail!("there is no rustup, which installs Rust's library for {}", wanted.join(", "));
    }
    let there = output(&mut command("rustup", &["target", "list", "--installed"]))?;
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|system| !there.lines().any(|line| line == *system)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    say(&format!("installing Rust's library for {}", missing.join(", ")));
    shell::run(command("rustup", &["target", "add"]).args(missing))
}

/// What may be linked. `xtask/tests/tidy` holds the same lists of `deny.toml` where cargo-deny is not installed: building it takes
/// as long as building everything here.
fn licences(steps: &mut Steps) {
    const NAME: &str = "licences, bans and sources";
    if exists("cargo-deny") {
        steps.take(NAME, || shell::run(&mut cargo(&["deny", "check", "licenses", "bans", "sources"])));
    } else {
        steps.skip(
            NAME,
            "cargo-deny is not installed; the tidy test of xtask reads the same lists in deny.toml",
        );
    }
}
