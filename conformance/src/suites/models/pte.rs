//! Cases of ExecuTorch programs, with what PyTorch computes of their inputs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use halite_compiler::{
    CompileError, CompileOptions, Control, Program, compile,
    frontends::{SourceModel as _, pte::Model},
    graph::{Graph, Port},
    passes::optimize,
    signature::{Bindings, BoundValue},
};
use halite_ops::Values;
use halite_runtime::{HostTensor, tensor::npy};
use serde_json::Value as Json;

use super::{For, Output};
use crate::{
    executor::Executor,
    suites::{Cases, Context, Outcome, Settings, Stop},
};

/// A program with sets of inputs and outputs, a line of a `manifest.jsonl`.
#[derive(Clone, Debug)]
pub struct Export {
    folder: PathBuf,
    json: Json,
}

impl Export {
    /// The programs that a folder's manifest lists.
    ///
    /// # Errors
    /// The manifest cannot be read or is malformed.
    pub fn all(folder: &Path) -> Result<Vec<Export>> {
        let path = folder.join("manifest.jsonl");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let export = |line| Ok(Export { folder: folder.to_owned(), json: serde_json::from_str(line)? });
        text.lines().map(export).collect::<Result<_>>().with_context(|| format!("in {}", path.display()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.json["name"].as_str().unwrap_or("program")
    }

    /// Number of sets of inputs.
    pub fn sets(&self) -> usize {
        self.json["sets"].as_array().map_or(0, Vec::len)
    }

    fn arrays(&self, set: usize, which: &str) -> Result<Vec<HostTensor>> {
        let paths = self.json["sets"][set][which].as_array().with_context(|| format!("no {which}"))?;
        let read = |path: &Json| {
            let path = self.folder.join(path.as_str().context("a path is no text")?);
            let mut file = fs::File::open(&path).with_context(|| format!("opening {}", path.display()))?;
            npy::read(&mut file)?.with_context(|| format!("{} is empty", path.display()))
        };
        paths.iter().map(read).collect()
    }

    fn bound(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap_or(0.0)
    }

    /// Compiles it for the shapes of a set, runs it, and compares. Skips what the front end refuses.
    ///
    /// # Errors
    /// A result is wrong, or something fails.
    pub fn check(&self, executor: &Executor, set: usize, options: &CompileOptions) -> Outcome {
        let file = self.json["pte"].as_str().context("no program")?;
        let model = Model::open(&self.folder.join(file))?;
        let (inputs, outputs) = (self.arrays(set, "inputs")?, self.arrays(set, "outputs")?);
        // What is refused here the front end's own tests look at.
        let mut graph = graph(&model, &inputs).map_err(|error| Stop::Skip(error.to_string()))?;
        if !model.kept("forward")?.is_empty() {
            let why = "it keeps state from call to call: tests of sessions run its sets in order";
            return Err(Stop::Skip(why.to_owned()));
        }
        optimize(&mut graph)?;
        let values = |port: &Port, tensor: &HostTensor| {
            Values::from_bytes(graph.tensor(port.tensor).element.storage(), &tensor.data)
        };
        let arguments: Vec<_> = graph.inputs.iter().zip(&inputs).map(|(port, t)| values(port, t)).collect();
        let module = compile(&Program::of("forward", graph.clone()), options, &Control::default())?;
        let found = executor.call(&executor.session(&module)?, "forward", &graph, &arguments)?;
        for ((port, wanted), found) in graph.outputs.iter().zip(&outputs).zip(&found) {
            let tolerance = (self.bound("atol"), self.bound("rtol"));
            let output = Output { name: &port.name, graph: &graph, port: port.tensor, tolerance };
            output.compare(&values(port, wanted), found)?;
        }
        Ok(())
    }
}

/// The graph for the inputs at hand.
fn graph(model: &Model, inputs: &[HostTensor]) -> std::result::Result<Graph, CompileError> {
    let signatures = model.inputs("forward")?;
    let mut bindings = Bindings::default();
    for (signature, input) in signatures.iter().zip(inputs) {
        bindings.shapes.insert(signature.name.clone(), input.shape.to_vec());
    }
    let wanted = match model.graph("forward", &bindings) {
        Err(CompileError::NeedsValues { inputs, .. }) => inputs,
        other => return other,
    };
    for (signature, input) in signatures.iter().zip(inputs).filter(|(s, _)| wanted.contains(&s.name)) {
        let Some(element) = signature.element else { continue };
        let value = BoundValue { element, dims: input.shape.to_vec(), bytes: input.data.clone().into() };
        bindings.values.insert(signature.name.clone(), value);
    }
    model.graph("forward", &bindings)
}

/// The programs of this repository, those beside the module corpus, and those that are named.
pub(super) fn add(cases: &mut Cases, left_out: &mut Vec<String>, settings: &Settings) -> Result<()> {
    let mut folders = Vec::new();
    match &settings.repository {
        Some(root) => folders.push(("repository", root.join("conformance/pte"))),
        None => left_out.push("there are no models of this repository; name it with --repository".to_owned()),
    }
    let beside = settings.corpus.as_ref().and_then(|corpus| Some(corpus.parent()?.join("pte")));
    match beside.filter(|folder| folder.join("manifest.jsonl").is_file()) {
        Some(folder) => folders.push(("corpus", folder)),
        None => left_out.push("there are no ExecuTorch programs beside a corpus".to_owned()),
    }
    folders.extend(settings.pte_models.as_ref().map(|folder| ("named", folder.clone())));
    for (origin, folder) in folders {
        for export in Export::all(&folder)? {
            let export = Arc::new(export);
            for set in 0..export.sets() {
                for target in For::ALL {
                    let name =
                        format!("pte.{}:from={origin};set={set};target={}", export.name(), target.name());
                    let export = export.clone();
                    cases.add_tagged(name, &[], target.tags(), move |t| run(t, &export, set, target));
                }
            }
        }
    }
    Ok(())
}

fn run(t: &Context, export: &Export, set: usize, target: For) -> Outcome {
    let options = target.options(t.device().info())?;
    export.check(&Executor::new(t.device().clone()), set, &options)
}
