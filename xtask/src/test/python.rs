//! Tests of the Python package: the extension module that was built with everything else, and pytest on it.

use std::ffi::OsString;

use anyhow::{Context, Result, ensure};

use super::{Options, only, variables};
use crate::{
    python,
    setup::Icd,
    shell::{command, repo},
    steps::Steps,
    test::runner::{Variable, set},
};

/// What the tests need from the registry of packages.
const PACKAGES: [&str; 3] = ["numpy>=1.22", "pytest>=8", "ml_dtypes>=0.4"];
/// Names an interpreter that has these packages already, and others that some tests want, such as torch.
const INTERPRETER: &str = "HALITE_TEST_PYTHON";
/// What pytest ends with when no test has a name that was asked for.
const NOTHING_CHOSEN: i32 = 5;

/// Runs them once per Vulkan driver.
pub fn run(options: &Options, icds: &[Icd], steps: &mut Steps) {
    const NAME: &str = "tests of the Python package";
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(why) => return steps.skip(NAME, &format!("{why:#}")),
    };
    if icds.is_empty() {
        return steps.skip(NAME, "there is no Vulkan driver");
    }
    // What the package does is the same on each.
    let drivers = if options.thorough { icds.len() } else { 1 };
    for icd in &icds[..drivers] {
        steps.take(&format!("{NAME} on {}", icd.name), || on(options, icd, &interpreter));
    }
}

fn interpreter() -> Result<OsString> {
    match std::env::var_os(INTERPRETER) {
        Some(given) => Ok(given),
        None => Ok(python::environment("pytest", &PACKAGES)?.into()),
    }
}

fn on(options: &Options, icd: &Icd, interpreter: &OsString) -> Result<()> {
    python::place_extension(&repo("target/debug"))?;
    let mut pytest = command(&interpreter.to_string_lossy(), &["-m", "pytest", "--quiet", "-rs"]);
    if let Some(filter) = &options.filter {
        pytest.args(["-k", filter]);
    }
    let mut all: Vec<Variable> = [variables(), options.form(), only(icd)].concat();
    all.push(("HALITE_TEST_DEVICE", Some(icd.name.into())));
    all.push(("HALITE_SWIFTSHADER", icd.library.clone().map(Into::into)));
    all.push(("PYTHONPATH", Some(repo("python").into())));
    all.push(("PYTHONDONTWRITEBYTECODE", Some("1".into())));
    set(&mut pytest, &all);
    let status = pytest.current_dir(repo("python")).status().context("pytest does not start")?;
    let is_filtered = options.filter.is_some() && status.code() == Some(NOTHING_CHOSEN);
    ensure!(status.success() || is_filtered, "{pytest:?} failed: {status}");
    Ok(())
}
