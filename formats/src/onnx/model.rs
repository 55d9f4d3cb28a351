//! ONNX models: the graph, the functions beside it, and the versions of operators that they use.

use bytes::Bytes;

use super::{Attribute, Graph, Node, OnnxError, context::Context};
use crate::wire::Reader;

type Result<T> = std::result::Result<T, OnnxError>;

/// A model: `ModelProto`.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Version of the format.
    pub ir_version: i64,
    /// What wrote it.
    pub producer: String,
    /// Versions of the operators that the graph uses.
    pub opsets: Vec<OpsetId>,
    /// What it computes.
    pub graph: Graph,
    /// Functions that nodes may call.
    pub functions: Vec<Function>,
}

/// The version of a domain's operators: `OperatorSetIdProto`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpsetId {
    /// The domain; empty for ONNX itself.
    pub domain: String,
    /// Its version.
    pub version: i64,
}

/// An operator of the model's own: `FunctionProto`.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// Which of several of that name.
    pub overload: String,
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// Attributes that have defaults.
    pub defaults: Vec<Attribute>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Versions of the operators that it uses.
    pub opsets: Vec<OpsetId>,
}

impl Model {
    /// Reads a model.
    ///
    /// # Errors
    /// The bytes are no model.
    pub fn parse(bytes: Bytes) -> Result<Model> {
        Self::parse_while(bytes, &|| true)
    }

    /// As [`Model::parse`], as long as `goes_on` says so: it is asked after each part of a graph.
    ///
    /// # Errors
    /// As [`Model::parse`], and [`OnnxError::Stopped`] when `goes_on` said no.
    pub fn parse_while(bytes: Bytes, goes_on: &dyn Fn() -> bool) -> Result<Model> {
        const MESSAGE: &str = "ModelProto";
        let context = Context { depth: 1, goes_on };
        let (mut model, mut graph) = (Model::default(), None);
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            context.check()?;
            match number {
                1 => model.ir_version = field.int(MESSAGE)?,
                2 => model.producer = field.text(MESSAGE)?,
                7 => graph = Some(Graph::parse(field.bytes(MESSAGE)?, context)?),
                8 => model.opsets.push(OpsetId::parse(field.bytes(MESSAGE)?)?),
                25 => model.functions.push(Function::parse(field.bytes(MESSAGE)?, context)?),
                _ => {}
            }
        }
        model.graph =
            graph.ok_or_else(|| OnnxError::invalid(MESSAGE, "there is no graph; is it an ONNX model?"))?;
        Ok(model)
    }
}

impl OpsetId {
    fn parse(bytes: Bytes) -> Result<OpsetId> {
        const MESSAGE: &str = "OperatorSetIdProto";
        let mut opset = OpsetId::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => opset.domain = field.text(MESSAGE)?,
                2 => opset.version = field.int(MESSAGE)?,
                _ => {}
            }
        }
        Ok(opset)
    }
}

impl Function {
    fn parse(bytes: Bytes, context: Context<'_>) -> Result<Function> {
        const MESSAGE: &str = "FunctionProto";
        let mut function = Function::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            context.check()?;
            match number {
                1 => function.name = field.text(MESSAGE)?,
                4 => function.inputs.push(field.text(MESSAGE)?),
                5 => function.outputs.push(field.text(MESSAGE)?),
                7 => function.nodes.push(Node::parse(field.bytes(MESSAGE)?, context)?),
                9 => function.opsets.push(OpsetId::parse(field.bytes(MESSAGE)?)?),
                10 => function.domain = field.text(MESSAGE)?,
                11 => function.defaults.push(Attribute::parse(field.bytes(MESSAGE)?, context)?),
                13 => function.overload = field.text(MESSAGE)?,
                _ => {}
            }
        }
        Ok(function)
    }
}
