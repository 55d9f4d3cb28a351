//! Graphs of ONNX models: nodes, attributes, and the types of values.

use bytes::Bytes;

use super::{DataType, OnnxError, Tensor, context::Context};
use crate::wire::Reader;

type Result<T> = std::result::Result<T, OnnxError>;

/// Most graphs and types inside of each other.
pub(super) const MOST_DEPTH: u32 = 32;

/// A graph: `GraphProto`.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Nodes, in an order in which they can be computed.
    pub nodes: Vec<Node>,
    /// Constants.
    pub initializers: Vec<Tensor>,
    /// Names of constants that are kept as sparse tensors.
    pub sparse_initializers: usize,
    /// What it is given.
    pub inputs: Vec<ValueInfo>,
    /// What it gives.
    pub outputs: Vec<ValueInfo>,
    /// What is known of values in between.
    pub values: Vec<ValueInfo>,
}

/// A node: `NodeProto`.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name; often empty.
    pub name: String,
    /// The operator.
    pub op_type: String,
    /// The operator's domain; empty for ONNX itself.
    pub domain: String,
    /// Which of the functions of that name, if the model has several.
    pub overload: String,
    /// Names of the values that it reads; empty for optional ones that are left out.
    pub inputs: Vec<String>,
    /// Names of the values that it defines; empty for those that nobody wants.
    pub outputs: Vec<String>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// An attribute: `AttributeProto`.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AttributeValue {
    /// A float.
    Float(f32),
    /// An integer.
    Int(i64),
    /// Text.
    String(Bytes),
    /// A tensor.
    Tensor(Box<Tensor>),
    /// A graph.
    Graph(Box<Graph>),
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Texts.
    Strings(Vec<Bytes>),
    /// Tensors.
    Tensors(Vec<Tensor>),
    /// Graphs.
    Graphs(Vec<Graph>),
    /// A type.
    Type(Box<Type>),
    /// In a function: the attribute of this name of the node that calls it.
    Reference(String),
    /// A sparse tensor, or what is not known.
    Other,
}

/// A size in a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Known.
    Known(u64),
    /// The same wherever the symbol is.
    Symbol(String),
    /// Not known.
    Unknown,
}

/// What a value is: `TypeProto`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// A tensor; without dimensions if not even their number is known.
    Tensor(Option<DataType>, Option<Vec<Dim>>),
    /// A list of values of a type.
    Sequence(Box<Type>),
    /// A value of a type, or none.
    Optional(Box<Type>),
    /// A map, a sparse tensor, or what is not known.
    Other,
}

/// A value by name, and what is known of it: `ValueInfoProto`.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    /// Its name.
    pub name: String,
    /// What it is, if that is said.
    pub value: Option<Type>,
}

impl Graph {
    pub(super) fn parse(bytes: Bytes, context: Context<'_>) -> Result<Graph> {
        const MESSAGE: &str = "GraphProto";
        let mut graph = Graph::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            context.check()?;
            match number {
                1 => graph.nodes.push(Node::parse(field.bytes(MESSAGE)?, context)?),
                2 => graph.name = field.text(MESSAGE)?,
                5 => graph.initializers.push(Tensor::parse(field.bytes(MESSAGE)?)?),
                11 => graph.inputs.push(ValueInfo::parse(field.bytes(MESSAGE)?)?),
                12 => graph.outputs.push(ValueInfo::parse(field.bytes(MESSAGE)?)?),
                13 => graph.values.push(ValueInfo::parse(field.bytes(MESSAGE)?)?),
                15 => graph.sparse_initializers += 1,
                _ => {}
            }
        }
        Ok(graph)
    }
}

impl Node {
    /// Reads a node.
    pub(super) fn parse(bytes: Bytes, context: Context<'_>) -> Result<Node> {
        const MESSAGE: &str = "NodeProto";
        let mut node = Node::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => node.inputs.push(field.text(MESSAGE)?),
                2 => node.outputs.push(field.text(MESSAGE)?),
                3 => node.name = field.text(MESSAGE)?,
                4 => node.op_type = field.text(MESSAGE)?,
                5 => node.attributes.push(Attribute::parse(field.bytes(MESSAGE)?, context)?),
                7 => node.domain = field.text(MESSAGE)?,
                8 => node.overload = field.text(MESSAGE)?,
                _ => {}
            }
        }
        Ok(node)
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|a| a.name == name).map(|a| &a.value)
    }
}

/// The fields of an attribute: which of them counts is said by its type, or by which is there.
#[derive(Default)]
struct Fields {
    name: String,
    reference: String,
    kind: i64,
    floats: Vec<f32>,
    ints: Vec<i64>,
    strings: Vec<Bytes>,
    tensors: Vec<Tensor>,
    graphs: Vec<Graph>,
    float: Option<f32>,
    int: Option<i64>,
    string: Option<Bytes>,
    tensor: Option<Tensor>,
    graph: Option<Graph>,
    value_type: Option<Type>,
}

impl Fields {
    fn value(self) -> AttributeValue {
        if !self.reference.is_empty() {
            return AttributeValue::Reference(self.reference);
        }
        // Default values need not be written, so the type decides where it is given.
        match self.kind {
            1 => AttributeValue::Float(self.float.unwrap_or(0.0)),
            2 => AttributeValue::Int(self.int.unwrap_or(0)),
            3 => AttributeValue::String(self.string.unwrap_or_default()),
            4 => AttributeValue::Tensor(Box::new(self.tensor.unwrap_or_default())),
            5 => AttributeValue::Graph(Box::new(self.graph.unwrap_or_default())),
            6 => AttributeValue::Floats(self.floats),
            7 => AttributeValue::Ints(self.ints),
            8 => AttributeValue::Strings(self.strings),
            9 => AttributeValue::Tensors(self.tensors),
            10 => AttributeValue::Graphs(self.graphs),
            13 => AttributeValue::Type(Box::new(self.value_type.unwrap_or(Type::Other))),
            0 => self.guessed(),
            _ => AttributeValue::Other,
        }
    }

    /// Early models do not say the type.
    fn guessed(self) -> AttributeValue {
        match self {
            Fields { float: Some(value), .. } => AttributeValue::Float(value),
            Fields { int: Some(value), .. } => AttributeValue::Int(value),
            Fields { string: Some(value), .. } => AttributeValue::String(value),
            Fields { tensor: Some(value), .. } => AttributeValue::Tensor(Box::new(value)),
            Fields { graph: Some(value), .. } => AttributeValue::Graph(Box::new(value)),
            Fields { value_type: Some(value), .. } => AttributeValue::Type(Box::new(value)),
            Fields { ints, .. } if !ints.is_empty() => AttributeValue::Ints(ints),
            Fields { floats, .. } if !floats.is_empty() => AttributeValue::Floats(floats),
            Fields { strings, .. } if !strings.is_empty() => AttributeValue::Strings(strings),
            Fields { tensors, .. } if !tensors.is_empty() => AttributeValue::Tensors(tensors),
            Fields { graphs, .. } if !graphs.is_empty() => AttributeValue::Graphs(graphs),
            _ => AttributeValue::Other,
        }
    }
}

impl Attribute {
    /// Reads an attribute of a node.
    pub(super) fn parse(bytes: Bytes, context: Context<'_>) -> Result<Attribute> {
        const MESSAGE: &str = "AttributeProto";
        let inner = |bytes| {
            if context.depth >= MOST_DEPTH {
                return Err(OnnxError::invalid(MESSAGE, format!("more than {MOST_DEPTH} nested graphs")));
            }
            Graph::parse(bytes, Context { depth: context.depth + 1, ..context })
        };
        let mut fields = Fields::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            context.check()?;
            match number {
                1 => fields.name = field.text(MESSAGE)?,
                2 => fields.float = Some(field.float(MESSAGE)?),
                3 => fields.int = Some(field.int(MESSAGE)?),
                4 => fields.string = Some(field.bytes(MESSAGE)?),
                5 => fields.tensor = Some(Tensor::parse(field.bytes(MESSAGE)?)?),
                6 => fields.graph = Some(inner(field.bytes(MESSAGE)?)?),
                7 => field.floats(MESSAGE, &mut fields.floats)?,
                8 => field.ints(MESSAGE, &mut fields.ints)?,
                9 => fields.strings.push(field.bytes(MESSAGE)?),
                10 => fields.tensors.push(Tensor::parse(field.bytes(MESSAGE)?)?),
                11 => fields.graphs.push(inner(field.bytes(MESSAGE)?)?),
                14 => fields.value_type = Some(Type::parse(field.bytes(MESSAGE)?, 0)?),
                20 => fields.kind = field.int(MESSAGE)?,
                21 => fields.reference = field.text(MESSAGE)?,
                _ => {}
            }
        }
        Ok(Attribute { name: std::mem::take(&mut fields.name), value: fields.value() })
    }
}

impl ValueInfo {
    fn parse(bytes: Bytes) -> Result<ValueInfo> {
        const MESSAGE: &str = "ValueInfoProto";
        let mut info = ValueInfo { name: String::new(), value: None };
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => info.name = field.text(MESSAGE)?,
                2 => info.value = Some(Type::parse(field.bytes(MESSAGE)?, 0)?),
                _ => {}
            }
        }
        Ok(info)
    }
}

impl Type {
    fn parse(bytes: Bytes, depth: u32) -> Result<Type> {
        const MESSAGE: &str = "TypeProto";
        if depth > MOST_DEPTH {
            return Err(OnnxError::invalid(MESSAGE, format!("more than {MOST_DEPTH} nested types")));
        }
        let mut found = Type::Other;
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => found = Type::tensor(field.bytes(MESSAGE)?)?,
                4 => found = Type::Sequence(Box::new(Type::element(field.bytes(MESSAGE)?, depth)?)),
                9 => found = Type::Optional(Box::new(Type::element(field.bytes(MESSAGE)?, depth)?)),
                _ => {}
            }
        }
        Ok(found)
    }

    fn element(bytes: Bytes, depth: u32) -> Result<Type> {
        const MESSAGE: &str = "TypeProto.Sequence";
        let mut reader = Reader::new(MESSAGE, bytes);
        let mut found = Type::Other;
        while let Some((number, field)) = reader.field()? {
            if number == 1 {
                found = Type::parse(field.bytes(MESSAGE)?, depth + 1)?;
            }
        }
        Ok(found)
    }

    fn tensor(bytes: Bytes) -> Result<Type> {
        const MESSAGE: &str = "TypeProto.Tensor";
        let (mut data_type, mut dims) = (None, None);
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => data_type = DataType::from_number(field.int(MESSAGE)?),
                2 => dims = Some(shape(field.bytes(MESSAGE)?)?),
                _ => {}
            }
        }
        Ok(Type::Tensor(data_type, dims))
    }
}

fn shape(bytes: Bytes) -> Result<Vec<Dim>> {
    const MESSAGE: &str = "TensorShapeProto";
    let mut dims = Vec::new();
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        if number == 1 {
            dims.push(dim(field.bytes(MESSAGE)?)?);
        }
    }
    Ok(dims)
}

fn dim(bytes: Bytes) -> Result<Dim> {
    const MESSAGE: &str = "TensorShapeProto.Dimension";
    let mut dim = Dim::Unknown;
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        match number {
            1 => dim = u64::try_from(field.int(MESSAGE)?).map_or(Dim::Unknown, Dim::Known),
            2 => {
                let name = field.text(MESSAGE)?;
                // Some exporters write a question mark for what they do not know.
                dim = if name.is_empty() || name == "?" { Dim::Unknown } else { Dim::Symbol(name) };
            }
            _ => {}
        }
    }
    Ok(dim)
}
