//! The Vulkan delegate as a back end whose graphs are understood: its inputs, its calls in order, its outputs, its constants.

use bytes::Bytes;
use halite_formats::pte::{Constant, DataType, Dynamism, Program, VulkanGraph, VulkanTensor, VulkanValue};
use halite_ops::Values;

use super::{
    Result,
    back_end::{BackEnd, Inlined},
    mutation::{self, Mutation, PREPACK},
    names::call_location,
    node::Node,
    ops,
    scope::{Given, Scope, read_values},
    tenant::{Tenant, has_heads, not_zeros},
    types::{element_inside, finite_in},
    value::{Declared, Passed, Value, number_of},
};
use crate::{
    CompileError, SourceLocation, UnsupportedOperator,
    build::Builder,
    graph::{ElementType, TensorId, elements},
};

/// ExecuTorch's Vulkan back end.
#[derive(Debug)]
pub(super) struct Vulkan;

impl BackEnd for Vulkan {
    fn id(&self) -> &'static str {
        "VulkanBackend"
    }

    fn read(&self, data: &Bytes) -> std::result::Result<Box<dyn Inlined>, String> {
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

    fn output_dims(&self, output: usize) -> Option<Vec<u64>> {
        match self.values.get(*self.outputs.get(output)?)? {
            VulkanValue::Tensor(tensor) => Some(sizes(tensor)),
            _ => None,
        }
    }

    fn import(
        &self,
        builder: Builder,
        program: &Program,
        inputs: &[Passed],
        orders: &[Vec<usize>],
        kept: &mut [TensorId],
        name: &str,
    ) -> Result<(Builder, Vec<Passed>)> {
        let given = orders.len().saturating_sub(inputs.len());
        import(builder, (program, self), (inputs, given), kept, name)
    }

    fn kept(&self, program: &Program, given: usize) -> std::result::Result<Vec<Tenant>, String> {
        let given = mutation::of(self, given)?;
        given.iter().map(|mutation| tenant(program, self, mutation)).collect()
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
///
/// What it keeps was told by the same function before, so as many tensors are handed in.
pub(super) fn import(
    builder: Builder,
    (program, graph): (&Program, &VulkanGraph),
    (inputs, given): (&[Passed], usize),
    kept: &mut [TensorId],
    name: &str,
) -> Result<(Builder, Vec<Passed>)> {
    let values: Vec<Value> = graph.values.iter().map(value).collect();
    let read = read_values(&values, &graph.calls, &graph.outputs);
    let constants = Constants { program, graph };
    let mutations = mutation::of(graph, given);
    let mut scope = Scope::once(builder, &values, &constants, read);
    scope.builder.at(SourceLocation::new(name));
    let mutations = mutations.map_err(|reason| scope.builder.unsupported(reason))?;
    for (mutation, tensor) in mutations.iter().zip(kept.iter()) {
        scope.slots[mutation.begin] = Some(Passed::Tensor(*tensor));
        scope.changing.insert(mutation.begin);
    }
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
        let is_kept = |id: &usize| mutations.iter().any(|mutation| mutation.begin == *id);
        if call.name == PREPACK && call.args.last().is_some_and(is_kept) {
            continue;
        }
        import(&mut Node { scope: &mut scope, call })?;
    }
    scope.builder.watch().step(graph.calls.len(), graph.calls.len())?;
    scope.builder.at(SourceLocation::new(format!("outputs of {name}")));
    for (mutation, tensor) in mutations.iter().zip(kept.iter_mut()) {
        *tensor = scope.tensor(mutation.end)?;
    }
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
            if scope.builder.tensor(given).count() != 1 {
                let what = scope.builder.describe(&[given]);
                return Err(scope.builder.invalid(format!("{what} is handed in as a number")));
            }
            scope.exact = false;
            number_of(&mut scope.builder, given)?
        }
        (VulkanValue::SymInt(_), number @ Passed::Computed(..)) => {
            scope.exact = false;
            number
        }
        (VulkanValue::SymInt(_), number) if number.size().is_some() => {
            scope.exact = false;
            number
        }
        (other, _) => return Err(scope.builder.invalid(format!("an input is handed in for {other:?}"))),
    };
    scope.set(id, value)
}

fn take_tensor(scope: &mut Scope<'_>, tensor: &VulkanTensor, given: TensorId) -> Result<Passed> {
    let (dims, bounds) = (scope.builder.sizes(given), sizes(tensor));
    if dims.len() != bounds.len() || dims.iter().zip(&bounds).any(|(d, most)| !d.stays_within(*most)) {
        let what = scope.builder.describe(&[given]);
        let reason = format!("{what} is handed to a delegate that takes at most {bounds:?}");
        return Err(scope.builder.invalid(reason));
    }
    scope.exact &= dims.iter().zip(&bounds).all(|(d, most)| d.is((*most).into()));
    Ok(Passed::Tensor(inside(&mut scope.builder, given, element_inside(tensor.datatype))?))
}

/// What is handed in, in the type that the delegate computes in. Finite constants stay finite.
fn inside(b: &mut Builder, given: TensorId, element: ElementType) -> Result<TensorId> {
    if b.element(given) != element
        && let Some(Values::Float(numbers)) = b.known(given)
    {
        let kept: Vec<f64> = numbers.iter().map(|number| finite_in(element, *number)).collect();
        if kept != numbers {
            let dims = b.dims(given).to_vec();
            return b.values(element.storage(), &dims, &Values::Float(kept));
        }
    }
    b.cast(given, element)
}

/// The constants of a delegate's graph.
struct Constants<'a> {
    program: &'a Program,
    graph: &'a VulkanGraph,
}

impl Constants<'_> {
    /// The elements of a constant.
    fn bytes(&self, tensor: &VulkanTensor, constant: usize) -> std::result::Result<Bytes, String> {
        let bytes = match &self.graph.constants[constant] {
            Constant::Inline(bytes) => bytes.clone(),
            Constant::Named { key, length } => {
                let found = self.program.data(key).filter(|data| data.len() as u64 >= *length);
                let Some(data) = found else {
                    return Err(format!(
                        "the constant {constant} of {length} bytes has its data under '{key}', which is neither in the program \
                         nor in a .ptd file beside it, or shorter"
                    ));
                };
                data.slice(..*length as usize)
            }
        };
        let dims = sizes(tensor);
        let wants = elements(&dims).saturating_mul(DataType::size(tensor.datatype));
        if wants != bytes.len() as u64 {
            return Err(format!(
                "the constant {constant}, {}{dims:?}, has {} bytes, not {wants}",
                tensor.datatype,
                bytes.len()
            ));
        }
        Ok(bytes)
    }
}

impl Given for Constants<'_> {
    fn tensor(&self, id: usize, builder: &mut Builder) -> Result<Option<TensorId>> {
        let VulkanValue::Tensor(tensor) = &self.graph.values[id] else { return Ok(None) };
        let Some(constant) = tensor.constant else { return Ok(None) };
        let bytes = self.bytes(tensor, constant).map_err(|reason| builder.invalid(reason))?;
        let element = element_inside(tensor.datatype);
        builder.constant(&format!("constant {id}"), element, &sizes(tensor), bytes).map(Some)
    }
}

/// A constant that is kept.
fn tenant(
    program: &Program,
    graph: &VulkanGraph,
    mutation: &Mutation,
) -> std::result::Result<Tenant, String> {
    let VulkanValue::Tensor(tensor) = &graph.values[mutation.constant] else {
        return Err(format!("value {} is kept and is no tensor", mutation.constant));
    };
    let Some(constant) = tensor.constant else {
        return Err(format!("value {} is kept and has no first value", mutation.constant));
    };
    let first = not_zeros(Constants { program, graph }.bytes(tensor, constant)?);
    let (element, dims) = (element_inside(tensor.datatype), sizes(tensor));
    let by_heads = mutation.appended && has_heads(element, &dims);
    Ok(Tenant { element, dims, first, by_heads })
}
