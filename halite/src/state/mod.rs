//! State: tensors that live on the device between calls, one set for each sequence.

#[cfg(feature = "text")]
mod chain;
mod file;
#[cfg(feature = "text")]
mod parts;
mod profile;
mod shape;

use std::{fmt, sync::Arc};

#[cfg(feature = "text")]
pub(crate) use parts::Parts;

use crate::{
    Device, ElementType, Error, Function, FunctionInfo, Inputs, Outputs, Pending, Result, RunOptions, Tensor,
    Value, ValueInfo, ValueType,
    options::{Handed, Limits},
    session::started::Started,
    signature::FirstValue,
    tensor::Capacity,
};

/// The state of a sequence: tensors that each call reads and replaces, such as the caches of a decoder or the memory of a
/// recurrent network. They stay on the device. Where the compiled function can, it updates them in place, and nothing of what did
/// not change is copied.
///
/// ```no_run
/// use halite::{Session, Tensor};
///
/// // Inputs `past_key_values.N.key` and outputs `present.N.key` are found by their names.
/// let session = Session::builder()
///     .model("decoder.onnx")
///     .dimension("batch_size", 1)
///     .dimension("past_sequence_length", 512)
///     .build()?;
/// let mut state = session.state()?;
/// let mut token = 1i64;
/// for position in 0..64i64 {
///     let token_tensor = Tensor::from_slice(&[token], [1, 1])?;
///     let place = Tensor::from_slice(&[position], [1, 1])?;
///     let out = state.run([("input_ids", &token_tensor), ("position_ids", &place)])?;
///     token = out["next_token"].item::<i64>()?;
/// }
/// state.reset()?;
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Made by [`Session::state`](crate::Session::state) or [`Function::state`]. Any number of states share the weights of a session; each is used by one
/// call at a time. A call that fails leaves the state as the device left it: reset it, or load it again.
pub struct State {
    function: Function,
    device: Device,
    tensors: Vec<Kept>,
    /// A call that was not waited for to its end.
    under_way: Option<Arc<Started>>,
}

/// A state without its function, which does not keep a session alive.
pub(crate) struct Tensors {
    device: Device,
    tensors: Vec<Kept>,
    under_way: Option<Arc<Started>>,
}

/// A tensor of a state.
#[derive(Clone)]
struct Kept {
    /// The input's place.
    input: usize,
    /// The output's place.
    output: usize,
    name: String,
    element: Option<ElementType>,
    /// On the device, with a buffer of its own; absent while it is what it begins as.
    tensor: Option<Tensor>,
    /// What it begins as, if not zeros.
    first: Option<Tensor>,
    /// The rows of its buffer, where some are to spare.
    capacity: Option<Capacity>,
}

impl State {
    pub(crate) fn new(function: Function) -> Result<State> {
        let info = function.info();
        let inputs: Vec<&ValueInfo> = info.all_inputs().collect();
        let outputs: Vec<&ValueInfo> = info.all_outputs().collect();
        let place = |values: &[&ValueInfo], name: &str| values.iter().position(|value| value.name == name);
        let mut tensors = Vec::new();
        for pair in &info.states {
            let (Some(input), Some(output)) = (place(&inputs, &pair.input), place(&outputs, &pair.output))
            else {
                continue;
            };
            let ValueType::Tensor { element_type, .. } = inputs[input].value_type else { continue };
            let (name, element) = (pair.input.clone(), element_type);
            let kept = input.checked_sub(info.inputs.len()).and_then(|i| info.kept[i].first.as_ref());
            let first = kept.map(FirstValue::tensor).transpose()?;
            tensors.push(Kept { input, output, name, element, tensor: None, first, capacity: None });
        }
        if tensors.is_empty() {
            return Err(Error::invalid(format!(
                "'{}' has no state: it keeps none by itself, and no output replaces an input by its name; name pairs with SessionBuilder::state, or --state",
                info.name
            )));
        }
        let device = function.session().device().cloned();
        let device =
            device.ok_or_else(|| Error::invalid("state lives on a device, and the session has none"))?;
        Ok(State { function, device, tensors, under_way: None })
    }

    /// A function's state that was held without it.
    pub(crate) fn of(function: Function, held: Tensors) -> State {
        let Tensors { device, tensors, under_way } = held;
        State { function, device, tensors, under_way }
    }

    /// What it holds, without its function.
    pub(crate) fn into_tensors(self) -> Tensors {
        let State { device, tensors, under_way, .. } = self;
        Tensors { device, tensors, under_way }
    }

    /// The function whose state it is.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Names of its tensors: those of the inputs.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors.iter().map(|kept| kept.name.as_str())
    }

    /// Bytes that its tensors take on the device. Those that no call has used yet take none.
    pub fn byte_len(&self) -> usize {
        let bytes = |kept: &Kept| Some(kept.tensor.as_ref()?.bytes_with(kept.capacity));
        self.tensors.iter().filter_map(bytes).sum()
    }

    /// Runs the function on this state and waits. The inputs are those that are no state; so are the results.
    ///
    /// # Errors
    /// As [`Function::run`], and when a size of the state is not known.
    pub fn run(&mut self, inputs: impl Into<Inputs>) -> Result<Outputs> {
        self.run_with(inputs, &RunOptions::new())
    }

    /// As [`State::run`], with options. A call that they end while the device works is waited for by whatever uses the state
    /// next.
    ///
    /// # Errors
    /// As [`State::run`], and when the options end it.
    pub fn run_with(&mut self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Outputs> {
        let limits = self.function.session().begin(options)?;
        self.run_within(inputs.into(), &limits)
    }

    pub(crate) fn run_within(&mut self, inputs: Inputs, limits: &Limits) -> Result<Outputs> {
        drop(self.launch(inputs, limits)?);
        self.settle(limits)?.ok_or_else(|| Error::new(crate::ErrorKind::Other, "a call gave no results"))
    }

    /// Starts a call of a function that keeps its state by itself; whatever uses the state next waits for it.
    pub(crate) fn start_within(&mut self, inputs: Inputs, limits: &Limits) -> Result<Pending> {
        let pending = self.launch(inputs, limits)?;
        Ok(pending.without_last(self.function.info().kept.len()))
    }

    /// All inputs of a call that is not made on this state.
    pub(crate) fn values_within(&mut self, inputs: Inputs, limits: &Limits) -> Result<Vec<Value>> {
        self.settle(limits)?;
        self.values(inputs)
    }

    fn launch(&mut self, inputs: Inputs, limits: &Limits) -> Result<Pending> {
        self.settle(limits)?;
        self.launch_so(Handed { kept: true, ..Handed::default() }, inputs, limits)
    }

    fn launch_so(&mut self, handed: Handed, inputs: Inputs, limits: &Limits) -> Result<Pending> {
        let values = self.values(inputs)?;
        let handed = Handed { capacities: self.capacities(), ..handed };
        let pending = self.function.launch(values, handed, limits)?;
        self.under_way = Some(pending.call());
        Ok(pending)
    }

    /// The tensors that have rows to spare, by the places of inputs.
    fn capacities(&self) -> Vec<(usize, Capacity)> {
        self.tensors.iter().filter_map(|kept| Some((kept.input, kept.capacity?))).collect()
    }

    /// All inputs of a call, those of the state among them.
    fn values(&mut self, inputs: Inputs) -> Result<Vec<Value>> {
        let function = self.function.clone();
        let info = function.info();
        let is_own = |place: &usize| !self.tensors.iter().any(|kept| kept.input == *place);
        let own: Vec<usize> = (0..info.inputs.len()).filter(is_own).collect();
        let names: Vec<&str> = own.iter().map(|place| info.inputs[*place].name.as_str()).collect();
        let mut values = vec![Value::Null; info.inputs.len() + info.kept.len()];
        for (place, value) in own.into_iter().zip(inputs.in_order(&names, &info.name)?) {
            values[place] = value;
        }
        self.begin(info, &values)?;
        for kept in &self.tensors {
            values[kept.input] = kept.tensor.clone().map_or(Value::Null, Value::Tensor);
        }
        Ok(values)
    }

    /// Makes tensors that are not there yet.
    fn begin(&mut self, info: &FunctionInfo, values: &[Value]) -> Result<()> {
        if self.tensors.iter().all(|kept| kept.tensor.is_some()) {
            return Ok(());
        }
        let sizes = shape::Sizes::of(&self.function, values)?;
        for kept in self.tensors.iter_mut().filter(|kept| kept.tensor.is_none()) {
            kept.tensor = Some(match &kept.first {
                Some(first) => first.copied_on(&self.device)?,
                None => {
                    let element = kept.element.ok_or_else(|| {
                        Error::invalid(format!("the type of the state '{}' is not known", kept.name))
                    })?;
                    let shape = sizes.shape(info, kept.input, kept.output)?;
                    Tensor::zeros_on(&self.device, element, &shape)?
                }
            });
        }
        Ok(())
    }

    /// Places of results that are state.
    fn outputs(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.tensors.iter().map(|kept| kept.output)
    }

    /// Waits for a call that is under way and takes what it left; gives its other results.
    pub(crate) fn settle(&mut self, limits: &Limits) -> Result<Option<Outputs>> {
        self.settle_unread(limits, &[])
    }

    /// The same, where nobody reads the results in these places.
    fn settle_unread(&mut self, limits: &Limits, unread: &[usize]) -> Result<Option<Outputs>> {
        let Some(call) = &self.under_way else { return Ok(None) };
        let call = call.clone();
        let unread = self.outputs().chain(unread.iter().copied());
        let pending = self.function.pending(call.clone()).unread(unread);
        let outputs = pending.finish(limits);
        if outputs.is_ok() || pending.is_done() {
            self.under_way = None;
        }
        let outputs = outputs?;
        let names: Vec<String> = outputs.names().map(str::to_owned).collect();
        let mut values: Vec<Option<Value>> = outputs.into_values().into_iter().map(Some).collect();
        for kept in &mut self.tensors {
            kept.take(values.get_mut(kept.output).and_then(Option::take), call.capacity(kept.output))?;
        }
        let rest = names.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        let (names, values): (Vec<String>, Vec<Value>) = rest.unzip();
        Ok(Some(Outputs::new(names.into(), values)))
    }

    /// Back to the beginning: to what it began with. Memory is given back.
    ///
    /// # Errors
    /// A call that is under way failed.
    pub fn reset(&mut self) -> Result<()> {
        let settled = self.settle(&Limits::default());
        self.tensors.iter_mut().for_each(|kept| kept.put(None));
        settled.map(drop)
    }

    /// A second state with a copy of the tensors: from here on two sequences go their own ways.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn fork(&mut self) -> Result<State> {
        self.settle(&Limits::default())?;
        let mut tensors = self.tensors.clone();
        for kept in &mut tensors {
            let copied = |tensor: &Tensor| tensor.with_capacity(&self.device, kept.capacity, kept.capacity);
            kept.tensor = kept.tensor.as_ref().map(copied).transpose()?;
        }
        Ok(State { function: self.function.clone(), device: self.device.clone(), tensors, under_way: None })
    }

    /// A copy of a tensor as it is now; `None` where it is not there yet, because nothing has said its sizes.
    ///
    /// # Errors
    /// There is no such tensor, or the device fails.
    pub fn tensor(&mut self, name: &str) -> Result<Option<Tensor>> {
        self.settle(&Limits::default())?;
        let place = self.place(name)?;
        let kept = &self.tensors[place];
        match &kept.first {
            Some(first) if kept.tensor.is_none() => first.copied_on(&self.device).map(Some),
            _ => kept.dense(&self.device),
        }
    }

    /// Replaces a tensor, by a copy of this one.
    ///
    /// # Errors
    /// There is no such tensor, it does not fit, or the device fails.
    pub fn set(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        self.settle(&Limits::default())?;
        let place = self.place(name)?;
        self.check(place, tensor)?;
        let tensor = tensor.copied_on(&self.device)?;
        self.tensors[place].put(Some(tensor));
        Ok(())
    }

    fn place(&self, name: &str) -> Result<usize> {
        self.tensors.iter().position(|kept| kept.name == name).ok_or_else(|| {
            let names: Vec<_> = self.names().map(|name| format!("'{name}'")).collect();
            let text = format!("there is no state '{name}'; there are: {}", names.join(", "));
            Error::new(crate::ErrorKind::NotFound, text)
        })
    }

    /// Whether a tensor can take a place.
    fn check(&self, place: usize, tensor: &Tensor) -> Result<()> {
        let own = self.tensors[place].input;
        self.function.info().all_inputs().nth(own).map_or(Ok(()), |input| shape::check(input, tensor))
    }
}

impl Kept {
    /// What a call leaves takes its place.
    fn take(&mut self, new: Option<Value>, capacity: Option<Capacity>) -> Result<()> {
        let Some(Value::Tensor(new)) = new else {
            let text = format!("the result that replaces the state '{}' is no tensor", self.name);
            return Err(Error::new(crate::ErrorKind::Other, text));
        };
        // Where a window moved on, what is next begins behind what it left.
        let new = match capacity {
            Some(capacity) if capacity.moves > 0 => new.moved_on(capacity)?,
            _ => new,
        };
        let is_same = |own: &Tensor| own.is_in_buffer_of(&new) && own.shape() == new.shape();
        if !self.tensor.as_ref().is_some_and(is_same) {
            self.tensor = Some(new);
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Gives it another tensor, without rows to spare.
    fn put(&mut self, tensor: Option<Tensor>) {
        (self.tensor, self.capacity) = (tensor, None);
    }

    /// A copy without rows to spare.
    fn dense(&self, device: &Device) -> Result<Option<Tensor>> {
        let copied = |tensor: &Tensor| tensor.with_capacity(device, self.capacity, None);
        self.tensor.as_ref().map(copied).transpose()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        f.debug_struct("State").field("function", &self.function.name()).field("tensors", &names).finish()
    }
}
