//! A method while its graph is built: what the caller hands in and gets, and what becomes of its calls and delegates.

use std::collections::HashMap;

use halite_formats::pte::{Call, Dynamism, Plan, Program, Tensor, Value as PlanValue};
use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{
    Result,
    back_end::Inlined,
    back_ends,
    buffers::{Buffer, Holder},
    names::{COPY_ROW, delegate_name, instruction_location},
    node::Node,
    ops,
    outside::{Method, Step},
    repeats::outputs_of,
    scope::{Given, Scope},
    types::element_of,
    value::{Passed, Value},
};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    graph::{DataSymbol, ElementType, Graph, TensorId, elements},
    signature::{Bindings, Signature},
};

/// A method while its graph is built.
pub(super) struct State<'a> {
    program: &'a Program,
    plan: &'a Plan,
    pub(super) method: &'a Method,
    control: &'a Control,
    pub(super) scope: Scope<'a>,
    /// What was written last at a place in the plan's memory.
    pub(super) written: HashMap<(u32, u64), TensorId>,
    /// Parts of tensors that loops fill row by row.
    pub(super) stacks: HashMap<usize, Vec<TensorId>>,
    /// What the method keeps from call to call.
    buffers: &'a [Buffer],
    /// The buffers of delegates as they are by now, by their holders.
    pub(super) kept: HashMap<Holder, TensorId>,
}

impl<'a> State<'a> {
    /// A method before its first step; inputs are taken.
    ///
    /// # Errors
    /// Inputs are not what the method takes.
    pub(super) fn begin(
        (program, plan, method): (&'a Program, &'a Plan, &'a Method),
        buffers: &'a [Buffer],
        constants: &'a Constants<'a>,
        builder: Builder,
        (inputs, shapes, bindings): (&[Signature], &[Vec<Size>], &Bindings),
        control: &'a Control,
    ) -> Result<Self> {
        let scope = Scope::again(builder, &method.values, constants, method.read.clone());
        let (written, stacks, kept) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut state = State { program, plan, method, control, scope, written, stacks, buffers, kept };
        state.take_inputs(inputs, shapes, bindings)?;
        Ok(state)
    }

    /// The graph, when all steps were taken, and the sizes in it that data decide.
    ///
    /// # Errors
    /// What the method gives was not computed.
    pub(super) fn finish(mut self) -> Result<(Graph, Vec<DataSymbol>)> {
        self.scope.builder.at(SourceLocation::new(format!("outputs of method '{}'", self.plan.name)));
        self.give_outputs()?;
        self.give_buffers()?;
        self.scope.builder.check_data()?;
        let data = self.scope.builder.take_data();
        Ok((self.scope.builder.finish()?, data))
    }

    fn take_inputs(
        &mut self,
        signatures: &[Signature],
        shapes: &[Vec<Size>],
        bindings: &Bindings,
    ) -> Result<()> {
        let mut given = signatures.iter().zip(shapes);
        for id in &self.plan.inputs {
            let (PlanValue::Tensor(tensor), Value::Tensor(declared)) =
                (&self.plan.values[*id], &self.method.values[*id])
            else {
                continue;
            };
            let (signature, dims) = given.next().expect("each tensor has a signature");
            fits(&signature.name, tensor, dims)?;
            let element = self.scope.element(declared)?;
            let made = self.take_input(signature, element, dims, bindings)?;
            self.scope.slots[*id] = Some(Passed::Tensor(made));
            self.note(*id)?;
        }
        for (buffer, (signature, dims)) in self.buffers.iter().zip(given) {
            let held = self.take_input(signature, buffer.tenant.element, dims, bindings)?;
            let made = self.scope.builder.transpose(held, &buffer.order())?;
            match buffer.holder {
                Holder::Plan(id) => {
                    self.scope.slots[id] = Some(Passed::Tensor(made));
                    self.note(id)?;
                }
                holder => drop(self.kept.insert(holder, made)),
            }
        }
        Ok(())
    }

    fn take_input(
        &mut self,
        signature: &Signature,
        element: ElementType,
        dims: &[Size],
        bindings: &Bindings,
    ) -> Result<TensorId> {
        let (name, builder) = (&signature.name, &mut self.scope.builder);
        match bindings.values.get(name) {
            Some(value) if value.element != element => Err(CompileError::Request(format!(
                "a value of type {} is given for {signature}",
                value.element
            ))),
            Some(value) => {
                let dims: Vec<u64> = dims.iter().map(|size| size.exact()).collect();
                builder.bound_input(name, element, &dims, value.bytes.clone())
            }
            None => builder.input_of(name, element, dims),
        }
    }

    /// Notes where in memory a tensor is written. Where it is a buffer under other sizes, the buffer has changed.
    pub(super) fn note(&mut self, id: usize) -> Result<()> {
        let Some(PlanValue::Tensor(tensor)) = self.plan.values.get(id) else { return Ok(()) };
        let (Some(place), Some(Passed::Tensor(made))) = (tensor.allocation, self.scope.slots[id]) else {
            return Ok(());
        };
        self.written.insert((place.memory, place.offset), made);
        for buffer in self.buffers {
            let Holder::Plan(other) = buffer.holder else { continue };
            let Some(PlanValue::Tensor(own)) = self.plan.values.get(other) else { continue };
            let builder = &mut self.scope.builder;
            let same = builder.tensor(made).count().is(elements(&own.sizes).into())
                && builder.element(made) == buffer.tenant.element;
            if other != id && own.allocation == Some(place) && same {
                let made = builder.reshape(made, &own.sizes)?;
                self.scope.slots[other] = Some(Passed::Tensor(made));
            }
        }
        Ok(())
    }

    /// Whether a value is a buffer that is kept from call to call.
    pub(super) fn is_buffer(&self, id: usize) -> bool {
        self.buffers.iter().any(|buffer| buffer.holder == Holder::Plan(id))
    }

    /// The new values of what is kept, as outputs.
    fn give_buffers(&mut self) -> Result<()> {
        for buffer in self.buffers {
            let made = match buffer.holder {
                Holder::Plan(id) => self.value(id)?,
                holder => self.kept.get(&holder).copied().map(Passed::Tensor).ok_or_else(|| {
                    self.scope.builder.invalid(format!("the buffer '{}' was not taken", buffer.name))
                })?,
            };
            let Passed::Tensor(made) = made else {
                let reason = format!("the buffer '{}' became a number", buffer.name);
                return Err(self.scope.builder.invalid(reason));
            };
            let sizes = self.scope.builder.sizes(made);
            if sizes.len() != buffer.tenant.dims.len()
                || sizes.iter().zip(&buffer.tenant.dims).any(|(a, b)| !a.agrees(*b))
            {
                let what = self.scope.builder.describe(&[made]);
                let (name, dims) = (&buffer.name, &buffer.tenant.dims);
                return Err(self
                    .scope
                    .builder
                    .invalid(format!("{what} is put into the buffer '{name}' {dims:?}")));
            }
            let made = self.scope.builder.cast(made, buffer.tenant.element)?;
            let made = self.scope.builder.transpose(made, &buffer.order())?;
            self.scope.builder.output(&buffer.new_name(), made);
        }
        Ok(())
    }

    /// A tensor that no instruction computes because it is another one under other sizes: the export drops such views and
    /// plans both at one place.
    fn view(&mut self, id: usize) -> Result<Option<TensorId>> {
        let Some(PlanValue::Tensor(tensor)) = self.plan.values.get(id) else { return Ok(None) };
        let Some(place) = tensor.allocation.filter(|_| tensor.data == 0 && tensor.external.is_none()) else {
            return Ok(None);
        };
        let Some(other) = self.written.get(&(place.memory, place.offset)).copied() else { return Ok(None) };
        let builder = &mut self.scope.builder;
        let same = builder.tensor(other).count().is(elements(&tensor.sizes).into())
            && element_of(tensor.scalar_type) == Some(builder.element(other));
        if !same {
            return Ok(None);
        }
        builder.reshape(other, &tensor.sizes).map(Some)
    }

    /// Makes sure that values which steps read are known where something else than a step makes them: views, and tensors that
    /// were filled row by row. Gives those whose place in memory may hold something else later.
    fn prepare(&mut self, ids: &[usize]) -> Result<Vec<usize>> {
        let method = self.method;
        let items = ids.iter().flat_map(|id| match &method.values[*id] {
            Value::List(items) => &items[..],
            _ => std::slice::from_ref(id),
        });
        let mut passing = Vec::new();
        for id in items {
            self.unstack(*id)?;
            if self.scope.slots[*id].is_none()
                && let Some(view) = self.view(*id)?
            {
                self.scope.slots[*id] = Some(Passed::Tensor(view));
                passing.push(*id);
            }
        }
        Ok(passing)
    }

    /// Joins the rows of a tensor that a loop filled.
    pub(super) fn unstack(&mut self, id: usize) -> Result<()> {
        let Some(rows) = self.stacks.remove(&id) else { return Ok(()) };
        let builder = &mut self.scope.builder;
        let joined = builder.concat(&rows, 0)?;
        self.scope.slots[id] = Some(Passed::Tensor(joined));
        self.note(id)
    }

    /// What is known of a value.
    pub(super) fn value(&mut self, id: usize) -> Result<Passed> {
        let passing = self.prepare(&[id])?;
        let value = self.scope.any(id);
        self.forget(&passing);
        value
    }

    fn forget(&mut self, ids: &[usize]) {
        ids.iter().for_each(|id| self.scope.slots[*id] = None);
    }

    /// One step that is no jump. `index` is that of the instruction.
    pub(super) fn step(&mut self, index: usize, step: &'a Step) -> Result<()> {
        self.control.check(Stage::Importing)?;
        self.scope.builder.at(instruction_location(index, self.plan));
        self.take_step(index, step)?;
        self.scope.builder.check_data()
    }

    fn take_step(&mut self, index: usize, step: &'a Step) -> Result<()> {
        match step {
            Step::Call(operator, call) => self.call(*operator, index, call),
            Step::Delegate(delegate, args) => self.delegate(*delegate, args),
            Step::Move { from, to } => {
                let value = self.value(*from)?;
                self.scope.slots[*to] = Some(value);
                self.note(*to)
            }
            Step::Jump { .. } | Step::Nothing => Ok(()),
        }
    }

    /// An operator outside of delegates.
    fn call(&mut self, operator: usize, index: usize, call: &'a Call) -> Result<()> {
        let place = instruction_location(index, self.plan);
        let name = &self.plan.operators[operator];
        self.scope.builder.at(SourceLocation::new(format!("{name} ({place})")));
        if call.name == COPY_ROW {
            return self.copy_row(&call.args);
        }
        let Some(import) = ops::find(&call.name) else {
            let operators = vec![ops::unknown_outside(name, &call.name, place)];
            return Err(CompileError::UnsupportedOperators { operators });
        };
        let (result, before) = call.args.split_last().unwrap_or((&0, &[]));
        let results = match self.method.values.get(*result) {
            Some(Value::List(items)) => items.clone(),
            _ => vec![*result],
        };
        results.iter().try_for_each(|id| self.writable(*id))?;
        let passing = self.prepare(before)?;
        import(&mut Node { scope: &mut self.scope, call })?;
        let left: Vec<usize> = passing.into_iter().filter(|id| !results.contains(id)).collect();
        self.forget(&left);
        for id in std::mem::take(&mut self.scope.changed) {
            self.writable(id)?;
            self.note(id)?;
        }
        for id in results {
            self.stacks.remove(&id);
            self.note(id)?;
        }
        Ok(())
    }

    /// A row of what a loop gives. Arguments: the whole, the row, its number.
    fn copy_row(&mut self, args: &[usize]) -> Result<()> {
        let [whole, row, number] = args[..] else {
            return Err(self.scope.builder.invalid(format!("{} arguments; there are 3", args.len())));
        };
        self.writable(whole)?;
        let number = self.scope.number(number)?;
        let Passed::Tensor(row) = self.value(row)? else {
            return Err(self.scope.builder.invalid("the row is no tensor"));
        };
        let rows = self.stacks.entry(whole).or_default();
        if number == 0 {
            rows.clear();
        }
        if usize::try_from(number) != Ok(rows.len()) {
            let reason = format!("row {number} is written behind {} others", rows.len());
            return Err(self.scope.builder.invalid(reason));
        }
        let builder = &mut self.scope.builder;
        let dims: Vec<u64> = std::iter::once(1).chain(builder.dims(row).iter().copied()).collect();
        let row = builder.reshape(row, &dims)?;
        rows.push(row);
        Ok(())
    }

    /// Whether a step may say what a value is.
    pub(super) fn writable(&self, id: usize) -> Result<()> {
        match self.plan.values.get(id) {
            Some(PlanValue::Tensor(tensor))
                if (tensor.data != 0 || tensor.external.is_some()) && !self.is_buffer(id) =>
            {
                Err(self.scope.builder.invalid("a constant is written"))
            }
            _ => Ok(()),
        }
    }

    fn delegate(&mut self, index: usize, args: &[usize]) -> Result<()> {
        let (delegate, name) = (&self.plan.delegates[index], delegate_name(index, self.plan));
        let Some(back_end) = back_ends::find(&delegate.id) else {
            let operators = vec![back_ends::unknown(&delegate.id, SourceLocation::new(name))];
            return Err(CompileError::UnsupportedOperators { operators });
        };
        let graph = back_end.read(&delegate.data).map_err(|e| self.scope.builder.invalid(e))?;
        let (taken, given) = (graph.inputs(), graph.outputs());
        let holders: Vec<Holder> =
            self.buffers.iter().map(|buffer| buffer.holder).filter(|holder| holder.is_of(index)).collect();
        // Outputs that the method does not take are new values of buffers; they come first.
        let extra = (taken + given).saturating_sub(args.len());
        let places = match args.get(taken..) {
            Some(values) if values.len() > given => self.repeated(values, graph.as_ref()),
            Some(_) if extra <= holders.len() => Some((extra..given).collect()),
            _ => None,
        };
        let Some(places) = places else {
            let passed = args.len();
            let reason =
                format!("{passed} values are passed to a delegate with {taken} inputs and {given} outputs");
            return Err(self.scope.builder.invalid(reason));
        };
        let passed: Result<Vec<_>> = args[..taken].iter().map(|id| self.value(*id)).collect();
        let orders: Vec<_> = args.iter().map(|id| self.order(*id)).collect();
        let passed = passed?;
        let mut kept: Vec<TensorId> = holders.iter().filter_map(|h| self.kept.get(h).copied()).collect();
        let builder = std::mem::take(&mut self.scope.builder);
        let (builder, results) = graph.import(builder, self.program, &passed, &orders, &mut kept, &name)?;
        self.scope.builder = builder;
        self.kept.extend(holders.into_iter().zip(kept));
        let results = places.iter().filter_map(|place| results.get(*place));
        for (id, result) in args[taken..].iter().zip(results) {
            self.set(*id, *result)?;
        }
        Ok(())
    }

    /// The output of each value that a delegate gives, where it has fewer outputs.
    fn repeated(&self, values: &[usize], graph: &dyn Inlined) -> Option<Vec<usize>> {
        let dims = |id: &usize| match &self.method.values[*id] {
            Value::Tensor(declared) => Some(declared.dims.clone()),
            _ => None,
        };
        let values: Vec<_> = values.iter().map(dims).collect();
        let outputs: Vec<_> = (0..graph.outputs()).map(|output| graph.output_dims(output)).collect();
        outputs_of(&values, &outputs)
    }

    /// The order in which the dimensions of a value lie in memory.
    fn order(&self, id: usize) -> Vec<usize> {
        match self.plan.values.get(id) {
            Some(PlanValue::Tensor(tensor)) => tensor.dim_order.iter().map(|d| usize::from(*d)).collect(),
            _ => Vec::new(),
        }
    }

    /// Makes a value what a delegate gave, in the type that the plan says.
    fn set(&mut self, id: usize, value: Passed) -> Result<()> {
        self.writable(id)?;
        let value = match (value, &self.method.values[id]) {
            (Passed::Tensor(made), Value::Tensor(declared)) => {
                Passed::Tensor(self.scope.given(id, made, declared)?)
            }
            (number, Value::Int(_)) if number.size().is_some() => number,
            (number @ Passed::Computed(..), Value::Int(_)) => number,
            _ => {
                let reason = format!("value {id} is not what is computed for it");
                return Err(self.scope.builder.invalid(reason));
            }
        };
        self.scope.slots[id] = Some(value);
        self.stacks.remove(&id);
        self.note(id)
    }

    /// Values that the caller gets.
    pub(super) fn outputs(&self) -> &'a [usize] {
        &self.plan.outputs
    }

    fn give_outputs(&mut self) -> Result<()> {
        let mut given = 0;
        for (i, id) in self.outputs().iter().enumerate() {
            let made = match &self.method.values[*id] {
                Value::Null => continue,
                Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Tensor(_) => self.value(*id)?,
                other => {
                    let reason = format!("output {i} is {other:?}; tensors and numbers can be given");
                    return Err(self.scope.builder.unsupported(reason));
                }
            };
            let made = self.as_tensor(made)?;
            self.scope.builder.output(&format!("output{i}"), made);
            given += 1;
        }
        if given == 0 {
            return Err(self.scope.builder.unsupported("the method gives nothing"));
        }
        Ok(())
    }

    /// A number as a tensor without dimensions.
    fn as_tensor(&mut self, value: Passed) -> Result<TensorId> {
        let builder = &mut self.scope.builder;
        match value {
            Passed::Tensor(tensor) => Ok(tensor),
            Passed::Number(number) => builder.computed(DType::I64, &[], vec![number]),
            Passed::Computed(base, more) => {
                let more = builder.computed(DType::I64, &[], vec![more])?;
                builder.binary(halite_ops::expression::Function::Add, base, more)
            }
            Passed::Float(number) => builder.values(DType::F64, &[], &Values::Float(vec![number])),
            Passed::Truth(truth) => {
                builder.values(ElementType::Bool, &[], &Values::Int(vec![i64::from(truth)]))
            }
        }
    }
}

/// Whether an input of these dimensions is what the method takes.
fn fits(name: &str, tensor: &Tensor, dims: &[Size]) -> Result<()> {
    let bounded =
        dims.len() == tensor.sizes.len() && dims.iter().zip(&tensor.sizes).all(|(d, most)| *d <= *most);
    if tensor.dynamism == Dynamism::Bounded && !bounded {
        return Err(CompileError::Request(format!(
            "'{name}' is given as {dims:?}; the program was exported for at most {:?}",
            tensor.sizes
        )));
    }
    Ok(())
}

/// The constants of a plan.
pub(super) struct Constants<'a> {
    pub(super) program: &'a Program,
    pub(super) plan: &'a Plan,
}

impl Given for Constants<'_> {
    fn tensor(&self, id: usize, builder: &mut Builder) -> Result<Option<TensorId>> {
        let Some(PlanValue::Tensor(tensor)) = self.plan.values.get(id) else { return Ok(None) };
        let read = self.program.constant(tensor).map_err(|e| builder.invalid(e.to_string()))?;
        let Some(bytes) = read else { return Ok(None) };
        let element = element_of(tensor.scalar_type)
            .ok_or_else(|| builder.unsupported(format!("a tensor of the type {}", tensor.scalar_type)))?;
        let order: Vec<usize> = tensor.dim_order.iter().map(|d| usize::from(*d)).collect();
        let dims: Vec<u64> = order.iter().map(|d| tensor.sizes[*d]).collect();
        let made = builder.constant(&format!("constant {id}"), element, &dims, bytes)?;
        let mut back = vec![0; order.len()];
        for (position, dim) in order.iter().enumerate() {
            back[*dim] = position;
        }
        builder.transpose(made, &back).map(Some)
    }
}
