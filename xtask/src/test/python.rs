//! Tests of the Python package: the extension module that was built with everything else, and pytest on it.

use std::ffi::OsString;

use anyhow::{Context, Result, ensure};

use super::{Chosen, only, variables};
use crate::{
    python,
    setup::{self, Icd},
    shell::{command, repo},
    steps::{Apart, Steps},
    test::runner::{Variable, set},
};

/// What the tests need from the registry of packages.
const PACKAGES: [&str; 3] = ["numpy>=1.22", "pytest>=8", "ml_dtypes>=0.4"];
/// Names an interpreter that has these packages already, and others that some tests want, such as torch.
const INTERPRETER: &str = "HALITE_TEST_PYTHON";
/// What pytest ends with when no test has a name that was asked for.
const NOTHING_CHOSEN: i32 = 5;

/// The steps that run them, once per Vulkan driver; none where they cannot be run.
pub fn apart(chosen: &Chosen, icds: &[Icd], steps: &mut Steps) -> Vec<Apart> {
    const NAME: &str = "tests of the Python package";
    let placed = interpreter().and_then(|_| python::place_extension(&repo("target/debug")));
    if let Err(why) = placed {
        steps.skip(NAME, &format!("{why:#}"));
        return Vec::new();
    }
    if icds.is_empty() {
        steps.skip(NAME, "there is no Vulkan driver");
    }
    // What the package does is the same on each.
    let drivers = if chosen.thorough { icds.len() } else { icds.len().min(1) };
    let on = |icd: &Icd| {
        let args = std::iter::once(icd.name.to_owned()).chain(chosen.args()).collect();
        Apart::new(format!("{NAME} on {}", icd.name), "python", args)
    };
    icds[..drivers].iter().map(on).collect()
}

/// Runs them on the driver with this name, with the extension module that has been put into the sources.
pub fn run(chosen: &Chosen, driver: &str) -> Result<()> {
    let icds = setup::everything()?;
    let icd = icds.iter().find(|icd| icd.name == driver);
    on(chosen, icd.with_context(|| format!("there is no driver {driver}"))?, &interpreter()?)
}

fn interpreter() -> Result<OsString> {
    match std::env::var_os(INTERPRETER) {
        Some(given) => Ok(given),
        None => Ok(python::environment("pytest", &PACKAGES)?.into()),
    }
}

fn on(chosen: &Chosen, icd: &Icd, interpreter: &OsString) -> Result<()> {
    let mut pytest = command(
        &interpreter.to_string_lossy(),
        &["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"],
    );
    if let Some(filter) = &chosen.filter {
        pytest.args(["-k", filter]);
    }
    let mut all: Vec<Variable> = [variables(), chosen.form(), only(icd)].concat();
    all.push(("HALITE_TEST_DEVICE", Some(icd.name.into())));
    all.push(("HALITE_SWIFTSHADER", icd.library.clone().map(Into::into)));
    all.push(("PYTHONPATH", Some(repo("python").into())));
    all.push(("PYTHONDONTWRITEBYTECODE", Some("1".into())));
    set(&mut pytest, &all);
    let status = pytest.current_dir(repo("python")).status().context("pytest does not start")?;
    let is_filtered = chosen.filter.is_some() && status.code() == Some(NOTHING_CHOSEN);
    ensure!(status.success() || is_filtered, "{pytest:?} failed: {status}");
    Ok(())
}
