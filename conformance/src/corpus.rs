//! Reading the manifests of a corpus of compiled modules.
//!
//! A corpus is a folder with `small/`, `models/`, `vm_ops/` and `bad/`, each with a `manifest.jsonl`: one JSON object
//! per program, paths relative to the corpus. Model exports (`conformance/models/export.py`) have the same idea with
//! one object per program and target.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use halite_runtime::HostTensor;
use serde_json::Value as Json;

/// One call of a function.
#[derive(Clone, Debug)]
pub struct Call {
    /// Function.
    pub function: String,
    /// Inputs in the tools' `--input` form; file names relative to the corpus.
    pub inputs: Vec<String>,
    /// What it should return.
    pub expected: Vec<Expected>,
    /// Relative and absolute tolerance for floating-point elements.
    pub tolerance: (f64, f64),
    /// Whether the call must fail.
    pub must_fail: bool,
    /// Whether the call is made without the program's parameter archives.
    pub without_parameters: bool,
}

/// An expected result.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A tensor, in the tools' `--input` form.
    Tensor(String),
    /// A scalar as the tools print it, such as `i32=7`.
    Scalar(String),
    /// A tensor in memory.
    Known(HostTensor),
    /// Anything.
    Any,
}

/// A module and the calls to make.
#[derive(Clone, Debug)]
pub struct CorpusModule {
    /// Set and name, such as `small/add_f32`.
    pub name: String,
    /// Module file, absolute.
    pub module: PathBuf,
    /// Parameter archives: (scope, file relative to the corpus).
    pub parameters: Vec<(String, String)>,
    /// The kinds of devices that it wants, in the order that it counts them: `vulkan`, `local`, or a driver's name.
    pub devices: Vec<String>,
    /// Whether it only has kernels that take device addresses. Devices on the processor have to be asked for those.
    pub addresses: bool,
    /// Whether all calls share one session.
    pub sequence: bool,
    /// Calls.
    pub calls: Vec<Call>,
}

/// Where the shared corpus is beside a checkout; `None` when it is not there.
pub fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/vmfb");
    path.join("small/manifest.jsonl").exists().then_some(path)
}

/// The network of `demo/digits` with two pictures and what they are, for Vulkan or for CPU devices. Its root is the
/// repository, beside which this crate was built.
pub fn digits(local: bool) -> (PathBuf, CorpusModule) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = digits_in(&root, local);
    (root, program)
}

/// The same in a folder that is laid out as the repository is.
pub fn digits_in(root: &Path, local: bool) -> CorpusModule {
    let call = |digit: u32| Call {
        function: "classify".to_owned(),
        inputs: vec![format!("@demo/digits/sample_{digit}.npy")],
        expected: vec![Expected::Tensor(format!("@demo/digits/expected_{digit}.npy"))],
        tolerance: (1e-4, 1e-4),
        must_fail: false,
        without_parameters: false,
    };
    let module = if local { "conformance/soak/digits_local.vmfb" } else { "demo/digits/digits.vmfb" };
    CorpusModule {
        name: "digits".to_owned(),
        module: root.join(module),
        parameters: Vec::new(),
        devices: Vec::new(),
        addresses: false,
        sequence: false,
        calls: vec![call(3), call(7)],
    }
}

/// Reads one set of a corpus; an absent set is empty.
pub fn programs(root: &Path, set: &str) -> Result<Vec<CorpusModule>> {
    let path = root.join(set).join("manifest.jsonl");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut programs = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let row: Json =
            serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), n + 1))?;
        programs.extend(program(root, set, &row).with_context(|| format!("{}:{}", path.display(), n + 1))?);
    }
    Ok(programs)
}

fn program(root: &Path, set: &str, row: &Json) -> Result<Option<CorpusModule>> {
    let name = row["name"].as_str().unwrap_or("module");
    let (vmfb, target) = match (&row["vmfb"], &row["vmfbs"]["vulkan"]["vmfb"]) {
        (Json::String(path), _) | (_, Json::String(path)) => (path, row["target"].as_str()),
        _ => return Ok(None),
    };
    if !root.join(vmfb).exists() {
        return Ok(None);
    }
    let calls = match (&row["calls"], &row["sets"]) {
        (Json::Array(calls), _) => calls.iter().map(call).collect::<Result<_>>()?,
        (_, Json::Array(sets)) => sets.iter().map(|s| tensor_call(row, s)).collect::<Result<_>>()?,
        _ => vec![tensor_call(row, row)?],
    };
    let devices = row["devices"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let devices = devices.map(str::to_owned).collect();
    let compiled_with = |flag: &str| {
        row["flags"].as_array().into_iter().flatten().filter_map(Json::as_str).any(|given| given == flag)
    };
    let addresses = compiled_with("--iree-vulkan-dispatch-abi=bda");
    let flags = row["run_flags"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let mut parameters: Vec<_> =
        flags.filter_map(|f| f.strip_prefix("--parameters=")).map(split_scope).collect();
    parameters.extend(row["parameters"].as_str().map(split_scope));
    if let Some((_, file)) = parameters.iter().find(|(_, file)| !root.join(file).exists()) {
        eprintln!("SKIPPED: {set}/{name}: the corpus lacks {file}");
        return Ok(None);
    }
    Ok(Some(CorpusModule {
        name: [Some(set), Some(name), target]
            .into_iter()
            .flatten()
            .filter(|s| *s != ".")
            .collect::<Vec<_>>()
            .join("/"),
        module: root.join(vmfb),
        parameters,
        devices,
        addresses,
        sequence: row["sequence"].as_bool().unwrap_or(false),
        calls,
    }))
}

/// A call whose inputs and outputs are files.
fn tensor_call(row: &Json, files: &Json) -> Result<Call> {
    let paths = |key: &str| -> Vec<String> {
        files[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let flag = |path: String| if path.starts_with('@') { path } else { format!("@{path}") };
    Ok(Call {
        function: text(&row["function"])?.to_owned(),
        inputs: paths("inputs").into_iter().map(flag).collect(),
        expected: paths("expected").into_iter().map(|p| Expected::Tensor(flag(p))).collect(),
        tolerance: (row["rtol"].as_f64().unwrap_or(1e-4), row["atol"].as_f64().unwrap_or(1e-4)),
        must_fail: false,
        without_parameters: false,
    })
}

fn call(row: &Json) -> Result<Call> {
    let inputs = row["inputs"].as_array().into_iter().flatten();
    let inputs = inputs.map(|x| Ok(text(if x.is_object() { &x["flag"] } else { x })?.to_owned()));
    let expected = row["expected"].as_array().or(row["results"].as_array()).into_iter().flatten();
    Ok(Call {
        function: text(&row["function"])?.to_owned(),
        inputs: inputs.collect::<Result<_>>()?,
        expected: expected.map(expected_value).collect(),
        tolerance: (row["rtol"].as_f64().unwrap_or(0.0), row["atol"].as_f64().unwrap_or(0.0)),
        must_fail: !row["expect_fail"].is_null() || row["rc"].as_i64().is_some_and(|rc| rc != 0),
        without_parameters: row["no_params"].as_bool().unwrap_or(false),
    })
}

fn expected_value(x: &Json) -> Expected {
    match (&x["flag"], &x["text"], x) {
        (Json::String(flag), ..) => Expected::Tensor(flag.clone()),
        (_, Json::String(scalar), _) | (.., Json::String(scalar)) => Expected::Scalar(scalar.clone()),
        _ => Expected::Any,
    }
}

fn split_scope(text: &str) -> (String, String) {
    let (scope, file) = text.split_once('=').unwrap_or(("", text));
    (scope.to_owned(), file.to_owned())
}

fn text(value: &Json) -> Result<&str> {
    value.as_str().with_context(|| format!("expected a string, found {value}"))
}
