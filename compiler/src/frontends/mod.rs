//! Front ends: each reads one format of models and builds graphs of it.
//!
//! A front end implements [`FrontEnd`] and stands in the list below; everything else asks [`ModelFormat`]. The page
//! `docs/how-to/add-a-front-end.md` says how one is added.

mod files;
mod format;
pub mod gguf;
pub mod onnx;
pub mod outline;
pub mod pte;
mod source;
pub mod tosa;
pub mod vgf;

use std::fmt;

use halite_ops::blocks::BlockFormat;

use crate::{
    CompileError, Control,
    graph::Graph,
    signature::{Bindings, Signature},
    states::Kept,
};
pub use files::ReadFile;
pub use format::ModelFormat;
pub use source::Source;

/// All front ends. Where two recognize a file equally well, the first reads it.
static FRONT_ENDS: &[&dyn FrontEnd] = &[&onnx::Onnx, &pte::ExecuTorch, &vgf::Vgf, &tosa::Tosa, &gguf::Gguf];

/// How sure a front end is that a file has its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recognition {
    /// It does not look like it.
    No,
    /// It may be. The end of the file's name counts more.
    Possible,
    /// It says so itself.
    Certain,
}

/// Reads models of one format.
pub trait FrontEnd: fmt::Debug + Sync {
    /// What the format is called in options: lower case, without spaces, like no other.
    fn id(&self) -> &'static str;

    /// What it is called in messages, and in the modules that are compiled from it.
    fn name(&self) -> &'static str;

    /// The ends of its files' names, in lower case and without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file begins like one of this format. `start` is at least its first 16 bytes, or all of a shorter file.
    fn recognizes(&self, start: &[u8]) -> Recognition;

    /// Reads a model.
    ///
    /// # Errors
    /// The file is no such model, or `control` ended the work.
    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>, CompileError>;
}

/// How a language model's caches hold keys and values: in blocks ([`halite_ops::cached`]), or as 16-bit floats where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheFormats {
    /// Blocks of keys.
    pub keys: Option<BlockFormat>,
    /// Blocks of values.
    pub values: Option<BlockFormat>,
}

/// A model that was read. What it keeps of the source's bytes are slices; nothing is copied.
pub trait SourceModel: fmt::Debug + Send + Sync {
    /// The name that the model gives itself; may be empty.
    fn name(&self) -> &str;

    /// Names of its functions, the one that is called by default first.
    fn functions(&self) -> Vec<String>;

    /// What the caller of a function hands in.
    ///
    /// # Errors
    /// There is no such function.
    fn inputs(&self, function: &str) -> Result<Vec<Signature>, CompileError>;

    /// What the caller of a function gets.
    ///
    /// # Errors
    /// There is no such function.
    fn outputs(&self, function: &str) -> Result<Vec<Signature>, CompileError>;

    /// Whether callers can hand in what a function takes: found out before sizes are asked for and calls are made.
    ///
    /// # Errors
    /// An input is of a type that no tensor has; the error says what to do instead.
    fn takes_tensors(&self, function: &str) -> Result<(), CompileError> {
        let _ = function;
        Ok(())
    }

    /// A function's graph for some sizes and values of inputs.
    ///
    /// # Errors
    /// There is no such function, sizes or values are missing, the model is wrong or not supported, or `control` ended the
    /// work.
    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph, CompileError>;

    /// What a function keeps from call to call by itself: inputs and outputs that its callers need not know.
    ///
    /// # Errors
    /// There is no such function.
    fn kept(&self, function: &str) -> Result<Vec<Kept>, CompileError> {
        let _ = function;
        Ok(Vec::new())
    }

    /// Inputs of a function that say which of two branches runs: one truth each. A graph for one value has the one branch alone.
    fn switches(&self, function: &str) -> Vec<String> {
        let _ = function;
        Vec::new()
    }

    /// Lets the model's caches have other formats than 16-bit floats, which changes what its functions take and give.
    ///
    /// # Errors
    /// The model has no caches of its own making, or they cannot have these formats.
    fn hold_caches(&mut self, formats: CacheFormats) -> Result<(), CompileError> {
        match formats == CacheFormats::default() {
            true => Ok(()),
            false => Err(CompileError::Request(
                "only models in GGUF files have caches whose type can be chosen".into(),
            )),
        }
    }

    /// Gives the model a function `batch` beside `main`, which takes a step of several sequences at once, and where these are to `draw` their
    /// tokens on the device, `batch_sample`.
    ///
    /// # Errors
    /// The model has no steps of its own making.
    fn decode_batches(&mut self, _draw: bool) -> Result<(), CompileError> {
        Err(CompileError::Request("only models in GGUF files take steps of several sequences at once".into()))
    }

    /// Gives the model a function `verify` beside `main`, a step of one sequence with the logits and the most likely token behind each of its
    /// tokens: for tokens that another model wrote.
    ///
    /// # Errors
    /// The model has no steps of its own making.
    fn verify_drafts(&mut self) -> Result<(), CompileError> {
        Err(CompileError::Request("only models in GGUF files look at tokens that another model wrote".into()))
    }

    /// What is in the file, if the format has more to tell than its functions.
    fn outline(&self) -> Option<outline::Outline> {
        None
    }
}
