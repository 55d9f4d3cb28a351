//! Which versions of a function have the same code: those that do the same with other numbers are written once, and the
//! numbers are data.

use std::collections::HashMap;

use super::{
    TargetPlan,
    flow::{Flow, Item},
    schedule::{Command, Memory, Span},
};
use crate::{CompileError, Function, control::Watch, graph::Graph};

/// The versions of a function that are alike, as indices in their order; groups by their first versions.
pub type Groups = Vec<Vec<usize>>;

/// The groups of a function. Versions that differ in more than sizes are alone: those for values of inputs, and for other
/// numbers of dimensions.
///
/// # Errors
/// The work was ended.
pub(crate) fn groups(
    function: &Function,
    flows: &[Flow],
    targets: &[TargetPlan],
    index: usize,
    watch: Watch<'_>,
) -> Result<Groups, CompileError> {
    if !by_sizes(function) || function.is_open() {
        return Ok((0..flows.len()).map(|version| vec![version]).collect());
    }
    let mut known: HashMap<Key<'_>, usize> = HashMap::new();
    let mut groups: Groups = Vec::new();
    for (version, flow) in flows.iter().enumerate() {
        watch.check()?;
        let mut key = Key::of(flow);
        for target in targets {
            let lowered = &target.functions[index][version];
            key.number((lowered.transient_bytes.value() > 0).into());
            for commands in &lowered.segments {
                key.commands(commands);
            }
        }
        let next = groups.len();
        let group = *known.entry(key).or_insert(next);
        if group == next {
            groups.push(Vec::new());
        }
        groups[group].push(version);
    }
    Ok(groups)
}

/// Whether the versions of a function are told apart by the sizes of their inputs alone.
pub fn by_sizes(function: &Function) -> bool {
    let ranks = |graph: &Graph| -> Vec<usize> {
        let ports = graph.inputs.iter().chain(&graph.outputs);
        ports.map(|port| graph.port_sizes(port).len()).collect()
    };
    let first = function.versions.first().map(ranks);
    function
        .versions
        .iter()
        .all(|graph| Some(ranks(graph)) == first && graph.inputs.iter().all(|port| port.value.is_none()))
}

/// What versions with the same code have in common.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    /// Numbers of runs and the like are part of it: control flow is not data.
    items: &'a [Item],
    /// Everything else, in an order in which it can be told apart.
    numbers: Vec<u64>,
}

impl<'a> Key<'a> {
    fn of(flow: &'a Flow) -> Self {
        let mut key = Key { items: &flow.items, numbers: Vec::new() };
        key.numbers.extend(flow.inputs_used.iter().map(|used| u64::from(*used)));
        key.numbers
            .extend(flow.outputs.iter().map(|bytes| u64::from(!bytes.is_constant() || bytes.value() > 0)));
        key.numbers.extend([flow.readback_bytes, flow.segments.len() as u64, flow.states.len() as u64]);
        key.numbers.extend(flow.states.iter().flat_map(|state| [state.input as u64, state.output as u64]));
        key
    }

    fn number(&mut self, number: u64) {
        self.numbers.push(number);
    }

    fn commands(&mut self, commands: &[Command]) {
        self.number(commands.len() as u64);
        for command in commands {
            match command {
                Command::Dispatch { kernel, push, bindings, .. } => {
                    self.numbers.extend([1, *kernel as u64, push.len() as u64, bindings.len() as u64]);
                    bindings.iter().for_each(|binding| self.memory(&binding.span));
                }
                Command::Copy { from, to } => {
                    self.number(2);
                    self.memory(from);
                    self.memory(to);
                }
                Command::Barrier => self.number(3),
            }
        }
    }

    fn memory(&mut self, span: &Span) {
        self.number(match span.memory {
            Memory::Input(index) => u64::from(index) << 3,
            Memory::Output(index) => u64::from(index) << 3 | 1,
            Memory::Constants(index) => u64::from(index) << 3 | 2,
            Memory::Packed(index) => u64::from(index) << 3 | 3,
            Memory::Transient(era) => u64::from(era) << 3 | 4,
            Memory::Readback => 5,
            Memory::State(index) => u64::from(index) << 3 | 6,
        });
    }
}
