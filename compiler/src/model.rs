//! Owns models of any format: which format a file has, its functions, and the way from it to a program. Does not own: any
//! format.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use halite_formats::onnx::NoExternalData;

use crate::{
    CompileError, Control, Function, ModelInfo, Place, Program, Progress, Stage,
    graph::Graph,
    onnx,
    passes::{self, Halved},
    pte,
    signature::{Bindings, Signature},
};

/// Formats of models that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFormat {
    /// ONNX, `.onnx`.
    Onnx,
    /// Programs of ExecuTorch, `.pte`.
    Pte,
}

impl ModelFormat {
    /// All of them.
    pub const ALL: [ModelFormat; 2] = [ModelFormat::Onnx, ModelFormat::Pte];

    /// The format of a file by its first bytes (16 are enough), or by the end of its name where these do not tell.
    pub fn detect(start: &[u8], path: &Path) -> Option<ModelFormat> {
        if ModelFormat::is_module(start) {
            return None;
        }
        if start.get(4..8) == Some(halite_formats::pte::PROGRAM_IDENTIFIER) {
            return Some(ModelFormat::Pte);
        }
        let by_name = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match by_name.as_deref() {
            Some("onnx") => Some(ModelFormat::Onnx),
            Some("pte") => Some(ModelFormat::Pte),
            // A protocol buffer whose first field is the version of the representation, a small number.
            _ if matches!(start, [0x08, version, 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a, ..] if *version < 64) => {
                Some(ModelFormat::Onnx)
            }
            _ => None,
        }
    }

    /// Whether a file with this beginning is a compiled module (`.vmfb`), bare or in the dress of a zip file.
    pub fn is_module(start: &[u8]) -> bool {
        let is_flatbuffer = start.get(4..8) == Some(b"IREE") || start.get(8..12) == Some(b"IREE");
        start.starts_with(b"PK\x03\x04") || is_flatbuffer
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            ModelFormat::Onnx => "ONNX",
            ModelFormat::Pte => "ExecuTorch",
        }
    }
}

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
#[non_exhaustive]
pub enum Model {
    /// From an ONNX file.
    Onnx(onnx::Model),
    /// From an ExecuTorch program.
    Pte(pte::Model),
}

impl Model {
    /// Reads a model file of a format.
    ///
    /// # Errors
    /// The file cannot be read or is no such model.
    pub fn open(path: &Path, format: ModelFormat) -> Result<Model, CompileError> {
        let read = |path: &Path| fs::read(path).map(Bytes::from);
        Self::open_with(path, format, Arc::new(read), &Control::default())
    }

    /// As [`Model::open`], with files read by `read`, which may map them: weights stay slices of what it gives, up to the
    /// module that is written. `read` itself is not interrupted; mapping takes no time.
    ///
    /// # Errors
    /// As [`Model::open`], and when `control` ends the work.
    pub fn open_with(
        path: &Path,
        format: ModelFormat,
        read: Arc<onnx::ReadFile>,
        control: &Control,
    ) -> Result<Model, CompileError> {
        begin(control)?;
        let model = match format {
            ModelFormat::Onnx => Model::Onnx(onnx::Model::open_with(path, read, control)?),
            ModelFormat::Pte => {
                let bytes = read(path)
                    .map_err(|source| CompileError::Io { path: path.display().to_string(), source })?;
                control.check(Stage::Reading)?;
                Model::Pte(pte::Model::parse(bytes)?.named(path))
            }
        };
        model.with_functions(control)
    }

    /// Reads a model that is all in these bytes.
    ///
    /// # Errors
    /// The bytes are no such model, or `control` ended the work.
    pub fn from_bytes(bytes: Bytes, format: ModelFormat, control: &Control) -> Result<Model, CompileError> {
        begin(control)?;
        let model = match format {
            ModelFormat::Onnx => Model::Onnx(onnx::Model::parse(bytes, Box::new(NoExternalData), control)?),
            ModelFormat::Pte => Model::Pte(pte::Model::parse(bytes)?),
        };
        model.with_functions(control)
    }

    fn with_functions(self, control: &Control) -> Result<Model, CompileError> {
        if self.functions().is_empty() {
            return Err(CompileError::invalid(&Place::default(), "the program has no methods"));
        }
        control.report(Progress { stage: Stage::Reading, done: 1, total: 1 });
        Ok(self)
    }

    /// Files that it was read from, beside its own: those that hold its weights.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Model::Onnx(model) => model.files(),
            Model::Pte(_) => Vec::new(),
        }
    }

    /// Its format.
    pub fn format(&self) -> ModelFormat {
        match self {
            Model::Onnx(_) => ModelFormat::Onnx,
            Model::Pte(_) => ModelFormat::Pte,
        }
    }

    /// What modules that are compiled from it say of it: for [`Program::model`].
    pub fn info(&self) -> ModelInfo {
        let name = match self {
            Model::Onnx(model) => model.name(),
            Model::Pte(model) => model.name(),
        };
        ModelInfo { format: self.format(), name: name.to_owned() }
    }

    /// Names of its functions, at least one.
    pub fn functions(&self) -> Vec<String> {
        match self {
            Model::Onnx(_) => vec!["main".to_owned()],
            Model::Pte(model) => model.methods().into_iter().map(str::to_owned).collect(),
        }
    }

    /// What the caller of a function hands in.
    ///
    /// # Errors
    /// There is no such function.
    pub fn inputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        match self {
            Model::Onnx(model) => Ok(model.inputs()),
            Model::Pte(model) => model.inputs(function),
        }
    }

    /// What the caller of a function gets.
    ///
    /// # Errors
    /// There is no such function.
    pub fn outputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        match self {
            Model::Onnx(model) => Ok(model.outputs()),
            Model::Pte(model) => model.outputs(function),
        }
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
        let mut graph = match self {
            Model::Onnx(model) => model.graph_with(bindings, control)?,
            Model::Pte(model) => model.graph_with(name, bindings, control)?,
        };
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

/// Reading begins.
fn begin(control: &Control) -> Result<(), CompileError> {
    control.report(Progress { stage: Stage::Reading, done: 0, total: 1 });
    control.check(Stage::Reading)
}

/// The name of a file without its folder.
pub(crate) fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content_first() {
        let of = |start: &[u8], name: &str| ModelFormat::detect(start, Path::new(name));
        assert_eq!(of(b"\x08\x08\x12\x07pytorch", "model"), Some(ModelFormat::Onnx));
        assert_eq!(of(b"", "MODEL.ONNX"), Some(ModelFormat::Onnx));
        assert_eq!(of(b"\x20\0\0\0ET12", "model.onnx"), Some(ModelFormat::Pte));
        assert_eq!(of(b"", "model.pte"), Some(ModelFormat::Pte));
        assert_eq!(of(b"PK\x03\x04", "model.onnx"), None);
        assert_eq!(of(b"\x20\0\0\0IREE", "model.onnx"), None);
        assert_eq!(of(b"hello", "model"), None);
    }
}
