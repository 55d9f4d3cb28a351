//! What a check found: of the whole model, of each node, and of each recorded tensor.

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The function that was checked.
    pub function: String,
    /// The nodes of the compiled graph, in the order in which they run.
    pub nodes: Vec<NodeCheck>,
    /// What was recorded, beside what the device computed.
    pub recorded: Vec<RecordedCheck>,
    /// How often the model ran.
    pub runs: usize,
    /// Where the first node is whose bits were not the same in all runs.
    pub differs: Option<String>,
}

impl CheckReport {
    /// The first node whose results are not within the tolerance of its reference.
    pub fn first_wrong(&self) -> Option<&NodeCheck> {
        self.nodes.iter().find(|node| node.wrong > 0)
    }

    /// The first node that makes NaN or infinities of inputs without any.
    pub fn first_not_finite(&self) -> Option<&NodeCheck> {
        self.nodes.iter().find(|node| node.not_finite > 0 && node.finite_inputs)
    }

    /// Whether nothing is wrong: nodes are near their references, recorded values near what was computed, and all runs the same.
    pub fn is_right(&self) -> bool {
        let recorded = |check: &RecordedCheck| check.found && check.wrong == 0;
        self.first_wrong().is_none() && self.differs.is_none() && self.recorded.iter().all(recorded)
    }
}

/// A node and its reference.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NodeCheck {
    /// Where in the model it comes from.
    pub location: String,
    /// Name of the operation; `if`, `loop` or `kernel of the model` for nodes without a reference.
    pub kind: String,
    /// The operation as text.
    pub text: String,
    /// Names of the results in the model.
    pub tensors: Vec<String>,
    /// Whether there is a reference that it was compared with.
    pub compared: bool,
    /// Elements of its results.
    pub elements: u64,
    /// How many are outside of the tolerance.
    pub wrong: u64,
    /// The element that is farthest from its reference, in units of the tolerance.
    pub worst: Option<Difference>,
    /// Elements that are NaN or infinite.
    pub not_finite: u64,
    /// Whether no element of its inputs is.
    pub finite_inputs: bool,
}

/// An element that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Place of the result among the node's.
    pub output: usize,
    /// Place of the element.
    pub index: usize,
    /// What the device computed.
    pub got: f64,
    /// What it should be.
    pub expected: f64,
    /// How far it may be off.
    pub allowed: f64,
}

/// A tensor that another runtime recorded.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordedCheck {
    /// Its name.
    pub name: String,
    /// Whether the compiled graph has a tensor of this name and size. Passes join nodes, so some of a model's do not exist any more.
    pub found: bool,
    /// Where in the model it is computed.
    pub location: String,
    /// Elements.
    pub elements: u64,
    /// How many are outside of the tolerance.
    pub wrong: u64,
    /// The element that is farthest off.
    pub worst: Option<Difference>,
}
