//! What a recurrent network is.

use halite_sizes::Size;

use crate::graph::TensorId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rnn,
    Gru,
    Lstm,
}

impl Kind {
    /// Parts of the matrices, and of the biases.
    pub(super) fn gates(self) -> u64 {
        match self {
            Kind::Rnn => 1,
            Kind::Gru => 3,
            Kind::Lstm => 4,
        }
    }

    pub(super) fn activations(self) -> &'static [&'static str] {
        match self {
            Kind::Rnn => &["Tanh"],
            Kind::Gru => &["Sigmoid", "Tanh"],
            Kind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// What holds for all directions.
pub(super) struct Network {
    pub(super) kind: Kind,
    /// Where this is open or large, steps are runs of a loop.
    pub(super) steps: Size,
    pub(super) batch: Size,
    /// Elements of an input.
    pub(super) width: u64,
    pub(super) hidden: u64,
    /// Lengths of sequences `[batch, 1]`, where they are not all `steps`.
    pub(super) lengths: Option<TensorId>,
    pub(super) input_forget: bool,
    pub(super) linear_before_reset: bool,
}
