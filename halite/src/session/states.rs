//! Which tensors of a model are state: what a caller names, what is found by itself, and how calls hand them in.

use std::{collections::HashMap, time::Duration};

use halite_runtime as runtime;

use crate::{Device, Function, Result, Session, State, Value, options::Limits};

/// How often a thread that waits for the state of a session looks at its own limits.
const LOOK: Duration = Duration::from_millis(20);

/// Sizes that a session was given for what its model leaves open.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSizes {
    /// Of named dimensions.
    pub named: HashMap<String, usize>,
    /// Shapes of inputs.
    pub shapes: HashMap<String, Vec<usize>>,
}

/// Which inputs and outputs of a model are pairs of state.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, Default)]
pub(crate) struct StateChoice {
    /// Patterns of inputs and outputs.
    pub named: Vec<(String, String)>,
    /// Whether pairs are looked for where none are named.
    pub found: bool,
}

#[cfg(feature = "compiler")]
impl StateChoice {
    /// Adds patterns.
    pub fn name(&mut self, input: impl Into<String>, output: impl Into<String>) {
        self.named.push((input.into(), output.into()));
    }

    /// The pairs of each function, from its inputs and outputs.
    pub fn pairs(
        &self,
        functions: &[(
            Vec<halite_compiler::signature::Signature>,
            Vec<halite_compiler::signature::Signature>,
        )],
    ) -> Result<Vec<halite_compiler::states::Pairs>> {
        use halite_compiler::states::{Pairs, find, matching};
        if self.named.is_empty() {
            let one = |(inputs, outputs): &(Vec<_>, Vec<_>)| {
                if self.found { find(inputs, outputs) } else { Pairs::new() }
            };
            return Ok(functions.iter().map(one).collect());
        }
        let mut all = vec![Pairs::new(); functions.len()];
        for (input, output) in &self.named {
            let mut count = 0;
            for ((inputs, outputs), pairs) in functions.iter().zip(&mut all) {
                let made = matching([input, output], inputs, outputs).map_err(crate::compile::error)?;
                count += made.len();
                pairs.extend(made);
            }
            if count == 0 {
                let names: Vec<_> = functions
                    .iter()
                    .flat_map(|(inputs, _)| inputs.iter().map(|input| input.name.as_str()))
                    .collect();
                return Err(crate::Error::invalid(format!(
                    "no input fits the state '{input}={output}'; there are: {}",
                    names.join(", ")
                )));
            }
        }
        Ok(all)
    }
}

#[cfg(feature = "compiler")]
impl super::SessionBuilder {
    /// Names state of a model: inputs and the outputs that replace them, such as `past_*` and `present_*`. What a `*` of the first
    /// stands for goes into the `*` of the second. May be called again. Without it, pairs are found by their names, types and
    /// sizes; with it, only those that are named count. See [`State`].
    #[must_use]
    pub fn state(mut self, input: impl Into<String>, output: impl Into<String>) -> Self {
        self.model.states.name(input, output);
        self
    }

    /// Takes nothing for state that is not named with [`state`](Self::state).
    #[must_use]
    pub fn without_state(mut self) -> Self {
        self.model.states.found = false;
        self
    }
}

impl Session {
    /// Lets the state that the default function keeps by itself begin anew; see [`Function::reset_state`].
    ///
    /// # Errors
    /// As [`Function::reset_state`].
    pub fn reset_state(&self) -> Result<()> {
        self.default_function()?.reset_state()
    }

    /// A new state of the default function; see [`Function::state`].
    ///
    /// # Errors
    /// As [`Function::state`].
    pub fn state(&self) -> Result<State> {
        self.default_function()?.state()
    }
}

impl Function {
    /// Lets the state that it keeps by itself begin anew: the next [`Function::run`] is the first of a sequence. A call that is
    /// under way is waited for. Does nothing where there is no such state.
    ///
    /// # Errors
    /// A call that is under way failed.
    pub fn reset_state(&self) -> Result<()> {
        if !self.info().keeps_state() {
            return Ok(());
        }
        self.on_own_state(&Limits::default(), State::reset)
    }

    /// Does something with the state that the session holds for it. One thread at a time does.
    pub(super) fn on_own_state<T>(
        &self,
        limits: &Limits,
        work: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let own = &self.session.0.own[self.place];
        let mut held = loop {
            match own.try_lock_for(LOOK) {
                Some(held) => break held,
                None => limits.check("waiting for another call on the same state")?,
            }
        };
        let mut state = match held.take() {
            Some(tensors) => State::of(self.clone(), tensors),
            None => self.state()?,
        };
        let done = work(&mut state);
        *held = Some(state.into_tensors());
        done
    }

    /// A new state: tensors that live on the device between the calls of a sequence, such as the caches of a decoder. They begin as
    /// zeros, or as the program says. Each state is a sequence of its own; all share the weights of the session.
    ///
    /// # Errors
    /// The function has no state ([`FunctionInfo::states`](crate::FunctionInfo::states)), or there is no device.
    pub fn state(&self) -> Result<State> {
        State::new(self.clone())
    }
}

/// Values as the layer below takes them. What a call writes over has to be nobody else's: of an input that is state, the call
/// gets a copy, unless the state is `kept` by whoever calls.
pub(super) fn lowered<'a>(
    values: impl Iterator<Item = &'a Value>,
    states: &[(usize, usize)],
    kept: bool,
    devices: &[Device],
) -> Result<Vec<runtime::Value>> {
    let one = |(place, value): (usize, &Value)| {
        let written = !kept && states.iter().any(|(input, _)| *input == place);
        match (value, devices) {
            (Value::Tensor(tensor), [device, ..]) if written && tensor.device().is_some() => {
                Value::Tensor(tensor.copied_on(device)?).lower(devices)
            }
            _ => value.lower(devices),
        }
    };
    values.enumerate().map(one).collect()
}
