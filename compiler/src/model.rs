//! Models of any format: their functions, and the way from a model to a program with optimized graphs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    ChoiceWay, CompileError, CompileOptions, Control, Function, ModelInfo, Program, Progress, SourceLocation,
    Stage, TokenChoice,
    frontends::{CacheFormats, ModelFormat, ReadFile, Source, SourceModel, outline::Outline},
    graph::Graph,
    passes::{self, HalfPrecision, Observer, Precision, PrintGraph, print::Printer},
    signature::{Bindings, Signature},
    states::Kept,
};

/// A model that was read.
#[derive(Debug)]
pub struct Model {
    format: ModelFormat,
    inner: Box<dyn SourceModel>,
    source: Source,
    /// Where it has functions that choose tokens.
    choice: Option<TokenChoice>,
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
            return Err(CompileError::invalid(&SourceLocation::default(), "the program has no methods"));
        }
        control.report(Progress { stage: Stage::Reading, done: 1, total: 1 });
        Ok(Model { format, inner, source, choice: None })
    }

    /// Lets the caches of a language model have other formats than 16-bit floats; to be said before anything is asked of its functions.
    ///
    /// # Errors
    /// The model has no such caches, or they cannot have these formats.
    pub fn hold_caches(&mut self, formats: CacheFormats) -> Result<(), CompileError> {
        self.inner.hold_caches(formats)
    }

    /// Adds a function `batch` to a language model, which takes a step of several sequences at once, and where these are to `draw` their
    /// tokens on the device, `batch_sample`; to be said before anything is asked of its functions.
    ///
    /// # Errors
    /// The model has no steps of its own making.
    pub fn decode_batches(&mut self, draw: bool) -> Result<(), CompileError> {
        self.inner.decode_batches(draw)
    }

    /// Adds a function `verify` to a language model, a step of one sequence with the logits and the most likely token behind each of its
    /// tokens; to be said before anything is asked of its functions.
    ///
    /// # Errors
    /// The model has no steps of its own making.
    pub fn verify_drafts(&mut self) -> Result<(), CompileError> {
        self.inner.verify_drafts()
    }

    /// Adds functions that choose the next token by the logits of one of its functions, one for each [`ChoiceWay`].
    ///
    /// # Errors
    /// There is no such function or output, or the model has functions of these names.
    pub fn choose_tokens(&mut self, choice: TokenChoice) -> Result<(), CompileError> {
        choice.check(&self.functions(), &self.outputs(&choice.function)?)?;
        self.choice = Some(choice);
        Ok(())
    }

    /// Whether it has functions that [`Model::choose_tokens`] added.
    pub fn chooses_tokens(&self) -> bool {
        self.choice.is_some()
    }

    /// The choice that a function makes, if it is one that was added.
    fn chooses(&self, function: &str) -> Option<(&TokenChoice, ChoiceWay)> {
        self.choice.as_ref().zip(ChoiceWay::of(function))
    }

    /// Files that it was read from, beside its own: those that hold its weights.
    pub fn files(&self) -> Vec<PathBuf> {
        self.source.files_read()
    }

    /// Whether callers can hand in what a function takes.
    ///
    /// # Errors
    /// An input is of a type that no tensor has, such as texts; the error says what to do instead.
    pub fn takes_tensors(&self, function: &str) -> Result<(), CompileError> {
        match self.chooses(function) {
            Some(_) => Ok(()),
            None => self.inner.takes_tensors(function),
        }
    }

    /// What is in its file, if the format has more to tell than functions.
    pub fn outline(&self) -> Option<Outline> {
        self.inner.outline()
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
        let mut all = self.inner.functions();
        if self.choice.is_some() {
            all.extend(ChoiceWay::ALL.map(|way| way.name().to_owned()));
        }
        all
    }

    /// What the caller of a function hands in.
    ///
    /// # Errors
    /// There is no such function.
    pub fn inputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        match self.chooses(function) {
            None => self.inner.inputs(function),
            Some((choice, way)) => {
                let mut own = choice.sized(self.inner.inputs(&choice.function)?);
                let kept = own.len() - self.inner.kept(&choice.function)?.len().min(own.len());
                own.splice(kept..kept, way.inputs());
                Ok(own)
            }
        }
    }

    /// What the caller of a function gets.
    ///
    /// # Errors
    /// There is no such function.
    pub fn outputs(&self, function: &str) -> Result<Vec<Signature>, CompileError> {
        self.known(function)?;
        match self.chooses(function) {
            None => self.inner.outputs(function),
            Some((choice, _)) => Ok(choice.outputs(self.inner.outputs(&choice.function)?)),
        }
    }

    /// What a function keeps from call to call by itself.
    ///
    /// # Errors
    /// There is no such function.
    pub fn kept(&self, function: &str) -> Result<Vec<Kept>, CompileError> {
        self.known(function)?;
        self.inner.kept(self.chooses(function).map_or(function, |(choice, _)| &choice.function))
    }

    /// Inputs of a function that say which of two branches runs, one truth each: for each value there is a graph of its own.
    pub fn switches(&self, function: &str) -> Vec<String> {
        self.inner.switches(self.chooses(function).map_or(function, |(choice, _)| &choice.function))
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
    ) -> Result<(Function, HalfPrecision), CompileError> {
        self.observed(name, versions, precision, control, &mut |_, _| ())
    }

    /// The graphs of a function as text, at a time between passes, for what the options are for.
    ///
    /// # Errors
    /// As [`Model::function`].
    pub fn print_graphs(
        &self,
        (name, versions): (&str, &[Bindings]),
        precision: Precision,
        options: &CompileOptions,
        when: PrintGraph,
        control: &Control,
    ) -> Result<String, CompileError> {
        let mut text = String::new();
        let mut printer = Printer::new(when, name, &mut text);
        let versions = &options.bound(versions)[..];
        self.observed(name, versions, precision, control, &mut |pass, graph| printer.observe(pass, graph))?;
        Ok(text)
    }

    fn observed(
        &self,
        name: &str,
        versions: &[Bindings],
        precision: Precision,
        control: &Control,
        observer: &mut Observer<'_>,
    ) -> Result<(Function, HalfPrecision), CompileError> {
        self.known(name)?;
        let mut half = HalfPrecision::default();
        let mut graphs = Vec::new();
        let total = versions.len();
        // Of several versions each is one step.
        let inner = if total > 1 { control.without_progress() } else { control.clone() };
        for (done, bindings) in versions.iter().enumerate() {
            if total > 1 {
                control.report(Progress { stage: Stage::Importing, done, total });
            }
            let mut graph = self.graph(name, bindings, &inner)?;
            graph.largest_binding = bindings.largest_binding;
            graph.matrix_units = bindings.matrix_units;
            let _entered = graph.enter();
            let states = || bindings.states.iter().map(|(input, output)| (input.as_str(), output.as_str()));
            graph.bind_states(states());
            graph.note_growing(states(), [bindings.row_step, bindings.row_alignment]);
            half.add(passes::optimize_with(&mut graph, precision, &inner, observer)?);
            graphs.push(graph);
        }
        if total > 1 {
            control.report(Progress { stage: Stage::Importing, done: total, total });
        }
        Ok((Function::new(name, graphs), half))
    }

    fn graph(&self, name: &str, bindings: &Bindings, control: &Control) -> Result<Graph, CompileError> {
        match self.chooses(name) {
            None => self.inner.graph(name, bindings, control),
            Some((choice, way)) => {
                let graph = self.inner.graph(&choice.function, &choice.bindings(bindings), control)?;
                let kept = self.inner.kept(&choice.function)?.len();
                choice.append(graph, kept, way, control)
            }
        }
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
