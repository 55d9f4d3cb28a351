//! The front end for programs of ExecuTorch: their methods, what these take and give, and the way to graphs.

use std::path::Path;

use bytes::Bytes;
use halite_formats::pte::{Dynamism, PROGRAM_IDENTIFIER, Plan, Program, Tensor, Value};
use halite_ops::DType;

use super::{Result, data, outline, plan, types::element_of};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    frontends::{FrontEnd, Recognition, Source, SourceModel, outline::Outline},
    graph::{ElementType, Graph},
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
        Ok(Box::new(Model::read(&source, control)?))
    }
}

/// An ExecuTorch program.
#[derive(Debug)]
pub struct Model {
    program: Program,
    /// Bytes of its file.
    bytes: u64,
}

impl Model {
    /// Reads a program's file.
    ///
    /// # Errors
    /// The file cannot be read or is no program.
    pub fn open(path: &Path) -> Result<Model> {
        Self::read(&Source::open(path)?, &Control::default())
    }

    /// Reads a program, and from files beside it (`.ptd`) the data that it does not hold itself.
    fn read(source: &Source, control: &Control) -> Result<Model> {
        control.check(Stage::Reading)?;
        let mut model = Self::parse(source.bytes.clone())?;
        if let Some(files) = &source.files {
            let name = source.name().unwrap_or_default();
            data::add(&mut model.program, files, name, control)?;
        }
        Ok(model)
    }

    /// Reads a program from the bytes of its file, which may be a mapping: constants of graphs are slices of it.
    ///
    /// # Errors
    /// The bytes are no program.
    pub fn parse(bytes: Bytes) -> Result<Model> {
        let program = Program::parse(&bytes)
            .map_err(|e| CompileError::invalid(&SourceLocation::default(), e.to_string()))?;
        Ok(Model { program, bytes: bytes.len() as u64 })
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
        let tensor = |(i, id): (usize, &usize)| match &plan.values[*id] {
            Value::Tensor(tensor) => Some(signature(format!("input{i}"), tensor)),
            _ => None,
        };
        Ok(plan.inputs.iter().enumerate().filter_map(tensor).collect())
    }

    /// The tensors that a method gives, called `output0`, `output1`, … by their places. Numbers are tensors without dimensions.
    ///
    /// # Errors
    /// There is no such method.
    pub fn outputs(&self, method: &str) -> Result<Vec<Signature>> {
        let plan = self.plan(method)?;
        let tensor = |(i, id): (usize, &usize)| match &plan.values[*id] {
            Value::Tensor(tensor) => Some(signature(format!("output{i}"), tensor)),
            _ => number(plan, (i, id)),
        };
        Ok(plan.outputs.iter().enumerate().filter_map(tensor).collect())
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
        let beside = self.program.external.values().map(|data| data.len() as u64).sum::<u64>();
        let builder = Builder::of_file(control, self.bytes.saturating_add(beside));
        plan::import(&self.program, self.plan(method)?, &self.inputs(method)?, bindings, (builder, control))
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

    fn outline(&self) -> Option<Outline> {
        Some(outline::of(&self.program))
    }
}

/// What a number that a method gives is called and like: a tensor without dimensions.
fn number(plan: &Plan, (i, id): (usize, &usize)) -> Option<Signature> {
    let element = match &plan.values[*id] {
        Value::Int(_) => DType::I64.into(),
        Value::Double(_) => DType::F64.into(),
        Value::Bool(_) => ElementType::Bool,
        _ => return None,
    };
    let (name, dims) = (format!("output{i}"), Some(Vec::new()));
    Some(Signature { name, arity: Arity::Tensor, is_optional: false, element: Some(element), dims })
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
