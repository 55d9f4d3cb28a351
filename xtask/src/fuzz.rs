//! Runs the fuzz targets in `fuzz/`.

use std::fs;

use anyhow::{Context, Result};
use clap::Args;

use crate::shell::{self, command, repo, root, say};

/// What to fuzz.
#[derive(Args)]
pub struct Options {
    /// Targets; all of them when none is named.
    targets: Vec<String>,
    /// Seconds per target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Runs each target for the given time. Stops at the first finding.
pub fn run(options: &Options) -> Result<()> {
    if !shell::exists("cargo-fuzz") {
        say("installing cargo-fuzz");
        shell::run(&mut shell::cargo(&["install", "--locked", "cargo-fuzz"]))?;
    }
    let targets = if options.targets.is_empty() { all_targets()? } else { options.targets.clone() };
    for target in &targets {
        say(&format!("fuzzing {target} for {} s", options.seconds));
        seed(target)?;
        let time = format!("-max_total_time={}", options.seconds);
        let args =
            ["fuzz", "run", target, "--", &time, "-timeout=20", "-rss_limit_mb=4096", "-max_len=65536"];
        shell::run(command("cargo", &args).env("RUSTC_BOOTSTRAP", "1"))
            .with_context(|| format!("fuzz target {target} found something: see fuzz/artifacts/{target}"))?;
    }
    Ok(())
}

fn all_targets() -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(repo("fuzz/fuzz_targets"))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Copies real files as seeds: small modules of the corpus where it is there, and the repository's own fixtures.
fn seed(target: &str) -> Result<()> {
    let folder = repo("fuzz/corpus").join(target);
    fs::create_dir_all(&folder)?;
    let places = [
        repo("demo/digits"),
        repo("spirv/tests/fixtures"),
        repo("formats/tests/data"),
        repo("drivers/local/tests/data"),
        repo("compiler/tests/data"),
        repo("conformance/vgf"),
        repo("text/tests/data"),
        root().join("../shared/corpus/vmfb/small"),
        root().join("../shared/corpus/pte"),
    ];
    for (n, file) in places.iter().flat_map(|p| files(p)).enumerate() {
        let wanted = matches!(
            file.extension().and_then(|e| e.to_str()),
            Some("vmfb" | "onnx" | "pte" | "vgf" | "tosa" | "spv" | "irpa" | "gguf" | "safetensors")
        );
        // Other targets read no such texts.
        let is_schema = file.starts_with(repo("text/tests/data/schemas"));
        let is_answer = file.starts_with(repo("text/tests/data/answers"));
        let is_text = match target {
            "schema" => is_schema,
            "answers" => is_answer,
            "tokenizer" => file.starts_with(repo("text/tests/data")) && !is_schema && !is_answer,
            _ => false,
        };
        if (wanted || is_text) && fs::metadata(&file)?.len() <= 65536 {
            fs::copy(&file, folder.join(format!("seed-{n}")))?;
        }
    }
    Ok(())
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths.into_iter().flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}
