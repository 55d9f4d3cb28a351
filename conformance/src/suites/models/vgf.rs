//! Cases of VGF and TOSA files, with what the TOSA reference model computes of their inputs: integers are equal to the bit.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use halite_compiler::{
    Control, Program, compile,
    frontends::{SourceModel, tosa, vgf},
    graph::Port,
    passes::optimize,
    signature::Bindings,
};
use halite_ops::Values;
use halite_runtime::{HostTensor, tensor::npy};
use serde_json::Value as Json;

use super::{For, Output};
use crate::{
    executor::Executor,
    suites::{Cases, Context, Outcome, Settings},
};

/// The one function of such files.
const MAIN: &str = "main";

/// A file with inputs and outputs, a line of a `manifest.jsonl`.
#[derive(Clone, Debug)]
struct Sample {
    folder: PathBuf,
    json: Json,
}

impl Sample {
    fn all(folder: &Path) -> Result<Vec<Sample>> {
        let path = folder.join("manifest.jsonl");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let sample = |line| Ok(Sample { folder: folder.to_owned(), json: serde_json::from_str(line)? });
        text.lines().map(sample).collect::<Result<_>>().with_context(|| format!("in {}", path.display()))
    }

    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap_or("file")
    }

    /// The files that have the same model: a `.vgf`, a `.tosa`, or both.
    fn files(&self) -> Vec<String> {
        let files = self.json["files"].as_array().into_iter().flatten();
        files.filter_map(|file| file.as_str().map(str::to_owned)).collect()
    }

    fn arrays(&self, which: &str) -> Result<Vec<HostTensor>> {
        let paths = self.json[which].as_array().with_context(|| format!("no {which}"))?;
        let read = |path: &Json| {
            let path = self.folder.join(path.as_str().context("a path is no text")?);
            let mut file = fs::File::open(&path).with_context(|| format!("opening {}", path.display()))?;
            npy::read(&mut file)?.with_context(|| format!("{} is empty", path.display()))
        };
        paths.iter().map(read).collect()
    }

    fn model(&self, file: &str) -> Result<Box<dyn SourceModel>> {
        let bytes = Bytes::from(fs::read(self.folder.join(file)).with_context(|| format!("reading {file}"))?);
        Ok(match file.ends_with(".tosa") {
            true => Box::new(tosa::Model::parse(bytes)?),
            false => Box::new(vgf::Model::parse(bytes)?),
        })
    }

    /// Compiles a file, runs it, and compares: floats within the manifest's bound, everything else to the bit.
    fn check(&self, file: &str, t: &Context, target: For) -> Outcome {
        let model = self.model(file)?;
        let (inputs, outputs) = (self.arrays("inputs")?, self.arrays("outputs")?);
        let mut graph = model.graph(MAIN, &Bindings::default(), &Control::default())?;
        optimize(&mut graph)?;
        let (takes, gives) = (graph.inputs.len(), graph.outputs.len());
        let fits = takes == inputs.len() && gives == outputs.len();
        let same = || -> Result<()> {
            ensure!(
                fits,
                "{takes} inputs and {gives} outputs; there are {} and {}",
                inputs.len(),
                outputs.len()
            );
            Ok(())
        };
        same()?;
        let values = |port: &Port, tensor: &HostTensor| {
            Values::from_bytes(graph.tensor(port.tensor).element.storage(), &tensor.data)
        };
        let arguments: Vec<_> = graph.inputs.iter().zip(&inputs).map(|(port, t)| values(port, t)).collect();
        let options = target.options(t.device().info())?;
        let module = compile(&Program::of(MAIN, graph.clone()), &options, &Control::default())?;
        let executor = Executor::new(t.device().clone());
        let found = executor.call(&executor.session(&module)?, MAIN, &graph, &arguments)?;
        let part = self.json["part"].as_f64().unwrap_or(0.0);
        for ((port, wanted), found) in graph.outputs.iter().zip(&outputs).zip(&found) {
            let wanted = values(port, wanted);
            let largest = (0..wanted.len()).map(|i| wanted.float(i).abs()).fold(0.0, f64::max);
            let is_float = graph.tensor(port.tensor).element.is_float();
            let bound = if is_float { part * largest } else { 0.0 };
            let output =
                Output { name: &port.name, graph: &graph, port: port.tensor, tolerance: (bound, 0.0) };
            output.compare(&wanted, found)?;
        }
        Ok(())
    }
}

/// The files of this repository, and those that are named.
pub(super) fn add(cases: &mut Cases, settings: &Settings) -> Result<()> {
    let own = settings.repository.as_ref().map(|root| root.join("conformance/vgf"));
    // What programs carry along may be older than these files.
    let own = own.filter(|folder| folder.join("manifest.jsonl").is_file());
    let named = settings.vgf_models.clone();
    let folders = own.map(|folder| ("repository", folder)).into_iter();
    for (origin, folder) in folders.chain(named.map(|folder| ("named", folder))) {
        for sample in Sample::all(&folder)? {
            let sample = Arc::new(sample);
            for file in sample.files() {
                let format = file.rsplit('.').next().unwrap_or_default().to_owned();
                for target in For::ALL {
                    let name = format!(
                        "vgf.{}:from={origin};format={format};target={}",
                        sample.name(),
                        target.name()
                    );
                    let (sample, file) = (sample.clone(), file.clone());
                    cases.add_tagged(name, &[], target.tags(), move |t| sample.check(&file, t, target));
                }
            }
        }
    }
    Ok(())
}
