//! The driver in plain C: builds without a warning, loads, and passes the device suite; and its header stands on its own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use halite_conformance::suites::{Runner, hal};
use halite_hal::Options;
use halite_testing::drivers::{opener, registry};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(110);

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs a compiler; `false` when it is not installed.
fn compile(compiler: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(repository().join("plugin/include"));
    match command.args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(e) => {
            eprintln!("SKIPPED: no {compiler}: {e}");
            false
        }
    }
}

fn build(folder: &Path) -> Option<PathBuf> {
    let source = repository().join("drivers/sample-c");
    let mut files: Vec<String> = std::fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|path| path.ends_with(".c"))
        .collect();
    files.sort();
    let library = folder.join("libsample_c.so");
    let (include, output) = (source.display().to_string(), library.display().to_string());
    let mut arguments = vec!["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-shared", "-fPIC"];
    arguments.extend(["-fvisibility=hidden", "-pthread", "-I", &include, "-o", &output]);
    arguments.extend(files.iter().map(String::as_str));
    compile("cc", &arguments).then_some(library)
}

#[test]
fn a_driver_in_c_passes_the_device_suite() {
    let folder = TempDir::new().unwrap();
    let Some(library) = build(folder.path()) else { return };
    let registry = registry(&[library]);
    assert!(registry.skipped().is_empty(), "{:?}", registry.skipped());
    let cases = hal::cases(1, 10);
    let summary =
        Runner::new(opener(registry, "sample-c", Options::new()), LIMIT).run(&cases, |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let (passed, ..) = summary.counts();
    assert!(passed > cases.len() * 3 / 4, "only {passed} of {} cases could be run", cases.len());
}

#[test]
fn the_header_may_be_included_twice_from_c_and_from_cpp() {
    let folder = TempDir::new().unwrap();
    let text = "#include <halite/driver.h>\n#include <halite/driver.h>\n\
                int size(void) { return (int)sizeof(HaliteDeviceVtable); }\n";
    for (compiler, standard, file) in [("cc", "-std=c11", "twice.c"), ("c++", "-std=c++17", "twice.cpp")] {
        let source = folder.path().join(file);
        std::fs::write(&source, text).unwrap();
        compile(compiler, &[standard, "-fsyntax-only", &source.display().to_string()]);
    }
}
