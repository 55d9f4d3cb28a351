//! Expressions: straight-line programs over the elements of tensors, in single-assignment form.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::function::{Function, Type};
use crate::DType;

/// Most values of an expression: keeps the work of every pass and the size of code bounded.
const MOST_NODES: usize = 1024;

/// A number or truth value written in an expression. Floats are equal when they are the same `f32`, bit for bit.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// True or false.
    Bool(bool),
    /// A float; a value of `f32`.
    Float(f64),
    /// An integer of a type; of `u64` its bits.
    Int(i64, DType),
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl Scalar {
    /// What tells it from others.
    fn bits(self) -> (Type, u64) {
        let bits = match self {
            Scalar::Bool(value) => value.into(),
            Scalar::Float(value) => (value as f32).to_bits().into(),
            Scalar::Int(value, _) => value as u64,
        };
        (self.type_of(), bits)
    }

    /// Its type.
    pub fn type_of(self) -> Type {
        match self {
            Scalar::Bool(_) => Type::Bool,
            Scalar::Float(_) => Type::Of(DType::F32),
            Scalar::Int(_, dtype) => Type::Of(dtype),
        }
    }

    /// Its value as an integer; a float's is truncated.
    pub fn whole(self) -> i128 {
        match self {
            Scalar::Bool(value) => value.into(),
            Scalar::Float(value) => value as i128,
            Scalar::Int(value, DType::U64) => (value as u64).into(),
            Scalar::Int(value, _) => value.into(),
        }
    }
}

/// What a function is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The element of an input tensor.
    Input(usize),
    /// The result of an earlier node.
    Node(usize),
    /// A constant.
    Constant(Scalar),
    /// A table, whose elements are read by their numbers; only [`Function::Lookup`] takes one.
    Table(usize),
}

impl From<f32> for Operand {
    fn from(value: f32) -> Self {
        Operand::Constant(Scalar::Float(value.into()))
    }
}

/// A function applied to operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The function.
    pub function: Function,
    /// The type that `cast` and `quantize` name.
    pub to: Option<Type>,
    /// Its operands.
    pub operands: Vec<Operand>,
}

/// A result that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// What is stored.
    pub value: Operand,
    /// Type in memory: any float type for floats, `u8` for booleans, the value's own type for integers.
    pub dtype: DType,
}

/// A program over the elements of tensors: nodes in the order of computation, and what of them is stored. As text:
/// `add $0 $1; relu %0 -> %1:f16`, with `$` for inputs, `%` for nodes, `@` for tables, and constants like `0.5`, `3i32`, `true`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What is stored; each is a tensor.
    pub outputs: Vec<Output>,
}

impl Expression {
    /// Appends `function(operands)`.
    pub fn call(&mut self, function: Function, operands: &[Operand]) -> Operand {
        self.push(Node { function, to: None, operands: operands.to_vec() })
    }

    /// Appends a conversion to `to`.
    pub fn cast(&mut self, to: Type, operand: Operand) -> Operand {
        self.push(Node { function: Function::Cast, to: Some(to), operands: vec![operand] })
    }

    /// Appends a look-up of an entry of a table, whose entries are of a type, by its number.
    pub fn lookup(&mut self, dtype: DType, number: Operand, table: Operand) -> Operand {
        let to = Some(Type::Of(dtype));
        self.push(Node { function: Function::Lookup, to, operands: vec![number, table] })
    }

    /// Appends a node; the operand that means its result.
    pub fn push(&mut self, node: Node) -> Operand {
        self.nodes.push(node);
        Operand::Node(self.nodes.len() - 1)
    }

    /// Stores a value as a tensor of a type.
    pub fn store(&mut self, value: Operand, dtype: DType) {
        self.outputs.push(Output { value, dtype });
    }

    /// The look-ups: the table, and the type that its entries have in the program.
    pub fn lookups(&self) -> impl Iterator<Item = (usize, Type)> {
        self.nodes.iter().filter_map(|node| match node.operands[..] {
            [_, Operand::Table(table)] => Some((table, node.to?)),
            _ => None,
        })
    }

    /// The types of the nodes, for inputs of the types.
    ///
    /// # Errors
    /// Names the node or output that is wrong, and why.
    pub fn types(&self, inputs: &[DType]) -> Result<Vec<Type>, String> {
        if self.nodes.len() > MOST_NODES {
            return Err(format!("{} nodes are more than {MOST_NODES}", self.nodes.len()));
        }
        let mut types = Vec::with_capacity(self.nodes.len());
        // One list for all nodes: passes that join nodes ask again for each.
        let mut operands = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let result = operand_types(node, inputs, &types, &mut operands)
                .and_then(|()| node.function.result(&operands, node.to));
            types.push(result.map_err(|reason| format!("%{index}: {reason}"))?);
        }
        if self.outputs.is_empty() {
            return Err("nothing is stored; end with '-> %0:f32'".to_owned());
        }
        for (index, output) in self.outputs.iter().enumerate() {
            let value = operand_type(output.value, inputs, &types)?;
            let fits = match value {
                Type::Bool => output.dtype == DType::U8,
                Type::Of(dtype) => dtype == output.dtype || dtype.is_float() && output.dtype.is_float(),
                Type::Table => false,
            };
            if !fits {
                return Err(format!("output {index}: a {value} is not stored as {}; cast it", output.dtype));
            }
        }
        Ok(types)
    }
}

/// Puts the types of a node's operands into a list.
fn operand_types(node: &Node, inputs: &[DType], types: &[Type], found: &mut Vec<Type>) -> Result<(), String> {
    found.clear();
    for operand in &node.operands {
        found.push(operand_type(*operand, inputs, types)?);
    }
    Ok(())
}

/// The type of an operand, `types` being those of the nodes before.
///
/// # Errors
/// There is no such input or node.
pub fn operand_type(operand: Operand, inputs: &[DType], types: &[Type]) -> Result<Type, String> {
    match operand {
        Operand::Input(i) => inputs
            .get(i)
            .map(|dtype| Type::Of(*dtype).computed())
            .ok_or_else(|| format!("${i} is not there; there are {} inputs", inputs.len())),
        Operand::Node(i) => types.get(i).copied().ok_or_else(|| format!("%{i} is not computed before")),
        Operand::Constant(scalar) => Ok(scalar.type_of()),
        Operand::Table(_) => Ok(Type::Table),
    }
}
