//! The Vulkan delegate as a back end whose graphs are understood: its inputs, its calls in order, its outputs, its constants.

use halite_formats::pte::{Constant, DataType, Dynamism, Program, VulkanGraph, VulkanTensor, VulkanValue};

use super::{
    Result,
    back_end::{BackEnd, Inlined},
    names::call_location,
    node::Node,
    ops,
    scope::{Given, Scope, read_values},
    types::element_inside,
    value::{Declared, Passed, Value},
};
use crate::{
    CompileError, SourceLocation, UnsupportedOperator,
    build::Builder,
    graph::{TensorId, elements},
};

/// ExecuTorch's Vulkan back end.
#[derive(Debug)]
pub(super) struct Vulkan;

impl BackEnd for Vulkan {
    fn id(&self) -> &'static str {
        "VulkanBackend"
    }

    fn read(&self, data: &bytes::Bytes) -> std::result::Result<Box<dyn Inlined>, String> {
        Ok(Box::new(VulkanGraph::parse(data).map_err(|e| e.to_string())?))
    }
}

impl Inlined for VulkanGraph {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn import(
        &self,
        builder: Builder,
        program: &Program,
        inputs: &[Passed],
        _orders: &[Vec<usize>],
        name: &str,
    ) -> Result<(Builder, Vec<Passed>)> {
        import(builder, program, self, inputs, name)
    }

    fn data(&self) -> Vec<&str> {
        let named = self.constants.iter().filter_map(|constant| match constant {
            Constant::Named { key, .. } => Some(key.as_str()),
            Constant::Inline(_) => None,
        });
        named.collect()
    }

    fn operators(&self) -> Vec<&str> {
        self.calls.iter().map(|call| call.name.as_str()).collect()
    }

    fn unsupported(&self, name: &str) -> Vec<UnsupportedOperator> {
        let calls = self.calls.iter().enumerate().filter(|(_, call)| ops::find(&call.name).is_none());
        calls.map(|(index, call)| ops::unknown(&call.name, call_location(index, name))).collect()
    }
}

/// Puts the graph of a delegate into that of the method.
pub(super) fn import(
    builder: Builder,
    program: &Program,
    graph: &VulkanGraph,
    inputs: &[Passed],
    name: &str,
) -> Result<(Builder, Vec<Passed>)> {
    let values: Vec<Value> = graph.values.iter().map(value).collect();
    let read = read_values(&values, &graph.calls, &graph.outputs);
    let constants = Constants { program, graph };
    let mut scope = Scope::once(builder, &values, &constants, read);
    scope.builder.at(SourceLocation::new(name));
    for (id, value) in graph.inputs.iter().zip(inputs) {
        take(&mut scope, graph, *id, *value)?;
    }
    for (i, call) in graph.calls.iter().enumerate() {
        scope.builder.watch().step(i, graph.calls.len())?;
        scope.builder.at(SourceLocation::new(format!("{} (call {i} of {name})", call.name)));
        let Some(import) = ops::find(&call.name) else {
            let operators = vec![ops::unknown(&call.name, call_location(i, name))];
            return Err(CompileError::UnsupportedOperators { operators });
        };
        import(&mut Node { scope: &mut scope, call })?;
    }
    scope.builder.watch().step(graph.calls.len(), graph.calls.len())?;
    scope.builder.at(SourceLocation::new(format!("outputs of {name}")));
    let results: Result<Vec<_>> = graph.outputs.iter().map(|id| scope.any(*id)).collect();
    Ok((scope.builder, results?))
}

/// A value of the delegate's graph.
fn value(value: &VulkanValue) -> Value {
    match value {
        VulkanValue::Null => Value::Null,
        VulkanValue::Int(number) => Value::Int(*number),
        VulkanValue::Double(number) => Value::Double(*number),
        VulkanValue::Bool(truth) => Value::Bool(*truth),
        VulkanValue::Tensor(tensor) => Value::Tensor(Declared {
            element: Ok(element_inside(tensor.datatype)),
            dims: sizes(tensor),
            dynamism: Dynamism::Bounded,
        }),
        VulkanValue::IntList(items) => Value::IntList(items.clone()),
        VulkanValue::DoubleList(items) => Value::DoubleList(items.clone()),
        VulkanValue::BoolList(items) => Value::BoolList(items.clone()),
        VulkanValue::List(items) => Value::List(items.clone()),
        VulkanValue::String(text) => Value::String(text.clone()),
        VulkanValue::SymInt(_) => Value::Symbol,
    }
}

fn sizes(tensor: &VulkanTensor) -> Vec<u64> {
    tensor.dims.iter().map(|d| u64::from(*d)).collect()
}

/// Takes an input of the graph.
fn take(scope: &mut Scope<'_>, graph: &VulkanGraph, id: usize, value: Passed) -> Result<()> {
    let value = match (&graph.values[id], value) {
        (VulkanValue::Tensor(tensor), Passed::Tensor(given)) if tensor.constant.is_none() => {
            take_tensor(scope, tensor, given)?
        }
        (VulkanValue::SymInt(_), Passed::Tensor(given)) => {
            let numbers = scope.builder.need_ints(given, "a size that the caller hands in")?;
            let [number] = numbers[..] else {
                let what = scope.builder.describe(&[given]);
                return Err(scope.builder.invalid(format!("{what} is handed in as a number")));
            };
            scope.exact = false;
            Passed::Number(number)
        }
        (VulkanValue::SymInt(_), number) if number.int().is_some() => {
            scope.exact = false;
            number
        }
        (other, _) => return Err(scope.builder.invalid(format!("an input is handed in for {other:?}"))),
    };
    scope.set(id, value)
}

fn take_tensor(scope: &mut Scope<'_>, tensor: &VulkanTensor, given: TensorId) -> Result<Passed> {
    let (dims, bounds) = (scope.builder.dims(given), sizes(tensor));
    if dims.len() != bounds.len() || dims.iter().zip(&bounds).any(|(d, most)| d > most) {
        let what = scope.builder.describe(&[given]);
        let reason = format!("{what} is handed to a delegate that takes at most {bounds:?}");
        return Err(scope.builder.invalid(reason));
    }
    scope.exact &= dims == bounds;
    Ok(Passed::Tensor(scope.builder.cast(given, element_inside(tensor.datatype))?))
}

/// The constants of a delegate's graph.
struct Constants<'a> {
    program: &'a Program,
    graph: &'a VulkanGraph,
}

impl Given for Constants<'_> {
    fn tensor(&self, id: usize, builder: &mut Builder) -> Result<Option<TensorId>> {
        let VulkanValue::Tensor(tensor) = &self.graph.values[id] else { return Ok(None) };
        let Some(constant) = tensor.constant else { return Ok(None) };
        let bytes = match &self.graph.constants[constant] {
            Constant::Inline(bytes) => bytes.clone(),
            Constant::Named { key, length } => {
                let found = self.program.data(key).filter(|data| data.len() as u64 >= *length);
                let Some(data) = found else {
                    return Err(builder.invalid(format!(
                        "the constant {constant} of {length} bytes has its data under '{key}', which is neither in the program \
                         nor in a .ptd file beside it, or shorter"
                    )));
                };
                data.slice(..*length as usize)
            }
        };
        let dims = sizes(tensor);
        let wants = elements(&dims).saturating_mul(DataType::size(tensor.datatype));
        if wants != bytes.len() as u64 {
            return Err(builder.invalid(format!(
                "the constant {constant}, {}{dims:?}, has {} bytes, not {wants}",
                tensor.datatype,
                bytes.len()
            )));
        }
        let element = element_inside(tensor.datatype);
        builder.constant(&format!("constant {id}"), element, &dims, bytes).map(Some)
    }
}
