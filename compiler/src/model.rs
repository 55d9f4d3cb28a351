//! Models of any format: their functions, and the way from a model to a program with optimized graphs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    CompileError, Control, Function, ModelInfo, Place, Program, Progress, Stage,
    frontends::{ModelFormat, ReadFile, Source, SourceModel},
    graph::Graph,
    passes::{self, Halved},
    signature::{Bindings, Signature},
};

/// Which tensors are 16-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Those that the model has.
    #[default]
    Model,
    /// All that kernels take so; what the caller hands in and gets keeps its type.
    F16,
}

/// A model that was read.
#[derive(Debug)]
pub struct Model {
    format: ModelFormat,
    inner: Box<dyn SourceModel>,
    source: Source,
}

impl Model {
    /// Reads a model file of a format.
    ///
    /// # Errors
    /// The file cannot be read or is no such model.
    pub fn open(path: &Path, format: ModelFormat) -> Result<Model, CompileError> {
        Self::read(Source::open(path)?, format, &Control::default())
    }

    /// As [`Model::open`], with files read by `read`, which may map them: weights stay slices of what it gives, up to the
    /// module that is written. `read` itself is not interrupted; mapping takes no time.
    ///
    /// # Errors
    /// As [`Model::open`], and when `control` ends the work.
    pub fn open_with(
        path: &Path,
        format: ModelFormat,
        read: Arc<ReadFile>,
        control: &Control,
    ) -> Result<Model, CompileError> {
        Self::read(Source::open_with(path, read, control)?, format, control)
    }

    /// Reads a model that is all in these bytes.
    ///
    /// # Errors
    /// The bytes are no such model, or `control` ended the work.
    pub fn from_bytes(bytes: Bytes, format: ModelFormat, control: &Control) -> Result<Model, CompileError> {
        Self::read(Source::from_bytes(bytes), format, control)
    }

    fn read(source: Source, format: ModelFormat, control: &Control) -> Result<Model, CompileError> {
        control.report(Progress { stage: Stage::Reading, done: 0, total: 1 });
        control.check(Stage::Reading)?;
        let inner = format.front_end().read(source.clone(), control)?;
        if inner.functions().is_empty() {
            return Err(CompileError::invalid(&Place::default(), "the program has no methods"));
        }
        control.report(Progress { stage: Stage::Reading, done: 1, total: 1 });
        Ok(Model { format, inner, source })
    }

    /// Files that it was read from, beside its own: those that hold its weights.
    pub fn files(&self) -> Vec<PathBuf> {
        self.source.files_read()
    }

    /// Its format.
    pub fn format(&self) -> ModelFormat {
        self.format
    }

    /// What modules that are compiled from it say of it: for [`Program::model`].
    pub fn info(&self) -> ModelInfo {
        let name = self.source.name().unwrap_or(self.inner.name());
        ModelInfo { format: self.format.name().to_owned(), name: name.to_owned() }
    }

    /// Names of its functions, at least one.
    pub fn functions(&self) -> Vec<String> {
        self.inner.functions()
    }

    /// What the caller of a function hands in.
    ///
    /// # Errors
    /// There is no such function.
    pub fn inputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        self.inner.inputs(function)
    }

    /// What the caller of a function gets.
    ///
    /// # Errors
    /// There is no such function.
    pub fn outputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        self.inner.outputs(function)
    }

    fn known(&self, function: &str) -> Result<(), CompileError> {
        let known = self.functions();
        if known.iter().any(|own| own == function) {
            return Ok(());
        }
        let reason = format!("there is no function '{function}'; there are: {}", known.join(", "));
        Err(CompileError::Request(reason))
    }

    /// A function for several sets of sizes and values, with its graphs optimized.
    ///
    /// # Errors
    /// There is no such function, sizes or values are missing, the model is wrong or not supported, or `control` ended the
    /// work.
    pub fn function(
        &self,
        name: &str,
        versions: &[Bindings],
        precision: Precision,
        control: &Control,
    ) -> Result<(Function, Halved), CompileError> {
        self.known(name)?;
        let mut halved = Halved::default();
        let mut graphs = Vec::new();
        let total = versions.len();
        // Of several versions each is one step.
        let inner = if total > 1 { control.without_progress() } else { control.clone() };
        for (done, bindings) in versions.iter().enumerate() {
            if total > 1 {
                control.report(Progress { stage: Stage::Importing, done, total });
            }
            graphs.push(self.version(name, bindings, precision, &mut halved, &inner)?);
        }
        if total > 1 {
            control.report(Progress { stage: Stage::Importing, done: total, total });
        }
        Ok((Function { name: name.to_owned(), versions: graphs }, halved))
    }

    fn version(
        &self,
        name: &str,
        bindings: &Bindings,
        precision: Precision,
        halved: &mut Halved,
        control: &Control,
    ) -> Result<Graph, CompileError> {
        let mut graph = self.inner.graph(name, bindings, control)?;
        if precision == Precision::F16 {
            let count = passes::halve(&mut graph, control)?;
            halved.halved += count.halved;
            halved.kept += count.kept;
        }
        passes::optimize_with(&mut graph, control)?;
        Ok(graph)
    }

    /// A program of one function; see [`Model::function`].
    ///
    /// # Errors
    /// As [`Model::function`].
    pub fn program(
        &self,
        versions: &[Bindings],
        precision: Precision,
        control: &Control,
    ) -> Result<Program, CompileError> {
        let name = self.functions().swap_remove(0);
        let (function, _) = self.function(&name, versions, precision, control)?;
        Ok(Program { functions: vec![function], model: Some(self.info()) })
    }
}
