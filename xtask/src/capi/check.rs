//! Programs in C and C++ against the installed library: what it exports, CMake, pkg-config, each Vulkan driver, and memory checkers.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::layout::Layout;
use crate::{
    setup::{self, Icd},
    shell::{self, command, exists, output, repo, say},
};

/// What builds programs.
const TOOLS: [(&str, &str); 3] = [("cc", "gcc"), ("c++", "g++"), ("cmake", "cmake")];

/// What a check lacks on this machine.
pub fn missing() -> Option<String> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| !exists(program)).map(|(program, _)| *program).collect();
    (!missing.is_empty()).then(|| format!("there is no {}", missing.join(", no ")))
}

/// Installs what is missing where that can be done; tells what is missing still.
pub fn prepare() -> Option<String> {
    missing()?;
    let packages: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect();
    if exists("apt-get")
        && let Err(why) = setup::install(&packages)
    {
        println!("{why:#}");
    }
    missing()
}

/// Checks what was installed into a prefix.
pub fn run(prefix: &Path, layout: &Layout, memory: bool) -> Result<()> {
    let prefix = fs::canonicalize(prefix)?;
    exports(&prefix, layout)?;
    let folder = repo("target/xtask/capi");
    let built = build(&prefix, &folder.join("build"), &[])?;
    with_pkg_config(&prefix, &folder)?;
    let icds = setup::everything()?;
    if icds.is_empty() {
        println!("\nSKIPPED: running the examples: there is no Vulkan driver");
        return Ok(());
    }
    for icd in &icds {
        say(&format!("examples on {}", icd.name));
        run_all(&built, icd, &[], &folder)?;
    }
    if memory {
        checked(&prefix, &folder, &built, &icds)?;
    }
    Ok(())
}

/// The library exports what its header declares, and nothing else.
fn exports(prefix: &Path, layout: &Layout) -> Result<()> {
    let is_elf = !cfg!(any(target_vendor = "apple", windows));
    if !is_elf || !exists("nm") {
        println!("\nSKIPPED: what the library exports: there is no nm for it");
        return Ok(());
    }
    say("what the library exports");
    let library = prefix.join(&layout.shared);
    let listed = output(command("nm", &["-D", "--defined-only"]).arg(&library))?;
    let exported: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let header = fs::read_to_string(prefix.join("include/halite/halite.h"))?;
    let declared = declared(&header);
    let missing: Vec<_> = declared.iter().filter(|name| !exported.contains(name.as_str())).collect();
    let more: Vec<_> = exported.iter().filter(|name| !declared.contains(**name)).collect();
    ensure!(missing.is_empty(), "{} does not export {missing:?}", library.display());
    ensure!(more.is_empty(), "{} exports {more:?}, which its header does not declare", library.display());
    println!("{} functions, as the header says", declared.len());
    Ok(())
}

/// The functions of a header.
fn declared(header: &str) -> BTreeSet<String> {
    let code = header.lines().filter(|line| !line.trim_start().starts_with("//") && !line.starts_with('#'));
    let text = code.collect::<Vec<_>>().join(" ");
    let functions = text.split(';').filter_map(|part| part.split_once("HALITE_API ").map(|(_, rest)| rest));
    functions
        .filter_map(|function| {
            let head = function.split('(').next()?;
            head.rsplit([' ', '*']).find(|word| word.starts_with("halite_")).map(str::to_owned)
        })
        .collect()
}

/// Builds the examples with CMake.
fn build(prefix: &Path, folder: &Path, options: &[&str]) -> Result<PathBuf> {
    say("examples with CMake");
    let mut configure = command("cmake", &["-S", "capi/examples", "-Wdev", "-DCMAKE_BUILD_TYPE=Release"]);
    configure.arg("-B").arg(folder).args(options).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    shell::run(&mut configure)?;
    shell::run(command("cmake", &["--build"]).arg(folder).args(["--parallel", "2"]))?;
    Ok(folder.to_owned())
}

/// A program as others build it, without CMake: both libraries by what pkg-config says.
fn with_pkg_config(prefix: &Path, folder: &Path) -> Result<()> {
    if !exists("pkg-config") {
        println!("\nSKIPPED: programs with pkg-config: there is none");
        return Ok(());
    }
    say("a program with pkg-config");
    for how in [&["--cflags", "--libs"][..], &["--static", "--cflags", "--libs"]] {
        let mut ask = command("pkg-config", how);
        let told = output(ask.arg("halite").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
        let program = folder.join("pkg-config");
        let mut compile = command("cc", &["-std=c11", "-Wall", "-Werror", "capi/examples/digits.c"]);
        compile.arg("-o").arg(&program);
        // Where both libraries are, a linker takes the shared one.
        let is_static = how[0] == "--static" && cfg!(target_os = "linux");
        let words = told.split_whitespace();
        compile.args(words.map(|word| if is_static && word == "-lhalite" { "-l:libhalite.a" } else { word }));
        compile.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
        shell::run(&mut compile)?;
        // Ends with how it is used: the library was found and begins.
        let status = Command::new(&program).output().context("it starts")?.status;
        ensure!(status.code() == Some(2), "{} ended with {status}", program.display());
    }
    Ok(())
}

/// Runs the tests of the examples on a driver.
fn run_all(built: &Path, icd: &Icd, variables: &[(&str, String)], folder: &Path) -> Result<()> {
    let mut test = command("ctest", &["--output-on-failure", "--no-tests=error"]);
    test.current_dir(built);
    surround(&mut test, icd, folder);
    test.envs(variables.iter().map(|(name, value)| (name, value)));
    shell::run(&mut test)
}

/// What programs see: one driver, and a place for what they keep.
fn surround(command: &mut Command, icd: &Icd, folder: &Path) {
    for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        command.env(name, &icd.manifest);
    }
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("GALLIVM_PERF", "nopt").env("HALITE_TUNING", "");
    command.env_remove("HALITE_DRIVER_PATH");
}

/// The examples once more where wrong uses of memory are told: built with sanitizers, and under valgrind.
fn checked(prefix: &Path, folder: &Path, built: &Path, icds: &[Icd]) -> Result<()> {
    let sanitized = build(prefix, &folder.join("sanitized"), &["-DHALITE_SANITIZE=ON"])?;
    let suppressions = repo("capi/package/leaks.supp");
    // Vulkan's loader and drivers keep memory until the process ends; ours and the programs' is told.
    let leaks = format!("suppressions={}:print_suppressions=0", suppressions.display());
    for icd in icds {
        say(&format!("examples with AddressSanitizer on {}", icd.name));
        let variables = [
            ("LSAN_OPTIONS", leaks.clone()),
            ("ASAN_OPTIONS", "detect_leaks=1:handle_segv=1".to_owned()),
            ("UBSAN_OPTIONS", "print_stacktrace=1".to_owned()),
        ];
        run_all(&sanitized, icd, &variables, folder)?;
    }
    if !exists("valgrind") {
        println!("\nSKIPPED: examples under valgrind: there is none");
        return Ok(());
    }
    // SwiftShader's code has instructions that valgrind does not know.
    let Some(icd) = icds.iter().find(|icd| icd.library.is_none()) else {
        println!("\nSKIPPED: examples under valgrind: it knows no driver that is here");
        return Ok(());
    };
    under_valgrind(built, icd, folder)
}

/// The examples with the shared library under valgrind: no wrong access, and nothing of ours lost.
fn under_valgrind(built: &Path, icd: &Icd, folder: &Path) -> Result<()> {
    say(&format!("examples under valgrind on {}", icd.name));
    let tests = output(command("ctest", &["--show-only=json-v1"]).current_dir(built))?;
    let tests: serde_json::Value = serde_json::from_str(&tests)?;
    let tests = tests["tests"].as_array().context("ctest lists no tests")?;
    let mut count = 0;
    for test in tests {
        let words: Vec<&str> =
            test["command"].as_array().into_iter().flatten().filter_map(|word| word.as_str()).collect();
        if !words.first().is_some_and(|program| program.ends_with("_halite")) {
            continue;
        }
        let mut checked = command("valgrind", &["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        checked.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite", "--num-callers=30"]);
        checked.arg(format!("--suppressions={}", repo("capi/package/valgrind.supp").display()));
        surround(checked.args(&words), icd, folder);
        shell::run(&mut checked)?;
        count += 1;
    }
    ensure!(count > 0, "no example has the shared library");
    println!("{count} examples");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_header_are_found() {
        let header = "#define HALITE_API\n/// HALITE_API void no(void);\nHALITE_API const char *halite_a(void);\nHALITE_API\n\
                      HALITE_CHECK\nhalite_error *halite_b(halite_x *x,\n   halite_y **out);\nHALITE_API HALITE_CHECK halite_error \
                      *halite_c(void (*f)(int));\nHALITE_API halite_kind halite_d(void);";
        let names = ["halite_a", "halite_b", "halite_c", "halite_d"].map(str::to_owned);
        assert_eq!(declared(header), names.into());
    }
}
