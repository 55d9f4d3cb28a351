//! Driver plug-ins on the command line: where they are found, what goes first, what a broken one does. The plug-in is the
//! sample driver in C, so that no other crate has to be built before.

#![allow(dead_code, reason = "each test crate uses a part of what tests share")]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use common::{Ran, command, finish, run};
use halite::plugin::manifest::{Manifest, SUFFIX};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const LIBRARY: &str = "libsample_c.so";

/// A folder with the sample driver's library and no manifest, or a loud skip.
fn library(folder: &Path) -> Option<PathBuf> {
    static BUILT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let bytes = BUILT.get_or_init(build).as_ref()?;
    fs::create_dir_all(folder).expect("a folder of the test");
    let path = folder.join(LIBRARY);
    fs::write(&path, bytes).expect("a file of the test");
    Some(path)
}

fn build() -> Option<Vec<u8>> {
    let sources = fs::read_dir(Path::new(ROOT).join("drivers/sample-c")).expect("the sample driver is there");
    let sources = sources.map(|entry| entry.expect("an entry").path());
    let sources: Vec<_> = sources.filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join(LIBRARY);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-pthread", "-I"]);
    cc.arg(Path::new(ROOT).join("plugin/include")).args(sources).arg("-o").arg(&path);
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{cc:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(fs::read(path).expect("the compiler wrote it"))
        }
        Err(e) => {
            eprintln!("SKIPPED: no C compiler: {e}");
            None
        }
    }
}

/// Writes a manifest for the library in the same folder.
fn manifest(folder: &Path, name: &str) -> PathBuf {
    let manifest = Manifest::for_this_machine(name, "described by its manifest", LIBRARY, "1.0.0");
    let path = folder.join(format!("{name}{SUFFIX}"));
    fs::write(&path, serde_json::to_string(&manifest).expect("a manifest is JSON"))
        .expect("a file of the test");
    path
}

/// A folder with the sample driver as it is installed.
fn installed(folder: &Path) -> Option<PathBuf> {
    let library = library(folder)?;
    manifest(folder, "sample-c");
    Some(library)
}

fn list(args: &[&str], driver_path: Option<&Path>) -> Ran {
    let mut command = command("list-devices");
    command.args(args).stdin(Stdio::null()).env_remove("HALITE_DRIVER_PATH");
    if let Some(path) = driver_path {
        command.env("HALITE_DRIVER_PATH", path);
    }
    finish(command.output().expect("the tool starts"))
}

#[track_caller]
fn has_device(ran: &Ran) {
    assert!(
        ran.code == 0 && ran.stdout.contains("sample-c://"),
        "{} {} {}",
        ran.code,
        ran.stdout,
        ran.stderr
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn plug_ins_are_found_where_they_are_named() {
    let dir = TempDir::new().expect("a folder");
    let Some(library) = installed(dir.path()) else { return };
    let manifest = dir.path().join(format!("sample-c{SUFFIX}"));
    for path in [dir.path(), &manifest, &library] {
        for flag in ["--driver-path", "--driver_path"] {
            has_device(&list(&[&format!("{flag}={}", path.display()), "sample-c"], None));
        }
    }
    has_device(&list(&["sample-c"], Some(dir.path())));
    has_device(&list(&["sample-c"], Some(&manifest)));
    let without = list(&["sample-c"], None);
    assert!(without.code == 1 && without.stderr.contains("no driver named 'sample-c'"), "{}", without.stderr);
    let without = list(&["sample-c", "--no-plugins"], Some(dir.path()));
    assert!(without.code == 1 && without.stderr.contains("no driver named 'sample-c'"), "{}", without.stderr);
    let both = list(&["--no_plugins", "--driver-path=x"], None);
    assert!(both.code == 2 && both.stderr.contains("contradicts"), "{}", both.stderr);
}

#[test]
fn listing_drivers_loads_nothing() {
    let dir = TempDir::new().expect("a folder");
    fs::write(dir.path().join(LIBRARY), "not a library").expect("a file of the test");
    manifest(dir.path(), "sample-c");
    let ran = list(&["--list_drivers"], Some(dir.path()));
    assert!(ran.stdout.contains("sample-c: described by its manifest"), "{}", ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

/// `bin/` and `lib/halite/drivers/` side by side, as `cargo xtask dist --plugins` makes them; also through a symbolic link.
#[test]
fn installed_plug_ins_are_found() {
    let dir = TempDir::new().expect("a folder");
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).expect("a folder of the test");
    let tool = bin.join("list-devices");
    common::copy_program(&common::program("list-devices"), &tool);
    if installed(&dir.path().join("lib/halite/drivers")).is_none() {
        return;
    }
    let run = |path: &Path| {
        let mut command = Command::new(path);
        command.arg("sample-c").env_remove("HALITE_DRIVER_PATH").env_remove("HALITE_LOG");
        finish(command.output().expect("the tool starts"))
    };
    has_device(&run(&tool));
    #[cfg(unix)]
    {
        let link = dir.path().join("elsewhere/list-devices");
        fs::create_dir(dir.path().join("elsewhere")).expect("a folder of the test");
        std::os::unix::fs::symlink(&tool, &link).expect("a link");
        has_device(&run(&link));
    }
    // Beside the executable goes first.
    fs::write(bin.join(LIBRARY), "broken").expect("a file of the test");
    manifest(&bin, "sample-c");
    let ran = run(&tool);
    assert!(ran.code == 1 && ran.stderr.contains("bin/libsample_c.so"), "{}", ran.stderr);
}

#[test]
fn a_broken_plug_in_is_one_warning() {
    let dir = TempDir::new().expect("a folder");
    let Some(_) = installed(&dir.path().join("good")) else { return };
    let bad = dir.path().join("bad");
    fs::create_dir(&bad).expect("a folder of the test");
    fs::write(bad.join(LIBRARY), "broken").expect("a file of the test");
    manifest(&bad, "damaged");
    let paths = std::env::join_paths([&bad, &dir.path().join("good")]).expect("plain paths");
    // All drivers are asked, so that the damaged one is, too.
    let ran = list(&[], Some(Path::new(&paths)));
    assert!(ran.code == 0 && ran.stdout.contains("sample-c://"), "{} {}", ran.stdout, ran.stderr);
    let about: Vec<_> = ran.stderr.lines().filter(|l| l.contains("damaged")).collect();
    assert!(about.len() == 1 && about[0].starts_with("list-devices: warning: driver 'damaged'"), "{about:?}");
    let named = list(&["damaged"], Some(Path::new(&paths)));
    assert!(named.code == 1 && named.stderr.contains("bad/libsample_c.so"), "{}", named.stderr);
}

/// Without --device all drivers are asked; the damaged one is a warning, and the module runs.
#[cfg(feature = "static-drivers")]
#[test]
fn a_broken_plug_in_does_not_stop_the_choice_of_a_device() {
    if !common::has_llvmpipe() {
        return;
    }
    let dir = TempDir::new().expect("a folder");
    fs::write(dir.path().join(LIBRARY), "broken").expect("a file of the test");
    manifest(dir.path(), "damaged");
    let module = format!("--module={ROOT}/demo/digits/digits.vmfb");
    let path = format!("--driver-path={}", dir.path().display());
    let input = "--input=1x1x16x16xf32=0";
    let ran = run("run-module", &[&path, &module, "--function=classify", input, "--output="]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let about: Vec<_> = ran.stderr.lines().filter(|l| l.contains("damaged")).collect();
    assert!(about.len() == 1 && about[0].contains("is left out"), "{}", ran.stderr);
}

/// What is given replaces a linked driver, what is found does not. The plug-in calls itself otherwise than its manifest, so
/// that its use shows.
#[cfg(feature = "static-drivers")]
#[test]
fn given_plug_ins_replace_linked_drivers() {
    let dir = TempDir::new().expect("a folder");
    if library(dir.path()).is_none() {
        return;
    }
    manifest(dir.path(), "null");
    let found = list(&["null"], Some(dir.path()));
    assert!(found.code == 0 && found.stdout.contains("null device"), "{} {}", found.stdout, found.stderr);
    let given = list(&["null", &format!("--driver-path={}", dir.path().display())], None);
    assert!(given.code == 1 && given.stderr.contains("calls itself driver 'sample-c'"), "{}", given.stderr);
}

/// A plug-in of one C function, with a manifest; `false`, loudly, where there is no C compiler.
#[cfg(unix)]
fn plug_in_of(source: &str, folder: &Path, name: &str) -> bool {
    fs::create_dir_all(folder).expect("a folder of the test");
    let file = folder.join("driver.c");
    fs::write(&file, source).expect("a file of the test");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(folder.join(LIBRARY)).arg(&file);
    match cc.status() {
        Ok(status) => assert!(status.success()),
        Err(e) => {
            eprintln!("SKIPPED: no C compiler: {e}");
            return false;
        }
    }
    manifest(folder, name);
    true
}

/// Libraries that end or hold up whoever loads them are tried in a process of their own: each costs a line, and the rest goes on.
#[cfg(unix)]
#[test]
fn libraries_that_take_their_process_along_cost_a_line() {
    const FAULTS: [(&str, &str, &str); 4] = [
        (
            "aborting",
            "void abort(void); void *halite_driver_query_v1(void) { abort(); }",
            "signal 6 (SIGABRT)",
        ),
        (
            "wild",
            "void *halite_driver_query_v1(void) { *(volatile int *)8 = 1; return (void *)8; }",
            "signal 11 (SIGSEGV)",
        ),
        ("leaving", "void _exit(int); void *halite_driver_query_v1(void) { _exit(3); }", "exit code 3"),
        (
            "hanging",
            "unsigned sleep(unsigned); void *halite_driver_query_v1(void) { for (;;) sleep(1000); }",
            "did not end within 5s",
        ),
    ];
    let dir = TempDir::new().expect("a folder");
    let folders: Vec<PathBuf> = FAULTS.iter().map(|(name, ..)| dir.path().join(name)).collect();
    if !FAULTS.iter().zip(&folders).all(|((name, source, _), folder)| plug_in_of(source, folder, name)) {
        return;
    }
    let paths = std::env::join_paths(&folders).expect("plain paths");
    let begun = std::time::Instant::now();
    let all = list(&["--list_devices"], Some(Path::new(&paths)));
    assert!(begun.elapsed().as_secs() < 60, "took {:?}", begun.elapsed());
    assert!(cfg!(not(feature = "static-drivers")) || all.code == 0, "{} {}", all.code, all.stderr);
    for ((name, _, says), folder) in FAULTS.iter().zip(&folders) {
        let about: Vec<_> = all.stderr.lines().filter(|line| line.contains(name)).collect();
        assert!(about.len() == 1 && about[0].contains(says), "{name}: {}", all.stderr);
        let named = list(&[name], Some(folder));
        assert!(named.code == 1 && named.stderr.contains(says), "{name}: {} {}", named.code, named.stderr);
        // What was tried and failed is not loaded, and what is not asked for is not tried.
        assert!(list(&["null", "--list_drivers"], Some(folder)).stderr.is_empty());
    }
    let tried = list(&["--drivers", "-v"], Some(&folders[0]));
    let says = "loading it in a process of its own ended with signal 6";
    assert!(tried.code == 0 && tried.stdout.contains(says), "{}", tried.stdout);
    assert_eq!(list(&["no-such-driver"], Some(&folders[0])).code, 1);
}

/// Whoever else could have written a plug-in could run code as this user.
#[cfg(unix)]
#[test]
fn plug_ins_that_others_can_write_are_refused() {
    use std::os::unix::fs::PermissionsExt;

    let dir = TempDir::new().expect("a folder");
    let Some(library) = installed(dir.path()) else { return };
    let manifest = dir.path().join(format!("sample-c{SUFFIX}"));
    for (path, open, closed) in
        [(library.as_path(), 0o777, 0o755), (&manifest, 0o666, 0o644), (dir.path(), 0o777, 0o700)]
    {
        let set = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("an own file");
        set(open);
        let ran = list(&["sample-c"], Some(dir.path()));
        assert!(
            ran.code == 1 && ran.stderr.contains("somebody else could have written it"),
            "{}",
            ran.stderr
        );
        set(closed);
        has_device(&list(&["sample-c"], Some(dir.path())));
    }
}

/// A program without any driver says so.
#[cfg(not(feature = "static-drivers"))]
#[test]
fn without_drivers_there_is_advice() {
    let module = format!("--module={ROOT}/demo/digits/digits.vmfb");
    let ran = run("run-module", &["--no-plugins", &module, "--function=classify", "--input=1x1x16x16xf32=0"]);
    assert!(ran.code == 1 && ran.stderr.contains("install a plug-in"), "{}", ran.stderr);
}

#[test]
fn unusable_places_are_told() {
    let dir = TempDir::new().expect("a folder");
    fs::write(dir.path().join(format!("x{SUFFIX}")), "{").expect("a file of the test");
    let path = format!("--driver-path={}", dir.path().display());
    let ran = run("list-devices", &[&path, "--driver-path=/no/such/place", "--list_drivers"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(lines[0].contains("is no driver manifest") && lines[1].contains("does not exist"), "{lines:?}");
}
