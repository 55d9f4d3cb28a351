//! Models that are compiled ahead of time.

use std::path::PathBuf;

use halite_compiler::{self as inner, ModelFormat, frontends::outline::Outline};

use crate::{
    Error, ErrorKind, FunctionInfo, LoadMode, Result, RunOptions, Source, session::Ports, source::Loaded,
};

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    format: Option<ModelFormat>,
    load_mode: LoadMode,
    options: RunOptions,
}

impl OpenOptions {
    /// Its format is told by its content, its files are mapped, and there are no limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its format, where its content does not tell.
    #[must_use]
    pub fn format(mut self, format: ModelFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// How its files come into memory.
    #[must_use]
    pub fn load_mode(mut self, mode: LoadMode) -> Self {
        self.load_mode = mode;
        self
    }

    /// How the reading is done.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }
}

/// A model that was read.
#[derive(Debug)]
pub struct Model {
    inner: inner::Model,
    name: String,
}

impl Model {
    /// Reads a model: a path, bytes, or a [`Source`]; its format is told by its content.
    ///
    /// # Errors
    /// It cannot be read, or is no model.
    pub fn open(source: impl Into<Source>) -> Result<Model> {
        Self::open_with(source, &OpenOptions::new())
    }

    /// As [`Model::open`], with options.
    ///
    /// # Errors
    /// As [`Model::open`], and when the options end it.
    pub fn open_with(source: impl Into<Source>, options: &OpenOptions) -> Result<Model> {
        let limits = options.options.begin()?;
        let file = source.into().load(options.load_mode, &limits)?;
        let format = options.format.map_or_else(|| detect(&file), Ok)?;
        let name = file.stem().to_owned();
        let (inner, _) = super::read(file, format, options.load_mode, &limits)?;
        Ok(Model { inner, name })
    }

    /// Name of its file without folders and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its format.
    pub fn format(&self) -> ModelFormat {
        self.inner.format()
    }

    /// Its functions: what they take and give, and which sizes are open.
    ///
    /// # Errors
    /// The model says something of them that makes no sense.
    pub fn functions(&self) -> Result<Vec<FunctionInfo>> {
        let one = |name: String| Ok(Ports::of(&self.inner, &name)?.info(&name));
        self.inner.functions().into_iter().map(one).collect()
    }

    /// The files beside its own that were read so far: those that hold its weights are read when it is compiled.
    pub fn files(&self) -> Vec<PathBuf> {
        self.inner.files()
    }

    /// What is in its file, if the format has more to tell than functions: parts, operators and where they run, memory, data.
    pub fn outline(&self) -> Option<Outline> {
        self.inner.outline()
    }

    pub(super) fn inner(&self) -> &inner::Model {
        &self.inner
    }
}

fn detect(file: &Loaded) -> Result<ModelFormat> {
    let start = &file.bytes[..file.bytes.len().min(16)];
    ModelFormat::detect(start, file.name.as_ref()).ok_or_else(|| {
        if ModelFormat::is_module(start) {
            return Error::invalid(format!(
                "'{}' is a compiled module, not a model; a session runs it",
                file.name
            ));
        }
        let known: Vec<_> = ModelFormat::all().map(ModelFormat::name).collect();
        let text = format!("'{}' is no model of a format that is known ({})", file.name, known.join(", "));
        Error::new(ErrorKind::InvalidModel, text)
    })
}
