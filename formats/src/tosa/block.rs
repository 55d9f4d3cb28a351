//! A region of a `.tosa` file as a graph: its tensors and shapes by name, and its operators in order.

use std::collections::HashMap;

use bytes::Bytes;

use super::fields::attributes;
use super::tables::{each, text, texts};
use super::{
    ElementType, Graph, Kind, Node, Operator, Result, Spec, Tensor, TosaError, data, schema as s, shapes,
};
use crate::flatbuffer::Table;

/// Most bytes of a name in messages.
const MOST_NAME: usize = 80;
/// Most axes of a tensor.
const MOST_RANK: usize = 64;

/// A region that is being read.
pub(super) struct Block<'a> {
    file: &'a Bytes,
    /// Places of all regions by name.
    regions: &'a HashMap<String, usize>,
    made: Graph,
    tensors: HashMap<String, usize>,
    /// Sizes that are known, by name.
    shapes: HashMap<String, Vec<i64>>,
    /// Whether a tensor has its value where the reader is.
    known: Vec<bool>,
}

/// An operator with what it reads and makes, by name.
struct Call<'t> {
    table: Table<'t>,
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    location: String,
}

/// The beginning of a name.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(MOST_NAME)]
}

impl<'a> Block<'a> {
    /// A region of which nothing is read yet.
    pub(super) fn new(file: &'a Bytes, name: String, regions: &'a HashMap<String, usize>) -> Self {
        let made = Graph { name, ..Graph::default() };
        let (tensors, shapes, known) = (HashMap::new(), HashMap::new(), Vec::new());
        Block { file, regions, made, tensors, shapes, known }
    }

    /// Reads it.
    pub(super) fn read(mut self, block: &Table<'_>) -> Result<Graph> {
        each(block, &s::block::TENSORS, |tensor| self.tensor(&tensor))?;
        each(block, &s::block::SHAPES, |shape| self.shape(&shape))?;
        for name in texts(block, &s::block::INPUTS)? {
            let id = self.find(&name, "the inputs")?;
            if self.known[id] {
                return Err(TosaError::invalid("the inputs", format!("'{name}' is no input")));
            }
            self.known[id] = true;
            self.made.inputs.push(id);
        }
        each(block, &s::block::OPERATORS, |table| self.operator(table))?;
        for name in texts(block, &s::block::OUTPUTS)? {
            if self.shapes.contains_key(&name) {
                return Err(TosaError::unsupported("the outputs", format!("'{name}' is a shape")));
            }
            let id = self.value(&name, "the outputs")?;
            self.made.outputs.push(id);
        }
        Ok(self.made)
    }

    fn tensor(&mut self, t: &Table<'_>) -> Result<()> {
        let name = text(t, &s::tensor::NAME)?;
        let place = format!("tensor '{}'", short(&name));
        if t.scalar(&s::tensor::VARIABLE)? != 0 {
            return Err(TosaError::unsupported(place, "a variable: state that outlives a call"));
        }
        let number = t.scalar(&s::tensor::TYPE)?;
        let Some(element) = element_of(number) else {
            return Err(TosaError::unsupported(place, format!("the element type {number}")));
        };
        let sizes = t.vector(&s::tensor::SHAPE)?;
        if t.scalar(&s::tensor::IS_UNRANKED)? != 0 || sizes.len() > MOST_RANK {
            return Err(TosaError::unsupported(place, "the number of its axes is open or too large"));
        }
        let mut shape = Vec::with_capacity(sizes.len());
        for size in sizes.iter() {
            let size = size?;
            let open = |_| TosaError::unsupported(place.as_str(), format!("the open size {size}"));
            shape.push(u64::try_from(size).map_err(open)?);
        }
        let bytes = self.data(t, &place)?;
        // Without data it is a result or an input; a constant of no elements has none either.
        let constant = match bytes {
            Some(bytes) => Some(data::constant(element, &shape, &bytes, &place)?),
            None => None,
        };
        self.known.push(false);
        self.made.tensors.push(Tensor { name: short(&name).to_owned(), element, shape, constant });
        match self.tensors.insert(name, self.made.tensors.len() - 1) {
            None => Ok(()),
            Some(_) => Err(TosaError::invalid(place, "there is another one of this name")),
        }
    }

    /// The data of a tensor: in the FlatBuffer, or elsewhere in the file.
    fn data(&self, t: &Table<'_>, place: &str) -> Result<Option<Bytes>> {
        if let Some(range) = t.range(&s::tensor::DATA)?.filter(|range| !range.is_empty()) {
            return Ok(Some(self.file.slice(range)));
        }
        let (offset, size) = (t.scalar(&s::tensor::OFFSET)?, t.scalar(&s::tensor::SIZE)?);
        if size == 0 {
            return Ok(None);
        }
        let length = self.file.len();
        match offset.checked_add(size).filter(|end| *end <= length as u64) {
            Some(end) => Ok(Some(self.file.slice(offset as usize..end as usize))),
            None => Err(TosaError::invalid(
                place,
                format!("{size} bytes of data at {offset} end past the file's {length} bytes"),
            )),
        }
    }

    fn shape(&mut self, t: &Table<'_>) -> Result<()> {
        let name = text(t, &s::shape::NAME)?;
        let place = format!("shape '{}'", short(&name));
        let (rank, range) = (t.scalar(&s::shape::RANK)?, t.range(&s::shape::DATA)?);
        let range = range.filter(|range| !range.is_empty() || rank == 0);
        let Some(range) = range else { return Ok(()) };
        let sizes = data::sizes(rank, &self.file[range], &place)?;
        self.shapes.insert(name, sizes);
        Ok(())
    }

    fn find(&self, name: &str, place: &str) -> Result<usize> {
        let found = self.tensors.get(name).copied();
        found.ok_or_else(|| TosaError::invalid(place, format!("there is no tensor '{}'", short(name))))
    }

    /// A tensor that has its value.
    fn value(&self, name: &str, place: &str) -> Result<usize> {
        let id = self.find(name, place)?;
        if self.known[id] || self.made.tensors[id].constant.is_some() {
            return Ok(id);
        }
        let problem = format!("'{}' is read before it is computed", short(name));
        Err(TosaError::invalid(place, problem))
    }

    fn sizes(&self, name: &str, place: &str) -> Result<&Vec<i64>> {
        let found = self.shapes.get(name);
        let problem = || format!("the shape '{}' is not known before it is used", short(name));
        found.ok_or_else(|| TosaError::invalid(place, problem()))
    }

    fn operator(&mut self, table: Table<'_>) -> Result<()> {
        let number = table.scalar(&s::operator::OP)?;
        let (inputs, outputs) = (texts(&table, &s::operator::INPUTS)?, texts(&table, &s::operator::OUTPUTS)?);
        let name = operator_name(number);
        let told = match table.child(&s::operator::LOCATION)? {
            Some(location) => text(&location, &s::location::TEXT)?,
            None => String::new(),
        };
        let told = if told.is_empty() { outputs.first().cloned().unwrap_or_default() } else { told };
        let location = format!("{name} '{}'", short(&told));
        let call = Call { table, name, inputs, outputs, location };
        match call.name.as_str() {
            "CONST" | "CONST_SHAPE" => self.constant(&call),
            "DIM" => self.dim(&call),
            "ASSERT_EQUAL_SHAPE" => self.assert_equal(&call),
            name if name.ends_with("_SHAPE") => {
                let operands: Result<Vec<&[i64]>> = call
                    .inputs
                    .iter()
                    .map(|name| self.sizes(name, &call.location).map(Vec::as_slice))
                    .collect();
                let made = shapes::compute(name, &operands?).ok_or_else(|| {
                    TosaError::invalid(
                        call.location.as_str(),
                        "the sizes that it is given do not go together",
                    )
                })?;
                self.set_sizes(&call, made)
            }
            "COND_IF" | "WHILE_LOOP" => self.control(&call),
            "IDENTITY" => self.node(&call, Operator::Identity, &call.inputs),
            _ => self.plain(number, &call),
        }
    }

    /// A constant: its value stands at its result.
    fn constant(&mut self, call: &Call<'_>) -> Result<()> {
        let [name] = &call.outputs[..] else {
            let problem = format!("{} results; there is one", call.outputs.len());
            return Err(TosaError::invalid(call.location.as_str(), problem));
        };
        match self.tensors.contains_key(name) && call.name == "CONST" {
            true => self.value(name, &call.location).map(drop),
            false => self.sizes(name, &call.location).map(drop),
        }
    }

    fn set_sizes(&mut self, call: &Call<'_>, sizes: Vec<i64>) -> Result<()> {
        match &call.outputs[..] {
            [name] => {
                self.shapes.insert(name.clone(), sizes);
                Ok(())
            }
            _ => Err(TosaError::invalid(call.location.as_str(), "it has one result")),
        }
    }

    /// The size of a tensor along an axis.
    fn dim(&mut self, call: &Call<'_>) -> Result<()> {
        let bad = |what: &str| TosaError::invalid(call.location.as_str(), what);
        let [name] = &call.inputs[..] else { return Err(bad("it reads one tensor")) };
        let attribute = call.table.child(&s::operator::ATTRIBUTE)?.ok_or_else(|| bad("there is no axis"))?;
        let axis = usize::try_from(attribute.scalar(&s::axis::AXIS)?).ok();
        let shape = &self.made.tensors[self.find(name, &call.location)?].shape;
        let size = axis.and_then(|axis| shape.get(axis)).and_then(|size| i64::try_from(*size).ok());
        let size = size.ok_or_else(|| bad("the tensor has no such axis"))?;
        self.set_sizes(call, vec![size])
    }

    fn assert_equal(&self, call: &Call<'_>) -> Result<()> {
        let bad = |what: String| TosaError::invalid(call.location.as_str(), what);
        let [a, b] = &call.inputs[..] else { return Err(bad("it compares two shapes".to_owned())) };
        let (a, b) = (self.sizes(a, &call.location)?, self.sizes(b, &call.location)?);
        let may_broadcast = match call.table.child(&s::operator::ATTRIBUTE)? {
            Some(attribute) => attribute.scalar(&super::fields::FLAG)? != 0,
            None => false,
        };
        let fits = |(a, b): (&i64, &i64)| a == b || may_broadcast && (*a == 1 || *b == 1);
        match a.len() == b.len() && a.iter().zip(b).all(fits) {
            true => Ok(()),
            false => Err(bad(format!("the shapes {a:?} and {b:?} have to be equal"))),
        }
    }

    fn control(&mut self, call: &Call<'_>) -> Result<()> {
        let bad = |what: String| TosaError::invalid(call.location.as_str(), what);
        let attribute = call.table.child(&s::operator::ATTRIBUTE)?;
        let attribute = attribute.ok_or_else(|| bad("it names no graphs".to_owned()))?;
        let graph = |name: String| {
            let found = self.regions.get(&name).copied();
            found.ok_or_else(|| bad(format!("there is no graph '{}'", short(&name))))
        };
        let first = graph(text(&attribute, &s::control::FIRST)?)?;
        let second = graph(text(&attribute, &s::control::SECOND)?)?;
        let operator = match call.name.as_str() {
            "COND_IF" => Operator::CondIf { then_graph: first, else_graph: second },
            _ => Operator::WhileLoop { condition_graph: first, body_graph: second },
        };
        self.node(call, operator, &call.inputs)
    }

    /// An operator that SPIR-V has, too: its operands are inputs and attributes.
    fn plain(&mut self, number: u32, call: &Call<'_>) -> Result<()> {
        let place = call.location.as_str();
        let spec = number.checked_sub(1).and_then(Spec::numbered);
        let spec = spec.ok_or_else(|| TosaError::unsupported(place, "the operator is not known"))?;
        let table = call.table.child(&s::operator::ATTRIBUTE)?;
        let mut inputs = Vec::new();
        let mut given = call.inputs.iter();
        let element = call.inputs.first().and_then(|name| self.tensors.get(name));
        let element = element.map(|id| self.made.tensors[*id].element);
        let mut all = attributes(spec, table.as_ref(), element, place)?;
        for (name, kind) in spec.operands {
            let missing = || TosaError::invalid(place, format!("the input {name} is missing"));
            match kind {
                Kind::Tensor => inputs.push(given.next().ok_or_else(missing)?.clone()),
                Kind::Tensors => inputs.extend(given.by_ref().cloned()),
                Kind::One => {
                    let id = self.value(given.next().ok_or_else(missing)?, place)?;
                    let value = super::fields::one(&self.made.tensors[id]);
                    all.set_ints(
                        name,
                        vec![value.map_err(|e| TosaError::invalid(place, format!("{name} {e}")))?],
                    );
                }
                Kind::Ints if super::fields::is_input(name) => {
                    let sizes = self.sizes(given.next().ok_or_else(missing)?, place)?;
                    all.set_ints(name, sizes.clone());
                }
                _ => {}
            }
        }
        if given.next().is_some() || call.outputs.len() != spec.results {
            let problem = format!("{} inputs and {} results", call.inputs.len(), call.outputs.len());
            return Err(TosaError::invalid(place, format!("{problem}, which the operator does not have")));
        }
        let operator =
            Operator::from_attributes(spec.name, &all).map_err(|e| TosaError::invalid(place, e))?;
        self.node(call, operator, &inputs)
    }

    fn node(&mut self, call: &Call<'_>, operator: Operator, inputs: &[String]) -> Result<()> {
        let place = call.location.as_str();
        let inputs: Result<Vec<usize>> = inputs.iter().map(|name| self.value(name, place)).collect();
        let inputs = inputs?;
        let mut outputs = Vec::with_capacity(call.outputs.len());
        for name in &call.outputs {
            let id = self.find(name, place)?;
            if std::mem::replace(&mut self.known[id], true) || self.made.tensors[id].constant.is_some() {
                let problem = format!("'{}' has its value before", short(name));
                return Err(TosaError::invalid(place, problem));
            }
            outputs.push(id);
        }
        self.made.nodes.push(Node { operator, inputs, outputs, location: call.location.clone() });
        Ok(())
    }
}

/// The name of an operator by its number in files.
fn operator_name(number: u32) -> String {
    /// From the number behind the last operator that SPIR-V has.
    const MORE: [&str; 34] = [
        "CONST",
        "IDENTITY",
        "CUSTOM",
        "COND_IF",
        "WHILE_LOOP",
        "VARIABLE",
        "VARIABLE_WRITE",
        "VARIABLE_READ",
        "CONST_SHAPE",
        "MATMUL_T_BLOCK_SCALED",
        "CAST_FROM_BLOCK_SCALED",
        "CAST_TO_BLOCK_SCALED",
        "DIM",
        "CONCAT_SHAPE",
        "ADD_SHAPE",
        "SUB_SHAPE",
        "MUL_SHAPE",
        "SLICE_SHAPE",
        "EXP2_SHAPE",
        "LOG2_CEIL_SHAPE",
        "LOG2_FLOOR_SHAPE",
        "MAX_SHAPE",
        "MIN_SHAPE",
        "MOD_SHAPE",
        "DIV_CEIL_SHAPE",
        "DIV_FLOOR_SHAPE",
        "ASSERT_EQUAL_SHAPE",
        "CONV2D_BLOCK_SCALED",
        "MAX_POOL2D_ADAPTIVE",
        "AVG_POOL2D_ADAPTIVE",
        "RESHAPE_BLOCK_SCALED",
        "ROW_GATHER_BLOCK_SCALED",
        "ROW_GATHER",
        "MATMUL_T",
    ];
    let place = (number as usize).wrapping_sub(1);
    let spec = number.checked_sub(1).and_then(Spec::numbered).map(|spec| spec.name);
    let more = || place.checked_sub(super::OPERATORS.len()).and_then(|place| MORE.get(place).copied());
    spec.or_else(more).map_or_else(|| format!("operator {number}"), str::to_owned)
}

/// The element type with a number.
fn element_of(number: u32) -> Option<ElementType> {
    Some(match number {
        1 => ElementType::Bool,
        2 => ElementType::I4,
        3 => ElementType::I8,
        4 => ElementType::I16,
        5 => ElementType::I32,
        6 => ElementType::I48,
        7 => ElementType::F32,
        8 => ElementType::F16,
        9 => ElementType::BF16,
        11 => ElementType::F8E4M3,
        12 => ElementType::F8E5M2,
        17 => ElementType::I64,
        _ => return None,
    })
}
