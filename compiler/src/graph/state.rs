//! State ports: inputs whose buffer a call leaves an output's elements in.

use halite_sizes::Size;

use super::{Graph, TensorId};
use crate::{CompileError, SourceLocation};

/// Bytes of a word: what devices fill and bind.
const WORD: u64 = 4;

/// A tensor that lives between calls: an input that an output replaces. Whoever calls the compiled function hands in a buffer
/// with the old elements, and finds the new ones in the same buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatePort {
    /// The input's place in [`Graph::inputs`].
    pub input: usize,
    /// The output's place in [`Graph::outputs`].
    pub output: usize,
    /// The dimension in which calls make it larger: its buffer has rows to spare there.
    pub grows: Option<usize>,
    /// The rows before those of the new value in the dimension in which it grows: where a window moves over its rows.
    pub dropped: Size,
}

/// An input that an output of another size replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Growing {
    /// The input's place in [`Graph::inputs`].
    pub input: usize,
    /// The output's place in [`Graph::outputs`].
    pub output: usize,
    /// Rows of its buffer come in multiples of so many; 0 where it is only looked for windows.
    pub step: u64,
    /// What the place in its buffer is a multiple of where the next value begins, in bytes; 0 where it begins with its buffer.
    pub alignment: u64,
}

impl Graph {
    /// Makes state of the inputs and outputs that are paired by their names. Pairs that the graph has no ports for are left
    /// out, and so are those that no buffer can hold both of: their types or sizes differ, an element is left of the last
    /// whole word, there are no bytes, or the input's value is bound.
    pub fn bind_states<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (input, output) in pairs {
            let input = self.inputs.iter().position(|port| port.name == input);
            let output = self.outputs.iter().position(|port| port.name == output);
            let (Some(input), Some(output)) = (input, output) else { continue };
            let taken = self.states.iter().any(|state| state.input == input || state.output == output);
            if !taken && self.can_be_state(input, output) {
                self.states.push(StatePort { input, output, grows: None, dropped: 0.into() });
            }
        }
    }

    /// Notes the pairs that [`bind_states`](Self::bind_states) made no states of, for the pass that gives them rows to spare; and those that
    /// it did, where a window may move over its rows.
    pub fn note_growing<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        [step, alignment]: [u64; 2],
    ) {
        for (input, output) in pairs {
            let input = self.inputs.iter().position(|port| port.name == input && port.value.is_none());
            let output = self.outputs.iter().position(|port| port.name == output);
            let (Some(input), Some(output)) = (input, output) else { continue };
            let is_taken = |a: usize, b: usize| a == input || b == output;
            let is_state = |state: &StatePort| match alignment {
                0 => is_taken(state.input, state.output),
                _ => is_taken(state.input, state.output) && (state.input, state.output) != (input, output),
            };
            let taken = self.states.iter().any(is_state)
                || self.growing.iter().any(|growing| is_taken(growing.input, growing.output));
            if !taken && (step > 0 || alignment > 0) {
                self.growing.push(Growing { input, output, step, alignment });
            }
        }
    }

    /// Whether one buffer can hold an input's elements and then an output's, whatever the sizes are that callers decide.
    fn can_be_state(&self, input: usize, output: usize) -> bool {
        let _entered = self.open.as_ref().map(super::OpenSizes::enter);
        let (port, result) = (&self.inputs[input], self.tensor(self.outputs[output].tensor));
        let own = self.tensor(port.tensor);
        let mut sizes = own.sizes().iter().zip(result.sizes());
        let same = own.rank() == result.rank() && sizes.all(|(one, other)| one.is(*other));
        let known = |bytes: Size| bytes != 0 && bytes.is_multiple_of(WORD);
        same && own.element == result.element && port.value.is_none() && known(own.byte_size())
    }

    /// The state that an input is part of.
    pub fn state_of_input(&self, input: usize) -> Option<&StatePort> {
        self.states.iter().find(|state| state.input == input)
    }

    /// The state that an output is part of.
    pub fn state_of_output(&self, output: usize) -> Option<&StatePort> {
        self.states.iter().find(|state| state.output == output)
    }

    /// Whether the states keep their rules: ports that exist, each in one state, of one type and size.
    pub(super) fn check_states(&self) -> Result<(), CompileError> {
        let mut seen: [Vec<usize>; 2] = Default::default();
        for state in &self.states {
            let exist = state.input < self.inputs.len() && state.output < self.outputs.len();
            let again = seen[0].contains(&state.input) || seen[1].contains(&state.output);
            if !exist || again || !self.can_be_state(state.input, state.output) {
                let reason =
                    format!("internal: input {} and output {} are no state", state.input, state.output);
                return Err(CompileError::invalid(&SourceLocation::default(), reason));
            }
            seen[0].push(state.input);
            seen[1].push(state.output);
        }
        Ok(())
    }

    /// The tensors of a state: what comes in, and what replaces it.
    pub fn state_tensors(&self, state: &StatePort) -> (TensorId, TensorId) {
        (self.inputs[state.input].tensor, self.outputs[state.output].tensor)
    }
}
