//! The front end for programs of ExecuTorch: their methods, what these take and give, and the way to graphs.

use std::path::Path;

use bytes::Bytes;
use halite_formats::pte::{Dynamism, PROGRAM_IDENTIFIER, Plan, Program, Tensor, Value};

use super::{Result, plan, types::element_of};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    frontends::{FrontEnd, Recognition, Source, SourceModel},
    graph::Graph,
    signature::{Arity, Bindings, Dim, Signature},
};

/// The front end for programs of ExecuTorch.
#[derive(Debug)]
pub struct ExecuTorch;

impl FrontEnd for ExecuTorch {
    fn id(&self) -> &'static str {
        "pte"
    }

    fn name(&self) -> &'static str {
        "ExecuTorch"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["pte"]
    }

    fn recognizes(&self, start: &[u8]) -> Recognition {
        match start.get(4..8) == Some(PROGRAM_IDENTIFIER) {
            true => Recognition::Certain,
            false => Recognition::No,
        }
    }

    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>> {
        control.check(Stage::Reading)?;
        Ok(Box::new(Model::parse(source.bytes)?))
    }
}

/// An ExecuTorch program.
#[derive(Debug)]
pub struct Model {
    program: Program,
}

impl Model {
    /// Reads a program's file.
    ///
    /// # Errors
    /// The file cannot be read or is no program.
    pub fn open(path: &Path) -> Result<Model> {
        Self::parse(Source::open(path)?.bytes)
    }

    /// Reads a program from the bytes of its file, which may be a mapping: constants of graphs are slices of it.
    ///
    /// # Errors
    /// The bytes are no program.
    pub fn parse(bytes: Bytes) -> Result<Model> {
        let program = Program::parse(&bytes)
            .map_err(|e| CompileError::invalid(&SourceLocation::default(), e.to_string()))?;
        Ok(Model { program })
    }

    /// Names of the methods; most programs have one, `forward`.
    pub fn methods(&self) -> Vec<&str> {
        self.program.plans.iter().map(|plan| plan.name.as_str()).collect()
    }

    /// The tensors that a method is handed, called `input0`, `input1`, … by their places. Numbers among its inputs are
    /// fixed when the program is exported and are not handed in. Of a tensor whose sizes may vary the file tells upper
    /// bounds only: its dimensions are unknown.
    ///
    /// # Errors
    /// There is no such method.
    pub fn inputs(&self, method: &str) -> Result<Vec<Signature>> {
        let plan = self.plan(method)?;
        Ok(signatures(plan, &plan.inputs, "input"))
    }

    /// The tensors that a method gives, called `output0`, `output1`, … by their places.
    ///
    /// # Errors
    /// There is no such method.
    pub fn outputs(&self, method: &str) -> Result<Vec<Signature>> {
        let plan = self.plan(method)?;
        Ok(signatures(plan, &plan.outputs, "output"))
    }

    /// The graph of a method for some sizes and values.
    ///
    /// # Errors
    /// Sizes or values are missing, or the program is wrong or not supported.
    pub fn graph(&self, method: &str, bindings: &Bindings) -> Result<Graph> {
        self.graph_with(method, bindings, &Control::default())
    }

    /// As [`Model::graph`], watched and stopped by `control`.
    ///
    /// # Errors
    /// As [`Model::graph`], and when `control` ends the work.
    pub fn graph_with(&self, method: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        plan::import(&self.program, self.plan(method)?, &self.inputs(method)?, bindings, control)
    }

    fn plan(&self, method: &str) -> Result<&Plan> {
        let found = self.program.plans.iter().find(|plan| plan.name == method);
        found.ok_or_else(|| {
            let all = self.methods().join(", ");
            CompileError::Request(format!("the program has no method '{method}'; there are: {all}"))
        })
    }
}

impl SourceModel for Model {
    /// Programs give themselves none.
    fn name(&self) -> &str {
        ""
    }

    fn functions(&self) -> Vec<String> {
        self.methods().into_iter().map(str::to_owned).collect()
    }

    fn inputs(&self, function: &str) -> Result<Vec<Signature>> {
        self.inputs(function)
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        self.outputs(function)
    }

    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        self.graph_with(function, bindings, control)
    }
}

fn signatures(plan: &Plan, ids: &[usize], name: &str) -> Vec<Signature> {
    let of = |(i, id): (usize, &usize)| match &plan.values[*id] {
        Value::Tensor(tensor) => Some(signature(format!("{name}{i}"), tensor)),
        _ => None,
    };
    ids.iter().enumerate().filter_map(of).collect()
}

fn signature(name: String, tensor: &Tensor) -> Signature {
    let dim = |size: &u64| match tensor.dynamism {
        Dynamism::Static => Dim::Known(*size),
        Dynamism::Bounded => Dim::UpTo(*size),
        Dynamism::Unbounded => Dim::Unknown,
    };
    let dims = Some(tensor.sizes.iter().map(dim).collect());
    let element = element_of(tensor.scalar_type);
    Signature { name, arity: Arity::Tensor, is_optional: false, element, dims }
}
