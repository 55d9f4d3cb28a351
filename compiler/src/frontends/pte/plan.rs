//! Methods: the instructions around calls of delegates, and what the caller hands in and gets.

use std::collections::HashMap;

use halite_formats::pte::{Dynamism, Instruction, Plan, Program, Tensor, Value, VulkanGraph, XnnGraph};

use super::{
    Result,
    delegate::Passed,
    kernels,
    names::{BACK_END, COPIES, OUTSIDE, delegate_name, instruction_location, is_known, outside},
    survey,
    types::element_of,
    walk, xnnpack,
};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    graph::{ElementType, Graph, TensorId, elements},
    signature::{Bindings, Signature},
};

/// A method while its graph is built.
struct Method<'a> {
    program: &'a Program,
    plan: &'a Plan,
    builder: Builder,
    /// What is known of the values.
    values: Vec<Option<Passed>>,
    /// What was written last at a place in the plan's memory.
    written: HashMap<(u32, u64), TensorId>,
}

/// The graph of a method.
pub(super) fn import(
    program: &Program,
    plan: &Plan,
    inputs: &[Signature],
    bindings: &Bindings,
    control: &Control,
) -> Result<Graph> {
    let location = SourceLocation::new(format!("method '{}'", plan.name));
    let [instructions] = &plan.chains[..] else {
        let count = plan.chains.len();
        return Err(CompileError::unsupported(
            &location,
            format!("{count} chains of instructions; there is one"),
        ));
    };
    let mut builder = Builder::controlled(control);
    builder.at(location);
    let values = plan.values.iter().map(|_| None).collect();
    let mut method = Method { program, plan, builder, values, written: HashMap::new() };
    method.take_inputs(inputs, bindings)?;
    for (i, instruction) in instructions.iter().enumerate() {
        control.check(Stage::Importing)?;
        method.builder.at(instruction_location(i, plan));
        method.run(instruction).map_err(|error| survey::with_all(error, plan, instructions))?;
    }
    method.builder.at(SourceLocation::new(format!("outputs of method '{}'", plan.name)));
    method.give_outputs()?;
    method.builder.finish()
}

impl Method<'_> {
    fn take_inputs(&mut self, signatures: &[Signature], bindings: &Bindings) -> Result<()> {
        let shapes = bindings.resolve(signatures)?;
        let mut given = signatures.iter().zip(shapes);
        for id in &self.plan.inputs {
            let Value::Tensor(tensor) = &self.plan.values[*id] else { continue };
            let (signature, dims) = given.next().expect("each tensor has a signature");
            self.fits(&signature.name, tensor, &dims)?;
            let element = self.element(tensor)?;
            let name = &signature.name;
            let made = match bindings.values.get(name) {
                Some(value) if value.element != element => {
                    return Err(CompileError::Request(format!(
                        "a value of type {} is given for {signature}",
                        value.element
                    )));
                }
                Some(value) => self.builder.bound_input(name, element, &dims, value.bytes.clone())?,
                None => self.builder.input(name, element, &dims)?,
            };
            self.values[*id] = Some(Passed::Tensor(made));
            self.note(tensor, made);
        }
        Ok(())
    }

    /// Notes where in memory a tensor is written.
    fn note(&mut self, tensor: &Tensor, made: TensorId) {
        if let Some(location) = tensor.allocation {
            self.written.insert((location.memory, location.offset), made);
        }
    }

    /// A tensor that no instruction computes because it is another one under other sizes: the export drops such views and
    /// plans both at one place.
    fn view(&mut self, tensor: &Tensor) -> Result<Option<TensorId>> {
        let Some(location) = tensor.allocation.filter(|_| tensor.data == 0) else { return Ok(None) };
        let Some(other) = self.written.get(&(location.memory, location.offset)).copied() else {
            return Ok(None);
        };
        let same = self.builder.tensor(other).elements() == elements(&tensor.sizes)
            && self.builder.element(other) == self.element(tensor)?;
        if !same {
            return Ok(None);
        }
        self.builder.reshape(other, &tensor.sizes).map(Some)
    }

    /// Whether an input of these dimensions is what the method takes.
    fn fits(&self, name: &str, tensor: &Tensor, dims: &[u64]) -> Result<()> {
        let bounded =
            dims.len() == tensor.sizes.len() && dims.iter().zip(&tensor.sizes).all(|(d, most)| d <= most);
        if tensor.dynamism == Dynamism::Bounded && !bounded {
            return Err(CompileError::Request(format!(
                "'{name}' is given as {dims:?}; the program was exported for at most {:?}",
                tensor.sizes
            )));
        }
        Ok(())
    }

    fn element(&self, tensor: &Tensor) -> Result<ElementType> {
        let named = tensor.scalar_type;
        element_of(named).ok_or_else(|| self.builder.unsupported(format!("a tensor of the type {named}")))
    }

    fn run(&mut self, instruction: &Instruction) -> Result<()> {
        match instruction {
            Instruction::Delegate { delegate, args } => self.delegate(*delegate, args),
            Instruction::Kernel { operator, args } => self.kernel(&self.plan.operators[*operator], args),
            Instruction::Move { from, to } => {
                self.values[*to] = Some(self.value(*from)?);
                Ok(())
            }
            Instruction::Free { .. } => Ok(()),
            Instruction::JumpFalse { .. } => {
                Err(self.builder.unsupported("a branch (torch.cond): methods run straight through"))
            }
        }
    }

    fn delegate(&mut self, index: usize, args: &[usize]) -> Result<()> {
        let delegate = &self.plan.delegates[index];
        match delegate.id.as_str() {
            BACK_END => self.vulkan(index, args),
            xnnpack::BACK_END => self.xnnpack(index, args),
            other => Err(self.builder.unsupported(format!(
                "the program was exported for the back end {other}; {BACK_END} (VulkanPartitioner) and {} \
                 (XnnpackPartitioner) are supported",
                xnnpack::BACK_END
            ))),
        }
    }

    /// Puts a graph of XNNPACK into the method. Ports tell their places among the arguments; tensors are seen as they lie
    /// in memory.
    fn xnnpack(&mut self, index: usize, args: &[usize]) -> Result<()> {
        let data = &self.plan.delegates[index].data;
        let graph = XnnGraph::parse(data).map_err(|e| self.builder.invalid(e.to_string()))?;
        let mut passed = Vec::new();
        for port in graph.inputs.iter().chain(&graph.outputs) {
            let id = args.get(port.argument).copied();
            let Some((id, Value::Tensor(tensor))) = id.map(|id| (id, &self.plan.values[id])) else {
                let reason = format!("argument {} of {} is no tensor", port.argument, args.len());
                return Err(self.builder.invalid(reason));
            };
            let order: Vec<usize> = tensor.dim_order.iter().map(|d| usize::from(*d)).collect();
            passed.push((id, tensor, order));
        }
        let outputs = passed.split_off(graph.inputs.len());
        let mut inputs = Vec::new();
        for (id, _, order) in passed {
            match self.value(id)? {
                Passed::Tensor(tensor) if self.builder.dims(tensor).len() != order.len() => {
                    let what = self.builder.describe(&[tensor]);
                    return Err(self
                        .builder
                        .invalid(format!("{what} lies in memory in the order {order:?}")));
                }
                Passed::Tensor(tensor) => inputs.push(xnnpack::Held::ordered(tensor, &order)),
                Passed::Number(_) => return Err(self.builder.invalid("a number is handed to XNNPACK")),
            }
        }
        let orders: Vec<_> = outputs.iter().map(|(_, _, order)| order.clone()).collect();
        let builder = std::mem::take(&mut self.builder);
        let name = delegate_name(index, self.plan);
        let (builder, results) = xnnpack::import(builder, self.program, &graph, inputs, &orders, &name)?;
        self.builder = builder;
        for ((id, tensor, _), made) in outputs.into_iter().zip(results) {
            let same = self.builder.tensor(made).elements() == elements(&tensor.sizes);
            let made = if same { self.builder.reshape(made, &tensor.sizes)? } else { made };
            self.set(id, Passed::Tensor(made))?;
        }
        Ok(())
    }

    fn vulkan(&mut self, index: usize, args: &[usize]) -> Result<()> {
        let delegate = &self.plan.delegates[index];
        let graph = VulkanGraph::parse(&delegate.data).map_err(|e| self.builder.invalid(e.to_string()))?;
        let taken = graph.inputs.len();
        if args.len() < taken + graph.outputs.len() {
            return Err(self.builder.unsupported(format!(
                "the delegate's graph has {taken} inputs and {} outputs, but {} are passed: it changes buffers of the \
                 model, which would have to be kept from call to call",
                graph.outputs.len(),
                args.len()
            )));
        }
        if args.len() != taken + graph.outputs.len() {
            let reason = format!(
                "{} values are passed to a delegate with {taken} inputs and {} outputs",
                args.len(),
                graph.outputs.len()
            );
            return Err(self.builder.invalid(reason));
        }
        let passed: Result<Vec<_>> = args[..taken].iter().map(|id| self.value(*id)).collect();
        let builder = std::mem::take(&mut self.builder);
        let (builder, results) =
            walk::import(builder, self.program, &graph, &passed?, delegate_name(index, self.plan))?;
        self.builder = builder;
        for (id, result) in args[taken..].iter().zip(results) {
            self.set(*id, result)?;
        }
        Ok(())
    }

    /// An operator that ExecuTorch's own kernels would compute.
    fn kernel(&mut self, name: &str, args: &[usize]) -> Result<()> {
        let (Some(from), Some(to)) = (args.first(), args.last()) else {
            return Err(self.builder.invalid(format!("{name} has no arguments")));
        };
        let Value::Tensor(tensor) = &self.plan.values[*to] else { return Err(self.outside(name)) };
        if !COPIES.contains(&name) {
            return self.compute(name, args, *to, tensor);
        }
        let Passed::Tensor(from) = self.value(*from)? else {
            return Err(self.builder.invalid(format!("{name} of what is no tensor")));
        };
        let count = self.builder.tensor(from).elements();
        if tensor.dynamism != Dynamism::Static && elements(&tensor.sizes) != count {
            return Err(self
                .builder
                .unsupported(format!("{name} outside of the delegate to sizes that vary")));
        }
        let made = self.builder.reshape(from, &tensor.sizes)?;
        self.set(*to, Passed::Tensor(made))
    }

    fn outside(&self, name: &str) -> CompileError {
        if is_known(name) {
            return self.builder.unsupported(format!("the operator {name}, as it is used here: {OUTSIDE}"));
        }
        let operators = vec![outside(name, self.builder.location().clone())];
        CompileError::UnsupportedOperators { operators }
    }

    /// An operator that changes elements.
    fn compute(&mut self, name: &str, args: &[usize], to: usize, tensor: &Tensor) -> Result<()> {
        let plan = self.plan;
        let more: Vec<&Value> = args[1..].iter().map(|id| &plan.values[*id]).collect();
        let made = match &plan.values[args[0]] {
            Value::Tensor(_) => match self.value(args[0])? {
                Passed::Tensor(x) => kernels::compute(&mut self.builder, name, x, &more, &plan.values)?,
                Passed::Number(_) => None,
            },
            _ => None,
        };
        let Some(made) = made else { return Err(self.outside(name)) };
        if tensor.dynamism == Dynamism::Static && self.builder.dims(made) != tensor.sizes {
            let what = self.builder.describe(&[made]);
            return Err(self
                .builder
                .invalid(format!("{name} gives {what}; the file says {:?}", tensor.sizes)));
        }
        self.set(to, Passed::Tensor(made))
    }

    /// Makes a value what an instruction gave, in the type that the plan says.
    fn set(&mut self, id: usize, value: Passed) -> Result<()> {
        let value = match (value, &self.plan.values[id]) {
            (Passed::Tensor(made), Value::Tensor(tensor)) => {
                if tensor.data != 0 {
                    return Err(self.builder.unsupported(
                        "a tensor with initial data is written: state that is kept from call to call is not supported",
                    ));
                }
                let element = self.element(tensor)?;
                let made = self.builder.cast(made, element)?;
                self.note(tensor, made);
                Passed::Tensor(made)
            }
            (number @ Passed::Number(_), Value::Int(_)) => number,
            _ => return Err(self.builder.invalid(format!("value {id} is not what is computed for it"))),
        };
        self.values[id] = Some(value);
        Ok(())
    }

    /// A value that was computed, handed in, or is in the file.
    fn value(&mut self, id: usize) -> Result<Passed> {
        if let Some(known) = &self.values[id] {
            return Ok(*known);
        }
        let found = match &self.plan.values[id] {
            Value::Int(number) => Passed::Number(*number),
            Value::Tensor(tensor) => Passed::Tensor(match self.view(tensor)? {
                Some(view) => view,
                None => self.constant(id, tensor)?,
            }),
            other => {
                return Err(self
                    .builder
                    .unsupported(format!("value {id} of the plan, {other:?}, is passed on")));
            }
        };
        self.values[id] = Some(found);
        Ok(found)
    }

    fn constant(&mut self, id: usize, tensor: &Tensor) -> Result<TensorId> {
        if let Some(name) = &tensor.external {
            return Err(self.builder.unsupported(format!(
                "the constant '{name}' is in another file (.ptd); export the model with its constants inside"
            )));
        }
        if tensor.allocation.is_some() && tensor.data != 0 {
            return Err(self.builder.unsupported(
                "a tensor with initial data in planned memory: state that is kept from call to call is not supported",
            ));
        }
        let read = self.program.constant(tensor).map_err(|e| self.builder.invalid(e.to_string()))?;
        let Some(bytes) = read else {
            return Err(self
                .builder
                .invalid(format!("value {id} of the plan is read before it is computed")));
        };
        let element = self.element(tensor)?;
        let order: Vec<usize> = tensor.dim_order.iter().map(|d| usize::from(*d)).collect();
        let dims: Vec<u64> = order.iter().map(|d| tensor.sizes[*d]).collect();
        let made = self.builder.constant(&format!("constant {id}"), element, &dims, bytes)?;
        let mut back = vec![0; order.len()];
        for (position, dim) in order.iter().enumerate() {
            back[*dim] = position;
        }
        self.builder.transpose(made, &back)
    }

    fn give_outputs(&mut self) -> Result<()> {
        let mut given = 0;
        for (i, id) in self.plan.outputs.iter().enumerate() {
            if self.plan.values[*id] == Value::Null {
                continue;
            }
            let Passed::Tensor(tensor) = self.value(*id)? else {
                return Err(self.builder.unsupported(format!("output {i} is a number, not a tensor")));
            };
            self.builder.output(&format!("output{i}"), tensor);
            given += 1;
        }
        if given == 0 {
            return Err(self.builder.unsupported("the method gives nothing"));
        }
        Ok(())
    }
}
