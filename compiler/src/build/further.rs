//! Building on: a graph that is whole gets further nodes, inputs and results.

use super::Builder;
use crate::{
    Control,
    graph::{Graph, TensorId},
};

impl Builder {
    /// A builder that appends to a graph.
    pub(crate) fn further(mut graph: Graph, control: &Control) -> Self {
        let body = std::mem::take(&mut graph.body);
        Builder { open: vec![body], graph, control: control.clone(), ..Builder::default() }
    }

    /// Gives the caller another tensor in the place of an output, under another name.
    pub(crate) fn replace_output(&mut self, place: usize, name: &str, tensor: TensorId) {
        let port = &mut self.graph.outputs[place];
        (port.name, port.tensor) = (name.to_owned(), tensor);
        self.open[0].results[place] = tensor;
    }

    /// Puts the last input before the `count` that come before it.
    pub(crate) fn move_last_input(&mut self, count: usize) {
        let place = (self.graph.inputs.len() - 1).saturating_sub(count);
        self.graph.inputs[place..].rotate_right(1);
        self.open[0].parameters[place..].rotate_right(1);
        let moved = |input: &mut usize| *input += usize::from(*input >= place);
        self.graph.states.iter_mut().for_each(|state| moved(&mut state.input));
        self.graph.growing.iter_mut().for_each(|growing| moved(&mut growing.input));
        let symbols = self.graph.open.iter_mut().flat_map(|open| &mut open.symbols);
        symbols.for_each(|(input, _)| moved(input));
    }
}
