//! What making one graph may cost: an account of work and memory for all that a short model can ask for without end.
//!
//! Loops, functions and recurrent operators multiply the nodes of a model, and sizes alone make constants. So all of that is
//! counted in one account, whose limits grow with the model. What a model stores itself, such as its weights, is not counted.

use std::{cell::Cell, fmt};

/// Work that every model may cost; one is about a node of a model, some microseconds.
const WORK: u64 = 300_000;
/// Bytes that every model may cost.
const BYTES: u64 = 160 << 20;
/// Work, and bytes, for each node that the model stores.
const FOR_NODE: [u64; 2] = [24, 2048];
/// Bytes that a node takes in a file, about.
const NODE_BYTES: u64 = 64;
/// Bytes for each byte of the model's files: elements of 4 bits may be held in 32.
const FOR_BYTE: u64 = 8;
/// Work, and bytes, for each element of the function's inputs: recurrent operators have steps, and tables for resizing have
/// sizes, that come of those of inputs.
const FOR_ELEMENT: [u64; 2] = [4, 256];
/// Most work, and bytes, for all inputs: a short file may say that they are large.
const MOST_FOR_INPUTS: [u64; 2] = [120_000, 96 << 20];

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// A node of the model, each time that it is imported.
    Node,
    /// A run of a loop's body, a call of a function, a branch; with the names that it defines.
    Run,
    /// A node of the graph.
    Operation,
    /// An input of an operation that has many: each of the parts that are joined is a command.
    Part,
    /// A tensor of the graph, with its dimensions.
    Tensor,
    /// Bytes of names of tensors.
    Name,
    /// Bytes of constants that are computed rather than read from the model.
    Constant,
    /// Bytes that elements of the model take when they are unpacked.
    Decoded,
    /// Arithmetic that is done while the graph is made.
    Folding,
    /// Elements of lists.
    List,
}

impl Cost {
    const ALL: [Cost; 10] = [
        Cost::Node,
        Cost::Run,
        Cost::Operation,
        Cost::Part,
        Cost::Tensor,
        Cost::Name,
        Cost::Constant,
        Cost::Decoded,
        Cost::Folding,
        Cost::List,
    ];

    /// How its count is told.
    fn told(self) -> &'static str {
        match self {
            Cost::Node => "nodes imported",
            Cost::Run => "runs of loops, functions and branches",
            Cost::Operation => "operations",
            Cost::Part => "joined parts",
            Cost::Tensor => "tensors",
            Cost::Name => "bytes of names",
            Cost::Constant => "bytes of computed constants",
            Cost::Decoded => "bytes of unpacked constants",
            Cost::Folding => "steps of arithmetic on constants",
            Cost::List => "elements of lists",
        }
    }

    /// Work of so many.
    fn work(self, count: u64) -> u64 {
        match self {
            Cost::Node | Cost::Run => count,
            // Passes, the plan and the module's code come after it.
            Cost::Operation => count.saturating_mul(6),
            Cost::Part => count.saturating_mul(10),
            Cost::Tensor => count / 4,
            Cost::Folding => count / 256,
            Cost::Name | Cost::Constant | Cost::Decoded => count / 4096,
            Cost::List => count / 64,
        }
    }

    /// Bytes of so many, with what allocations cost.
    fn bytes(self, count: u64) -> u64 {
        match self {
            Cost::Node | Cost::Run | Cost::Folding => 0,
            Cost::Operation => count.saturating_mul(800),
            Cost::Part => count.saturating_mul(1500),
            Cost::Tensor => count.saturating_mul(192),
            // The place that a node comes from may have the name, too.
            Cost::Name => count.saturating_mul(2),
            Cost::Constant | Cost::Decoded => count,
            Cost::List => count.saturating_mul(4),
        }
    }
}

/// An account of [`Cost`]s.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    spent: [Cell<u64>; Cost::ALL.len()],
    work: Cell<u64>,
    bytes: Cell<u64>,
    most_work: u64,
    most_bytes: u64,
    for_inputs: [u64; 2],
    for_files: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            spent: Default::default(),
            work: Cell::default(),
            bytes: Cell::default(),
            most_work: WORK,
            most_bytes: BYTES,
            for_inputs: [0; 2],
            for_files: Cell::default(),
        }
    }
}

impl Budget {
    /// Raises the limits for a model that stores so many nodes and bytes.
    pub(crate) fn of_model(&mut self, nodes: u64, bytes: u64) {
        let [work, each] = FOR_NODE;
        self.most_work = WORK.saturating_add(nodes.saturating_mul(work));
        let own = nodes.saturating_mul(each).saturating_add(bytes.saturating_mul(FOR_BYTE));
        self.most_bytes = BYTES.saturating_add(own);
    }

    /// The same for a file of so many bytes whose nodes were not counted: one takes some dozens of bytes.
    pub(crate) fn of_file(&mut self, bytes: u64) {
        self.of_model(bytes / NODE_BYTES, bytes);
    }

    /// Raises the limits for an input of so many elements.
    pub(crate) fn add_input(&mut self, elements: u64) {
        for ((own, each), most) in self.for_inputs.iter_mut().zip(FOR_ELEMENT).zip(MOST_FOR_INPUTS) {
            *own = own.saturating_add(elements.saturating_mul(each)).min(most);
        }
    }

    /// Raises the limits for bytes of a file beside the model.
    pub(crate) fn add_file(&self, bytes: u64) {
        let more = bytes.saturating_mul(FOR_BYTE);
        self.for_files.set(self.for_files.get().saturating_add(more));
    }

    /// Counts a cost. [`Budget::check`] tells later whether it was too much.
    pub(crate) fn count(&self, cost: Cost, count: u64) {
        let add = |to: &Cell<u64>, more: u64| to.set(to.get().saturating_add(more));
        let place = cost as usize;
        let before = self.spent[place].get();
        add(&self.spent[place], count);
        // The difference, so that many small counts are not lost to rounding.
        add(&self.work, cost.work(self.spent[place].get()) - cost.work(before));
        add(&self.bytes, cost.bytes(count));
    }

    /// How much of a cost was counted.
    pub(crate) fn spent(&self, cost: Cost) -> u64 {
        self.spent[cost as usize].get()
    }

    /// Whether the costs are within the limits.
    ///
    /// # Errors
    /// Says what used them up.
    pub(crate) fn check(&self) -> Result<(), String> {
        let [work, bytes] = self.for_inputs;
        let most_work = self.most_work.saturating_add(work);
        let most_bytes = self.most_bytes.saturating_add(bytes).saturating_add(self.for_files.get());
        if self.work.get() <= most_work && self.bytes.get() <= most_bytes {
            return Ok(());
        }
        let limit = match self.work.get() > most_work {
            true => format!("{most_work} steps of work"),
            false => format!("{} MiB of memory", most_bytes >> 20),
        };
        Err(format!(
            "making the graph takes more than the {limit} that a model of this size is given; so far there are {self}; shorten \
             loops and sequences, call functions less often, or store constants in the model"
        ))
    }
}

impl fmt::Display for Budget {
    /// All counts, what costs most first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |cost: Cost| {
            let count = self.spent(cost);
            let share = |own: u64, most: u64| own as f64 / most.max(1) as f64;
            share(cost.work(count), self.most_work).max(share(cost.bytes(count), self.most_bytes))
        };
        let mut all: Vec<Cost> = Cost::ALL.into_iter().filter(|cost| self.spent(*cost) > 0).collect();
        all.sort_by(|a, b| part(*b).total_cmp(&part(*a)));
        let told: Vec<_> = all.iter().map(|cost| format!("{} {}", self.spent(*cost), cost.told())).collect();
        f.write_str(&told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_used_the_budget_is_told_first() {
        let mut budget = Budget::default();
        budget.count(Cost::Node, 10);
        for _ in 0..WORK {
            budget.count(Cost::Run, 1);
        }
        let error = budget.check().unwrap_err();
        assert!(error.contains(&format!("there are {WORK} runs of loops")), "{error}");
        assert!(error.contains("10 nodes imported"), "{error}");
        assert!(error.contains("steps of work"), "{error}");
        budget.of_model(10_000, 0);
        assert!(budget.check().is_ok());
        budget.count(Cost::Name, BYTES / 2 + 10_000 * 1024 + 1);
        let error = budget.check().unwrap_err();
        assert!(error.contains("MiB of memory") && error.contains("bytes of names, "), "{error}");
        budget.add_input(100);
        assert!(budget.check().is_ok());
        budget.add_input(u64::MAX);
        budget.count(Cost::Constant, u64::MAX);
        assert!(budget.check().is_err());
    }

    #[test]
    fn small_counts_add_up() {
        let budget = Budget::default();
        for _ in 0..1024 {
            budget.count(Cost::Tensor, 1);
        }
        assert_eq!((budget.work.get(), budget.bytes.get()), (256, 1024 * 192));
    }

    #[test]
    fn costs_are_in_order() {
        for (place, cost) in Cost::ALL.into_iter().enumerate() {
            assert_eq!(cost as usize, place);
        }
    }
}
