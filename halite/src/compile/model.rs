//! Owns models that are compiled ahead of time. Does not own: reading them (`files`).

use halite_compiler::{self as inner, ModelFormat};

use crate::{Error, ErrorKind, FunctionInfo, Limits, LoadMode, Result, Source, session::model_info, source::Loaded};

/// A model that was read: ONNX, or a program of ExecuTorch.
#[derive(Debug)]
pub struct Model {
    inner: inner::Model,
    format: ModelFormat,
    name: String,
}

impl Model {
    /// Reads a model: a path, bytes, or a [`Source`]; its format is told by its content.
    ///
    /// # Errors
    /// It cannot be read, or is no model.
    pub fn open(source: impl Into<Source>) -> Result<Model> {
        Self::open_with(source, None, LoadMode::Map, &Limits::new())
    }

    /// As [`Model::open`], with the format said (`onnx`, `pte`), how files come into memory, and limits.
    ///
    /// # Errors
    /// As [`Model::open`], and when a limit is reached.
    pub fn open_with(
        source: impl Into<Source>,
        format: Option<&str>,
        mode: LoadMode,
        limits: &Limits,
    ) -> Result<Model> {
        limits.check("reading the model")?;
        let file = source.into().load(mode)?;
        let format = match format {
            Some("onnx") => ModelFormat::Onnx,
            Some("pte") => ModelFormat::Pte,
            Some(other) => {
                return Err(Error::invalid(format!("models have no format '{other}'; there are: onnx, pte")));
            }
            None => detect(&file)?,
        };
        let name = file.stem().to_owned();
        let (inner, _) = super::read(file, format, mode, limits)?;
        Ok(Model { inner, format, name })
    }

    /// Name of its file without folders and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of its format, for people.
    pub fn format(&self) -> &'static str {
        self.format.name()
    }

    /// Its functions: what they take and give, and which sizes are open.
    ///
    /// # Errors
    /// The model says something of them that makes no sense.
    pub fn functions(&self) -> Result<Vec<FunctionInfo>> {
        let one = |name: String| {
            let inputs = self.inner.inputs(&name).map_err(super::error)?;
            let outputs = self.inner.outputs(&name).map_err(super::error)?;
            Ok(model_info(&name, &inputs, &outputs))
        };
        self.inner.functions().into_iter().map(one).collect()
    }

    pub(super) fn inner(&self) -> &inner::Model {
        &self.inner
    }
}

fn detect(file: &Loaded) -> Result<ModelFormat> {
    let start = &file.bytes[..file.bytes.len().min(16)];
    ModelFormat::detect(start, file.name.as_ref()).ok_or_else(|| {
        if ModelFormat::is_module(start) {
            return Error::invalid(format!("'{}' is a compiled module, not a model; a session runs it", file.name));
        }
        let known: Vec<_> = ModelFormat::ALL.iter().map(|format| format.name()).collect();
        let text = format!("'{}' is no model of a format that is known ({})", file.name, known.join(", "));
        Error::new(ErrorKind::InvalidModel, text)
    })
}

/// Whether a file with this beginning and name is a model; `false` for modules and for what is unknown.
pub fn is_model(start: &[u8], name: &std::path::Path) -> bool {
    ModelFormat::detect(start, name).is_some()
}
