//! What we write is accepted by the original tools. They are looked for in `HALITE_IREE_BIN`, then in `PATH`.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use crate::common::{corpus, good_modules};
use bytes::Bytes;
use halite_formats::params::{Entry, Kind, NewEntry, NewStorage, Storage, read_as, write_irpa};
use halite_formats::vmfb::{
    WriteOptions, read_module, read_vulkan_executable, write_module, write_vulkan_executable,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tool(name: &str) -> Option<PathBuf> {
    let dirs = std::env::var_os("HALITE_IREE_BIN").into_iter().chain(std::env::var_os("PATH"));
    let dirs: Vec<PathBuf> = dirs.flat_map(|v| std::env::split_paths(&v).collect::<Vec<_>>()).collect();
    let found = dirs.into_iter().map(|d| d.join(name)).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no {name} in HALITE_IREE_BIN or PATH");
    }
    found
}

/// The module written by us.
fn rewritten(path: &Path, polyglot_zip: bool) -> Vec<u8> {
    let module = read_module(Bytes::from(std::fs::read(path).unwrap())).unwrap();
    write_module(&module, &WriteOptions { polyglot_zip }).unwrap()
}

/// The module written by us, executables included.
fn rewritten_with_executables(path: &Path, polyglot_zip: bool) -> Vec<u8> {
    let mut module = read_module(Bytes::from(std::fs::read(path).unwrap())).unwrap();
    for data in module.rodata.iter_mut().filter(|d| d.starts_with(b"VKE1")) {
        let executable = read_vulkan_executable(data.clone()).unwrap();
        *data = Bytes::from(write_vulkan_executable(&executable).unwrap());
    }
    write_module(&module, &WriteOptions { polyglot_zip }).unwrap()
}

fn run(tool: &Path, args: &[String], dir: &Path) -> Output {
    Command::new(tool).args(args).current_dir(dir).output().unwrap()
}

/// Calls of the small programs that pass on the original, without a device or with the first Vulkan one.
fn calls(corpus: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let manifest = std::fs::read_to_string(corpus.join("small/manifest.jsonl")).unwrap();
    let rows = manifest.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let mut calls = Vec::new();
    for row in rows.filter(|r| r["vmfb_bytes"].is_u64() && r["sequence"] == false) {
        let path = corpus.join(row["vmfb"].as_str().unwrap());
        for call in row["calls"].as_array().unwrap() {
            let flags = row["run_flags"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned());
            let inputs = call["inputs"].as_array().unwrap().iter();
            let inputs = inputs.map(|i| format!("--input={}", i["flag"].as_str().unwrap()));
            let devices = row["devices"].as_array().unwrap().iter();
            let devices = devices.map(|d| format!("--device={}", d.as_str().unwrap()));
            let function = format!("--function={}", call["function"].as_str().unwrap());
            calls.push((path.clone(), devices.chain(flags).chain(inputs).chain([function]).collect()));
        }
    }
    calls
}

/// Needs a Vulkan device that the original tool can use; minutes long, hence on request:
/// `cargo test -p halite-formats --test formats real_tools -- --ignored`.
#[test]
#[ignore = "runs the original tool about 450 times"]
fn the_original_runs_what_we_write_as_it_runs_its_own() {
    let (Some(corpus), Some(tool)) = (corpus(), tool("iree-run-module")) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (path, args) in calls(&corpus) {
        let with = |module: &Path| {
            let mut args = args.clone();
            args.push(format!("--module={}", module.display()));
            run(&tool, &args, &corpus)
        };
        let theirs = with(&path);
        for polyglot_zip in [true, false] {
            let ours = scratch.path().join("module.vmfb");
            std::fs::write(&ours, rewritten_with_executables(&path, polyglot_zip)).unwrap();
            let ours = with(&ours);
            let at = path.display();
            assert_eq!(ours.status.code(), theirs.status.code(), "{at}: {ours:?}");
            assert_eq!(ours.stdout, theirs.stdout, "{at} zip={polyglot_zip}");
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} runs compared");
}

/// An archive as we write it, with the data of `file`.
fn rewritten_archive(file: &Bytes) -> Vec<u8> {
    let archive = read_as(Kind::Irpa, file.clone()).unwrap();
    let storage = |e: &'_ Entry| match &e.storage {
        Storage::Range { offset, length } => Data(file.slice(*offset as usize..(offset + length) as usize)),
        Storage::Splat { pattern, length } => Splat(pattern.clone(), *length),
    };
    enum Owned {
        Data(Bytes),
        Splat(Bytes, u64),
    }
    use Owned::{Data, Splat};
    let owned: Vec<Owned> = archive.entries.iter().map(storage).collect();
    let entries: Vec<NewEntry<'_>> = archive
        .entries
        .iter()
        .zip(&owned)
        .map(|(e, owned)| NewEntry {
            name: &e.name,
            metadata: &e.metadata,
            storage: match owned {
                Data(data) => NewStorage::Data(data),
                Splat(pattern, length) => NewStorage::Splat { pattern, length: *length },
            },
        })
        .collect();
    let mut out = Vec::new();
    write_irpa(&entries, &mut out).unwrap();
    out
}

#[test]
fn the_original_lists_archives_that_we_write() {
    let Some(tool) = tool("iree-dump-parameters") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ours.irpa");
    let theirs = include_bytes!("data/mixed.irpa");
    std::fs::write(&path, rewritten_archive(&Bytes::from_static(theirs))).unwrap();
    let out = run(&tool, &[format!("--parameters=model={}", path.display())], scratch.path());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{out:?}");
    assert!(text.contains("Parameter scope `model` (5 entries, 214 total bytes)"), "{text}");
    for (length, name) in [(24, "weight"), (0, "empty"), (6, "bias"), (48, "f32"), (136, "q8")] {
        let line = text.lines().find(|l| l.contains(&format!("`{name}`"))).unwrap();
        assert!(line.contains(&format!(" {length} | ")), "{line}");
    }
}

#[test]
#[ignore = "runs the original tool on a Vulkan device"]
fn the_original_runs_with_archives_that_we_write() {
    let (Some(corpus), Some(tool)) = (corpus(), tool("iree-run-module")) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ours.irpa");
    let theirs = corpus.join("small/parameters_irpa/params.irpa");
    std::fs::write(&path, rewritten_archive(&Bytes::from(std::fs::read(&theirs).unwrap()))).unwrap();
    let with = |archive: &Path| {
        let archive = format!("--parameters=model={}", archive.display());
        let fixed = ["--device=vulkan", "--module=small/parameters_irpa/module.vmfb", "--function=main"];
        let input = "--input=@small/parameters_irpa/c0_in0.npy";
        let args: Vec<String> =
            fixed.into_iter().chain([input]).map(str::to_owned).chain([archive]).collect();
        run(&tool, &args, &corpus)
    };
    let (ours, theirs) = (with(&path), with(&theirs));
    assert!(ours.status.success(), "{ours:?}");
    assert_eq!(ours.stdout, theirs.stdout);
}

/// What the dump tool prints, less the lines that name places and sizes in the file.
fn dump(tool: &Path, module: &Path, dir: &Path) -> (Option<i32>, Vec<String>) {
    let out = run(tool, &[module.display().to_string()], dir);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let in_file = |l: &str| {
        ["FlatBuffer:", "External .rodata", ".rodata["].iter().any(|p| l.trim_start().starts_with(p))
    };
    (out.status.code(), text.lines().filter(|l| !in_file(l)).map(str::to_owned).collect())
}

#[test]
fn the_original_dumps_what_we_write_as_it_dumps_its_own() {
    let (Some(corpus), Some(tool)) = (corpus(), tool("iree-dump-module")) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let ours = scratch.path().join("module.vmfb");
    for path in good_modules(&corpus).into_iter().filter(|p| p.ends_with("module.vmfb")).step_by(4) {
        let theirs = dump(&tool, &path, &corpus);
        for polyglot_zip in [true, false] {
            std::fs::write(&ours, rewritten(&path, polyglot_zip)).unwrap();
            let ours = dump(&tool, &ours, &corpus);
            let differ = ours.1.iter().zip(&theirs.1).find(|(a, b)| a != b);
            let at = path.display();
            assert!(ours == theirs, "{at} zip={polyglot_zip}: {:?}, first difference {differ:?}", ours.0);
        }
    }
}

#[test]
fn unzip_tests_our_zip_form() {
    let (Some(corpus), Some(python)) = (corpus(), tool("python3")) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let ours = scratch.path().join("module.vmfb");
    std::fs::write(&ours, rewritten(&corpus.join("small/add_f32/module.vmfb"), true)).unwrap();
    let zipfile = |flag: &str| {
        let args = ["-m", "zipfile", flag].map(str::to_owned);
        run(
            &python,
            &args.into_iter().chain([ours.display().to_string()]).collect::<Vec<_>>(),
            scratch.path(),
        )
    };
    let out = zipfile("-t");
    assert!(out.status.success() && !String::from_utf8_lossy(&out.stdout).contains("corrupted"), "{out:?}");
    let list = zipfile("-l");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("module.fb") && list.contains("rodata_"), "{list}");
}
