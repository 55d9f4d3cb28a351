//! Cases of ONNX models: those of the module corpus, with what ONNX Runtime computed of their inputs, and node tests.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use halite_compiler::{
    Control, Program, compile, frontends::onnx::Model, passes::optimize, signature::Bindings,
};
use halite_runtime::{HostTensor, tensor::npy};
use halite_tools::kernels::capabilities;

use super::For;
use crate::{
    executor::Executor,
    onnx::{self, OnDevice},
    replay,
    suites::{Cases, Context, Outcome, Settings, Stop},
};

/// How far results of models may be from ONNX Runtime's: as a part, and absolutely.
const TOLERANCE: (f64, f64) = (1e-3, 1e-3);
/// How far results of node tests may be off beside a part of a thousand.
const NODE_TOLERANCE: f64 = 1e-7;

pub(super) fn add(cases: &mut Cases, left_out: &mut Vec<String>, settings: &Settings) -> Result<()> {
    match &settings.corpus {
        Some(corpus) => add_models(cases, &corpus.join("models"))?,
        None => left_out.push("there is no corpus with ONNX models; name one with --corpus".to_owned()),
    }
    let own = settings.repository.as_ref().map(|root| root.join("conformance/tests/data/onnx"));
    if let Some(folder) = own.filter(|folder| folder.is_dir()) {
        add_nodes(cases, "tiny", &folder, TOLERANCE.1)?;
    }
    match &settings.onnx_tests {
        Some(folder) => add_nodes(cases, "node", folder, NODE_TOLERANCE)?,
        None => {
            left_out.push("the node tests of the 'onnx' package are not named; use --onnx-tests".to_owned());
        }
    }
    Ok(())
}

fn add_models(cases: &mut Cases, root: &Path) -> Result<()> {
    let entries = fs::read_dir(root).with_context(|| format!("reading {}", root.display()))?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    folders.sort();
    for folder in folders.into_iter().filter(|folder| folder.join("model.onnx").is_file()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = Arc::new(folder);
        for set in (0..).take_while(|set| file(&folder, *set, "input", 0).is_file()) {
            for target in For::ALL {
                let name = format!("onnx.{name}:set={set};target={}", target.name());
                let folder = folder.clone();
                cases.add_tagged(name, &[], target.tags(), move |t| model(t, &folder, set, target));
            }
        }
    }
    Ok(())
}

/// A tensor of a set: `input_0.npy` and `expected_0.npy` of the first, `set1_input_0.npy` and so on of the others.
fn file(folder: &Path, set: usize, what: &str, index: usize) -> PathBuf {
    let prefix = if set == 0 { String::new() } else { format!("set{set}_") };
    folder.join(format!("{prefix}{what}_{index}.npy"))
}

fn tensors(folder: &Path, set: usize, what: &str) -> Result<Vec<HostTensor>> {
    let paths = (0..).map(|index| file(folder, set, what, index)).take_while(|path| path.is_file());
    let read = |path: PathBuf| {
        let mut file = fs::File::open(&path)?;
        npy::read(&mut file)?.with_context(|| format!("{} is empty", path.display()))
    };
    paths.map(read).collect()
}

fn model(t: &Context, folder: &Path, set: usize, target: For) -> Outcome {
    let (inputs, expected) = (tensors(folder, set, "input")?, tensors(folder, set, "expected")?);
    let model = Model::open(&folder.join("model.onnx"))?;
    let shapes =
        model.inputs().iter().zip(&inputs).map(|(s, t)| (s.name.clone(), t.shape.to_vec())).collect();
    let mut graph = model.graph(&Bindings { shapes, ..Bindings::default() })?;
    optimize(&mut graph)?;
    let options = target.options(t.device().info())?;
    let module = compile(&Program::of("predict", graph), &options, &Control::default())?;
    let executor = Executor::new(t.device().clone());
    let found = executor.call_with(&executor.session(&module)?, "predict", &inputs)?;
    crate::suites::case::same("the number of results", found.len(), expected.len())?;
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if let Some(mut wrong) = replay::mismatch(found, expected, TOLERANCE)? {
            wrong.what = format!("result {index}: {}", wrong.what);
            return Err(Stop::Wrong(wrong));
        }
    }
    Ok(())
}

/// Adds models that lie in folders with their inputs and outputs, as node tests do.
fn add_nodes(cases: &mut Cases, area: &str, folder: &Path, tolerance: f64) -> Result<()> {
    for case in onnx::Case::all(folder)? {
        let case = Arc::new(case);
        for target in For::ALL {
            let short = case.name.strip_prefix("test_").unwrap_or(&case.name);
            let name = format!("{area}.{short}:target={}", target.name());
            let case = case.clone();
            cases.add_tagged(name, &[], target.tags(), move |t| node(t, &case, target, tolerance));
        }
    }
    Ok(())
}

fn node(t: &Context, case: &onnx::Case, target: For, tolerance: f64) -> Outcome {
    let own = match target {
        For::Everybody => None,
        For::Own => Some(capabilities(t.device().info()).map_err(Stop::Skip)?),
    };
    let engine = OnDevice::new(t.device().clone(), own);
    match (onnx::check(case, &engine, tolerance), onnx::superseded(&case.name)) {
        (onnx::Outcome::Passed, _) => Ok(()),
        (onnx::Outcome::Unsupported(reason), _) => Err(Stop::Skip(format!("not supported: {reason}"))),
        // What is corrected are values, which are told by their output.
        (onnx::Outcome::Failed(reason), Some(why)) if reason.starts_with("output ") => {
            Err(Stop::Skip(format!("superseded: {why}")))
        }
        (onnx::Outcome::Superseded(why), _) => Err(Stop::Skip(format!("superseded: {why}"))),
        (onnx::Outcome::Failed(reason), _) => Err(Stop::Fail(reason)),
    }
}
