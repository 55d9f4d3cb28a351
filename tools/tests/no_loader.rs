//! The tools where there is no Vulkan loader at all: in a root folder of their own that holds the tools, what they are
//! linked with, SwiftShader and a module, and nothing else. Skips, loudly, where a process may not change its root or
//! where there is no SwiftShader.
#![cfg(target_os = "linux")]
#![allow(dead_code, reason = "each test crate uses a part of what tests share")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use common::{Ran, finish};
use tempfile::TempDir;

const LIBRARY: &str = "libvk_swiftshader.so";
const HOME: &str = "/home/somebody";
const CACHE: &str = "/home/somebody/.cache/halite/swiftshader";
const RUN: &[&str] =
    &["/run-module", "--module=/digits.vmfb", "--input=@/sample_7.npy", "--expected_output=@/expected_7.npy"];

/// A folder that becomes a process's root.
struct Root {
    folder: TempDir,
    /// The program that enters it, with its flags.
    enter: Vec<String>,
    /// SwiftShader's library outside.
    swiftshader: PathBuf,
}

impl Root {
    /// A root with the tools and the digits network, but without SwiftShader.
    fn new() -> Option<Root> {
        let swiftshader = swiftshader()?;
        let folder = tempfile::tempdir().unwrap();
        let tools = ["run-module", "list-devices"].map(|t| PathBuf::from(common::command(t).get_program()));
        for tool in &tools {
            copy(tool, &folder.path().join(tool.file_name().unwrap()));
        }
        for library in linked(&[&tools[0], &tools[1], &swiftshader]) {
            copy(&library, &folder.path().join(library.strip_prefix("/").unwrap()));
        }
        for file in ["digits.vmfb", "sample_7.npy", "expected_7.npy"] {
            let demo = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/digits"));
            copy(&demo.join(file), &folder.path().join(file));
        }
        assert_eq!(loaders(folder.path()), Vec::<PathBuf>::new(), "the root must have no Vulkan loader");
        let enter = way_into(folder.path())?;
        Some(Root { folder, enter, swiftshader })
    }

    /// Puts SwiftShader into a folder of the root.
    fn install(&self, folder: &str) {
        let target = self.folder.path().join(folder.trim_start_matches('/'));
        copy(&self.swiftshader, &target.join(LIBRARY));
    }

    fn run(&self, line: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = Command::new(&self.enter[0]);
        command.args(&self.enter[1..]).args(line).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", HOME);
        finish(command.envs(variables.iter().copied()).output().unwrap())
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    common::copy_program(from, to);
}

/// SwiftShader's library on this machine, wherever the driver finds it.
fn swiftshader() -> Option<PathBuf> {
    let mut command = common::command("list-devices");
    command.args(["--json", "--vulkan_swiftshader=on"]).stdin(Stdio::null());
    // Without drivers behind the loader, SwiftShader is reached directly.
    command.env("VK_DRIVER_FILES", "/no/such").env("VK_ICD_FILENAMES", "/no/such");
    // What this user keeps is searched too.
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME") {
        command.env("XDG_CACHE_HOME", cache);
    } else {
        command.env_remove("XDG_CACHE_HOME");
    }
    let ran = finish(command.output().unwrap());
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let reached = list["devices"].as_array().into_iter().flatten();
    let mut reached = reached.filter_map(|device| device["properties"]["reached_by"].as_str());
    let library = reached.find_map(|text| text.strip_prefix("driver library ")?.split_once(", loaded"));
    if library.is_none() {
        eprintln!("SKIPPED: no SwiftShader: {}", ran.stderr);
    }
    library.map(|(path, _)| PathBuf::from(path))
}

/// The libraries that files are linked with, and the program that loads them.
fn linked(files: &[&PathBuf]) -> Vec<PathBuf> {
    let ran = finish(Command::new("ldd").args(files).output().unwrap());
    let words = ran.stdout.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    let mut found: Vec<PathBuf> = words.map(PathBuf::from).collect();
    found.sort();
    found.dedup();
    assert!(!found.is_empty(), "{}", ran.stderr);
    found
}

/// Files below a folder that could be a Vulkan loader.
fn loaders(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(loaders(&path));
        } else if path.file_name().unwrap().to_string_lossy().starts_with("libvulkan") {
            found.push(path);
        }
    }
    found
}

/// A command that runs another one with this folder as its root; `None` where that is not allowed.
fn way_into(folder: &Path) -> Option<Vec<String>> {
    let path = folder.to_str().unwrap();
    let unshare = ["unshare", "--user", "--map-root-user", &format!("--root={path}")].map(str::to_owned);
    let ways = [unshare.to_vec(), vec!["chroot".to_owned(), path.to_owned()]];
    let works = |way: &Vec<String>| {
        let run = Command::new(&way[0]).args(&way[1..]).args(["/list-devices", "--version"]).output();
        run.is_ok_and(|out| out.status.success())
    };
    let way = ways.into_iter().find(works);
    if way.is_none() {
        eprintln!("SKIPPED: neither unshare nor chroot may enter another root here");
    }
    way
}

fn warnings(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| line.contains("warning")).collect()
}

#[test]
fn a_module_runs_with_nothing_but_swiftshader() {
    let Some(root) = Root::new() else { return };
    root.install(CACHE);
    for device in [&[][..], &["--device=vulkan"]] {
        let ran = root.run(&[RUN, device].concat(), &[]);
        assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{} {}", ran.stdout, ran.stderr);
        let warnings = warnings(&ran);
        assert!(warnings.len() == 1 && warnings[0].contains("'SwiftShader Device"), "{}", ran.stderr);
    }
    for device in ["--device=vulkan://swiftshader", "--device=vulkan://0"] {
        let ran = root.run(&[RUN, &[device]].concat(), &[]);
        assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{} {}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "", "who names a device needs no warning");
    }
}

#[test]
fn it_is_found_in_the_cache_beside_the_tool_and_in_browsers() {
    let Some(root) = Root::new() else { return };
    let list = |variables: &[(&str, &str)]| {
        let ran = root.run(&["/list-devices", "--properties"], variables);
        let reached = ran.stdout.lines().find_map(|line| line.split_once("reached_by: driver library "));
        reached.map(|(_, text)| text.split_once(", loaded directly (ICD").unwrap().0.to_owned())
    };
    assert_eq!(list(&[]), None);
    let file = |folder: &str| format!("{folder}/{LIBRARY}").replace("//", "/");
    // The later ones come first in the search.
    for folder in ["/usr/lib/chromium", "/opt/google/chrome", "/", CACHE] {
        root.install(folder);
        assert_eq!(list(&[]), Some(file(folder)));
    }
    root.install("/elsewhere");
    for named in ["/elsewhere", &file("/elsewhere")] {
        assert_eq!(list(&[("HALITE_SWIFTSHADER", named)]), Some(file("/elsewhere")));
    }
    assert_eq!(list(&[("HALITE_SWIFTSHADER", "/no/such")]), Some(file(CACHE)));
}

#[test]
fn without_any_driver_the_error_says_where_was_looked_and_what_to_do() {
    let Some(root) = Root::new() else { return };
    let ran = root.run(&[RUN, &["--device=vulkan"]].concat(), &[]);
    assert_eq!(ran.code, 1);
    let parts = [
        "UNAVAILABLE",
        "libvulkan.so.1",
        CACHE,
        "/usr/lib/chromium",
        "cargo xtask swiftshader",
        "apt install",
    ];
    for part in parts {
        assert!(ran.stderr.contains(part), "'{part}' missing from: {}", ran.stderr);
    }
    let broken = root.folder.path().join("usr/lib/chromium").join(LIBRARY);
    fs::create_dir_all(broken.parent().unwrap()).unwrap();
    fs::write(broken, "not a library").unwrap();
    let ran = root.run(&[RUN, &["--device=vulkan://swiftshader"]].concat(), &[]);
    assert!(ran.code == 1 && ran.stderr.contains("found but not used: '/usr/lib/chromium"), "{}", ran.stderr);
}

#[test]
fn validation_is_not_dropped_in_silence() {
    let Some(root) = Root::new() else { return };
    root.install(CACHE);
    let ran = root.run(&[RUN, &["--device=vulkan", "--vulkan_validation_layers"]].concat(), &[]);
    assert!(
        ran.code == 1 && ran.stderr.contains("option validation needs Vulkan's loader"),
        "{}",
        ran.stderr
    );
}
