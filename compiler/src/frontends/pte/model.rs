//! The front end for programs of ExecuTorch: their methods, what these take and give, and the way to graphs.

use std::path::Path;

use bytes::Bytes;
use halite_formats::pte::{Dynamism, PROGRAM_IDENTIFIER, Plan, Program, Tensor, Value};
use halite_ops::DType;

use super::{
    Result,
    buffers::{self, Buffer},
    data, outline, plan,
    types::element_of,
};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    frontends::{FrontEnd, Recognition, Source, SourceModel, outline::Outline},
    graph::{ElementType, Graph},
    signature::{Arity, Bindings, Dim, Signature},
    states::Kept,
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
    /// What each method keeps from call to call, or why that cannot be told.
    buffers: Vec<Result<Vec<Buffer>, String>>,
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
            model.find_buffers();
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
        let mut model = Model { program, bytes: bytes.len() as u64, buffers: Vec::new() };
        model.find_buffers();
        Ok(model)
    }

    fn find_buffers(&mut self) {
        self.buffers = self.program.plans.iter().map(|plan| buffers::of(&self.program, plan)).collect();
    }

    /// Names of the methods; most programs have one, `forward`.
    pub fn methods(&self) -> Vec<&str> {
        self.program.plans.iter().map(|plan| plan.name.as_str()).collect()
    }

    /// The tensors that a method is handed, called `input0`, `input1`, … by their places. Numbers among its inputs are
    /// fixed when the program is exported and are not handed in. Of a tensor whose sizes may vary the file tells upper
    /// bounds only: its dimensions are unknown. Buffers that the method keeps from call to call come last.
    ///
    /// # Errors
    /// There is no such method.
    pub fn inputs(&self, method: &str) -> Result<Vec<Signature>> {
        let (plan, buffers) = self.plan(method)?;
        let tensor = |(i, id): (usize, &usize)| match &plan.values[*id] {
            Value::Tensor(tensor) => Some(signature(format!("input{i}"), tensor)),
            _ => None,
        };
        let given = plan.inputs.iter().enumerate().filter_map(tensor);
        Ok(given.chain(buffers.iter().map(Buffer::input)).collect())
    }

    /// The tensors that a method gives, called `output0`, `output1`, … by their places. Numbers are tensors without dimensions. The new
    /// values of buffers come last.
    ///
    /// # Errors
    /// There is no such method.
    pub fn outputs(&self, method: &str) -> Result<Vec<Signature>> {
        let (plan, buffers) = self.plan(method)?;
        let tensor = |(i, id): (usize, &usize)| match &plan.values[*id] {
            Value::Tensor(tensor) => Some(signature(format!("output{i}"), tensor)),
            _ => number(plan, (i, id)),
        };
        let given = plan.outputs.iter().enumerate().filter_map(tensor);
        Ok(given.chain(buffers.iter().map(Buffer::output)).collect())
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
        let make = || {
            let mut builder = Builder::of_file(control, self.bytes.saturating_add(beside));
            builder.seed(bindings.seed);
            builder
        };
        plan::import(&self.program, self.plan(method)?, &self.inputs(method)?, bindings, (&make, control))
    }

    fn plan(&self, method: &str) -> Result<(&Plan, &[Buffer])> {
        let mut all = self.program.plans.iter().zip(&self.buffers);
        match all.find(|(plan, _)| plan.name == method) {
            Some((plan, Ok(buffers))) => Ok((plan, buffers)),
            Some((plan, Err(reason))) => {
                let location = SourceLocation::new(format!("method '{}'", plan.name));
                Err(CompileError::unsupported(&location, reason.clone()))
            }
            None => {
                let all = self.methods().join(", ");
                let reason = format!("the program has no method '{method}'; there are: {all}");
                Err(CompileError::Request(reason))
            }
        }
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

    fn kept(&self, function: &str) -> Result<Vec<Kept>> {
        Ok(self.plan(function)?.1.iter().map(Buffer::kept).collect())
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
