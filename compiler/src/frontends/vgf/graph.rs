//! From the graph of a SPIR-V module to one of TOSA.

use std::collections::HashMap;

use bytes::Bytes;
use halite_formats::{
    tosa::{self, Constant, ElementType, Node, OPERATORS, Operator, Program, Spec},
    vgf::{Segment, Vgf},
};
use halite_spirv::graph::{Element, GraphModule, Operation, Origin, Value};

use super::{Result, operand::attributes};
use crate::{CompileError, SourceLocation, UnsupportedOperator, build::Builder};

/// The set of operations that this front end knows.
const TOSA: &str = "TOSA.001000.1";
/// Other sets, and the names of their operations.
const OTHERS: [(&str, &[&str]); 2] = [
    ("Arm.MotionEngine.100", &["MIN_SAD", "MIN_SAD_COST", "RAW_SAD"]),
    ("Arm.ExperimentalMLOperations", &["CALL"]),
];
/// Most bytes of a tensor's name in messages.
const MOST_NAME: usize = 80;

/// A graph that is being converted.
pub(super) struct Conversion<'a> {
    builder: &'a Builder,
    file: &'a Vgf,
    segment: &'a Segment,
    module: &'a GraphModule,
    made: tosa::Graph,
    /// Tensors by the places of values.
    known: HashMap<usize, usize>,
}

/// Makes a program of a module's graph, with the constants of a segment.
///
/// # Errors
/// An operation is unknown or broken, or a constant is missing or has another size.
pub(super) fn program(
    builder: &Builder,
    file: &Vgf,
    segment: &Segment,
    module: &GraphModule,
    graph: usize,
) -> Result<Program> {
    let source = &module.graphs[graph];
    survey(module, &source.operations)?;
    let made = tosa::Graph { name: segment.name.clone(), ..tosa::Graph::default() };
    let mut conversion = Conversion { builder, file, segment, module, made, known: HashMap::new() };
    for input in &source.inputs {
        let tensor = conversion.tensor(*input)?;
        conversion.made.inputs.push(tensor);
    }
    for (i, operation) in source.operations.iter().enumerate() {
        builder.watch().step(i, source.operations.len())?;
        conversion.operation(operation)?;
    }
    for output in &source.outputs {
        let tensor = conversion.tensor(*output)?;
        conversion.made.outputs.push(tensor);
    }
    Ok(Program { graphs: vec![conversion.made], variables: Vec::new() })
}

/// The beginning of a name.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(MOST_NAME)]
}

/// What an operation is called in messages.
fn location(name: &str, operation: &Operation) -> String {
    match operation.name.is_empty() {
        true => format!("{name} %{}", operation.id),
        false => format!("{name} '{}'", short(&operation.name)),
    }
}

/// What an operation is, if it is of TOSA.
fn spec_of(module: &GraphModule, operation: &Operation) -> Option<&'static Spec> {
    (module.sets[operation.set] == TOSA).then(|| Spec::numbered(operation.number))?
}

/// The name of an operation, if it is of TOSA.
pub(super) fn name_of(module: &GraphModule, operation: &Operation) -> Option<&'static str> {
    spec_of(module, operation).map(|spec| spec.name)
}

/// Names all operations that are unknown at once.
fn survey(module: &GraphModule, operations: &[Operation]) -> Result<()> {
    let mut operators = Vec::new();
    unknown(module, operations, &mut operators);
    match operators.is_empty() {
        true => Ok(()),
        false => Err(CompileError::UnsupportedOperators { operators }),
    }
}

/// Adds operations that are unknown to a list.
pub(super) fn unknown(module: &GraphModule, operations: &[Operation], all: &mut Vec<UnsupportedOperator>) {
    for operation in operations.iter().filter(|operation| spec_of(module, operation).is_none()) {
        let set = module.sets[operation.set].as_str();
        let known = OTHERS.iter().find(|(name, _)| *name == set).map(|(_, names)| names);
        let name = match known.and_then(|names| names.get(operation.number as usize)) {
            Some(name) => format!("{set} {name}"),
            None => format!("operation {} of {}", operation.number, short(set)),
        };
        let reason = (set == TOSA).then(|| format!("the set has the numbers 0 to {}", OPERATORS.len() - 1));
        let first = SourceLocation::new(location(&name, operation));
        let found = UnsupportedOperator { name, domain: None, count: 1, first, reason };
        found.add_to(all);
    }
}

/// The type of elements in TOSA. Integers of 64 bits are those of 48, which have no type of their own in SPIR-V.
fn element_of(element: Element) -> Option<ElementType> {
    Some(match element {
        Element::Bool => ElementType::Bool,
        Element::Int(8) => ElementType::I8,
        Element::Int(16) => ElementType::I16,
        Element::Int(32) => ElementType::I32,
        Element::Int(64) => ElementType::I48,
        Element::Float(16) => ElementType::F16,
        Element::Float(32) => ElementType::F32,
        Element::BFloat16 => ElementType::BF16,
        Element::Float8E4M3 => ElementType::F8E4M3,
        Element::Float8E5M2 => ElementType::F8E5M2,
        Element::Int(_) | Element::Float(_) => return None,
    })
}

impl Conversion<'_> {
    fn operation(&mut self, operation: &Operation) -> Result<()> {
        let spec = spec_of(self.module, operation).expect("unknown operations were told before");
        let location = location(spec.name, operation);
        let invalid = |what: String| CompileError::invalid(&SourceLocation::new(location.as_str()), what);
        if operation.results.len() != spec.results {
            let reason = format!("{} results; there are {}", operation.results.len(), spec.results);
            return Err(invalid(reason));
        }
        let mut operands = Vec::with_capacity(operation.operands.len());
        for id in &operation.operands {
            operands.push(self.tensor(*id)?);
        }
        let is_number = |place: usize| self.module.values[operation.operands[place]].shape.is_none();
        let (attributes, inputs) =
            attributes(spec, &self.made.tensors, &operands, is_number).map_err(invalid)?;
        let operator = Operator::from_attributes(spec.name, &attributes).map_err(invalid)?;
        let outputs: Result<Vec<_>> = operation.results.iter().map(|id| self.tensor(*id)).collect();
        self.made.nodes.push(Node { operator, inputs, outputs: outputs?, location });
        Ok(())
    }

    /// The tensor of a value; numbers are tensors without sizes.
    fn tensor(&mut self, place: usize) -> Result<usize> {
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        let module = self.module;
        let value = &module.values[place];
        let Some(element) = element_of(value.element) else {
            return Err(self.builder.unsupported(format!("%{} of the type {}", value.id, value.element)));
        };
        let shape: Vec<u64> = value.shape.iter().flatten().map(|size| u64::from(*size)).collect();
        let constant = self.constant(value, element, &shape)?;
        let name = short(&value.name).to_owned();
        self.made.tensors.push(tosa::Tensor { name, element, shape, constant });
        self.known.insert(place, self.made.tensors.len() - 1);
        Ok(self.made.tensors.len() - 1)
    }

    fn constant(&self, value: &Value, element: ElementType, shape: &[u64]) -> Result<Option<Constant>> {
        Ok(match &value.origin {
            Origin::Input(_) | Origin::Result => None,
            Origin::Elements(bytes) => Some(Constant::Dense(Bytes::copy_from_slice(bytes))),
            Origin::Splat(bytes) => Some(Constant::Splat(Bytes::copy_from_slice(bytes))),
            Origin::GraphConstant(id) => Some(Constant::Dense(self.graph_constant(*id, element, shape)?)),
        })
    }

    /// The data of a constant outside of the module.
    fn graph_constant(&self, id: u32, element: ElementType, shape: &[u64]) -> Result<Bytes> {
        let found = self.segment.constants.iter().find(|known| known.id == id);
        let Some(found) = found else {
            return Err(self.builder.invalid(format!("the graph's constant {id} is none of the segment's")));
        };
        let data = self.file.constants[found.constant].data.clone();
        let wants = shape.iter().try_fold(element.size(), |n, size| n.checked_mul(*size));
        if wants != Some(data.len() as u64) {
            return Err(self.builder.invalid(format!(
                "the graph's constant {id}, {element}{shape:?}, has {} bytes of data",
                data.len()
            )));
        }
        if element == ElementType::Bool && data.iter().any(|byte| *byte > 1) {
            return Ok(data.iter().map(|byte| u8::from(*byte != 0)).collect::<Vec<_>>().into());
        }
        Ok(data)
    }
}
